// Small templates, most of one feature each, against Jinja.
#include "tests/text/jinja/reference.h"

#include "text/jinja/template.h"

namespace weft {
namespace {

constexpr char kSnippets[] = "tests/text/jinja/snippets.json";

absl::StatusOr<std::string> Render(const std::string& source,
                                   const Json& values) {
  const auto parsed = jinja::Template::Parse(source);
  if (!parsed.ok()) return parsed.status();
  std::vector<jinja::Variable> variables;
  for (const auto& [name, value] : values.items()) {
    variables.push_back({name, value, /*marked=*/true, {}});
  }
  // 2026-03-14 15:09:26, as in reference.py.
  const auto text =
      (*parsed)->Render(variables, absl::FromUnixSeconds(1773500966));
  if (!text.ok()) return text.status();
  return jinja::ToUtf8(*text);
}

void Compare(const Json& wanted) {
  const Json snippets = Json::parse(ReadFile(kSnippets));
  ASSERT_EQ(wanted.size(), snippets["templates"].size());
  for (const auto& [source, want] : wanted.items()) {
    ExpectSame(source, want, Render(source, snippets["variables"]), source);
  }
}

TEST(JinjaReference, StoredResultsOfSnippets) {
  Compare(Json::parse(ReadFile("tests/text/jinja/expected.json")));
}

TEST(JinjaReference, LiveResultsOfSnippets) {
  const std::optional<Json> live =
      RunReference(std::string("snippets ") + kSnippets);
  if (!live.has_value()) GTEST_SKIP() << "python3-jinja2 is not installed";
  Compare(*live);
}

}  // namespace
}  // namespace weft
