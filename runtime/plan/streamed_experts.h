// Experts of a model that is larger than memory: which weights they are, and
// how many of them fit.
//
// Idea: a token needs a few of many experts, so their matrices may stay in the
// plan file, and a number of them, the same share in each block, is in memory
// at a time. A step goes through all blocks, so blocks that shared one memory
// would drive each other's experts out in turn. All else of a model is read for
// every token and stays in memory. Who runs the plan (expert_stream.h) reads
// what a step needs and is not there; PlanMemory counts the room for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/plan/plan.h"

namespace weft {

// Of each weight that products with experts read: how many matrices of one size
// stand behind each other in it.
std::map<std::string, int64_t> ExpertWeights(const Plan& plan);

// The weights that could be streamed, without slots: those of the model's
// graphs that nothing else reads and whose kernels take experts apart.
std::vector<ExpertGroup> StreamableExperts(const Plan& plan);

// Sets plan->streamed so that `peak`, the memory that the plan then takes at
// its most, is at most `budget`; to nothing where it does without. Errors name
// the file and the least that suffices: two experts of each block, one that is
// multiplied while the other is read.
absl::Status StreamWithin(int64_t budget, const std::string& path,
                          const std::function<int64_t()>& peak, Plan* plan);

// An error unless the streamed weights lie in a plan file that has a checksum
// of each expert.
absl::Status CheckStreams(const Plan& plan, const std::string& path);

// Bytes that are read for a token if all experts are chosen equally often (less
// where some are favourites, since those are kept); and, at the least, for a
// step of so many tokens that every expert is chosen.
double ExpertBytesPerToken(const std::vector<ExpertGroup>& groups);
double ExpertBytesPerFullStep(const std::vector<ExpertGroup>& groups);

}  // namespace weft
