#include "chat/settings.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::chat {
namespace {

// Calls `visit(name, field)` for every setting. `S` may be const.
template <typename S, typename Visit>
void ForEachSetting(S& settings, const Visit& visit) {
  auto& sampling = settings.sampling;
  visit("temperature", sampling.temperature);
  visit("top-k", sampling.top_k);
  visit("top-p", sampling.top_p);
  visit("min-p", sampling.min_p);
  visit("repeat-penalty", sampling.repeat_penalty);
  visit("repeat-window", sampling.repeat_window);
  visit("frequency-penalty", sampling.frequency_penalty);
  visit("presence-penalty", sampling.presence_penalty);
  visit("seed", sampling.seed);
  visit("tokens", settings.max_tokens);
}

template <typename T>
bool Parse(absl::string_view text, T* value) {
  if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(text, value);
  } else {
    return absl::SimpleAtoi(text, value);
  }
}

}  // namespace

absl::Status Set(absl::string_view name, absl::string_view value,
                 Settings* settings) {
  Settings changed = *settings;
  bool known = false, parsed = false;
  std::vector<std::string> names;
  ForEachSetting(changed, [&](const char* known_name, auto& field) {
    names.push_back(known_name);
    if (name != known_name) return;
    known = true;
    parsed = Parse(value, &field);
  });
  if (!known) {
    return absl::InvalidArgumentError(absl::StrCat("/set: no setting '", name,
                                                   "': use one of ",
                                                   absl::StrJoin(names, ", ")));
  }
  if (!parsed) {
    return absl::InvalidArgumentError(absl::StrCat(
        "/set: ", name, ": '", value, "' is not a number it takes"));
  }
  if (changed.max_tokens < 1) {
    return absl::InvalidArgumentError("/set: tokens: want a number from 1");
  }
  if (absl::Status s = ValidateSampling(changed.sampling); !s.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("/set: ", s.message()));
  }
  *settings = changed;
  return absl::OkStatus();
}

std::string Describe(const Settings& settings) {
  std::vector<std::string> parts;
  ForEachSetting(settings, [&](const char* name, const auto& field) {
    parts.push_back(absl::StrCat(name, " ", field));
  });
  return absl::StrJoin(parts, ", ");
}

std::string DescribeShortly(const Settings& settings) {
  const SamplingOptions& sampling = settings.sampling;
  if (sampling.temperature == 0) {
    return absl::StrCat("greedy, up to ", settings.max_tokens, " tokens");
  }
  return absl::StrCat("temperature ", sampling.temperature, ", top-k ",
                      sampling.top_k, ", top-p ", sampling.top_p, ", seed ",
                      sampling.seed, ", up to ", settings.max_tokens,
                      " tokens");
}

}  // namespace weft::chat
