#include "text/pretokenizers.h"

#include <pcre2.h>

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "text/pretokenizer_table.h"
#include "text/unicode_additions.h"

namespace weft {
namespace {

std::string PcreMessage(int error) {
  PCRE2_UCHAR buffer[128] = {};
  pcre2_get_error_message(error, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const {
    pcre2_match_context_free(context);
  }
};

// What matching needs and threads may not share. PCRE2's default limit of ten
// million steps is lifted: the table's expressions take a few steps a byte.
struct Matcher {
  Matcher()
      : data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)) {
    pcre2_set_match_limit(context.get(), UINT32_MAX);
  }

  std::unique_ptr<pcre2_match_data, FreeMatchData> data;
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context;
};

// The expression with each \p{X} grown by what newer Unicode added to X. A
// backslash always hides the character behind it.
std::string WithAdditions(absl::string_view source) {
  std::string made;
  bool in_class = false;
  for (size_t at = 0; at < source.size();) {
    if (source[at] == '[' && !in_class) in_class = true;
    if (source[at] == ']') in_class = false;
    if (source[at] != '\\') {
      made += source[at++];
      continue;
    }
    const bool property = source.substr(at, 3) == "\\p{";
    const size_t size = property ? source.find('}', at) + 1 - at : 2;
    const absl::string_view escape = source.substr(at, size);
    at += size;
    std::string added;
    if (property) {
      const absl::string_view name = escape.substr(3, size - 4);
      for (const UnicodeAddition& row : kUnicodeAdditions) {
        // A category of one letter has those of two.
        if (row.property == name ||
            (name.size() == 1 && row.property != "Han" &&
             row.property[0] == name[0])) {
          absl::StrAppend(&added, row.characters);
        }
      }
    }
    const bool wrap = !added.empty() && !in_class;
    absl::StrAppend(&made, wrap ? "[" : "", escape, added, wrap ? "]" : "");
  }
  return made;
}

}  // namespace

// One compiled expression. Machine code where PCRE2 can make it, else
// interpreted (with its frames on the heap): the results are the same.
class Pretokenizer::Expression {
 public:
  static absl::StatusOr<std::unique_ptr<const Expression>> Compile(
      absl::string_view source) {
    // PCRE2's own \s takes U+180E for a space, which Unicode stopped doing
    // in 6.3.
    const std::string pattern = absl::StrReplaceAll(
        WithAdditions(source),
        {{"\\s", "\\p{White_Space}"}, {"\\S", "\\P{White_Space}"}});
    int error = 0;
    PCRE2_SIZE offset = 0;
    std::unique_ptr<pcre2_code, FreeCode> code(pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
        PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_UTF_CHECK,
        &error, &offset, nullptr));
    if (code == nullptr) {
      return absl::InternalError(absl::StrCat("pre-tokeniser: ", pattern, ": ",
                                              PcreMessage(error), " at ",
                                              offset));
    }
    // Refused (no executable memory) is fine: pcre2_match then interprets.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    return std::unique_ptr<const Expression>(new Expression(std::move(code)));
  }

  // Appends `piece` of `text`, cut, to `pieces`.
  absl::Status Cut(absl::string_view text, Piece piece, const Matcher& matcher,
                   std::vector<Piece>& pieces) const {
    const auto* subject =
        reinterpret_cast<PCRE2_SPTR>(text.data() + piece.begin);
    const auto append = [&](size_t begin, size_t end) {
      if (begin == end) return;
      pieces.push_back({piece.begin + static_cast<uint32_t>(begin),
                        static_cast<uint32_t>(end - begin)});
    };
    size_t position = 0;
    while (position < piece.size) {
      const int found = pcre2_match(code_.get(), subject, piece.size, position,
                                    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                                    matcher.data.get(), matcher.context.get());
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) {
        return absl::InternalError(
            absl::StrCat("pre-tokeniser: ", PcreMessage(found)));
      }
      const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(matcher.data.get());
      append(position, bounds[0]);
      append(bounds[0], bounds[1]);
      position = bounds[1];
    }
    append(position, piece.size);
    return absl::OkStatus();
  }

  size_t MemoryBytes() const {
    size_t code_bytes = 0, jit_bytes = 0;
    pcre2_pattern_info(code_.get(), PCRE2_INFO_SIZE, &code_bytes);
    pcre2_pattern_info(code_.get(), PCRE2_INFO_JITSIZE, &jit_bytes);
    return code_bytes + jit_bytes;
  }

 private:
  explicit Expression(std::unique_ptr<pcre2_code, FreeCode> code)
      : code_(std::move(code)) {}

  std::unique_ptr<pcre2_code, FreeCode> code_;
};

Pretokenizer::Pretokenizer(PretokenizerTraits traits) : traits_(traits) {}
Pretokenizer::~Pretokenizer() = default;

absl::StatusOr<std::unique_ptr<const Pretokenizer>> Pretokenizer::Create(
    absl::string_view name) {
  for (const PretokenizerRow& row : PretokenizerTable()) {
    if (row.name != name) continue;
    std::unique_ptr<Pretokenizer> made(new Pretokenizer(row.traits));
    for (const absl::string_view source : row.expressions) {
      auto expression = Expression::Compile(source);
      if (!expression.ok()) return expression.status();
      made->expressions_.push_back(*std::move(expression));
    }
    return made;
  }
  return absl::NotFoundError(absl::StrCat(
      "vocabulary: pre-tokeniser '", absl::CEscape(name),
      "' is not known: use one of ", absl::StrJoin(PretokenizerNames(), ", ")));
}

absl::StatusOr<std::vector<Pretokenizer::Piece>> Pretokenizer::Split(
    absl::string_view text) const {
  std::vector<Piece> pieces, cut;
  if (!text.empty()) pieces.push_back({0, static_cast<uint32_t>(text.size())});
  const Matcher matcher;
  for (const auto& expression : expressions_) {
    cut.clear();
    for (const Piece piece : pieces) {
      const absl::Status status = expression->Cut(text, piece, matcher, cut);
      if (!status.ok()) return status;
    }
    pieces.swap(cut);
  }
  return pieces;
}

size_t Pretokenizer::MemoryBytes() const {
  size_t bytes = sizeof(*this);
  for (const auto& expression : expressions_) {
    bytes += expression->MemoryBytes();
  }
  return bytes;
}

std::vector<absl::string_view> PretokenizerNames() {
  std::vector<absl::string_view> names;
  for (const PretokenizerRow& row : PretokenizerTable()) {
    names.push_back(row.name);
  }
  return names;
}

}  // namespace weft
