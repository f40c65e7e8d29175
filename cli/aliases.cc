#include "cli/aliases.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

struct Alias {
  absl::string_view theirs, ours;
};
// Sources: llama.cpp, tools/ (--help of llama-cli and llama-server).
constexpr Alias kAliases[] = {
    {"-c", "--context"},
    {"--ctx-size", "--context"},
    {"-t", "--threads"},
    {"-s", "--seed"},
    {"--temp", "--temperature"},
    {"--predict", "-n"},
    {"--n-predict", "-n"},
    {"-sys", "--system"},
    {"--system-prompt", "--system"},
    {"--repeat-last-n", "--repeat-window"},
    {"-np", "--slots"},
    {"--parallel", "--slots"},
    {"-a", "--model-name"},
    {"--alias", "--model-name"},
    {"--no-mmap", "--copy-model"},
    {"--chat-template-file", "--chat-template"},
};
// MODEL is a file, a name on a hub or an address.
constexpr absl::string_view kModel[] = {
    "-m", "--model", "-hf", "-hfr", "--hf-repo", "-mu", "--model-url"};
// One type for keys and one for values; where one is not named it is f16.
constexpr absl::string_view kKeyType[] = {"-ctk", "--cache-type-k"};
constexpr absl::string_view kValueType[] = {"-ctv", "--cache-type-v"};

// What cannot be left out without another result, and what to write.
struct Refused {
  absl::string_view theirs, why;
};
constexpr absl::string_view kScaled =
    "positions are scaled as the model's file says: leave it out";
constexpr Refused kRefused[] = {
    {"-hff", "name the file behind the repository: owner/name:FILE"},
    {"--hf-file", "name the file behind the repository: owner/name:FILE"},
    {"-hft", "the token is HF_TOKEN in the environment"},
    {"--hf-token", "the token is HF_TOKEN in the environment"},
    {"--mmproj", "weft reads text alone, no images: leave it out"},
    {"-mm", "weft reads text alone, no images: leave it out"},
    {"--rope-scaling", kScaled},
    {"--rope-scale", kScaled},
    {"--rope-freq-base", kScaled},
    {"--rope-freq-scale", kScaled},
    {"--yarn-orig-ctx", kScaled},
    {"--yarn-ext-factor", kScaled},
    {"--yarn-attn-factor", kScaled},
    {"--lora-scaled", "write --lora FILE=SCALE"},
    {"-md", "write --speculate draft:MODEL"},
    {"--model-draft", "write --speculate draft:MODEL"},
};

// What weft does in any case, or never.
enum class Value {
  kNone,
  kOne,
  kSwitch
};  // kSwitch: "on", "off", "auto" or no
struct LeftOut {
  absl::string_view theirs;
  Value value;
  absl::string_view why;
};
constexpr absl::string_view kNoGpu = "weft runs on CPUs alone";
constexpr absl::string_view kSteps =
    "how many tokens a step has is in the plan (--buckets)";
constexpr absl::string_view kTalks =
    "weft chat holds a conversation, weft run continues a text";
constexpr absl::string_view kFused = "attention is always computed in one go";
constexpr absl::string_view kNoLock = "weft locks no memory";
constexpr absl::string_view kJinja = "chat templates are always run as Jinja";
constexpr absl::string_view kWarm = "weft runs nothing beforehand";
constexpr absl::string_view kTogether =
    "requests always share steps (--slots of them)";
constexpr LeftOut kLeftOut[] = {
    {"-ngl", Value::kOne, kNoGpu},
    {"--gpu-layers", Value::kOne, kNoGpu},
    {"--n-gpu-layers", Value::kOne, kNoGpu},
    {"-b", Value::kOne, kSteps},
    {"--batch-size", Value::kOne, kSteps},
    {"-ub", Value::kOne, kSteps},
    {"--ubatch-size", Value::kOne, kSteps},
    {"-cnv", Value::kNone, kTalks},
    {"--conversation", Value::kNone, kTalks},
    {"-no-cnv", Value::kNone, kTalks},
    {"--no-conversation", Value::kNone, kTalks},
    {"-i", Value::kNone, kTalks},
    {"--interactive", Value::kNone, kTalks},
    {"-fa", Value::kSwitch, kFused},
    {"--flash-attn", Value::kSwitch, kFused},
    {"--mlock", Value::kNone, kNoLock},
    {"--jinja", Value::kNone, kJinja},
    {"--no-warmup", Value::kNone, kWarm},
    {"-cb", Value::kNone, kTogether},
    {"--cont-batching", Value::kNone, kTogether},
};
constexpr absl::string_view kKvType = "--kv-type";
constexpr absl::string_view kUsualType = "f16";
constexpr absl::string_view kSwitches[] = {"on", "off", "auto"};

template <typename List>
bool Has(const List& list, absl::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = corner + (a[i] == b[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, corner + 1});
    }
  }
  return row.back();
}

}  // namespace

absl::StatusOr<CommandLine> TranslateFlags(
    std::vector<std::string> words,
    absl::FunctionRef<bool(absl::string_view)> knows) {
  CommandLine line;
  std::string key_type, value_type;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      line.words.insert(line.words.end(), words.begin() + i, words.end());
      break;
    }
    // "--temp=0.5" has its value with it.
    const size_t equals = words[i].find('=');
    const bool long_name = absl::StartsWith(words[i], "--");
    const std::string name = long_name ? words[i].substr(0, equals) : words[i];
    const bool with_value = long_name && equals != std::string::npos;
    if (name.size() < 2 || name[0] != '-' || knows(name)) {
      line.words.push_back(std::move(words[i]));
      continue;
    }
    const auto refused =
        std::find_if(std::begin(kRefused), std::end(kRefused),
                     [&](const Refused& each) { return each.theirs == name; });
    if (refused != std::end(kRefused)) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": ", refused->why));
    }
    const bool is_key = Has(kKeyType, name);
    if ((is_key || Has(kValueType, name)) && knows(kKvType) &&
        (with_value || i + 1 < words.size())) {
      (is_key ? key_type : value_type) =
          with_value ? words[i].substr(equals + 1) : words[++i];
      continue;
    }
    const auto left_out =
        std::find_if(std::begin(kLeftOut), std::end(kLeftOut),
                     [&](const LeftOut& each) { return each.theirs == name; });
    if (left_out != std::end(kLeftOut)) {
      if (!with_value && i + 1 < words.size() &&
          (left_out->value == Value::kOne ||
           (left_out->value == Value::kSwitch &&
            Has(kSwitches, words[i + 1])))) {
        ++i;
      }
      line.notices.push_back(
          absl::StrCat(name, " is left out: ", left_out->why));
      continue;
    }
    if (Has(kModel, name)) {
      if (with_value) line.words.push_back(words[i].substr(equals + 1));
      continue;
    }
    const auto alias =
        std::find_if(std::begin(kAliases), std::end(kAliases),
                     [&](const Alias& a) { return a.theirs == name; });
    if (alias == std::end(kAliases) || !knows(alias->ours)) {
      line.words.push_back(std::move(words[i]));
      continue;
    }
    line.words.emplace_back(alias->ours);
    if (!with_value) continue;
    const std::string value = words[i].substr(equals + 1);
    if (absl::StartsWith(alias->ours, "--")) {
      absl::StrAppend(&line.words.back(), "=", value);
    } else {
      line.words.push_back(value);
    }
  }
  if (!key_type.empty() || !value_type.empty()) {
    if (key_type.empty()) key_type = std::string(kUsualType);
    if (value_type.empty()) value_type = std::string(kUsualType);
    if (key_type != value_type) {
      return absl::InvalidArgumentError(absl::StrCat(
          "-ctk ", key_type, " -ctv ", value_type,
          ": keys and values have one type here: write --kv-type TYPE (",
          key_type == kUsualType ? value_type : key_type,
          " is for both), or both flags with the same"));
    }
    // Before what may stand behind "--".
    line.words.insert(
        line.words.begin() + std::min<size_t>(1, line.words.size()),
        absl::StrCat(kKvType, "=", key_type));
  }
  return line;
}

bool IsModelFlag(absl::string_view word) {
  return Has(kModel, word.substr(0, word.find('=')));
}

std::string DidYouMean(absl::string_view word,
                       const std::vector<std::string>& known) {
  const size_t most = word.size() <= 3 ? 1 : 2;
  std::string best;
  size_t least = most + 1;
  for (const std::string& name : known) {
    const size_t distance = Distance(word, name);
    if (distance < least) {
      least = distance;
      best = name;
    }
  }
  return best;
}

}  // namespace weft
