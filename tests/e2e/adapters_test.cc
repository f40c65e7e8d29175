// Adapters from the command line and from clients of the server. Answers are of
// the embedded model.
#include <gtest/gtest.h>

#include <filesystem>

#include "loaders/lora_adapter.h"
#include "runtime/api/model.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"
#include "tests/loaders/adapter_file.h"

namespace weft {
namespace {

using nlohmann::json;

// Two adapters, strong enough to change greedy text.
class Adapters : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto model = OpenModel("");
    ASSERT_TRUE(model.ok()) << model.status();
    AdapterFile adapter;
    first_ = new std::string(TemporaryPath("first.gguf"));
    WriteAdapter(*model, adapter, *first_);
    adapter.seed = 2;
    adapter.rank = 3;
    second_ = new std::string(TemporaryPath("second.gguf"));
    WriteAdapter(*model, adapter, *second_);
  }

  // What the command line writes with these flags.
  static json Tokens(std::vector<std::string> flags) {
    std::vector<std::string> arguments = {
        "run",           "-p", "It is a truth",    "-n", "12",
        "--temperature", "0",  "--repeat-penalty", "1",  "--json"};
    arguments.insert(arguments.begin() + 1, flags.begin(), flags.end());
    return WeftJson(arguments)["tokens"];
  }

  static std::string* first_;
  static std::string* second_;
};

std::string* Adapters::first_ = nullptr;
std::string* Adapters::second_ = nullptr;

json Body(json more) {
  json body = {{"prompt", "It is a truth"},
               {"n_predict", 12},
               {"temperature", 0},
               {"return_tokens", true}};
  body.update(more);
  return body;
}

json Asked(const Server& server, const json& more) {
  const Answer answer = Post(server, "/completion", Body(more).dump());
  EXPECT_EQ(answer.status, 200) << answer.text;
  return answer.json["tokens"];
}

// Else one would look for what is wrong with the model.
TEST_F(Adapters, ThatAreTooStrongAreNamed) {
  const auto model = OpenModel("");
  ASSERT_TRUE(model.ok()) << model.status();
  AdapterFile adapter;
  adapter.alpha = 1e37f;
  const std::string strong = TemporaryPath("strong.gguf");
  WriteAdapter(*model, adapter, strong);
  const RunResult result =
      Weft({"run", "--lora", *first_, "--lora", strong + "=1000", "--lora",
            *second_ + "=0", "-p", "It is", "-n", "2"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("first.gguf=1, "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("strong.gguf=1000"), std::string::npos)
      << result.err;
  EXPECT_EQ(result.err.find("second.gguf"), std::string::npos) << result.err;
  ExpectError(Weft({"run", "--lora", *first_ + "=1e30", "-n", "1"}), 1);
}

TEST_F(Adapters, ClientsChooseThemForEachRequest) {
  const std::string log = TemporaryPath("adapters.jsonl");
  std::filesystem::remove(log);
  const json base = Tokens({});
  const json first = Tokens({"--lora", *first_});
  const json both = Tokens({"--lora", *first_, "--lora", *second_ + "=0.5"});
  EXPECT_NE(base, first);
  EXPECT_NE(first, both);
  {
    Server server({"--lora", *first_, "--lora", *second_ + "=0", "--slots", "2",
                   "--log-requests", log});
    const json list = Get(server, "/lora-adapters").json;
    ASSERT_EQ(list.size(), 2u);
    EXPECT_EQ(
        list[0],
        (json{{"id", 0}, {"path", *first_}, {"rank", 4}, {"scale", 1.0}}));
    EXPECT_EQ(list[1]["scale"], 0.0);

    const json one = {{{"id", 0}, {"scale", 1}}};
    const json two = {{{"id", 1}, {"scale", 0.5}}, {{"id", 0}, {"scale", 1}}};
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(Asked(server, json::object()), first);
      EXPECT_EQ(Asked(server, {{"lora", one}}), first);
      EXPECT_EQ(Asked(server, {{"lora", json::array()}}), base);
      EXPECT_EQ(Asked(server, {{"lora", two}}), both);
    }

    const auto post = [&](const json& scales) {
      return Post(server, "/lora-adapters", scales.dump());
    };
    EXPECT_EQ(post(two).json, (json{{"success", true}}));
    EXPECT_EQ(Get(server, "/lora-adapters").json[1]["scale"], 0.5);
    EXPECT_EQ(Asked(server, json::object()), both);
    EXPECT_EQ(post(json::array()).status, 200);
    EXPECT_EQ(Asked(server, json::object()), base);
    EXPECT_EQ(post({{{"id", 2}, {"scale", 1}}}).status, 400);
    EXPECT_EQ(post({{"id", 0}, {"scale", 1}}).status, 400);
    EXPECT_EQ(Asked(server, json::object()), base);

    // Chat and OpenAI's completions have the field, too.
    for (const char* route : {"/v1/completions", "/v1/chat/completions"}) {
      const auto ask = [&](const json& lora) {
        const json body = {
            {"prompt", "It is a truth"},
            {"messages", {{{"role", "user"}, {"content", "It is a truth"}}}},
            {"max_tokens", 12},
            {"temperature", 0},
            {"lora", lora}};
        return Post(server, route, body.dump());
      };
      EXPECT_NE(ask(one).json["choices"], ask(json::array()).json["choices"]);
      EXPECT_EQ(ask(one).json["choices"], ask(one).json["choices"]);
      for (const json& wrong : std::vector<json>{
               {{{"id", 2}, {"scale", 1}}},
               {{{"id", -1}, {"scale", 1}}},
               {{{"id", 0}}},
               {{{"scale", 1}}},
               {{{"id", 0}, {"scale", "1"}}},
               {{{"id", 0}, {"scale", 1e30}}},
               {{{"id", 0}, {"scale", 1}}, {{"id", 0}, {"scale", 1}}},
               {{"id", 0}, {"scale", 1}},
               {0, 1},
               1}) {
        const Answer answer = ask(wrong);
        EXPECT_EQ(answer.status, 400) << wrong << answer.text;
      }
      EXPECT_EQ(ask({{{"id", 2}, {"scale", 1}}}).json["error"]["param"],
                "lora");
    }
  }
  // The log has each request's scales, also those of requests that did not say.
  const RunResult replayed =
      Weft({"replay", log, "--lora", *first_, "--lora", *second_ + "=3"});
  EXPECT_EQ(replayed.exit_code, 0) << replayed.out << replayed.err;
}

TEST_F(Adapters, OfAModelWithoutAreRefused) {
  Server server({});
  EXPECT_EQ(Get(server, "/lora-adapters").json, json::array());
  EXPECT_EQ(Post(server, "/completion",
                 Body({{"lora", {{{"id", 0}, {"scale", 1}}}}}).dump())
                .status,
            400);
  EXPECT_EQ(Asked(server, {{"lora", json::array()}}), Tokens({}));
}

TEST_F(Adapters, PlansHaveThemBesideOrMerged) {
  const std::string plan = TemporaryPath("beside.weft");
  WeftOut(
      {"compile", "models/austen-Q8_0.gguf", "--lora", *first_, "-o", plan});
  EXPECT_EQ(Tokens({plan}), Tokens({"--lora", *first_}));
  const json inspected = WeftJson({"inspect", plan, "--json"});
  EXPECT_EQ(inspected["model"]["adapters"][0]["rank"], 4);

  WeftOut({"compile", "models/austen-Q8_0.gguf", "--lora", *first_,
           "--merge-lora", "-o", plan});
  EXPECT_FALSE(
      WeftJson({"inspect", plan, "--json"})["model"].contains("adapters"));
  EXPECT_NE(Tokens({plan}), Tokens({}));
}

TEST_F(Adapters, MistakesAreTold) {
  const std::string plan = TemporaryPath("mistake.weft");
  const std::vector<std::string> compile = {
      "compile", "models/austen-Q8_0.gguf", "-o", plan};
  const auto fails = [&](std::vector<std::string> arguments, int exit_code) {
    ExpectError(Weft(arguments), exit_code);
    EXPECT_FALSE(std::filesystem::exists(plan));
  };
  const auto with = [&](std::vector<std::string> flags) {
    std::vector<std::string> arguments = compile;
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
  };
  fails(with({"--merge-lora"}), 2);
  fails(with({"--lora", *first_, "--weights", "reference"}), 2);
  fails(with({"--lora", "none.gguf"}), 1);
  fails(with({"--lora", *first_ + "=nan"}), 1);
  fails(with({"--lora", "models/austen-Q8_0.gguf"}), 1);
  fails({"run", SmallModel("00-valid.gguf"), "--lora", *first_, "-p", "x"}, 1);
  fails({"serve", "--models", "models", "--lora", *first_, "--port", "0"}, 2);
  WeftOut(compile);
  ExpectError(Weft({"run", plan, "--lora", *first_, "-p", "x"}), 2);
}

}  // namespace
}  // namespace weft
