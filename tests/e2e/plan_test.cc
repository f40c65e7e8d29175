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

// A mixture of which half the experts fit.
TEST(Memory, OfARunThatIsLargerIsItsBudget) {
  const std::string shape = TemporaryPath("mixture.json");
  const std::string model = TemporaryPath("mixture.gguf");
  const std::string plan = TemporaryPath("mixture.weft");
  WriteTextFile(shape, R"({"architecture": "qwen3moe",
      "embedding_length": 512, "block_count": 4, "feed_forward_length": 512,
      "head_count": 4, "head_count_kv": 2, "vocabulary_size": 320,
      "context_length": 128, "keys": {"expert_count": 16,
      "expert_used_count": 2, "expert_feed_forward_length": 1024}})");
  WeftOut({"synth", "--shape", shape, "--type", "Q8_0", "-o", model});
  WeftOut({"compile", model, "-o", plan});
  const int64_t whole =
      WeftJson({"inspect", plan, "--json"})["memory"]["total"];
  const int64_t budget = whole - (int64_t{50} << 20);
  const std::vector<std::string> within = {"--memory-budget",
                                           std::to_string(budget)};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), within.begin(), within.end());
    return arguments;
  };
  const nlohmann::json seen =
      WeftJson(with({"inspect", plan, "--disk-gbps", "2", "--json"}));
  const nlohmann::json& streaming = seen["cluster"]["streaming"];
  EXPECT_LE(seen["memory"]["total"], budget);
  EXPECT_GT(seen["memory"]["total"], budget - (int64_t{4} << 20));
  EXPECT_EQ(streaming["experts"], 64);
  const double kept = streaming["experts_in_memory"];
  EXPECT_GT(kept, 16);
  EXPECT_LT(kept, 48);
  const double of_expert = streaming["expert_bytes"].get<double>() / 64;
  // Two of each block, the share of them that is not there.
  EXPECT_NEAR(streaming["bytes_read_per_token"],
              8 * of_expert * (1 - kept / 64), 1);
  EXPECT_NEAR(streaming["tokens_per_second"],
              2e9 / streaming["bytes_read_per_token"].get<double>(), 1e-6);
  EXPECT_GT(WeftJson(with(
                {"inspect", plan,
                 "--json"}))["cluster"]["streaming"]["disk_bytes_per_second"],
            0);

  const nlohmann::json run =
      WeftJson(with({"bench", plan, "--json", "--prompt", "128", "--generate",
                     "8", "--repeat", "1"}));
  EXPECT_EQ(run["allocations_per_decode_step"], 0);
  EXPECT_GT(run["experts"]["bytes_read_per_token"], 0);
  if (kOwnMemory) {
    EXPECT_LE(run["peak_rss_bytes"], 1.05 * budget + 8e6);
    EXPECT_LT(run["peak_rss_bytes"], whole - (int64_t{20} << 20));
  }
  const std::vector<std::string> eval = {"eval", plan, "--tokens", "1,2,3,4,5",
                                         "--logits"};
  const auto logits = [&](std::vector<std::string> arguments,
                          const std::string& name) {
    const std::string file = TemporaryPath(name);
    arguments.insert(arguments.begin() + 5, file);
    WeftOut(arguments);
    return ReadFile(file);
  };
  const std::string all = logits(eval, "all.f32");
  EXPECT_EQ(all.size(), 5u * 320 * 4);
  EXPECT_EQ(logits(with(eval), "streamed.f32"), all);

  const RunResult refused = Weft(with({"run", model, "-p", "x"}));
  ExpectError(refused, 1);
  EXPECT_NE(refused.err.find("weft compile " + model), std::string::npos)
      << refused.err;
  ExpectError(Weft({"run", plan, "--memory-budget", "1K", "-p", "x"}), 1);
  ExpectError(Weft(with({"run", plan, "--copy-model", "-p", "x"})), 2);
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
