// Models by name, through the binary, from a hub on this machine.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"
#include "tests/runtime/hub/fake_hub.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr char kName[] = "tests/tiny-GGUF";

class PullTest : public testing::Test {
 protected:
  void SetUp() override {
    cache_ = TemporaryPath(
        testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(cache_);
    options_.environment = {"WEFT_CACHE=" + cache_, "HF_ENDPOINT=" + hub_.url(),
                            "HF_TOKEN="};
    hub_.Add(kName, "tiny-Q4_K_M.gguf", model_);
    hub_.Add(kName, "tiny-Q8_0.gguf", ReadFile(SmallModel("00-valid.gguf")));
  }

  std::string PathOf(const std::string& file) const {
    return absl::StrCat(cache_, "/models/", kName, "/", file);
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(cache_)) {
      if (entry.is_regular_file()) files.push_back(entry.path().filename());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  const std::string model_ = ReadFile(SmallModel("00b-valid-micro.gguf"));
  FakeHub hub_;
  std::string cache_;
  RunOptions options_;
};

TEST_F(PullTest, AModelIsPulledListedUsedAndRemoved) {
  EXPECT_EQ(WeftOut({"list"}, options_), "");
  const RunResult pulled = Weft({"pull", kName}, options_);
  EXPECT_EQ(pulled.exit_code, 0) << pulled.err;
  EXPECT_EQ(pulled.out, PathOf("tiny-Q4_K_M.gguf") + "\n");
  EXPECT_TRUE(absl::StrContains(pulled.err, "there is also Q8_0"))
      << pulled.err;
  EXPECT_EQ(ReadFile(PathOf("tiny-Q4_K_M.gguf")), model_);

  const nlohmann::json list = WeftJson({"list", "--json"}, options_);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["name"], absl::StrCat(kName, ":Q4_K_M"));
  EXPECT_EQ(list[0]["bytes"], model_.size());
  EXPECT_EQ(list[0]["sha256"], HashOf(model_));
  const std::string table = WeftOut({"list"}, options_);
  EXPECT_TRUE(absl::StrContains(table, kName)) << table;
  EXPECT_TRUE(absl::StrContains(table, "Q4_K_M")) << table;

  // Every command has it by its name now, without asking the hub.
  hub_.ForgetRequests();
  const std::string path = PathOf("tiny-Q4_K_M.gguf");
  for (const std::vector<std::string>& rest :
       std::vector<std::vector<std::string>>{
           {"inspect", "", "--json"},
           {"dump", ""},
           {"eval", "", "--tokens", "1,2", "--json"},
           {"tokenize", "", "hello"},
           {"run", "", "-p", "hello", "--temperature", "0", "-n", "4"}}) {
    std::vector<std::string> by_name = rest, by_path = rest;
    by_name[1] = kName;
    by_path[1] = path;
    // Times of passes differ.
    if (rest[0] == "inspect") {
      EXPECT_EQ(WeftJson(by_name, options_)["model"],
                WeftJson(by_path, options_)["model"]);
    } else {
      EXPECT_EQ(WeftOut(by_name, options_), WeftOut(by_path, options_));
    }
  }
  EXPECT_TRUE(hub_.requests().empty());

  const RunResult again = Weft({"pull", kName}, options_);
  EXPECT_TRUE(absl::StrContains(again.err, "is there already")) << again.err;
  EXPECT_TRUE(absl::StrContains(
      WeftOut({"rm", absl::StrCat(kName, ":q4_k_m")}, options_), "are free"));
  EXPECT_EQ(WeftOut({"list"}, options_), "");
  EXPECT_TRUE(Files().empty());
  ExpectError(Weft({"rm", kName}, options_), 1);
}

TEST_F(PullTest, RunChatAndServePullWhatIsNotThere) {
  RunOptions options = options_;
  options.input = "hello\n";
  const std::string name = absl::StrCat(kName, ":Q8_0");
  const RunResult run =
      Weft({"run", name, "--temperature", "0", "-n", "4"}, options);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, WeftOut({"run", SmallModel("00-valid.gguf"),
                              "--temperature", "0", "-n", "4"},
                             options));
  fs::remove_all(cache_);
  // A name alone is a chat, as a file is.
  const RunResult chat = Weft({name, "--temperature", "0", "-n", "4"}, options);
  EXPECT_EQ(chat.exit_code, 0) << chat.err;
  EXPECT_EQ(chat.out, WeftOut({"chat", SmallModel("00-valid.gguf"),
                               "--temperature", "0", "-n", "4"},
                              options));
  fs::remove_all(cache_);
  for (const std::string& entry : options_.environment) {
    const size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
  }
  const Server server({name});
  EXPECT_EQ(Get(server, "/v1/models").json["data"][0]["id"], "tiny-Q8_0");
}

TEST_F(PullTest, WhatOnlyLooksDoesNotPull) {
  const RunResult result = Weft({"inspect", kName}, options_);
  ExpectError(result, 1);
  EXPECT_TRUE(absl::StrContains(result.err, "weft pull tests/tiny-GGUF"))
      << result.err;
  EXPECT_TRUE(hub_.requests().empty());
}

TEST_F(PullTest, AddressesOfTheHubAreNames) {
  EXPECT_EQ(WeftOut({"pull", absl::StrCat(hub_.url(), "/", kName,
                                          "/resolve/main/tiny-Q8_0.gguf")},
                    options_),
            PathOf("tiny-Q8_0.gguf") + "\n");
  for (const char* command : {"pull", "run", "inspect"}) {
    const RunResult other =
        Weft({command, "https://elsewhere.example/a/b"}, options_);
    ExpectError(other, 2);
    EXPECT_TRUE(absl::StrContains(other.err, hub_.url())) << other.err;
  }
}

TEST_F(PullTest, FilesComeBeforeNames) {
  const std::string folder = TemporaryPath("a");
  fs::create_directories(folder);
  const std::string file = folder + "/model";
  WriteTextFile(file, model_);
  EXPECT_EQ(WeftOut({"tokenize", file, "hello"}, options_),
            WeftOut({"tokenize", SmallModel("00b-valid-micro.gguf"), "hello"}));
  // What is meant for a file is not asked for.
  const RunResult missing = Weft({"run", "models/none.gguf"}, options_);
  ExpectError(missing, 1);
  EXPECT_TRUE(absl::StrContains(missing.err, "No such file")) << missing.err;
  EXPECT_TRUE(hub_.requests().empty());
}

TEST_F(PullTest, WhatIsNoModelIsNotKept) {
  for (const auto& [content, what] :
       std::vector<std::pair<std::string, std::string>>{
           {"<!DOCTYPE html><title>Sign in</title>", "a web page"},
           {"version https://git-lfs.github.com/spec/v1\n", "Git LFS"},
           {"{\"error\": 1}", "JSON"},
           {"GGU", "something else"}}) {
    hub_.Add("tests/other", "x-Q8_0.gguf", content);
    const RunResult result = Weft({"pull", "tests/other"}, options_);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(absl::StrContains(result.err, "not a GGUF file")) << result.err;
    EXPECT_TRUE(absl::StrContains(result.err, what)) << result.err;
    EXPECT_TRUE(Files().empty());
  }
}

TEST_F(PullTest, MissingPartsAreNamed) {
  hub_.Add("tests/parts", "m-Q8_0-00002-of-00003.gguf", model_);
  const RunResult result = Weft({"pull", "tests/parts"}, options_);
  ExpectError(result, 1);
  EXPECT_TRUE(absl::StrContains(
      result.err, "of m-Q8_0.gguf 2 of 3 parts are missing: 00001, 00003"))
      << result.err;
}

TEST_F(PullTest, CompletionKnowsWhatWasPulled) {
  WeftOut({"pull", kName, "--quiet"}, options_);
  const std::string script = TemporaryPath("complete.sh");
  WriteTextFile(script, WeftOut({"completion", "bash"}) + R"(
weft() { cli/weft "$@"; }
COMP_WORDS=(weft chat tests/t) COMP_CWORD=2
_weft
printf '%s\n' "${COMPREPLY[@]}"
)");
  const std::string out = TemporaryPath("completed.txt");
  ASSERT_EQ(std::system(absl::StrCat("WEFT_CACHE=", cache_, " bash ", script,
                                     " > ", out)
                            .c_str()),
            0);
  EXPECT_EQ(ReadFile(out), absl::StrCat(kName, ":Q4_K_M\n"));
}

TEST_F(PullTest, ErrorsAreOneLine) {
  ExpectError(Weft({"pull"}, options_), 2);
  ExpectError(Weft({"pull", "no-name"}, options_), 2);
  ExpectError(Weft({"rm", "../x"}, options_), 2);
  RunOptions options = options_;
  for (const auto& [words, hint] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"pull", "tests/none"}, "look at its name"},
           {{"run", "tests/none"}, "nor is there a file"},
           {{"pull", absl::StrCat(kName, ":Q2_K")}, "it has Q4_K_M"}}) {
    const RunResult result = Weft(words, options);
    ExpectError(result, 1);
    EXPECT_TRUE(absl::StrContains(result.err, hint)) << result.err;
  }
  hub_.SetIntercept([](const FakeRequest&) -> std::optional<FakeAnswer> {
    return FakeAnswer{401, {"X-Error-Message: \x1b[31mInvalid\xff"}, "", -1};
  });
  const RunResult refused = Weft({"pull", kName}, options);
  ExpectError(refused, 1);
  EXPECT_TRUE(absl::StrContains(refused.err, "HF_TOKEN")) << refused.err;
  EXPECT_FALSE(absl::StrContains(refused.err, "\x1b")) << refused.err;
  options.environment.push_back("HF_ENDPOINT=nonsense");
  ExpectError(Weft({"pull", kName}, options), 1);
  EXPECT_FALSE(fs::exists(PathOf("tiny-Q4_K_M.gguf")));
}

// A packed plan stands beside a model that was pulled, after its first start.
class KeptPlanTest : public PullTest {
 protected:
  void SetUp() override {
    PullTest::SetUp();
    WeftOut({"pull", kName}, options_);
    expected_ = WeftOut(Words({"--no-plan-cache"}), options_);
    EXPECT_TRUE(Plans().empty());
  }

  static std::vector<std::string> Words(
      const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"run",           kName, "-p", "hello",
                                      "--temperature", "0",   "-n", "8"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  std::vector<std::string> Plans() const {
    std::vector<std::string> plans;
    for (const auto& entry : fs::recursive_directory_iterator(cache_)) {
      if (entry.path().extension() == ".weft") plans.push_back(entry.path());
    }
    return plans;
  }

  std::string expected_;
};

TEST_F(KeptPlanTest, TheSecondStartTakesIt) {
  EXPECT_EQ(WeftOut(Words(), options_), expected_);
  ASSERT_EQ(Plans().size(), 1u);
  const std::string plan = Plans()[0];
  const auto written = fs::last_write_time(plan);
  EXPECT_EQ(WeftOut(Words(), options_), expected_);
  EXPECT_EQ(Plans(), std::vector<std::string>{plan});
  EXPECT_EQ(fs::last_write_time(plan), written);
  const nlohmann::json list = WeftJson({"list", "--json"}, options_);
  EXPECT_EQ(list[0]["plan_bytes"], fs::file_size(plan));
  // It is a plan like any other.
  WeftOut({"inspect", plan, "--check"}, options_);
  WeftOut({"rm", kName}, options_);
  EXPECT_TRUE(Files().empty());
}

TEST_F(KeptPlanTest, OtherOptionsAreAnotherPlanInItsPlace) {
  WeftOut(Words(), options_);
  ASSERT_EQ(Plans().size(), 1u);
  const std::string first = Plans()[0];
  WeftOut(Words({"--context", "32"}), options_);
  ASSERT_EQ(Plans().size(), 1u);
  EXPECT_NE(Plans()[0], first);
  // The model, written again.
  const std::string second = Plans()[0];
  fs::last_write_time(PathOf("tiny-Q4_K_M.gguf"),
                      fs::file_time_type::clock::now());
  WeftOut(Words({"--context", "32"}), options_);
  ASSERT_EQ(Plans().size(), 1u);
  EXPECT_NE(Plans()[0], second);
}

TEST_F(KeptPlanTest, ADamagedOneIsMadeAnew) {
  WeftOut(Words(), options_);
  ASSERT_EQ(Plans().size(), 1u);
  const std::string plan = Plans()[0];
  const std::string whole = ReadFile(plan);
  std::string damaged = whole;
  damaged[60] ^= 1;
  std::string weights = whole;  // a flipped bit
  weights[whole.size() - 64] ^= 1;
  for (const std::string& content :
       {damaged, std::string(), whole.substr(0, whole.size() / 2), weights}) {
    WriteTextFile(plan, content);
    const RunResult result = Weft(Words(), options_);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, expected_);
    EXPECT_TRUE(absl::StrContains(result.err, "made anew")) << result.err;
    EXPECT_EQ(ReadFile(plan), whole);
  }
}

TEST_F(KeptPlanTest, WhereItCannotBeWrittenTheModelRuns) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const std::string folder = absl::StrCat(cache_, "/models/", kName);
  chmod(folder.c_str(), 0555);
  const RunResult result = Weft(Words(), options_);
  chmod(folder.c_str(), 0755);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, expected_);
  EXPECT_TRUE(absl::StrContains(result.err, "no plan is kept")) << result.err;
}

TEST_F(KeptPlanTest, OnlyModelsOfTheCacheGetOne) {
  const std::string file = TemporaryPath("beside/model.gguf");
  fs::create_directories(TemporaryPath("beside"));
  WriteTextFile(file, model_);
  WeftOut({"run", file, "-p", "hello", "-n", "2"}, options_);
  EXPECT_EQ(std::distance(fs::directory_iterator(TemporaryPath("beside")),
                          fs::directory_iterator()),
            1);
  // Nor do commands that look.
  WeftOut({"eval", kName, "--tokens", "1,2", "--json"}, options_);
  EXPECT_TRUE(Plans().empty());
}

TEST_F(PullTest, AnInterruptedPullGoesOn) {
  const std::string content = "GGUF" + std::string(4 << 20, 'x');
  hub_.Add("tests/large", "x-Q8_0.gguf", content);
  std::atomic<bool> begun{false}, interrupted{false};
  hub_.SetIntercept(
      [&](const FakeRequest& request) -> std::optional<FakeAnswer> {
        if (!absl::StrContains(request.path, "/resolve/") || interrupted) {
          return std::nullopt;
        }
        FakeAnswer answer = FakeHub::Content(request, content);
        // The rest does not come: it is asked for again, and is late.
        if (begun.exchange(true)) {
          while (!interrupted) std::this_thread::yield();
        }
        answer.cut_after = 1 << 20;
        return answer;
      });
  RunOptions options = options_;
  options.interrupt_when = [&] {
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(cache_, error)) {
      if (entry.path().extension() == ".part" &&
          entry.file_size(error) == 1 << 20) {
        return true;
      }
    }
    return false;
  };
  const RunResult result = Weft({"pull", "tests/large"}, options);
  interrupted = true;
  EXPECT_EQ(result.exit_code, 130) << result.err;
  ASSERT_EQ(Files().size(), 1u);
  hub_.ForgetRequests();
  WeftOut({"pull", "tests/large"}, options_);
  bool ranged = false;
  for (const FakeRequest& request : hub_.requests()) {
    const auto range = request.headers.find("range");
    ranged = ranged || (range != request.headers.end() &&
                        range->second == "bytes=1048576-");
  }
  EXPECT_TRUE(ranged);
  EXPECT_EQ(ReadFile(cache_ + "/models/tests/large/x-Q8_0.gguf"), content);
}

}  // namespace
}  // namespace weft
