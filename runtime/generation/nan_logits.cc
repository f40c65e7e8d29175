#include "runtime/generation/nan_logits.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// Looked at in one go, without a branch for each.
constexpr size_t kBlock = 256;

}  // namespace

NanLogits MaskNans(absl::Span<float> logits) {
  NanLogits nans;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const absl::Span<float> block = logits.subspan(begin, kBlock);
    int found = 0;
    for (const float logit : block) found |= logit != logit;
    if (found == 0) continue;
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] == block[i]) continue;
      block[i] = -std::numeric_limits<float>::infinity();
      if (nans.count++ == 0) nans.first = static_cast<int64_t>(begin + i);
    }
  }
  return nans;
}

std::string NanWarning(const NanLogits& nans, int64_t size) {
  return absl::StrCat("logits: ", nans.count, " of ", size,
                      " are NaN, the first is token ", nans.first,
                      "'s: they are never chosen: weights of the model are "
                      "broken");
}

absl::Status CheckSomeLeft(const NanLogits& nans, int64_t size) {
  if (nans.count < size) return absl::OkStatus();
  return absl::InternalError(
      "no token can be chosen: all logits are NaN: the model or its weights "
      "are broken: check the file, or take another");
}

}  // namespace weft
