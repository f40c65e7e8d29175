// The server as its clients see it. Ids and numbers of the small model are
// those of tests/data/malformed/reference.json; prompt "hello", ids
// 1,286,264,290.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

using nlohmann::json;

constexpr char kCompletions[] = "/v1/completions";
constexpr char kChat[] = "/v1/chat/completions";
// Of the small model.
constexpr int64_t kContext = 64;

class Serve : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new Server({SmallModel("00-valid.gguf"), "--slots", "4"});
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  static json Complete(const std::string& body) {
    const Answer answer = Post(*server_, kCompletions, body);
    EXPECT_EQ(answer.status, 200) << answer.text;
    return answer.json;
  }
  static json Chat(const std::string& rest) {
    const Answer answer = Post(*server_, kChat, ChatBody(rest));
    EXPECT_EQ(answer.status, 200) << answer.text;
    return answer.json;
  }
  static std::string ChatBody(const std::string& rest) {
    return absl::StrCat(R"({"messages": [{"role": "user", "content": "hi"}], )",
                        rest, "}");
  }

  static Server* server_;
};

Server* Serve::server_ = nullptr;

// A body with all that differs between two answers to the same request.
json Comparable(json answer) {
  answer.erase("id");
  answer.erase("created");
  answer["usage"].erase("prompt_tokens_details");
  answer["usage"].erase("completion_tokens_details");
  return answer;
}

int64_t CachedTokens(const json& usage) {
  return usage["prompt_tokens_details"]["cached_tokens"];
}

void ExpectError(const Answer& answer, int status, const std::string& param) {
  EXPECT_EQ(answer.status, status) << answer.text;
  ASSERT_TRUE(answer.json.is_object()) << answer.text;
  ASSERT_TRUE(answer.json["error"].is_object()) << answer.text;
  EXPECT_TRUE(answer.json["error"]["message"].is_string());
  EXPECT_TRUE(answer.json["error"]["type"].is_string());
  EXPECT_TRUE(answer.json["error"].contains("code"));
  if (!param.empty()) {
    EXPECT_EQ(answer.json["error"]["param"], param) << answer.text;
    EXPECT_TRUE(absl::StrContains(
        answer.json["error"]["message"].get<std::string>(), param))
        << answer.text;
  }
}

// Case 33: no half characters, nothing lost, control characters escaped.
TEST_F(Serve, StreamsAreTheWholeTextInPieces) {
  const std::string request =
      R"("prompt": "hello", "temperature": 0, "max_tokens": 8)";
  const json whole = Complete(absl::StrCat("{", request, "}"));
  const std::string text = whole["choices"][0]["text"];
  // Bytes 115-3, 13-3 ... of byte tokens: see the reference.
  const Answer stream =
      Post(*server_, kCompletions,
           absl::StrCat("{", request, R"(, "stream": true})"));
  EXPECT_EQ(stream.status, 200);
  EXPECT_TRUE(absl::StrContains(stream.text, "\\u0019")) << stream.text;
  bool done = false;
  std::string joined;
  for (const json& event : Events(stream.text, &done)) {
    EXPECT_EQ(event["object"], "text_completion");
    EXPECT_FALSE(event.contains("usage"));
    joined += event["choices"][0]["text"];
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(joined, text);
}

// Case 27: greedy whatever else is set.
TEST_F(Serve, TemperatureZeroIsGreedy) {
  const json plain =
      Complete(R"({"prompt": "hello", "temperature": 0, "max_tokens": 8})");
  for (const char* rest :
       {R"("seed": 3)", R"("top_k": 40, "top_p": 0.5, "min_p": 0.1)",
        R"("repeat_penalty": 2, "frequency_penalty": 1)"}) {
    const json other = Complete(absl::StrCat(
        R"({"prompt": "hello", "temperature": 0, "max_tokens": 8, )", rest,
        "}"));
    EXPECT_EQ(Comparable(other), Comparable(plain)) << rest;
  }
}

// Case 29: the order of the chain is told.
TEST_F(Serve, PropsTellTheOrderOfSampling) {
  EXPECT_EQ(Get(*server_, "/props").json["sampling_order"],
            json({"penalties", "top_k", "top_p", "min_p", "temperature"}));
}

// Cases 31 and 47: what comes from the cache changes nothing.
TEST_F(Serve, AnAnswerFromTheCacheIsTheSameToTheBit) {
  std::string prompt = "[1";
  for (int i = 0; i < 39; ++i) absl::StrAppend(&prompt, ", ", 40 + i % 7);
  const std::string request = absl::StrCat(
      R"(, "temperature": 0, "max_tokens": 16, "repeat_penalty": 1.3,
          "logprobs": 3)");
  const std::string body =
      absl::StrCat(R"({"prompt": )", prompt, "]", request, "}");
  const std::string other =
      absl::StrCat(R"({"prompt": )", prompt.substr(0, prompt.size() - 2), "99]",
                   request, "}");
  const std::string uncached = absl::StrCat(
      R"({"prompt": )", prompt, R"(], "cache_prompt": false)", request, "}");
  // One that has cached nothing yet.
  Server server({SmallModel("00-valid.gguf"), "--slots", "4"});
  const auto complete = [&](const std::string& body, int64_t cached_tokens) {
    const Answer answer = Post(server, kCompletions, body);
    EXPECT_EQ(answer.status, 200) << answer.text;
    EXPECT_EQ(CachedTokens(answer.json["usage"]), cached_tokens);
    return Comparable(answer.json);
  };
  const json first = complete(body, 0);
  EXPECT_EQ(complete(body, 39), first);
  EXPECT_NE(complete(other, 39), first);
  EXPECT_EQ(complete(body, 39), first);
  EXPECT_EQ(complete(uncached, 0), first);
}

// Guesses are counted, can be refused, and change nothing.
TEST_F(Serve, TokensAreGuessedAndTheAnswerIsTheSame) {
  const std::string body =
      R"({"prompt": [1, 40, 41, 42, 40, 41], "ignore_eos": true,
          "temperature": 0, "max_tokens": 40, "logprobs": 2)";
  const json plain = Complete(absl::StrCat(body, R"(, "speculate": false})"));
  const json& details = plain["usage"]["completion_tokens_details"];
  EXPECT_EQ(details["accepted_prediction_tokens"], 0);
  EXPECT_EQ(details["rejected_prediction_tokens"], 0);
  for (const char* rest :
       {"", R"(, "speculate": true)", R"(, "speculate": "lookup")",
        R"(, "speculate": "off")"}) {
    EXPECT_EQ(Comparable(Complete(absl::StrCat(body, rest, "}"))),
              Comparable(plain))
        << rest;
  }
  EXPECT_GE(MetricOf(*server_, "weft_drafted_tokens_total"),
            MetricOf(*server_, "weft_accepted_tokens_total"));
  for (const char* wrong : {"3", R"("guess")", "[]"}) {
    ExpectError(Post(*server_, kCompletions,
                     absl::StrCat(body, R"(, "speculate": )", wrong, "}")),
                400, "speculate");
  }
}

// Case 35: too long is 400, with both numbers, also for a stream.
TEST_F(Serve, PromptsThatLeaveNoRoomAreRefused) {
  std::string hellos, ids = "1";
  for (int i = 0; i < 40; ++i) hellos += "hello ";
  for (int64_t i = 1; i < kContext; ++i) ids += ", 40";
  for (const std::string& prompt :
       {absl::StrCat("\"", hellos, "\""), absl::StrCat("[", ids, "]")}) {
    for (const char* rest : {"", R"(, "stream": true)"}) {
      const Answer answer =
          Post(*server_, kCompletions,
               absl::StrCat(R"({"prompt": )", prompt, R"(, "max_tokens": 1)",
                            rest, "}"));
      ExpectError(answer, 400, "");
      EXPECT_EQ(answer.json["error"]["type"], "exceed_context_size_error");
      EXPECT_EQ(answer.json["error"]["n_ctx"], kContext);
      EXPECT_GE(answer.json["error"]["n_prompt_tokens"], kContext);
    }
  }
  const std::string sixty = ids.substr(0, 1 + 59 * 4);
  const json full = Complete(absl::StrCat(
      R"({"prompt": [)", sixty,
      R"(], "max_tokens": 50, "ignore_eos": true, "temperature": 0})"));
  EXPECT_EQ(full["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(full["usage"]["prompt_tokens"], 60);
  EXPECT_LE(full["usage"]["total_tokens"], kContext + 1);
  EXPECT_GE(full["usage"]["total_tokens"], kContext);
}

TEST_F(Serve, FullContextsShiftWhereThatIsAskedFor) {
  const std::string body =
      R"({"prompt": [1, 286, 264], "max_tokens": 200, "ignore_eos": true,
          "temperature": 0, "context_overflow": "shift"})";
  const json shifted = Complete(body);
  EXPECT_EQ(shifted["usage"]["completion_tokens"], 200);
  EXPECT_GE(MetricOf(*server_, "weft_context_shifts_total"), 4);
  const json stopped = Complete(absl::StrReplaceAll(body, {{"shift", "stop"}}));
  EXPECT_LE(stopped["usage"]["total_tokens"], kContext + 1);
  ExpectError(Post(*server_, kCompletions,
                   absl::StrReplaceAll(body, {{"shift", "slide"}})),
              400, "context_overflow");
}

// Case 37: errors name the field; the server stays.
TEST_F(Serve, BadBodiesAreTold) {
  const struct {
    const char* path;
    const char* body;
    const char* param;
  } cases[] = {
      {kChat, R"({"messages": {"messages": []}})", "messages"},
      {kChat, R"({"messages": []})", "messages"},
      {kCompletions, R"({"prompt": 5.5})", "prompt"},
      {kCompletions, R"({"prompt": "a", "max_tokens": "ten"})", "max_tokens"},
      {kCompletions, R"({"prompt": "a", "max_tokens": -2})", "max_tokens"},
      {kCompletions, R"({"prompt": "a", "n": 0})", "n"},
      {kCompletions, R"({"prompt": "a", "n": 1000})", "n"},
      {kCompletions, R"({"prompt": [300]})", "prompt"},
      {kCompletions, R"({"prompt": "a", "logit_bias": {"300": 1}})",
       "logit_bias"},
      {kCompletions, "", ""},
      {kCompletions, "{", ""},
      {kCompletions, "[]", ""},
      {kCompletions, "{\"prompt\": \"\xc3\"}", ""},
      {kCompletions, R"({"prompt": "a", "seed": 1e400})", ""},
      {"/tokenize", R"({"content": 5})", "content"},
      {"/detokenize", R"({"tokens": [300]})", "tokens"},
      {"/apply-template", "{}", "messages"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.body);
    ExpectError(Post(*server_, one.path, one.body), 400, one.param);
  }
  const std::string deep(100000, '[');
  ExpectError(Post(*server_, kCompletions, deep), 400, "");
  EXPECT_EQ(Post(*server_, kCompletions,
                 R"({"prompt": "a", "temperature": null, "stop": null,
                     "max_tokens": 2})")
                .status,
            200);
  EXPECT_EQ(Post(*server_, kChat,
                 R"({"messages": [{"role": "user", "content":
                     [{"type": "text", "text": "a"}]}], "max_tokens": 2})")
                .status,
            200);
  EXPECT_EQ(Get(*server_, "/health").status, 200);
}

TEST_F(Serve, PathsAndMethods) {
  ExpectError(Get(*server_, "/v1/nothing"), 404, "");
  ExpectError(Get(*server_, kCompletions), 405, "");
  ExpectError(Get(*server_, "/v1/models/other"), 404, "");
  const json models = Get(*server_, "/v1/models").json;
  ASSERT_EQ(models["data"].size(), 1u);
  EXPECT_EQ(models["data"][0]["id"], "00-valid");
  EXPECT_EQ(Get(*server_, "/v1/models/00-valid").json, models["data"][0]);
  ExpectError(Post(*server_, "/v1/embeddings", R"({"input": "a"})"), 400, "");
}

// Case 39: usage comes once, last, with no choices, and only when asked for.
TEST_F(Serve, UsageOfAStreamEqualsTheWholeAnswers) {
  const std::string rest = R"("max_tokens": 4, "seed": 1, "temperature": 1)";
  // One that has cached nothing yet.
  Server server({SmallModel("00-valid.gguf"), "--slots", "4"});
  const auto usage_of_whole = [&] {
    const Answer answer = Post(server, kChat, ChatBody(rest));
    EXPECT_EQ(answer.status, 200) << answer.text;
    return answer.json["usage"];
  };
  const json first = usage_of_whole();
  const Answer stream = Post(
      server, kChat,
      ChatBody(absl::StrCat(
          rest,
          R"(, "stream": true, "stream_options": {"include_usage": true})")));
  bool done = false;
  const std::vector<json> events = Events(stream.text, &done);
  EXPECT_TRUE(done);
  ASSERT_GT(events.size(), 2u);
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    // As OpenAI: null until the last.
    EXPECT_EQ(events[i].value("usage", json("none")), json());
    EXPECT_EQ(events[i]["choices"].size(), 1u);
    EXPECT_EQ(events[i]["object"], "chat.completion.chunk");
  }
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(events.back()["choices"], json::array());
  const json again = usage_of_whole();
  EXPECT_EQ(events.back()["usage"], again);
  EXPECT_EQ(CachedTokens(first), 0);
  EXPECT_GT(CachedTokens(again), 0);
  EXPECT_EQ(CachedTokens(again), again["prompt_tokens"].get<int64_t>() - 1);
  for (const char* name :
       {"prompt_tokens", "completion_tokens", "total_tokens"}) {
    EXPECT_EQ(again[name], first[name]) << name;
  }
  EXPECT_FALSE(absl::StrContains(
      Post(server, kChat, ChatBody(rest + R"(, "stream": true)")).text,
      "usage"));
}

// Case 41: shapes and values of log-probabilities.
TEST_F(Serve, Logprobs) {
  const json reference =
      json::parse(ReadFile(SmallModel("reference.json")))["00-valid.gguf"];
  const json completion = Complete(
      R"({"prompt": "hello", "temperature": 0, "max_tokens": 2,
          "logprobs": 2})")["choices"][0]["logprobs"];
  for (const char* name :
       {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    EXPECT_EQ(completion[name].size(), 2u) << name;
  }
  for (int step = 0; step < 2; ++step) {
    // From raw softmax: differences of log-probabilities are those of logits.
    const json& top = reference["steps"][step]["top"];
    const double expected = top[0][1].get<double>() - top[1][1].get<double>();
    std::vector<double> values;
    for (const json& value : completion["top_logprobs"][step]) {
      values.push_back(value);
      EXPECT_LE(value, 0);
    }
    ASSERT_EQ(values.size(), 2u);
    EXPECT_NEAR(std::abs(values[0] - values[1]), expected, 2e-2);
    EXPECT_EQ(completion["token_logprobs"][step],
              std::max(values[0], values[1]));
  }
  EXPECT_EQ(completion["text_offset"][0], 0);

  const json chat =
      Chat(R"("logprobs": true, "top_logprobs": 2, "temperature": 0,
              "max_tokens": 2)")["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(chat.size(), 2u);
  for (const json& token : chat) {
    EXPECT_TRUE(token["token"].is_string());
    EXPECT_LE(token["logprob"], 0);
    EXPECT_TRUE(token["bytes"].is_array());
    ASSERT_EQ(token["top_logprobs"].size(), 2u);
    EXPECT_EQ(token["top_logprobs"][0]["logprob"], token["logprob"]);
  }
  const json none =
      Chat(R"("logprobs": true, "max_tokens": 1)")["choices"][0]["logprobs"];
  EXPECT_EQ(none["content"][0]["top_logprobs"], json::array());
  EXPECT_EQ(Chat(R"("max_tokens": 1)")["choices"][0]["logprobs"], nullptr);
}

// Case 43: n choices, the same again with the same seed.
TEST_F(Serve, SeveralChoices) {
  const std::string rest =
      R"("n": 3, "temperature": 1, "seed": 5, "max_tokens": 4)";
  const std::string body = absl::StrCat(R"({"prompt": "hello", )", rest, "}");
  const json answer = Complete(body);
  ASSERT_EQ(answer["choices"].size(), 3u);
  std::set<std::string> texts;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    texts.insert(answer["choices"][i]["text"]);
  }
  EXPECT_GT(texts.size(), 1u);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(Comparable(Complete(body)), Comparable(answer));

  std::vector<std::string> streamed(3);
  for (const json& event :
       Events(Post(*server_, kCompletions,
                   absl::StrCat(R"({"prompt": "hello", "stream": true, )", rest,
                                "}"))
                  .text)) {
    const json& choice = event["choices"][0];
    streamed[choice["index"].get<int>()] += choice["text"];
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(streamed[i], answer["choices"][i]["text"]);
  }
  const json two = Complete(
      R"({"prompt": ["hello", "he"], "n": 2, "seed": 5, "max_tokens": 2})");
  ASSERT_EQ(two["choices"].size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(two["choices"][i]["index"], i);
  EXPECT_EQ(Chat(R"("n": 2, "max_tokens": 2)")["choices"].size(), 2u);
}

// Case 45: why a text ended.
TEST_F(Serve, FinishReasons) {
  const auto reason = [](const json& answer) {
    return answer["choices"][0]["finish_reason"];
  };
  EXPECT_EQ(reason(Chat(R"("max_tokens": 1, "logit_bias": {"2": -100})")),
            "length");
  EXPECT_EQ(
      reason(Chat(R"("max_completion_tokens": 1, "logit_bias": {"2": -100})")),
      "length");
  EXPECT_EQ(reason(Chat(R"("logit_bias": {"2": 100}, "max_tokens": 5)")),
            "stop");
  const json whole =
      Complete(R"({"prompt": "hello", "temperature": 0, "max_tokens": 8})");
  EXPECT_EQ(reason(whole), "length");
  const json stopped = Complete(
      R"({"prompt": "hello", "temperature": 0, "max_tokens": 8,
          "stop": ["\u0019"]})");
  EXPECT_EQ(reason(stopped), "stop");
  EXPECT_TRUE(absl::StartsWith(
      whole["choices"][0]["text"].get<std::string>(),
      stopped["choices"][0]["text"].get<std::string>() + "\x19"));
  const json all = Chat(R"("max_tokens": -1, "temperature": 0)");
  EXPECT_TRUE(reason(all) == "length" || reason(all) == "stop");
  EXPECT_GT(all["usage"]["completion_tokens"], 8);
}

TEST_F(Serve, TokensThereAndBack) {
  const json tokens = Post(*server_, "/tokenize",
                           R"({"content": "hello", "add_special": true})")
                          .json;
  EXPECT_EQ(tokens["tokens"], json({1, 286, 264, 290}));
  EXPECT_EQ(
      Post(*server_, "/tokenize", R"({"content": "hello"})").json["tokens"],
      json({286, 264, 290}));
  EXPECT_EQ(Post(*server_, "/detokenize", R"({"tokens": [286, 264, 290]})")
                .json["content"],
            "hello");
  const json pieces = Post(*server_, "/tokenize",
                           R"({"content": "hello", "with_pieces": true})")
                          .json["tokens"];
  EXPECT_EQ(pieces[0]["id"], 286);
}

// What users write in chats is text: a forged end of turn is no token. Raw
// prompts mean what they say.
TEST_F(Serve, ControlTokensOfUsersAreText) {
  const auto prompt_tokens = [](const std::string& extra) -> int64_t {
    return Complete(absl::StrCat(R"({"prompt": "</s>", "max_tokens": 1)", extra,
                                 "}"))["usage"]["prompt_tokens"];
  };
  EXPECT_EQ(prompt_tokens(""), 2);
  EXPECT_GT(prompt_tokens(R"(, "parse_special": false)"), 2);
  const Server plain({SmallModel("00-valid.gguf"), "--no-parse-special"});
  const json answer =
      Post(plain, kCompletions, R"({"prompt": "</s>", "max_tokens": 1})").json;
  EXPECT_GT(answer["usage"]["prompt_tokens"], 2);
  const auto chat_tokens = [](const std::string& content) -> int64_t {
    return Post(*server_, kChat,
                absl::StrCat(R"({"messages": [{"role": "user", "content": ")",
                             content, R"("}], "max_tokens": 1})"))
        .json["usage"]["prompt_tokens"];
  };
  EXPECT_GE(chat_tokens("</s></s>"), chat_tokens("") + 6);
}

TEST_F(Serve, TemplatesAreShown) {
  const json prompt =
      Post(*server_, "/apply-template", ChatBody(R"("model": "x")")).json;
  EXPECT_TRUE(absl::StrContains(prompt["prompt"].get<std::string>(), "hi"))
      << prompt;
}

TEST_F(Serve, MetricsCount) {
  const double before = MetricOf(*server_, "weft_generated_tokens_total");
  Complete(R"({"prompt": "hello", "max_tokens": 3, "ignore_eos": true})");
  EXPECT_EQ(MetricOf(*server_, "weft_generated_tokens_total"), before + 3);
  EXPECT_EQ(MetricOf(*server_, "weft_slots"), 4);
  EXPECT_EQ(MetricOf(*server_, "weft_sequences_running"), 0);
  EXPECT_GT(MetricOf(*server_, "process_resident_memory_bytes"), 0);
  EXPECT_GT(MetricOf(*server_, "weft_time_to_first_token_seconds_count"), 0);
  EXPECT_GT(
      MetricOf(*server_, R"(weft_http_answers_total{route="/v1/completions",)"
                         R"(status="200"})"),
      0);
}

TEST_F(Serve, ThePageIsThere) {
  const auto page = server_->Client().Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_TRUE(absl::StrContains(page->body, "<!doctype html>"));
  EXPECT_TRUE(absl::StrContains(
      page->get_header_value("Content-Security-Policy"), "default-src 'none'"));
}

// Alone, among seven others, and again: the same JSON.
TEST_F(Serve, ARequestIsTheSameAmongOthers) {
  const std::string body =
      R"({"prompt": "hello", "temperature": 1, "seed": 9, "max_tokens": 24,
          "logprobs": 2, "n": 2, "ignore_eos": true})";
  const json alone = Comparable(Complete(body));
  std::vector<std::thread> threads;
  std::vector<json> answers(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      answers[i] = Comparable(
          Complete(i % 2 == 0 ? body
                              : absl::StrCat(R"({"prompt": "he said )", i,
                                             R"(", "max_tokens": 30, "seed": )",
                                             i, "}")));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 8; i += 2) EXPECT_EQ(answers[i], alone) << i;
}

// Waits until what is asked for holds; a test failure when it never does.
template <typename Condition>
void Eventually(const Condition& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(120);
  while (!condition()) {
    ASSERT_LT(absl::Now(), deadline);
    absl::SleepFor(absl::Milliseconds(5));
  }
}

// A model with room for texts that last.
std::string LongModel() {
  static const std::string* const path = [] {
    const std::string shape = TemporaryPath("shape.json");
    const std::string model = TemporaryPath("long.gguf");
    WriteTextFile(shape, R"({"embedding_length": 256, "block_count": 6,
        "feed_forward_length": 512, "head_count": 4, "head_count_kv": 2,
        "vocabulary_size": 512, "context_length": 16384})");
    WeftOut(
        {"synth", "--shape", shape, "--type", "Q8_0", "--quiet", "-o", model});
    return new std::string(model);
  }();
  return *path;
}

constexpr char kLong[] =
    R"({"prompt": "It was", "max_tokens": 100000, "ignore_eos": true,
        "stream": true})";

TEST(ServeTest, AClientThatGoesFreesItsSlot) {
  Server server({LongModel(), "--slots", "1", "--context", "16384"});
  httplib::Client client = server.Client();
  size_t bytes = 0;
  httplib::Request request;
  request.method = "POST";
  request.path = kCompletions;
  request.headers = {{"Content-Type", "application/json"}};
  request.body = kLong;
  request.content_receiver = [&](const char*, size_t size, uint64_t, uint64_t) {
    bytes += size;
    return bytes < 500;  // false hangs up
  };
  client.send(request);
  client.stop();
  EXPECT_GE(bytes, 500u);
  Eventually([&] {
    return MetricOf(server, "weft_requests_cancelled_total") == 1 &&
           MetricOf(server, "weft_sequences_running") == 0 &&
           MetricOf(server, "weft_kv_pages_used") == 0;
  });
  kill(server.pid(), SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

// 0 when nobody answers.
int HealthOf(const Server& server) {
  const auto answer = server.Client().Get("/health");
  return answer ? answer->status : 0;
}

TEST(ServeTest, DrainsOnRequest) {
  Server server({LongModel(), "--slots", "1", "--drain-seconds", "600"});
  std::string stream;
  std::thread running([&] {
    const auto answer = server.Client().Post(
        kCompletions, absl::StrReplaceAll(kLong, {{"100000", "4000"}}),
        "application/json");
    if (answer) stream = answer->body;
  });
  Eventually([&] { return MetricOf(server, "weft_sequences_running") == 1; });
  kill(server.pid(), SIGTERM);
  Eventually([&] { return HealthOf(server) != 200; });
  // A new request is told so, unless all has ended already.
  const auto refused = server.Client().Post(kCompletions, R"({"prompt": "a"})",
                                            "application/json");
  if (refused) {
    EXPECT_EQ(refused->status, 503);
  }
  running.join();
  bool done = false;
  EXPECT_FALSE(Events(stream, &done).empty());
  EXPECT_TRUE(done);
  EXPECT_EQ(server.Wait(), 0);
}

TEST(ServeTest, RequestsThatDoNotFinishInTimeAreCancelled) {
  Server server({LongModel(), "--slots", "1", "--context", "16384",
                 "--drain-seconds", "0"});
  std::string stream;
  std::thread running([&] {
    const auto answer =
        server.Client().Post(kCompletions, kLong, "application/json");
    if (answer) stream = answer->body;
  });
  Eventually([&] { return MetricOf(server, "weft_sequences_running") == 1; });
  kill(server.pid(), SIGINT);
  EXPECT_EQ(server.Wait(), 130);
  running.join();
  // Told in the stream, if it had begun; it does not end as if it were whole.
  EXPECT_FALSE(absl::StrContains(stream, "[DONE]"));
}

TEST(ServeTest, ASecondSignalDoesNotWait) {
  Server server({LongModel(), "--slots", "1", "--context", "16384",
                 "--drain-seconds", "600"});
  std::thread running(
      [&] { server.Client().Post(kCompletions, kLong, "application/json"); });
  Eventually([&] { return MetricOf(server, "weft_sequences_running") == 1; });
  kill(server.pid(), SIGINT);
  Eventually([&] { return HealthOf(server) != 200; });
  kill(server.pid(), SIGINT);
  EXPECT_EQ(server.Wait(), 130);
  running.join();
}

TEST(ServeTest, APortInUseIsOneLine) {
  Server server({SmallModel("00-valid.gguf")});
  ExpectError(Weft({"serve", SmallModel("00-valid.gguf"), "--port",
                    std::to_string(server.port())}),
              1);
  ExpectError(Weft({"serve", "no-such-model.gguf", "--port", "0"}), 1);
  ExpectError(Weft({"serve", "--port", "99999"}), 2);
  ExpectError(Weft({"serve", "--context-overflow", "slide"}), 2);
}

TEST(ServeTest, MemoryForGrammarsIsAskedForAtTheStart) {
  const RunResult refused =
      Weft({"serve", SmallModel("00-valid.gguf"), "--port", "0",
            "--max-grammar-bytes", "1099511627776"});
  ExpectError(refused, 1);
  EXPECT_TRUE(absl::StrContains(refused.err, "not enough memory"))
      << refused.err;
  // What a server can do about it, and no other command.
  EXPECT_TRUE(absl::StrContains(refused.err, "--slots (4) or --kv-tokens"))
      << refused.err;
}

TEST(ServeTest, KeysComeFromAFile) {
  const std::string keys = TemporaryPath("keys");
  WriteTextFile(keys, "alpha\nbeta\n");
  Server server({SmallModel("00-valid.gguf"), "--api-key-file", keys});
  ExpectError(Post(server, kCompletions, R"({"prompt": "a"})"), 401, "");
  ExpectError(Get(server, "/metrics"), 401, "");
  EXPECT_EQ(Get(server, "/health").status, 200);
  httplib::Client client = server.Client();
  client.set_bearer_token_auth("beta");
  EXPECT_EQ(client.Get("/v1/models")->status, 200);
  WriteTextFile(keys, "\n");
  ExpectError(Weft({"serve", SmallModel("00-valid.gguf"), "--api-key-file",
                    keys, "--port", "0"}),
              1);
}

// Case 51: four of 60 positions share 64: they wait for each other, and each
// ends as it would alone.
TEST(ServeTest, RequestsShareASmallCache) {
  Server server(
      {SmallModel("00-valid.gguf"), "--slots", "4", "--kv-tokens", "64"});
  const auto body = [](int i) {
    std::string ids = "1";
    for (int k = 0; k < 29; ++k) absl::StrAppend(&ids, ",", 40 + (i + k) % 9);
    return absl::StrCat(R"({"prompt": [)", ids,
                        R"(], "max_tokens": 30, "ignore_eos": true,
                            "temperature": 0, "logprobs": 1})");
  };
  std::vector<json> alone(4), together(4);
  for (int i = 0; i < 4; ++i) {
    alone[i] = Comparable(Post(server, kCompletions, body(i)).json);
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      together[i] = Comparable(Post(server, kCompletions, body(i)).json);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(together[i], alone[i]);
    EXPECT_EQ(together[i]["usage"]["completion_tokens"], 30);
  }
}

TEST(ServeTest, AFullQueueIsTold) {
  Server server(
      {LongModel(), "--slots", "1", "--queue", "1", "--context", "16384"});
  std::vector<httplib::Client> clients;
  std::vector<std::thread> threads;
  std::atomic<bool> over{false};
  const auto hold = [&] {
    httplib::Client client = server.Client();
    httplib::Request request;
    request.method = "POST";
    request.path = kCompletions;
    request.headers = {{"Content-Type", "application/json"}};
    request.body = kLong;
    request.content_receiver = [&](const char*, size_t, uint64_t, uint64_t) {
      return !over;
    };
    client.send(request);
  };
  threads.emplace_back(hold);
  Eventually([&] { return MetricOf(server, "weft_sequences_running") == 1; });
  threads.emplace_back([&] {
    server.Client().Post(kCompletions, R"({"prompt": "a", "max_tokens": 1})",
                         "application/json");
  });
  Eventually([&] { return MetricOf(server, "weft_sequences_waiting") == 1; });
  const Answer refused =
      Post(server, kCompletions, R"({"prompt": "b", "max_tokens": 1})");
  ExpectError(refused, 429, "");
  over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(ServeTest, FormatsAndForcedCallsHold) {
  Server server({"--slots", "4"});
  const auto chat = [&](const std::string& rest) {
    const Answer answer =
        Post(server, kChat,
             absl::StrCat(R"({"messages": [{"role": "user", "content": "hi"}],
                              "seed": 3, "temperature": 1.5, )",
                          rest, "}"));
    EXPECT_EQ(answer.status, 200) << answer.text;
    return answer.json;
  };
  const json schema = chat(
      R"("n": 4, "max_tokens": 200, "response_format": {"type": "json_schema",
         "json_schema": {"name": "n", "schema": {"type": "object",
           "properties": {"ok": {"type": "boolean"},
                          "kind": {"enum": ["x", "y"]}},
           "required": ["ok", "kind"], "additionalProperties": false}}})");
  for (const json& choice : schema["choices"]) {
    EXPECT_EQ(choice["finish_reason"], "stop");
    const json content = json::parse(
        choice["message"]["content"].get<std::string>(), nullptr, false);
    ASSERT_TRUE(content.is_object()) << choice;
    EXPECT_EQ(content.size(), 2u);
    EXPECT_TRUE(content["ok"].is_boolean());
    EXPECT_TRUE(content["kind"] == "x" || content["kind"] == "y");
  }
  const std::string object =
      chat(R"("max_tokens": 400, "response_format": {"type": "json_object"},
             "logit_bias": {})")["choices"][0]["message"]["content"];
  EXPECT_TRUE(absl::StartsWith(object, "{")) << object;
  const std::string word =
      chat(R"("grammar": "root ::= \"yes\" | \"no\"")")["choices"][0]["message"]
                                                       ["content"];
  EXPECT_TRUE(word == "yes" || word == "no") << word;

  const std::string tools =
      R"("tools": [{"type": "function", "function": {"name": "first",
           "parameters": {"type": "object", "properties":
             {"x": {"$ref": "#/$defs/flag"}}, "required": ["x"],
             "additionalProperties": false,
             "$defs": {"flag": {"type": "boolean"}}}}},
         {"type": "function", "function": {"name": "second",
           "parameters": {"type": "object", "properties":
             {"y": {"enum": [1, 2]}}, "required": ["y"],
             "additionalProperties": false}}}], "max_tokens": 200, )";
  for (const char* choice : {R"("tool_choice": "required")",
                             R"("tool_choice": {"type": "function",
            "function": {"name": "second"}})"}) {
    const json answer = chat(absl::StrCat(tools, choice))["choices"][0];
    EXPECT_EQ(answer["finish_reason"], "tool_calls") << answer;
    ASSERT_EQ(answer["message"]["tool_calls"].size(), 1u) << answer;
    const json& call = answer["message"]["tool_calls"][0]["function"];
    const json arguments = json::parse(call["arguments"].get<std::string>());
    if (call["name"] == "first") {
      EXPECT_FALSE(absl::StrContains(choice, "second"));
      EXPECT_TRUE(arguments["x"].is_boolean()) << call;
    } else {
      EXPECT_TRUE(arguments["y"] == 1 || arguments["y"] == 2) << call;
    }
  }
  // Named where it is not asked for strictly, and the rest holds.
  const Answer part = Post(server, kChat,
                           R"({"messages": [{"role": "user", "content": "a"}],
          "max_tokens": 200, "guided_json": {"type": "array", "minItems": 2,
          "maxItems": 2, "uniqueItems": true, "items": {"type": "integer",
          "minimum": 3, "maximum": 5}}})");
  ASSERT_EQ(part.status, 200) << part.text;
  const json& named = part.json;
  ASSERT_EQ(named["schema_dropped"].size(), 1u) << named;
  EXPECT_TRUE(absl::StrContains(named["schema_dropped"][0].get<std::string>(),
                                "uniqueItems"))
      << named;
  const json list =
      json::parse(named["choices"][0]["message"]["content"].get<std::string>());
  EXPECT_EQ(list.size(), 2u) << list;

  // A call, or what is asked for.
  const json either = chat(absl::StrCat(
      tools, R"("response_format": {"type": "json_schema", "json_schema":
                 {"schema": {"const": 17}}})"))["choices"][0];
  EXPECT_TRUE(either["finish_reason"] == "tool_calls" ||
              either["message"]["content"] == "17")
      << either;
  for (const auto& [body, param] : {
           std::pair(R"("grammar": "root ::= (")", "grammar"),
           std::pair(R"("grammar": "root ::= root")", "grammar"),
           // After the first token.
           std::pair(R"("grammar": "root ::= \"{#\" (([a-z ]*)*){0,9999}")",
                     "grammar"),
           // More work than is allowed, for the first token already.
           std::pair(R"("grammar": "root ::= (([a-z ]*)*[a-z ]*){0,5000}")",
                     "grammar"),
           // Not kept, and strictly asked for.
           std::pair(R"("response_format": {"type": "json_schema",
               "json_schema": {"strict": true, "schema": {"type": "string",
               "pattern": "(?<=a)b"}}})",
                     "response_format"),
           std::pair(R"("response_format": {"type": "json_schema",
               "json_schema": {"schema": {"type": "strange"}}})",
                     "response_format"),
       }) {
    ExpectError(Post(server, kChat,
                     absl::StrCat(
                         R"({"messages": [{"role": "user", "content": "a"}], )",
                         body, "}")),
                400, param);
  }
}

TEST(ServeTest, EncodersGiveEmbeddings) {
  const std::string model = "tests/data/golden/arch/bert.gguf";
  const std::string file = TemporaryPath("mean.f32");
  WeftOut({"eval", model, "--text", "the other", "--embedding", file});
  const std::string bytes = ReadFile(file);
  std::vector<float> mean(bytes.size() / sizeof(float));
  std::memcpy(mean.data(), bytes.data(), bytes.size());
  double squares = 0;
  for (const float x : mean) squares += double{x} * x;

  Server server({model});
  const auto embed = [&](const std::string& fields) {
    return Post(server, "/v1/embeddings", absl::StrCat("{", fields, "}"));
  };
  const json answer =
      embed(R"("input": ["the other", [2, 53, 111, 3], "the"])").json;
  ASSERT_EQ(answer["data"].size(), 3u) << answer;
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 4 + 4 + 3);
  ASSERT_EQ(answer["data"][0]["embedding"].size(), mean.size());
  for (size_t i = 0; i < mean.size(); ++i) {
    EXPECT_NEAR(answer["data"][0]["embedding"][i], mean[i] / std::sqrt(squares),
                1e-6);
  }
  EXPECT_EQ(answer["data"][1]["embedding"], answer["data"][0]["embedding"]);
  EXPECT_NE(answer["data"][2]["embedding"], answer["data"][0]["embedding"]);
  // They are requests of the scheduler like all others.
  EXPECT_EQ(MetricOf(server, "weft_requests_finished_total"), 3);
  EXPECT_EQ(MetricOf(server, "weft_prompt_tokens_total"),
            answer["usage"]["prompt_tokens"]);
  EXPECT_EQ(answer["data"][2]["index"], 2);

  const json base64 =
      embed(R"("input": "the other", "encoding_format": "base64")").json;
  std::string decoded;
  ASSERT_TRUE(absl::Base64Unescape(
      base64["data"][0]["embedding"].get<std::string>(), &decoded));
  ASSERT_EQ(decoded.size(), bytes.size());
  float first = 0;
  std::memcpy(&first, decoded.data(), sizeof(first));
  EXPECT_NEAR(first, mean[0] / std::sqrt(squares), 1e-6);

  // The same by Ollama's routes, the older one included.
  const json ollama = Post(server, "/api/embed",
                           R"({"model": "m", "input": ["the other", "the"]})")
                          .json;
  ASSERT_EQ(ollama["embeddings"].size(), 2u) << ollama;
  EXPECT_EQ(ollama["embeddings"][0], answer["data"][0]["embedding"]);
  EXPECT_EQ(ollama["embeddings"][1], answer["data"][2]["embedding"]);
  EXPECT_EQ(ollama["prompt_eval_count"], 4 + 3);
  EXPECT_EQ(Post(server, "/api/embeddings",
                 R"({"model": "m", "prompt": "the other"})")
                .json["embedding"],
            answer["data"][0]["embedding"]);

  // Cut, and of length 1 again.
  const json cut = embed(R"("input": "the other", "dimensions": 5)").json;
  ASSERT_EQ(cut["data"][0]["embedding"].size(), 5u) << cut;
  double of_five = 0;
  for (int i = 0; i < 5; ++i) of_five += double{mean[i]} * mean[i];
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(cut["data"][0]["embedding"][i], mean[i] / std::sqrt(of_five),
                1e-6);
  }
  ExpectError(
      embed(absl::StrCat(R"("input": "a", "dimensions": )", mean.size() + 1)),
      400, "dimensions");

  std::string many = "2";
  for (int i = 0; i < 128; ++i) many += ",5";
  const Answer full = embed(absl::StrCat(R"("input": [)", many, "]"));
  ExpectError(full, 400, "");
  EXPECT_EQ(full.json["error"]["type"], "exceed_context_size_error");
  // The model's own maximum: no flag gives more.
  EXPECT_FALSE(absl::StrContains(full.text, "--context")) << full.text;
  EXPECT_TRUE(absl::StrContains(full.text, "takes no more")) << full.text;
  // Cut to what fits where that is asked for, as Ollama does unless told not
  // to; a cut text still ends as the model wants it.
  std::string text = "the";
  for (int i = 0; i < 200; ++i) text += " other";
  ExpectError(embed(absl::StrCat(R"("input": ")", text, R"(")")), 400, "");
  for (const char* field :
       {R"("truncate": true)", R"("truncate_prompt_tokens": -1)"}) {
    const json fits =
        embed(absl::StrCat(field, R"(, "input": ")", text, R"(")")).json;
    EXPECT_EQ(fits["usage"]["prompt_tokens"], 128) << fits;
  }
  const json four =
      embed(absl::StrCat(R"("truncate_prompt_tokens": 4, "input": ")", text,
                         R"(")"))
          .json;
  EXPECT_EQ(four["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(four["data"][0]["embedding"], answer["data"][0]["embedding"]);
  json long_text = {{"model", "m"}, {"input", text}};
  const Answer whole = Post(server, "/api/embed", long_text.dump());
  EXPECT_EQ(whole.status, 200) << whole.text;
  EXPECT_EQ(whole.json["prompt_eval_count"], 128);
  long_text["truncate"] = false;
  EXPECT_EQ(Post(server, "/api/embed", long_text.dump()).status, 400);
  ExpectError(embed(R"("input": 5)"), 400, "input");
  // As many as OpenAI takes, in their order.
  const json inputs(2048, "the");
  json different = inputs;
  different[2047] = "the other";
  const json most = embed(absl::StrCat(R"("input": )", different.dump())).json;
  ASSERT_EQ(most["data"].size(), 2048u);
  EXPECT_EQ(most["data"][2046]["embedding"], answer["data"][2]["embedding"]);
  EXPECT_EQ(most["data"][2047]["embedding"], answer["data"][0]["embedding"]);
  different.push_back("the");
  ExpectError(embed(absl::StrCat(R"("input": )", different.dump())), 400,
              "input");
  EXPECT_EQ(
      embed(absl::StrCat(R"("input": "the", "dimensions": )", mean.size()))
          .status,
      200);
  ExpectError(Post(server, kCompletions, R"({"prompt": "a"})"), 400, "");
  ExpectError(Post(server, kChat,
                   R"({"messages": [{"role": "user", "content": "a"}]})"),
              400, "");
  EXPECT_EQ(Get(server, "/health").status, 200);
  EXPECT_EQ(Get(server, "/props").status, 200);
  EXPECT_EQ(MetricOf(server, "weft_sequences_running"), 0);
  kill(server.pid(), SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

// Larger than what is kept: parts of it are sent as they are written.
TEST_F(Serve, ManyTokensAreThereAndBack) {
  std::string text;
  for (int i = 0; i < 20000; ++i) absl::StrAppend(&text, "hello ", i % 10, " ");
  const json body = {{"content", text}, {"with_pieces", true}};
  const json pieces = Post(*server_, "/tokenize", body.dump()).json["tokens"];
  const json ids = Post(*server_, "/tokenize", json{{"content", text}}.dump())
                       .json["tokens"];
  ASSERT_EQ(pieces.size(), ids.size());
  ASSERT_GT(ids.size(), 60000u);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(pieces[i]["id"], ids[i]);
  EXPECT_EQ(Post(*server_, "/detokenize", json{{"tokens", ids}}.dump())
                .json["content"],
            text);
}

TEST(ServeTest, AnswersAreBoundedAndNamesMayBeAdded) {
  Server server({SmallModel("00-valid.gguf"), "--max-answer-bytes", "2000",
                 "--allowed-hosts", "one.example,two.example",
                 "--max-header-bytes", "512"});
  const std::string rest =
      R"("prompt": "hello", "max_tokens": 40, "ignore_eos": true,
         "logprobs": 20)";
  const Answer refused =
      Post(server, kCompletions, absl::StrCat("{", rest, "}"));
  ExpectError(refused, 400, "stream");
  EXPECT_TRUE(absl::StrContains(refused.text, "--max-answer-bytes"));
  bool done = false;
  EXPECT_FALSE(Events(Post(server, kCompletions,
                           absl::StrCat("{", rest, R"(, "stream": true})"))
                          .text,
                      &done)
                   .empty());
  EXPECT_TRUE(done);
  std::string ids = "286";
  for (int i = 0; i < 2000; ++i) ids += ",286";
  ExpectError(
      Post(server, "/detokenize", absl::StrCat(R"({"tokens": [)", ids, "]}")),
      400, "tokens");
  httplib::Client client = server.Client();
  for (const char* host : {"one.example", "two.example:1", "localhost"}) {
    EXPECT_EQ(client.Get("/health", {{"Host", host}})->status, 200) << host;
  }
  EXPECT_EQ(client.Get("/health", {{"Host", "three.example"}})->status, 403);
  EXPECT_EQ(client.Get("/health", {{"X", std::string(512, 'x')}})->status, 431);
}

TEST(ServeTest, LimitsAreTheOwners) {
  Server server({SmallModel("00-valid.gguf"), "--max-body-bytes", "200",
                 "--max-prompt-tokens", "5", "--max-generated-tokens", "3",
                 "--max-choices", "2"});
  ExpectError(Post(server, kCompletions, std::string(201, ' ')), 413, "");
  ExpectError(Post(server, kCompletions, R"({"prompt": [1,2,3,4,5,6]})"), 400,
              "prompt");
  ExpectError(Post(server, kCompletions, R"({"prompt": [1], "max_tokens": 4})"),
              400, "max_tokens");
  ExpectError(Post(server, kCompletions, R"({"prompt": [1], "n": 3})"), 400,
              "n");
  EXPECT_EQ(Post(server, kCompletions,
                 R"({"prompt": [1], "max_tokens": -1, "ignore_eos": true})")
                .json["usage"]["completion_tokens"],
            3);
}

}  // namespace
}  // namespace weft
