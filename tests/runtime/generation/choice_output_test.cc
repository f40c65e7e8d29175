// Text and tokens of one choice: characters across tokens, stop strings across
// both.
#include "runtime/generation/choice_output.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/api/engine.h"

namespace weft {
namespace {

// Has a token for each byte; the ids of U+1F999.
constexpr char kModel[] = "tests/data/malformed/00-valid.gguf";
const std::vector<int32_t> kLlama = {243, 162, 169, 156};

struct Told {
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> tokens;
  int found = -1;
};

class ChoiceOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto engine = Engine::Load(kModel, {});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  Told Tell(const std::vector<int32_t>& ids, std::vector<std::string> stops) {
    Request request;
    request.stop_strings = std::move(stops);
    ChoiceOutput output(engine_->tokenizer(), request);
    Told told;
    const auto take = [&told](const Event& event) {
      told.texts.push_back(event.text);
      told.tokens.emplace_back();
      for (const GeneratedToken& token : event.tokens) {
        told.tokens.back().push_back(token.id);
      }
    };
    for (const int32_t id : ids) {
      Event event;
      const auto found = output.Push({id, 0, {}}, true, &event);
      EXPECT_TRUE(found.ok());
      take(event);
      told.found = *found;
      if (*found >= 0) return told;
    }
    Event event;
    output.Finish(&event);
    take(event);
    return told;
  }

  int32_t Byte(char byte) {
    const Tokenizer& tokenizer = engine_->tokenizer();
    for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
      if (tokenizer.TokenToBytes(id) == std::string(1, byte)) return id;
    }
    ADD_FAILURE() << byte;
    return 0;
  }

  std::unique_ptr<Engine> engine_;
};

using Texts = std::vector<std::string>;
using Tokens = std::vector<std::vector<int32_t>>;

TEST_F(ChoiceOutputTest, CharactersComeWhole) {
  const Told told = Tell(kLlama, {});
  EXPECT_EQ(told.texts, Texts({"", "", "", "\xF0\x9F\xA6\x99", ""}));
  EXPECT_EQ(told.tokens, Tokens({{243}, {162}, {169}, {156}, {}}));
  EXPECT_EQ(Tell({243, 162}, {}).texts, Texts({"", "", "\xEF\xBF\xBD"}));
}

TEST_F(ChoiceOutputTest, TokensWaitForTheTextThatTheyBegin) {
  const int32_t a = Byte('a'), b = Byte('b'), c = Byte('c');
  Told told = Tell({c, a, a, b, c}, {"aab!"});
  EXPECT_EQ(told.texts, Texts({"c", "", "", "", "aabc", ""}));
  EXPECT_EQ(told.tokens, Tokens({{c}, {}, {}, {}, {a, a, b, c}, {}}));
  // What begins before the stop string is told, what begins in it is not.
  told = Tell({c, a, a, b, c}, {"ab"});
  EXPECT_EQ(told.texts, Texts({"c", "", "a", ""}));
  EXPECT_EQ(told.tokens, Tokens({{c}, {}, {a}, {}}));
  EXPECT_EQ(told.found, 0);
}

TEST_F(ChoiceOutputTest, AStopStringInsideACharacterSequence) {
  std::vector<int32_t> ids = kLlama;
  ids.push_back(Byte('a'));
  ids.push_back(243);
  const Told told = Tell(ids, {"zz",
                               "\xF0\x9F\xA6\x99"
                               "a"});
  EXPECT_EQ(told.found, 1);
  EXPECT_EQ(told.texts, Texts({"", "", "", "", ""}));
  // The whole text is gone, so no token begins before its end.
  EXPECT_EQ(told.tokens, Tokens({{243}, {162}, {169}, {}, {}}));
}

}  // namespace
}  // namespace weft
