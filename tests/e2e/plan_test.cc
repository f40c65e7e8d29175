// What is said about a plan before it runs, and that it holds.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/e2e/weft.h"

namespace weft {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kOwnMemory = false;  // most of it is the sanitizer's
#else
constexpr bool kOwnMemory = true;
#endif

int64_t SumOfParts(const nlohmann::json& memory) {
  int64_t sum = 0;
  for (const char* part :
       {"weights", "arena", "kv_cache", "scratch", "tokenizer", "other"}) {
    EXPECT_GT(memory.value(part, int64_t{0}), 0) << part;
    sum += memory.value(part, int64_t{0});
  }
  return sum;
}

TEST(Memory, PartsAddUpToThePeak) {
  for (const char* context : {"64", "512"}) {
    const nlohmann::json json =
        WeftJson({"inspect", "", "--context", context, "--json"});
    const nlohmann::json& memory = json["memory"];
    EXPECT_EQ(memory["total"], SumOfParts(memory));
    EXPECT_EQ(memory["total"], json["plan"]["peak_bytes"]);
    EXPECT_EQ(memory["weights"], json["plan"]["weight_bytes"]);
    EXPECT_EQ(memory["kv_cache"],
              json["plan"]["kv_bytes_per_token"].get<int64_t>() *
                  std::stoll(context));
  }
  const std::string text = WeftOut({"inspect", ""});
  for (const char* line : {"weights", "arena", "kv_cache", "scratch",
                           "tokenizer", "other", "total"}) {
    EXPECT_NE(text.find(std::string("\n  ") + line + " "), std::string::npos)
        << line;
  }
}

// Within 5% and 8 MB of what a run takes that fills its context.
TEST(Memory, OfARealRunIsAsInspectSays) {
  if (!kOwnMemory) GTEST_SKIP();
  const std::string plan = TemporaryPath("memory.weft");
  WeftOut({"compile", "models/austen-Q8_0.gguf", "-o", plan});
  const std::vector<std::string> small = {"--context", "256", "--kv-type",
                                          "f32"};
  for (const auto& [model, flags, prompt] :
       {std::tuple<std::string, std::vector<std::string>, std::string>{
            "", {}, "512"},
        {"", small, "256"},
        {plan, {}, "512"}}) {
    std::vector<std::string> inspect = {"inspect", model, "--json"};
    std::vector<std::string> bench = {"bench",    model,      "--json",
                                      "--prompt", prompt,     "--generate",
                                      "2",        "--repeat", "1"};
    inspect.insert(inspect.end(), flags.begin(), flags.end());
    bench.insert(bench.end(), flags.begin(), flags.end());
    const double planned = WeftJson(inspect)["memory"]["total"];
    const nlohmann::json run = WeftJson(bench);
    const double resident = run["peak_rss_bytes"];
    EXPECT_EQ(run["allocations_per_decode_step"], 0);
    EXPECT_LE(std::abs(resident - planned), 0.05 * planned + 8e6)
        << model << ": planned " << planned << ", resident " << resident;
  }
}

TEST(Planner, AlternativesTakeMoreAndAreKeptInPlans) {
  const auto arena = [](const std::string& planner) {
    const nlohmann::json plan =
        WeftJson({"inspect", "", "--planner", planner, "--json"})["plan"];
    EXPECT_EQ(plan["planner"], planner);
    return plan["buckets"].back();
  };
  const nlohmann::json search = arena("search");
  const nlohmann::json apart = arena("no-reuse");
  EXPECT_EQ(apart["arena_bytes"], search["sum_of_intermediates"]);
  EXPECT_GT(apart["arena_bytes"], search["arena_bytes"]);
  EXPECT_GE(arena("first-use")["arena_bytes"], search["arena_bytes"]);
  EXPECT_GE(arena("by-size")["arena_bytes"], search["arena_bytes"]);
  EXPECT_EQ(apart["arena_lower_bound"], search["arena_lower_bound"]);

  const std::string path = TemporaryPath("first-use.weft");
  WeftOut({"compile", "models/austen-Q8_0.gguf", "-o", path, "--planner",
           "first-use"});
  EXPECT_EQ(WeftJson({"inspect", path, "--json"})["plan"]["planner"],
            "first-use");
  EXPECT_EQ(WeftOut({"eval", path, "--tokens", "1,5,9", "--json"}),
            WeftOut({"eval", "", "--tokens", "1,5,9", "--json"}));
}

TEST(Kernels, AreToldWithReasonsAndCosts) {
  const std::string path = TemporaryPath("kernels.weft");
  WeftOut({"compile", "models/austen-Q8_0.gguf", "-o", path, "--isa", "avx2"});
  const nlohmann::json model =
      WeftJson({"inspect", "", "--isa", "avx2", "--kernels", "--json"})["plan"];
  const nlohmann::json plan =
      WeftJson({"inspect", path, "--kernels", "--json"})["plan"];
  EXPECT_EQ(model["kernel_choices"], plan["kernel_choices"]);
  std::map<int64_t, int> nodes;
  std::map<int64_t, int64_t> bytes, operations;
  bool capped = false;
  for (const nlohmann::json& choice : plan["kernel_choices"]) {
    nodes[choice["tokens"]] += choice["nodes"].get<int>();
    bytes[choice["tokens"]] += choice["bytes"].get<int64_t>();
    operations[choice["tokens"]] += choice["operations"].get<int64_t>();
    EXPECT_NE(choice["kernel"], "");
    for (const nlohmann::json& refused : choice["refused"]) {
      EXPECT_NE(refused["kernel"], choice["kernel"]);
      EXPECT_NE(refused["why"], "");
      capped |= refused["why"] == "needs avx512";
    }
  }
  EXPECT_TRUE(capped);
  for (const nlohmann::json& bucket : plan["buckets"]) {
    const int64_t tokens = bucket["tokens"];
    EXPECT_EQ(nodes[tokens], plan["steps"]);
    EXPECT_EQ(bytes[tokens], bucket["step_bytes"]);
    EXPECT_EQ(operations[tokens], bucket["step_operations"]);
    EXPECT_GE(bucket["full_context_step_bytes"], bucket["step_bytes"]);
  }
  EXPECT_FALSE(
      WeftJson({"inspect", path, "--json"})["plan"].contains("kernel_choices"));
  const std::string text = WeftOut({"inspect", path, "--kernels"});
  EXPECT_NE(text.find("kernels of a step of 1 token\n"), std::string::npos);
  EXPECT_NE(text.find("needs avx512"), std::string::npos);
}

// A signal while weights are written: gone with the code of the contract, and
// neither the plan nor a part of it is there.
TEST(Compile, PlansAreCompared) {
  const std::string one = TemporaryPath("one.weft"),
                    two = TemporaryPath("two.weft");
  const std::string model = "models/austen-Q8_0.gguf";
  WeftOut({"compile", model, "-o", one, "--quiet", "--context", "128"});
  EXPECT_EQ(WeftOut({"dump", one, "--diff-plan", one}), "");
  WeftOut({"compile", model, "-o", two, "--quiet", "--context", "256",
           "--disable-pass", "fuse-attention"});
  const RunResult result =
      Weft({"dump", one, "--diff-plan", two, "--bucket", "1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "");
  for (const std::string& part :
       {std::string("\n-context 128\n+context 256\n"),
        std::string("\n+disabled passes fuse-attention\n"),
        "--- " + one + ": passes\n+++ " + two + ": passes\n",
        std::string("-1 tokens: attention_"), std::string(" = softmax("),
        std::string(": graph of 1 token\n")}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << result.out;
  }
  // What is the same is not told.
  for (const char* part : {": model", ": tensors", ": weights", "8 tokens"}) {
    EXPECT_EQ(result.out.find(part), std::string::npos) << part << result.out;
  }
  EXPECT_EQ(Weft({"dump", one, "--diff-plan", two, "--layers", "0"}).exit_code,
            1);
  ExpectError(Weft({"dump", one, "--diff-plan", model}), 2);
  ExpectError(Weft({"dump", model, "--diff-plan", one}), 2);
  ExpectError(Weft({"dump", "--diff-plan", one}), 2);
  ExpectError(Weft({"dump", one, "--diff-plan", two, "--format", "json"}), 2);
  ExpectError(Weft({"dump", one, "--diff-plan", two, "--bucket", "3"}), 2);
  ExpectError(Weft({"dump", one, "--diff-plan", "nosuch.weft"}), 1);
}

TEST(Compile, InterruptedLeavesNothing) {
  const std::string shape = TemporaryPath("large.json");
  WriteTextFile(shape, R"({"embedding_length": 2048, "block_count": 8,
      "feed_forward_length": 5632, "head_count": 32, "head_count_kv": 4,
      "vocabulary_size": 300})");
  const std::string model = TemporaryPath("large.gguf");
  WeftOut(
      {"synth", "--shape", shape, "--type", "Q4_0", "--hollow", "-o", model});
  const std::filesystem::path folder = TemporaryPath("interrupted");
  std::filesystem::create_directory(folder);
  for (const auto& [signal, code] :
       {std::pair<int, int>{SIGINT, 130}, std::pair<int, int>{SIGTERM, 143}}) {
    RunOptions options;
    options.interrupt_signal = signal;
    options.interrupt_when = [&] { return !std::filesystem::is_empty(folder); };
    // A machine that is busy may let it finish first.
    RunResult result;
    for (int attempt = 0; attempt < 20 && result.exit_code != code; ++attempt) {
      std::filesystem::remove(folder / "out.weft");
      result = Weft({"compile", model, "-o", folder / "out.weft"}, options);
      EXPECT_EQ(result.signal, 0);
    }
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  std::filesystem::remove(model);
}

}  // namespace
}  // namespace weft
