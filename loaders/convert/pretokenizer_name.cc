#include "loaders/convert/pretokenizer_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "loaders/convert/json_fields.h"
#include "loaders/gguf_value.h"
#include "text/pretokenizer_table.h"

namespace weft {
namespace {

using nlohmann::json;

// GPT-2's own, which ByteLevel has built in.
constexpr char kByteLevel[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// Steps within steps: real ones have two levels.
constexpr int kDeepest = 4;

// Where a group that opens before `at` ends; npos: nowhere.
size_t EndOfGroup(absl::string_view text, size_t at) {
  int depth = 1;
  bool in_class = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\') {
      ++at;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')' && --depth == 0) {
      return at;
    }
  }
  return absl::string_view::npos;
}

// Letters as classes of both cases. Only plain texts and alternatives of them.
bool BothCases(absl::string_view text, std::string* out) {
  for (char c : text) {
    if (absl::ascii_isalpha(c)) {
      absl::StrAppend(out, "[", std::string(1, absl::ascii_tolower(c)),
                      std::string(1, absl::ascii_toupper(c)), "]");
    } else if (c == '\'' || c == '|' || c == ' ') {
      *out += c;
    } else {
      return false;
    }
  }
  return true;
}

// The steps of a pre_tokenizer as expressions that cut one after the other.
class Steps {
 public:
  explicit Steps(absl::string_view path) : path_(path) {}

  absl::Status Add(const json& step) {
    const std::string type = TextOf(step, "type");
    if (type == "ByteLevel") {
      if (FlagOf(step, "add_prefix_space")) prefixes_space_ = true;
      if (FlagOf(step, "use_regex", true)) Append(kByteLevel);
      return absl::OkStatus();
    }
    if (type == "Digits") {
      Append(FlagOf(step, "individual_digits") ? R"(\p{N})" : R"(\p{N}+)");
      return absl::OkStatus();
    }
    if (type == "Split") return AddSplit(step);
    return Unknown(step);
  }

  const std::vector<std::string>& expressions() const { return expressions_; }
  bool prefixes_space() const { return prefixes_space_; }

 private:
  void Append(absl::string_view expression) {
    expressions_.push_back(PlainExpression(expression));
  }

  // Cut into matches and what lies between; or matches alone, where they cover
  // everything.
  absl::Status AddSplit(const json& step) {
    const auto pattern = step.find("pattern");
    if (pattern == step.end() || !pattern->is_object()) return Unknown(step);
    const std::string expression = TextOf(*pattern, "Regex");
    const std::string behavior = TextOf(step, "behavior");
    const bool invert = FlagOf(step, "invert");
    const bool cuts =
        (behavior == "Isolated") || (behavior == "Removed" && invert &&
                                     absl::EndsWith(expression, R"(|\s+)"));
    if (expression.empty() || !cuts) return Unknown(step);
    Append(expression);
    return absl::OkStatus();
  }

  absl::Status Unknown(const json& step) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "no name for the pre-tokeniser: ", path_, ": it has a step ",
        QuoteForMessage(
            step.dump(-1, ' ', true, json::error_handler_t::replace)),
        ": if you know one that cuts alike, give --pre NAME"));
  }

  const absl::string_view path_;
  std::vector<std::string> expressions_;
  bool prefixes_space_ = false;
};

// Whether texts are brought to NFC first. Other steps: `unknown`.
bool IsNfc(const json& normalizer, std::string* unknown, int depth = 0) {
  const std::string type = TextOf(normalizer, "type");
  if (type == "NFC") return true;
  if (type == "Sequence" && depth < kDeepest) {
    bool nfc = false;
    const auto steps = normalizer.find("normalizers");
    if (steps == normalizer.end() || !steps->is_array()) return false;
    for (const json& step : *steps) {
      nfc = IsNfc(step, unknown, depth + 1) || nfc;
    }
    return nfc;
  }
  if (!normalizer.is_null()) *unknown = type.empty() ? "?" : type;
  return false;
}

std::vector<std::string> PlainExpressions(const PretokenizerRow& row) {
  std::vector<std::string> plain;
  for (absl::string_view expression : row.expressions) {
    plain.push_back(PlainExpression(expression));
  }
  return plain;
}

}  // namespace

std::string PlainExpression(absl::string_view expression) {
  std::string plain;
  bool in_class = false;
  for (size_t at = 0; at < expression.size();) {
    const char c = expression[at];
    if (c == '\\') {
      // "\-" in classes and "\/" are "-" and "/".
      if (at + 1 < expression.size() && expression[at + 1] == '/') {
        plain += '/';
      } else {
        absl::StrAppend(&plain, expression.substr(at, 2));
      }
      at += 2;
      continue;
    }
    if (c == '[' && !in_class) in_class = true;
    if (c == ']') in_class = false;
    constexpr absl::string_view kNoCase = "(?i:";
    constexpr absl::string_view kGroup = "(?:";
    const absl::string_view rest = expression.substr(at);
    const bool no_case = absl::StartsWith(rest, kNoCase);
    if (in_class || (!no_case && !absl::StartsWith(rest, kGroup))) {
      plain += c;
      ++at;
      continue;
    }
    const size_t begin = at + (no_case ? kNoCase.size() : kGroup.size());
    const size_t end = EndOfGroup(expression, begin);
    std::string inner;
    if (end == absl::string_view::npos) {
      plain += c;
      ++at;
      continue;
    }
    const absl::string_view text = expression.substr(begin, end - begin);
    if (!no_case) {
      inner = std::string(text);
    } else if (!BothCases(text, &inner)) {
      plain += c;
      ++at;
      continue;
    }
    // By itself between bars, it is so many alternatives of the whole.
    const bool alone =
        (at == 0 || expression[at - 1] == '|') &&
        (end + 1 == expression.size() || expression[end + 1] == '|');
    if (alone) {
      plain += inner;
    } else {
      absl::StrAppend(&plain, "(?:", inner, ")");
    }
    at = end + 1;
  }
  constexpr absl::string_view kRest = R"(|\s+)";
  if (absl::EndsWith(plain, R"(\s+(?!\S)|\s+)")) {
    plain.resize(plain.size() - kRest.size());
  }
  return plain;
}

absl::StatusOr<PretokenizerChoice> NamePretokenizer(const json& tokenizer,
                                                    absl::string_view preferred,
                                                    absl::string_view path) {
  Steps steps(path);
  for (const json* step :
       StepsOf(Find(tokenizer, "pre_tokenizer"), "pretokenizers")) {
    WEFT_RETURN_IF_ERROR(steps.Add(*step));
  }
  if (steps.expressions().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no name for the pre-tokeniser: ", path,
                     ": it has none, so texts are not cut: if you know one "
                     "that cuts alike, give --pre NAME"));
  }
  std::string unknown;
  const auto normalizer = tokenizer.find("normalizer");
  const bool nfc =
      normalizer != tokenizer.end() && IsNfc(*normalizer, &unknown);
  const json* model = Find(tokenizer, "model");
  const bool whole = model != nullptr && FlagOf(*model, "ignore_merges");
  const PretokenizerRow* best = nullptr;
  int best_rank = -1;
  for (const PretokenizerRow& row : PretokenizerTable()) {
    if (row.traits.raw || PlainExpressions(row) != steps.expressions()) {
      continue;
    }
    const int rank = (row.traits.nfc == nfc ? 4 : 0) +
                     (row.traits.whole_pieces_first == whole ? 2 : 0) +
                     (row.name == preferred ? 1 : 0);
    if (rank <= best_rank) continue;
    best = &row;
    best_rank = rank;
  }
  if (best == nullptr) {
    std::vector<std::string> shown;
    for (const std::string& each : steps.expressions()) {
      shown.push_back(QuoteForMessage(each));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("no name for the pre-tokeniser: ", path, ": it cuts by ",
                     absl::StrJoin(shown, ", then "),
                     ": if you know one that cuts alike, give --pre NAME"));
  }
  PretokenizerChoice choice;
  choice.name = std::string(best->name);
  const auto warn = [&](absl::string_view what) {
    choice.warnings.push_back(
        absl::StrCat(path, ": ", what, ": some texts become other tokens"));
  };
  if (best->traits.nfc != nfc) {
    warn(absl::StrCat("texts are ", nfc ? "" : "not ", "brought to NFC, by '",
                      best->name, "' they are ", nfc ? "not" : ""));
  }
  if (best->traits.whole_pieces_first != whole && whole) {
    warn(
        absl::StrCat("whole pieces are taken before merges (ignore_merges), "
                     "by '",
                     best->name, "' they are not"));
  }
  if (!unknown.empty()) {
    warn(absl::StrCat("it normalises by ", QuoteForMessage(unknown)));
  }
  if (steps.prefixes_space()) {
    warn("a space is put before texts (add_prefix_space)");
  }
  return choice;
}

}  // namespace weft
