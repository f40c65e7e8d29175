// What holds for every made-up model, by its file: for the tests of families
// and of what they are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "loaders/gguf.h"
#include "loaders/lora_adapter.h"
#include "runtime/api/engine.h"
#include "runtime/check/reference_run.h"

namespace weft {

// Ids below 320, the same in every run.
std::vector<int32_t> SomeTokens(int count);

// Of all positions, one row after the other.
std::vector<float> Logits(const std::string& path, const EngineOptions& options,
                          const std::vector<int32_t>& tokens, int64_t chunk);

// False where there are none.
bool SameBits(const std::vector<float>& a, const std::vector<float>& b);

// Logits have the same bits in chunks of 1, 7 and 512, by 1 thread and 2, of
// eight sequences together, and without each pass that keeps bits, and without
// all of them.
void ExpectBitsOfTokensAlone(const std::string& path);

// Logits have the same bits, in chunks of 1, 7 and 512, from a plan file in
// which experts stay: with two of each block in memory, and with half of them.
// How many blocks have such experts; 0: nothing was compared.
int ExpectBitsOfStreamedExperts(const std::string& path);

// Every pass keeps what the model computes of these tokens. The plan, of steps
// of 1 and 8 tokens.
absl::StatusOr<Plan> ExpectPassesKeepResults(
    const GgufFile& file, const std::vector<int32_t>& tokens,
    ReferenceEvaluator* evaluator,
    const std::vector<AdapterChoice>& adapters = {});

// So does every kernel, in plans whose arenas are at the lower bound.
void ExpectReferenceResults(const GgufFile& file,
                            const std::vector<int32_t>& tokens,
                            const std::vector<AdapterChoice>& adapters = {});
// Of some tokens.
void ExpectReferenceResults(const std::string& path);

}  // namespace weft
