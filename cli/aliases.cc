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
constexpr absl::string_view kModel[] = {"-m", "--model"};
// Each with a value.
constexpr absl::string_view kOfGpus[] = {"-ngl", "--gpu-layers",
                                         "--n-gpu-layers"};

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

CommandLine TranslateFlags(std::vector<std::string> words,
                           absl::FunctionRef<bool(absl::string_view)> knows) {
  CommandLine line;
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
    if (Has(kOfGpus, name)) {
      if (!with_value && i + 1 < words.size()) ++i;
      line.notices.push_back(
          absl::StrCat(name, " is left out: weft runs on CPUs alone"));
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
  return line;
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
