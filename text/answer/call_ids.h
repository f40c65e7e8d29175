// Ids of calls that every template takes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace weft::answer {

// What Mistral's templates demand.
constexpr size_t kCallIdSigns = 9;

inline bool IsShortCallId(absl::string_view id) {
  return id.size() == kCallIdSigns && absl::c_all_of(id, [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c));
         });
}

// Nine letters and digits; the same of the same text and number, everywhere.
inline std::string ShortCallId(absl::string_view text, uint64_t number) {
  constexpr absl::string_view kSigns =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  // FNV-1a, then SplitMix64's last step.
  uint64_t bits = 14695981039346656037u;
  for (const char c : text) {
    bits = (bits ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  bits += (number + 1) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  bits ^= bits >> 31;
  std::string id;
  for (size_t i = 0; i < kCallIdSigns; ++i) {
    id += kSigns[bits % kSigns.size()];
    bits /= kSigns.size();
  }
  return id;
}

}  // namespace weft::answer
