// Templates in the manner of published models on several conversations, against
// Jinja.
#include "tests/text/jinja/reference.h"

#include "text/chat_template.h"

namespace weft {
namespace {

constexpr char kFolder[] = "tests/text/chat_templates/";

absl::StatusOr<std::string> Render(const std::string& source,
                                   const Json& conversation) {
  const auto parsed = ChatTemplate::Parse(source, "<s>", "</s>");
  if (!parsed.ok()) return parsed.status();
  ChatRequest request;
  request.messages = conversation["messages"];
  request.tools = conversation.value("tools", Json());
  request.add_generation_prompt =
      conversation.value("add_generation_prompt", true);
  request.variables = conversation.value("variables", Json());
  // 2026-03-14 15:09:26, as in reference.py.
  request.now = absl::FromUnixSeconds(1773500966);
  const auto segments = parsed->Render(request);
  if (!segments.ok()) return segments.status();
  for (size_t i = 0; i < segments->size(); ++i) {
    EXPECT_FALSE((*segments)[i].text.empty());
    if (i > 0) {
      EXPECT_NE((*segments)[i].from_template, (*segments)[i - 1].from_template);
    }
  }
  return JoinSegments(*segments);
}

void Compare(const Json& wanted) {
  const Json conversations =
      Json::parse(ReadFile(std::string(kFolder) + "conversations.json"));
  size_t compared = 0;
  std::string stem, source;
  for (const auto& [name, want] : wanted.items()) {
    const size_t colon = name.find(": ");
    if (name.substr(0, colon) != stem) {
      stem = name.substr(0, colon);
      source = ReadFile(kFolder + stem + ".jinja");
    }
    for (const Json& conversation : conversations) {
      if (conversation["name"] != name.substr(colon + 2)) continue;
      ExpectSame(name, want, Render(source, conversation), source);
      ++compared;
    }
  }
  EXPECT_EQ(compared, wanted.size());
  EXPECT_EQ(compared % conversations.size(), 0u);
  EXPECT_GE(compared / conversations.size(), 20u);
}

TEST(ChatTemplateReference, StoredResults) {
  Compare(Json::parse(ReadFile(std::string(kFolder) + "expected.json")));
}

TEST(ChatTemplateReference, LiveResults) {
  const std::optional<Json> live =
      RunReference(std::string("templates ") + kFolder);
  if (!live.has_value()) GTEST_SKIP() << "python3-jinja2 is not installed";
  Compare(*live);
}

}  // namespace
}  // namespace weft
