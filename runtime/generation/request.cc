#include "runtime/generation/request.h"

namespace weft {

uint64_t ChoiceSeed(uint64_t seed, int index) {
  if (index == 0) return seed;
  // Spread over all bits, so that seeds that follow each other have no choices
  // in common (the mix of SplitMix64, see sampler.cc).
  uint64_t z = seed + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(index);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

const char* Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfText:
      return "eos";
    case FinishReason::kStopToken:
      return "stop_token";
    case FinishReason::kStopString:
      return "stop_string";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContext:
      return "context";
    case FinishReason::kEmbedded:
      return "embedded";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      break;
  }
  return "error";
}

}  // namespace weft
