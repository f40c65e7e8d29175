#include "runtime/api/ranking.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "text/segment.h"

namespace weft {
namespace {

// The template's text, and in place of {query} and {document} the texts, which
// are not looked through again.
std::vector<TextSegment> FillTemplate(absl::string_view pattern,
                                      absl::string_view query,
                                      absl::string_view document) {
  struct Place {
    absl::string_view name, text;
  };
  const Place places[] = {{"{query}", query}, {"{document}", document}};
  std::vector<TextSegment> segments;
  while (!pattern.empty()) {
    size_t first = absl::string_view::npos;
    const Place* found = nullptr;
    for (const Place& place : places) {
      const size_t at = pattern.find(place.name);
      if (at >= first) continue;
      first = at;
      found = &place;
    }
    segments.push_back(
        {std::string(pattern.substr(0, first)), /*from_template=*/true});
    if (found == nullptr) break;
    segments.push_back({std::string(found->text), /*from_template=*/false});
    pattern.remove_prefix(first + found->name.size());
  }
  return segments;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> PairTokens(const Plan& plan,
                                                const Tokenizer& tokenizer,
                                                absl::string_view query,
                                                absl::string_view document,
                                                EncodeOptions options) {
  const Vocabulary& vocabulary = plan.vocabulary;
  options.add_special = false;
  if (!vocabulary.pair_template().empty()) {
    options.parse_special = true;
    return tokenizer.EncodeSegments(
        FillTemplate(vocabulary.pair_template(), query, document), options);
  }
  options.parse_special = false;
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> first,
                        tokenizer.Encode(query, options));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> second,
                        tokenizer.Encode(document, options));
  std::vector<int32_t> ids;
  if (tokenizer.add_bos()) ids.push_back(tokenizer.bos());
  ids.insert(ids.end(), first.begin(), first.end());
  if (tokenizer.add_eos()) ids.push_back(tokenizer.eos());
  if (vocabulary.add_separator() && vocabulary.separator() >= 0) {
    ids.push_back(vocabulary.separator());
  }
  ids.insert(ids.end(), second.begin(), second.end());
  if (tokenizer.add_eos()) ids.push_back(tokenizer.eos());
  return ids;
}

absl::StatusOr<std::vector<float>> Score(Engine& engine,
                                         absl::string_view query,
                                         absl::string_view document) {
  const ModelInfo& model = engine.plan().model;
  if (model.gives != ModelOutput::kScores) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model ranks nothing: ", model.architecture, " gives ",
                     model.output(), ": use one with a head that ranks"));
  }
  WEFT_ASSIGN_OR_RETURN(
      const std::vector<int32_t> tokens,
      PairTokens(engine.plan(), engine.tokenizer(), query, document));
  return engine.Embed(tokens);
}

}  // namespace weft
