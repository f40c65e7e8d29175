// What the executor and the kernels rely on and never check themselves.
//
// Thread-safe. Errors name the node or value and what is wrong with it.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.h"

namespace weft {

// Rules that a plan keeps beyond those of its graphs: every node has a kernel
// that this machine has and that does not refuse it, one weight's kernels sum
// in one order, every intermediate has a place, and no two that are alive at
// once overlap; views look into the arena; weights that have bytes (or will)
// have as many as their types need. Run on every plan that is compiled.
// `machine`: what the kernels may need at most.
absl::Status VerifyPlan(const Plan& plan, Isa machine = DetectIsa());

// VerifyPlan, and what running it as a language model takes: buckets that
// differ in nothing but the number of tokens, the standard inputs and nothing
// else as indices, each where its numbers are in range (ids only into tables of
// the vocabulary's size, positions below the context, ...), one output of
// logits of the vocabulary's size besides the states, and sizes that can be
// added without overflow. Run on every plan that is loaded.
absl::Status VerifyModelPlan(const Plan& plan, Isa machine = DetectIsa());

}  // namespace weft
