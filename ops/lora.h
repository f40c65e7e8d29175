// Adapters (LoRA; Hu et al. 2021, arXiv:2106.09685) in a graph: two small
// products beside one with a weight,
//
//   y = x W^T + sum over adapters i of s_i * (x A_i^T) B_i
//
// with A_i f32[rank,K], B_i f32[rank,N] (each with a row for each rank) and a
// number s_i for each row of x. An adapter whose s_i is 0 adds nothing: the row
// has the bits that it has without it, whatever A_i and B_i hold.
//
// Loaders attach what a file of adapters has to the weight by name, as weights
// that nobody reads; the pass add-adapters makes lora_add of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Adapters of one graph, and the sum of their ranks at one weight, at most.
constexpr int64_t kMostAdapters = 64;
constexpr int64_t kMostRanks = 1 << 16;

// The names of A and B of the adapter with this number at the weight `weight`.
std::string LoraAName(absl::string_view weight, int64_t adapter);
std::string LoraBName(absl::string_view weight, int64_t adapter);

// LoraAddAttributes::ranks. Errors: no list of 1 to kMostAdapters numbers from
// 0 on whose sum is 1 to kMostRanks.
absl::StatusOr<std::vector<int64_t>> ParseLoraRanks(absl::string_view text);
std::string LoraRanksText(const std::vector<int64_t>& ranks);

}  // namespace weft
