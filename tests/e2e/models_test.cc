// weft serve --models: several models by name, in a budget of memory.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/api/model.h"
#include "tests/e2e/scripted_model.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"
#include "tests/loaders/adapter_file.h"
#include "tests/loaders/convert/published_folder.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kTemplate[] =
    "{% for message in messages %}{{ message.content }}{% endfor %}<|go|>";

// A folder of models that say their own names.
class Models : public testing::Test {
 protected:
  static constexpr const char* kNames[] = {"ant", "bee", "cat", "dog"};

  static void SetUpTestSuite() {
    folder_ = new std::string(TemporaryPath("models"));
    fs::remove_all(*folder_);
    fs::create_directory(*folder_);
    for (const char* name : kNames) {
      fs::rename(
          ScriptedModel(absl::StrCat(name, ".gguf"), Saying(name), kTemplate),
          absl::StrCat(*folder_, "/", name, ".gguf"));
    }
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string Saying(const std::string& name) {
    return absl::StrCat("I am the ", name);
  }

  static std::vector<std::string> Arguments(
      const std::vector<std::string>& more) {
    std::vector<std::string> all = {
        "--models", *folder_, "--slots", "2", "--max-grammar-bytes", "1000000"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  static json Question(const std::string& name) {
    json body = {{"messages", {{{"role", "user"}, {"content", "who"}}}}};
    if (!name.empty()) body["model"] = name;
    return body;
  }
  // What the model of this name says.
  static std::string Ask(const Server& server, const std::string& name) {
    const Answer answer =
        Post(server, "/v1/chat/completions", Question(name).dump());
    EXPECT_EQ(answer.status, 200) << answer.text;
    if (answer.status != 200) return "";
    return answer.json["choices"][0]["message"]["content"];
  }
  static json InfoOf(const Server& server, const std::string& name) {
    return Get(server, "/v1/models/" + name).json;
  }

  static std::string* folder_;
};

std::string* Models::folder_ = nullptr;

TEST_F(Models, AreLoadedWhenTheyAreAskedFor) {
  const Server server(Arguments({"--alias", "insect=ant", "bee"}));
  EXPECT_EQ(Get(server, "/v1/models").json["data"].size(), 4u);
  EXPECT_EQ(InfoOf(server, "ant")["status"], "unloaded");
  EXPECT_EQ(Ask(server, "ant"), Saying("ant"));
  const json info = InfoOf(server, "insect");
  EXPECT_EQ(info["id"], "ant");
  EXPECT_EQ(info["status"], "ready");
  EXPECT_GT(info["memory_bytes"], 0);
  EXPECT_GT(info["context_length"], 0);
  EXPECT_EQ(Ask(server, "insect"), Saying("ant"));
  EXPECT_EQ(Ask(server, ""), Saying("bee"));
  EXPECT_EQ(Ask(server, "cat:latest"), Saying("cat"));
  EXPECT_EQ(MetricOf(server, "weft_model_loads_total"), 3);
  EXPECT_EQ(MetricOf(server, "weft_models_ready"), 3);
  EXPECT_EQ(MetricOf(server, "weft_requests_finished_total"), 4);
  EXPECT_EQ(Get(server, "/health").json["models"]["dog"], "unloaded");
  // Other routes, too.
  EXPECT_EQ(Get(server, "/props?model=dog").json["model"], "dog");
  EXPECT_EQ(Get(server, "/api/ps").json["models"].size(), 4u);
  EXPECT_EQ(
      Post(server, "/tokenize", R"({"content": "a", "model": "dog"})").status,
      200);
  for (const char* path : {"/v1/chat/completions", "/tokenize"}) {
    const Answer unknown =
        Post(server, path, R"({"content": "a", "model": "eel"})");
    EXPECT_EQ(unknown.status, 404) << path;
    EXPECT_EQ(unknown.json["error"]["code"], "model_not_found");
    EXPECT_TRUE(
        absl::StrContains(unknown.json["error"]["message"].get<std::string>(),
                          "only bee, ant, insect, cat, dog"))
        << unknown.text;
  }
  EXPECT_EQ(Get(server, "/v1/models/eel").status, 404);
  EXPECT_EQ(Post(server, "/v1/chat/completions", "{").status, 400);
}

// 100 requests over four models in a budget that holds two.
TEST_F(Models, StayWithinTheirBudget) {
  int64_t bytes = 0;
  {
    const Server server(Arguments({}));
    for (const char* name : kNames) {
      Ask(server, name);
      bytes = std::max<int64_t>(bytes, InfoOf(server, name)["memory_bytes"]);
    }
  }
  const int64_t budget = 2 * bytes + bytes / 2;
  const Server server(Arguments({"--model-memory", absl::StrCat(budget)}));
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      int64_t loaded = 0;
      const json list = Get(server, "/v1/models").json["data"];
      for (const json& model : list) {
        const std::string status = model["status"];
        if (status == "ready" || status == "loading") {
          loaded += model["memory_bytes"].get<int64_t>();
        }
      }
      EXPECT_LE(loaded, budget);
    }
  });
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; i < 25; ++i) {
        const std::string name = kNames[(client * 7 + i * i) % 4];
        if (i % 3 == 0) {
          json body = Question(name);
          body["stream"] = true;
          std::string text;
          for (const json& event :
               Events(Post(server, "/v1/chat/completions", body.dump()).text)) {
            if (event["choices"].empty()) continue;
            text += event["choices"][0]["delta"].value("content", "");
          }
          EXPECT_EQ(text, Saying(name));
        } else {
          EXPECT_EQ(Ask(server, name), Saying(name));
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  done = true;
  watcher.join();
  EXPECT_GT(MetricOf(server, "weft_model_unloads_total"), 0);
  EXPECT_LE(MetricOf(server, "weft_models_ready"), 2);
  EXPECT_EQ(MetricOf(server, "weft_requests_finished_total"), 100);
}

TEST_F(Models, WhatCannotBeLoadedIsSaidAndLeavesTheOthersAlone) {
  const std::string broken = *folder_ + "/broken.gguf";
  WriteTextFile(broken, "GGUF but not for long");
  {
    const Server server(Arguments({}));
    const Answer answer =
        Post(server, "/v1/chat/completions", Question("broken").dump());
    EXPECT_EQ(answer.status, 500) << answer.text;
    EXPECT_EQ(InfoOf(server, "broken")["status"], "failed");
    EXPECT_FALSE(InfoOf(server, "broken")["error"].get<std::string>().empty());
    EXPECT_EQ(Ask(server, "dog"), Saying("dog"));
    EXPECT_EQ(Get(server, "/health").status, 200);
  }
  fs::remove(broken);
  const Server small(Arguments({"--model-memory", "1000"}));
  const Answer answer =
      Post(small, "/v1/chat/completions", Question("dog").dump());
  // Clients try again what is 503, and that is no use.
  EXPECT_EQ(answer.status, 400) << answer.text;
  EXPECT_TRUE(absl::StrContains(answer.text, "--model-memory"));
}

// One with recurrent blocks alone, whose pages are empty, and an encoder, which
// goes without.
TEST_F(Models, OfEveryKindStandBesideFilesOfPrompts) {
  const std::string recurrent = *folder_ + "/recurrent.gguf";
  const std::string encoder = *folder_ + "/encoder.gguf";
  fs::copy_file("tests/data/golden/recurrent/mamba.gguf", recurrent);
  fs::copy_file("tests/data/golden/arch/bert.gguf", encoder);
  const std::string cache = TemporaryPath("models-cache");
  fs::remove_all(cache);
  const std::string question = json{
      {"model", "recurrent"},
      {"prompt", std::vector<int>(150, 20)},
      {"max_tokens", 8},
      {"temperature", 0},
      {"logprobs", 2}}.dump();
  json answers[2];
  for (int run = 0; run < 2; ++run) {
    const Server server(Arguments({"--cache-dir", cache}));
    const Answer answer = Post(server, "/v1/completions", question);
    ASSERT_EQ(answer.status, 200) << answer.text;
    EXPECT_EQ(answer.json["usage"]["prompt_tokens_details"]["cached_tokens"],
              128 * run);
    answers[run] = answer.json["choices"];
    const Answer vector = Post(server, "/v1/embeddings",
                               R"({"model": "encoder", "input": ["a", "b"]})");
    EXPECT_EQ(vector.status, 200) << vector.text;
    EXPECT_EQ(MetricOf(server, "weft_embedded_texts_total"), 2);
    EXPECT_EQ(Ask(server, "ant"), Saying("ant"));
    EXPECT_TRUE(absl::StrContains(server.Log(), "it writes no text"));
  }
  EXPECT_EQ(answers[0], answers[1]);
  fs::remove(recurrent);
  fs::remove(encoder);
}

TEST_F(Models, AreLoadedAgainWhenTheirFilesChange) {
  const std::string copy = *folder_ + "/copy.gguf";
  fs::copy_file(*folder_ + "/ant.gguf", copy);
  const Server server(Arguments({}));
  EXPECT_EQ(Ask(server, "copy"), Saying("ant"));
  // In its place, byte by byte: a mapped file changes under the model.
  WriteTextFile(copy, ReadFile(*folder_ + "/bee.gguf"));
  EXPECT_EQ(Get(server, "/health").status, 200);
  EXPECT_EQ(Ask(server, "copy"), Saying("bee"));
  EXPECT_EQ(MetricOf(server, "weft_model_loads_total"), 2);
  fs::remove(copy);
}

TEST_F(Models, AreLoadedAgainWhenTheirFilesAreReplacedOrRemoved) {
  const std::string copy = *folder_ + "/copy.gguf";
  const std::string fresh = TemporaryPath("fresh.gguf");
  fs::copy_file(*folder_ + "/ant.gguf", copy);
  const Server server(Arguments({}));
  EXPECT_EQ(Ask(server, "copy"), Saying("ant"));
  fs::copy_file(*folder_ + "/bee.gguf", fresh);
  fs::rename(fresh, copy);
  EXPECT_EQ(Ask(server, "copy"), Saying("bee"));
  fs::remove(copy);
  EXPECT_EQ(
      Post(server, "/v1/chat/completions", Question("copy").dump()).status,
      500);
  EXPECT_EQ(InfoOf(server, "copy")["status"], "failed");
  // Without waiting until the error is old.
  fs::copy_file(*folder_ + "/cat.gguf", copy);
  EXPECT_EQ(Ask(server, "copy"), Saying("cat"));
  fs::remove(copy);
}

TEST_F(Models, OfDamagedPlansFailUntilTheFileIsAnother) {
  const std::string plan = *folder_ + "/plan.weft";
  WeftOut({"compile", *folder_ + "/ant.gguf", "-o", plan});
  const std::string whole = ReadFile(plan);
  std::string damaged = whole;
  damaged[damaged.size() / 2] ^= 1;
  WriteTextFile(plan, damaged);
  const Server server(Arguments({}));
  for (int i = 0; i < 2; ++i) {
    const Answer answer =
        Post(server, "/v1/chat/completions", Question("plan").dump());
    EXPECT_EQ(answer.status, 500) << answer.text;
    EXPECT_TRUE(absl::StrContains(answer.text, "damaged")) << answer.text;
    EXPECT_EQ(InfoOf(server, "plan")["status"], "failed");
  }
  EXPECT_EQ(MetricOf(server, "weft_model_loads_total"), 1);
  WriteTextFile(plan, whole);
  EXPECT_EQ(Ask(server, "plan"), Saying("ant"));
  EXPECT_EQ(InfoOf(server, "plan")["status"], "ready");
  // One model alone: nothing else would be loaded.
  WriteTextFile(plan, damaged);
  const Server one({plan});
  EXPECT_EQ(Get(one, "/health").status, 200);
  EXPECT_EQ(Post(one, "/v1/chat/completions", Question("").dump()).status, 500);
  EXPECT_EQ(Get(one, "/health").status, 503);
  fs::remove(plan);
}

// What they take is of the file as it is now.
TEST_F(Models, WhoseFilesAreReplacedWhileTheyAreUnloadedTakeWhatTheyTake) {
  const std::string large = TemporaryPath("large.gguf");
  WeftOut({"synth", "--shape", "smollm-135m", "--type", "Q8_0", "-o", large});
  const std::string copy = *folder_ + "/copy.gguf";
  const auto put = [&](const std::string& from) {
    const std::string fresh = TemporaryPath("fresh.gguf");
    fs::copy_file(from, fresh);
    fs::rename(fresh, copy);
  };
  put(large);
  const Server server(Arguments({"--model-memory", "200MB"}));
  const auto ask = [&] {
    return Post(server, "/v1/chat/completions", Question("copy").dump()).status;
  };
  EXPECT_EQ(ask(), 400);
  put(*folder_ + "/ant.gguf");
  EXPECT_EQ(Ask(server, "copy"), Saying("ant"));
  put(large);
  EXPECT_EQ(ask(), 400);
  fs::remove(copy);
  fs::remove(large);
}

TEST_F(Models, KeepTheAdaptersThatClientsChose) {
  const auto model = OpenModel(*folder_ + "/ant.gguf");
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string adapter = TemporaryPath("adapter.gguf");
  const std::string plan = *folder_ + "/adapted.weft";
  WriteAdapter(*model, AdapterFile(), adapter);
  WeftOut({"compile", *folder_ + "/ant.gguf", "--lora", adapter, "-o", plan});
  int64_t budget = 0;
  {
    const Server server(Arguments({}));
    for (const char* name : {"adapted", "bee"}) {
      Get(server, absl::StrCat("/props?model=", name));
      budget = std::max<int64_t>(budget, InfoOf(server, name)["memory_bytes"]);
    }
  }
  const Server server(
      Arguments({"--model-memory", absl::StrCat(budget + budget / 10)}));
  const std::string route = "/lora-adapters?model=adapted";
  const auto scale = [&] { return Get(server, route).json[0]["scale"]; };
  EXPECT_EQ(scale(), 1.0);
  Post(server, route, R"([{"id": 0, "scale": 0.5}])");
  Get(server, "/props?model=bee");
  EXPECT_EQ(InfoOf(server, "adapted")["status"], "unloaded");
  EXPECT_EQ(scale(), 0.5);
  // Of another file it is not.
  Get(server, "/props?model=bee");
  WriteTextFile(plan, ReadFile(plan));
  EXPECT_EQ(scale(), 1.0);
  fs::remove(plan);
}

TEST_F(Models, WithLessContextThanIsAskedForHaveTheirOwn) {
  WeftOut({"compile", *folder_ + "/ant.gguf", "-o", *folder_ + "/plan.weft",
           "--context", "64"});
  const Server server(Arguments({"--context", "1000000"}));
  EXPECT_EQ(Ask(server, "ant"), Saying("ant"));
  EXPECT_LT(InfoOf(server, "ant")["context_length"], 1000000);
  EXPECT_TRUE(absl::StrContains(server.Log(), "ant: has a context of"))
      << server.Log();
  // Plans keep what they were compiled with.
  EXPECT_EQ(Ask(server, "plan"), Saying("ant"));
  EXPECT_EQ(InfoOf(server, "plan")["context_length"], 64);
  EXPECT_TRUE(absl::StrContains(server.Log(), "plan: --context"))
      << server.Log();
  fs::remove(*folder_ + "/plan.weft");
}

// A model that nobody uses makes room before one that is in use does.
TEST_F(Models, AtRestGoFirst) {
  int64_t bytes = 0;
  {
    const Server server(Arguments({}));
    for (const char* name : kNames) {
      Ask(server, name);
      bytes = std::max<int64_t>(bytes, InfoOf(server, name)["memory_bytes"]);
    }
  }
  const Server server(
      Arguments({"--model-memory", absl::StrCat(2 * bytes + bytes / 2)}));
  std::atomic<bool> begun = false, enough = false;
  std::thread stream([&] {
    const json endless = {
        {"model", "ant"},     {"prompt", "a"},  {"max_tokens", 100000},
        {"ignore_eos", true}, {"stream", true}, {"context_overflow", "shift"}};
    httplib::Client client = server.Client();
    httplib::Request request;
    request.method = "POST";
    request.path = "/v1/completions";
    request.headers = {{"Content-Type", "application/json"}};
    request.body = endless.dump();
    request.content_receiver = [&](const char*, size_t, uint64_t, uint64_t) {
      begun = true;
      return !enough;
    };
    client.send(request);
  });
  while (!begun) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(Ask(server, "bee"), Saying("bee"));  // asked for later than ant
  EXPECT_EQ(Ask(server, "cat"), Saying("cat"));
  EXPECT_EQ(InfoOf(server, "ant")["status"], "ready");
  EXPECT_EQ(InfoOf(server, "bee")["status"], "unloaded");
  enough = true;
  stream.join();
}

// The files of all models together keep to the limit, and count once.
TEST_F(Models, ShareOneFolderOfPrompts) {
  const std::string cache = TemporaryPath("models-cache-limit");
  fs::remove_all(cache);
  constexpr int64_t kLimit = 1 << 20;
  const Server server(
      Arguments({"--cache-dir", cache, "--cache-size", absl::StrCat(kLimit)}));
  for (int text = 0; text < 60; ++text) {
    for (const char* name : kNames) {
      json body = {{"model", name},
                   {"prompt", std::vector<int>(150, 20 + text)},
                   {"max_tokens", 1}};
      EXPECT_EQ(Post(server, "/v1/completions", body.dump()).status, 200);
    }
  }
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(cache)) {
    bytes += static_cast<int64_t>(entry.file_size());
  }
  EXPECT_GT(bytes, 0);
  EXPECT_LE(bytes, kLimit);
  EXPECT_LE(MetricOf(server, "weft_cache_file_bytes"), kLimit);
  EXPECT_GT(MetricOf(server, "weft_pages_stored_total"), 0);
}

// The log of a folder's server names a file in each line.
TEST_F(Models, AreFoundAgainByTheRequestLog) {
  const std::string log = TemporaryPath("models.jsonl");
  fs::remove(log);
  {
    const Server server(Arguments({"--log-requests", log}));
    EXPECT_EQ(Ask(server, "ant"), Saying("ant"));
    EXPECT_EQ(Ask(server, "bee"), Saying("bee"));
    EXPECT_EQ(Ask(server, "ant"), Saying("ant"));
  }
  const json same = WeftJson({"replay", log, "--json"});
  EXPECT_EQ(same["requests"], 3);
  EXPECT_EQ(same["different"], 0);
  EXPECT_EQ(same["model"], "ant, bee");
  // MODEL goes before what the lines name.
  const RunResult others = Weft({"replay", log, *folder_ + "/dog.gguf"});
  EXPECT_EQ(others.exit_code, 1);
  EXPECT_TRUE(absl::StrContains(others.out, "3 differ")) << others.out;

  const RunResult shorter = Weft({"replay", log, "--context", "64"});
  EXPECT_EQ(shorter.exit_code, 0) << shorter.out;
  EXPECT_TRUE(absl::StrContains(shorter.err, "here it is 64")) << shorter.err;

  json line = json::parse(ReadFile(log).substr(0, ReadFile(log).find('\n')));
  for (const bool named : {true, false}) {
    if (named) {
      line["file"] = "/no/such/model.gguf";
    } else {
      line.erase("file");
    }
    WriteTextFile(log, line.dump() + "\n");
    const RunResult result = Weft({"replay", log});
    ExpectError(result, 1);
    EXPECT_TRUE(absl::StrContains(result.err, log + " MODEL")) << result.err;
  }
}

TEST_F(Models, OfAFolderAreFilesPlansAndFirstParts) {
  const std::string folder = TemporaryPath("kinds");
  fs::remove_all(folder);
  fs::create_directory(folder);
  for (const char* file :
       {"a.gguf", "b.gguf", "b.weft", "c-00001-of-00002.gguf",
        "c-00002-of-00002.gguf", "d-00002-of-00002.gguf", "e.txt"}) {
    WriteTextFile(folder + "/" + file, "x");
  }
  fs::create_directory(folder + "/f.gguf");
  const Server server({"--models", folder, "--alias", "z=c"});
  std::vector<std::string> names;
  const json list = Get(server, "/v1/models").json["data"];
  for (const json& model : list) {
    names.push_back(model["id"]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(Models, OfAFolderArePublishedFoldersToo) {
  const std::string folder = TemporaryPath("with-published");
  const std::string cache = TemporaryPath("with-published-cache");
  fs::remove_all(folder);
  fs::remove_all(cache);
  fs::create_directory(folder);
  fs::create_directory(folder + "/notes");  // is none
  fs::copy_file(*folder_ + "/ant.gguf", folder + "/ant.gguf");
  PublishedOptions published;
  published.class_name = "LlamaForCausalLM";
  published.config = {{"hidden_act", "silu"}};
  published.pairs = true;
  WritePublishedFolder("tests/data/golden/arch/llama-gqa.gguf",
                       folder + "/tiny", published);
  setenv("WEFT_CACHE", cache.c_str(), 1);
  const Server server({"--models", folder, folder + "/tiny"});
  EXPECT_EQ(Get(server, "/v1/models").json["data"].size(), 2u);
  const Answer answer = Post(server, "/v1/completions",
                             R"({"prompt": [1, 7, 9], "max_tokens": 2})");
  unsetenv("WEFT_CACHE");
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.json["model"], "tiny");
}

TEST_F(Models, WrongUseIsAnError) {
  const std::string empty = TemporaryPath("empty");
  fs::create_directories(empty);
  ExpectError(Weft({"serve", "--models", empty}), 1);
  ExpectError(Weft({"serve", "--models", "/no/such/folder"}), 2);
  ExpectError(Weft({"serve", "--models", *folder_, "eel"}), 1);
  const RunResult lora = Weft({"serve", "--models", *folder_, "--lora",
                               "tests/data/adapters/tiny.gguf"});
  ExpectError(lora, 2);
  EXPECT_TRUE(absl::StrContains(lora.err, "weft compile")) << lora.err;
  ExpectError(Weft({"serve", "--models", *folder_, "--alias", "x=eel"}), 1);
  ExpectError(Weft({"serve", "--models", *folder_, "--alias", "dog=ant"}), 1);
  ExpectError(Weft({"serve", "--alias", "x=ant"}), 2);
  ExpectError(Weft({"serve", "--model-memory", "16GB"}), 2);
}

}  // namespace
}  // namespace weft
