// What the user may change while he chats, by name.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/generation/sampler.h"

namespace weft::chat {

struct Settings {
  SamplingOptions sampling;
  int64_t max_tokens = 512;  // of an answer
};

// By the names of the flags ("top-k"; "tokens" is -n). Errors, then nothing
// changes: no such name, no number, out of range.
absl::Status Set(absl::string_view name, absl::string_view value,
                 Settings* settings);

// "temperature 0.8, top-k 50, ...": every setting, in order.
std::string Describe(const Settings& settings);

// The same of those that matter most, in few words.
std::string DescribeShortly(const Settings& settings);

}  // namespace weft::chat
