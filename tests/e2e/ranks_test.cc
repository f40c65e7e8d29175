// One model by several processes: what they give together is what one gives.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

using nlohmann::json;

constexpr char kModel[] = "models/austen-Q8_0.gguf";

RunOptions Ranks(int ranks) {
  RunOptions options;
  options.ranks = ranks;
  return options;
}

std::vector<std::string> Sampled(const std::string& model) {
  return {"run",    model, "-p",     "It is a truth", "-n",        "24",
          "--seed", "7",   "--json", "--quiet",       "--threads", "1"};
}

TEST(Ranks, SayWhatOneSays) {
  const json alone = WeftJson(Sampled(kModel))["tokens"];
  EXPECT_EQ(alone.size(), 24u);
  for (int ranks : {2, 3}) {
    EXPECT_EQ(WeftJson(Sampled(kModel), Ranks(ranks))["tokens"], alone)
        << ranks;
  }
}

TEST(Ranks, FollowPromptsFromStandardInput) {
  RunOptions options;
  options.input = "It is a truth";
  const std::vector<std::string> arguments = {
      "run", kModel, "-n", "8", "--temperature", "0", "--quiet"};
  const std::string alone = WeftOut(arguments, options);
  options.ranks = 2;
  EXPECT_EQ(WeftOut(arguments, options), alone);
}

TEST(Ranks, GuessedTokensChangeNothing) {
  const json alone = WeftJson(Sampled(kModel))["tokens"];
  std::vector<std::string> guessing = Sampled(kModel);
  guessing.insert(guessing.end(), {"--speculate", "lookup"});
  EXPECT_EQ(WeftJson(guessing, Ranks(2))["tokens"], alone);
}

// Parts of a plan, and whoever runs them otherwise is told how.
TEST(Ranks, RunThePartsOfOneCompilation) {
  const std::string plan = TemporaryPath("austen.weft");
  WeftOut({"compile", kModel, "--shards", "2", "-o", plan, "--quiet"});
  const std::string first = TemporaryPath("austen.0.weft");
  EXPECT_EQ(WeftJson(Sampled(plan), Ranks(2))["tokens"],
            WeftJson(Sampled(kModel))["tokens"]);
  EXPECT_TRUE(absl::StrContains(WeftOut({"dump", first}), " all_gather("));

  const RunResult alone = Weft({"run", first, "-p", "a"});
  ExpectError(alone, 1);
  EXPECT_TRUE(absl::StrContains(alone.err, "mpirun -n 2")) << alone.err;
  const RunResult three = Weft({"run", plan, "-p", "a"}, Ranks(3));
  EXPECT_NE(three.exit_code, 0);
  EXPECT_TRUE(absl::StrContains(three.err, "--shards 3")) << three.err;
  const RunResult same = Weft({"run", first, "-p", "a"}, Ranks(2));
  EXPECT_NE(same.exit_code, 0);
  EXPECT_TRUE(absl::StrContains(same.err, "part 1 of 2")) << same.err;
}

TEST(Ranks, WithoutTheSameModelAreRefusedWithBoth) {
  const std::string plan = TemporaryPath("mixed.weft");
  const std::string other = TemporaryPath("other.weft");
  WeftOut({"compile", kModel, "--shards", "2", "-o", plan, "--quiet"});
  WeftOut({"compile", kModel, "--shards", "2", "--context", "128", "-o", other,
           "--quiet"});
  WriteTextFile(TemporaryPath("mixed.1.weft"),
                ReadFile(TemporaryPath("other.1.weft")));
  const RunResult mixed = Weft({"run", plan, "-p", "a"}, Ranks(2));
  EXPECT_NE(mixed.exit_code, 0);
  EXPECT_TRUE(absl::StrContains(mixed.err, "context 128")) << mixed.err;
  EXPECT_TRUE(absl::StrContains(mixed.err, "context 512")) << mixed.err;
}

TEST(Ranks, EndWithOneLineWhenAPartIsDamaged) {
  const std::string plan = TemporaryPath("damaged.weft");
  WeftOut({"compile", kModel, "--shards", "2", "-o", plan, "--quiet"});
  const std::string part = TemporaryPath("damaged.1.weft");
  std::string bytes = ReadFile(part);
  bytes[bytes.size() / 2] ^= 1;
  WriteTextFile(part, bytes);
  const RunResult damaged = Weft({"run", plan, "-p", "a"}, Ranks(2));
  EXPECT_NE(damaged.exit_code, 0);
  EXPECT_TRUE(absl::StrContains(damaged.err, "rank 1 of 2: ")) << damaged.err;
  EXPECT_TRUE(absl::StrContains(damaged.err, "checksum")) << damaged.err;
}

json Completion(const Server& server) {
  const Answer answer = Post(server, "/completion",
                             json({{"prompt", "It is a truth"},
                                   {"n_predict", 24},
                                   {"seed", 7},
                                   {"temperature", 0.8},
                                   {"return_tokens", true}})
                                 .dump());
  EXPECT_EQ(answer.status, 200) << answer.text;
  return answer.json["tokens"];
}

TEST(Ranks, ServeOneModelAndEndTogether) {
  const Server alone({kModel, "--quiet"});
  Server together({kModel, "--quiet", "--threads", "1"}, 2);
  const json want = Completion(alone);
  EXPECT_EQ(want.size(), 24u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Completion(together), want);
  kill(together.pid(), SIGTERM);
  together.Wait();
}

// Of a process: those that it has started.
std::vector<pid_t> Children(pid_t parent) {
  std::istringstream all(
      ReadFile(absl::StrCat("/proc/", parent, "/task/", parent, "/children")));
  std::vector<pid_t> children;
  for (pid_t child; all >> child;) children.push_back(child);
  return children;
}

TEST(Ranks, EndWithinSecondsWhenOneDies) {
  Server together({kModel, "--quiet", "--threads", "1"}, 2);
  const std::vector<pid_t> ranks = Children(together.pid());
  ASSERT_EQ(ranks.size(), 2u);
  const auto begin = std::chrono::steady_clock::now();
  kill(ranks[1], SIGKILL);
  EXPECT_NE(together.Wait(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace weft
