// Model files that change while they are used, and what is chosen in place of
// what they say: pre-tokeniser, normalisation, chat template.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "runtime/api/engine.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

constexpr char kByteLevel[] = "tests/data/golden/arch/gpt2.gguf";
constexpr char kEncoder[] = "tests/data/golden/arch/bert.gguf";
constexpr char kCompletions[] = "/v1/completions";
constexpr char kBody[] =
    R"({"prompt": "hello", "temperature": 0, "max_tokens": 8})";

std::string CopyOf(const std::string& model, const std::string& name) {
  const std::string path = TemporaryPath(name);
  std::filesystem::copy_file(model, path,
                             std::filesystem::copy_options::overwrite_existing);
  return path;
}

// In place: zeros in place of the second half, as a download that is done again
// would leave it for a while. The time is set, since clocks of file systems
// tick slowly.
void Overwrite(const std::string& path) {
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  const std::string zeros(info.st_size / 2, '\0');
  EXPECT_EQ(pwrite(file, zeros.data(), zeros.size(), info.st_size / 2),
            static_cast<ssize_t>(zeros.size()));
  const timespec times[] = {info.st_atim, {info.st_mtim.tv_sec + 1, 0}};
  EXPECT_EQ(futimens(file, times), 0);
  close(file);
}

int Count(absl::string_view text, absl::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != absl::string_view::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(ChangedModel, EveryRequestOfAServerIsRefusedAndTheLogHasALine) {
  const std::string plan = TemporaryPath("served.weft");
  WeftOut({"compile", SmallModel("00-valid.gguf"), "-o", plan, "--quiet"});
  for (const std::string& model :
       {CopyOf(SmallModel("00-valid.gguf"), "served.gguf"), plan}) {
    Server server({model});
    ASSERT_EQ(Post(server, kCompletions, kBody).status, 200);
    EXPECT_EQ(Get(server, "/health").status, 200);
    Overwrite(model);
    EXPECT_EQ(Get(server, "/health").status, 503);
    for (int i = 0; i < 2; ++i) {
      const Answer answer = Post(server, kCompletions, kBody);
      EXPECT_EQ(answer.status, 500);
      EXPECT_TRUE(absl::StrContains(
          answer.json["error"]["message"].get<std::string>(), "has changed"));
    }
    EXPECT_EQ(Count(server.Log(), "has changed"), 1) << server.Log();
  }
}

TEST(ChangedModel, ACopyInMemoryDoesNotCare) {
  const std::string plan = TemporaryPath("copied.weft");
  WeftOut({"compile", SmallModel("00-valid.gguf"), "-o", plan, "--quiet"});
  for (const std::string& model :
       {CopyOf(SmallModel("00-valid.gguf"), "copied.gguf"), plan}) {
    const auto text = [](const Server& server) {
      const Answer answer = Post(server, kCompletions, kBody);
      EXPECT_EQ(answer.status, 200);
      return answer.json["choices"][0]["text"].get<std::string>();
    };
    std::string mapped;
    {
      Server server({model});
      mapped = text(server);
    }
    Server server({model, "--copy-model"});
    EXPECT_EQ(text(server), mapped);
    Overwrite(model);
    EXPECT_EQ(text(server), mapped);
  }
}

TEST(ChangedModel, WhatAnEngineIsAskedIsRefused) {
  for (const bool copy : {false, true}) {
    const std::string model = CopyOf(SmallModel("00-valid.gguf"), "asked.gguf");
    EngineOptions options;
    options.copy_model = copy;
    const auto engine = Engine::Load(model, options);
    ASSERT_TRUE(engine.ok()) << engine.status();
    const auto evaluate = [&] {
      return (*engine)->Evaluate(
          {1, 2}, {1}, 0,
          [](int64_t, absl::Span<const float>) { return absl::OkStatus(); });
    };
    EXPECT_TRUE(evaluate().ok());
    Overwrite(model);
    EXPECT_EQ(absl::IsFailedPrecondition(evaluate()), !copy);
  }
  const std::string model = CopyOf(kEncoder, "embedded.gguf");
  const auto engine = Engine::Load(model, {});
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_TRUE((*engine)->Embed({1, 2}).ok());
  Overwrite(model);
  EXPECT_TRUE(absl::IsFailedPrecondition((*engine)->Embed({1, 2}).status()));
}

int64_t PromptTokens(std::vector<std::string> arguments) {
  for (const char* more : {"-p", "e\u0301", "-n", "1", "--json"}) {
    arguments.push_back(more);
  }
  return WeftJson(arguments)["prompt_tokens"];
}

TEST(Pretokenizer, IsChosenByName) {
  const int64_t as_is = PromptTokens({"run", kByteLevel});
  // qwen2 puts texts into NFC first.
  const int64_t composed = PromptTokens({"run", kByteLevel, "--pre", "qwen2"});
  EXPECT_LT(composed, as_is);
  EXPECT_EQ(
      PromptTokens({"run", kByteLevel, "--pre", "qwen2", "--no-normalize"}),
      as_is);
  const std::string digits =
      WeftOut({"tokenize", kByteLevel, "--pre", "qwen2", "a 1234's"});
  EXPECT_NE(digits, WeftOut({"tokenize", kByteLevel, "a 1234's"}));
  ExpectError(Weft({"run", kByteLevel, "--pre", "nobody"}), 2);
  ExpectError(Weft({"tokenize", kByteLevel, "--pre", "nobody", "a"}), 2);
  ExpectError(
      Weft({"tokenize", SmallModel("00-valid.gguf"), "--pre", "qwen2", "a"}),
      1);
}

TEST(Pretokenizer, APlanKeepsTheOneItWasCompiledWith) {
  const std::string wanted =
      WeftOut({"tokenize", kByteLevel, "--pre", "qwen2", "a 1234's e\u0301"});
  for (const char* weights : {"packed", "reference"}) {
    const std::string plan = TemporaryPath(std::string(weights) + ".weft");
    WeftOut({"compile", kByteLevel, "--pre", "qwen2", "--weights", weights,
             "-o", plan, "--quiet"});
    EXPECT_EQ(WeftOut({"tokenize", plan, "a 1234's e\u0301"}), wanted);
    ExpectError(Weft({"tokenize", plan, "--pre", "gpt-2", "a"}), 2);
    ExpectError(Weft({"run", plan, "--pre", "gpt-2", "-p", "a"}), 2);
  }
}

TEST(Normalization, IsLeftOutByEveryCommandThatReadsText) {
  const std::string plan = TemporaryPath("nfc.weft");
  WeftOut({"compile", kByteLevel, "--pre", "qwen2", "-o", plan, "--quiet"});
  const std::string text = TemporaryPath("decomposed.txt");
  WriteTextFile(text, "e\u0301e\u0301e\u0301");
  const auto count = [](const nlohmann::json& json) {
    return json["tokens"].get<int64_t>();
  };
  EXPECT_GT(count(WeftJson(
                {"perplexity", plan, "-f", text, "--json", "--no-normalize"})),
            count(WeftJson({"perplexity", plan, "-f", text, "--json"})));
  const auto positions = [](const nlohmann::json& json) {
    return json["argmax"].size();
  };
  EXPECT_GT(positions(WeftJson({"eval", plan, "--text", "e\u0301", "--json",
                                "--no-normalize"})),
            positions(WeftJson({"eval", plan, "--text", "e\u0301", "--json"})));
  for (const bool normalize : {true, false}) {
    std::vector<std::string> arguments = {plan};
    if (!normalize) arguments.push_back("--no-normalize");
    const Server server(arguments);
    const Answer answer = Post(
        server, "/v1/completions",
        "{\"prompt\": \"e\u0301\", \"max_tokens\": 1, \"temperature\": 0}");
    EXPECT_EQ(answer.json["usage"]["prompt_tokens"].get<int64_t>() > 2,
              !normalize);
  }
}

TEST(ChatTemplateFlag, NamesAndFiles) {
  const std::string model = SmallModel("00-valid.gguf");
  const std::string path = TemporaryPath("mine.jinja");
  WriteTextFile(path, "{% for m in messages %}[{{ m.content }}]{% endfor %}");
  {
    const Server server({model, "--chat-template", path});
    EXPECT_EQ(Get(server, "/props").json["chat_template"], ReadFile(path));
    const Answer answer = Post(
        server, "/v1/chat/completions",
        R"({"messages": [{"role": "user", "content": "a"}], "max_tokens": 1})");
    EXPECT_EQ(answer.status, 200) << answer.text;
  }
  {
    const Server server({model, "--chat-template", "llama3"});
    EXPECT_TRUE(absl::StrContains(
        Get(server, "/props").json["chat_template"].get<std::string>(),
        "<|eot_id|>"));
  }
  for (const char* command : {"chat", "serve"}) {
    const RunResult unknown =
        Weft({command, model, "--chat-template", "nobody"});
    ExpectError(unknown, 2);
    EXPECT_TRUE(absl::StrContains(unknown.err, "llama3")) << unknown.err;
    WriteTextFile(path, "{% for %}");
    const RunResult broken = Weft({command, model, "--chat-template", path});
    ExpectError(broken, 1);
    EXPECT_TRUE(absl::StrContains(broken.err, "line 1")) << broken.err;
  }
}

TEST(ChatTemplateFlag, TheTerminalChatTakesIt) {
  RunOptions options;
  options.input = "hello\n";
  const std::vector<std::string> chat = {"chat", "--temperature", "0", "-n",
                                         "8"};
  const auto with = [&](const std::string& choice) {
    std::vector<std::string> arguments = chat;
    if (!choice.empty()) {
      arguments.insert(arguments.end(), {"--chat-template", choice});
    }
    return WeftOut(arguments, options);
  };
  // The embedded model has none.
  EXPECT_EQ(with("plain"), with(""));
  EXPECT_NE(with("vicuna"), with(""));
}

}  // namespace
}  // namespace weft
