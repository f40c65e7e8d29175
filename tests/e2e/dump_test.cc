// weft dump and weft inspect.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "tests/e2e/weft.h"

namespace weft {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

const std::string kModel = SmallModel("00-valid.gguf");

TEST(Dump, IsTheSameEveryTimeAndParsesBack) {
  for (const char* format : {"text", "json", "dot"}) {
    EXPECT_EQ(WeftOut({"dump", kModel, "--format", format}),
              WeftOut({"dump", kModel, "--format", format}));
  }
  for (const std::string& pass : Lines(WeftOut({"dump", "--list-passes"}))) {
    RunOptions options;
    options.input = WeftOut({"dump", kModel, "--after", pass});
    EXPECT_EQ(WeftOut({"dump", "--from-text", "-"}, options), options.input)
        << pass;
  }
}

TEST(Dump, WritesAFileAsItWritesStandardOutput) {
  const std::string path = TemporaryPath("graph.txt");
  EXPECT_EQ(WeftOut({"dump", kModel, "-o", path}), "");
  EXPECT_EQ(ReadFile(path), WeftOut({"dump", kModel}));
}

TEST(Dump, BeforeAPassIsAfterTheOneBeforeIt) {
  const std::vector<std::string> passes =
      Lines(WeftOut({"dump", "--list-passes"}));
  ASSERT_GT(passes.size(), 10u);
  EXPECT_EQ(passes.front(), "dead-code");
  EXPECT_EQ(passes.back(), "plan-buffers");
  for (size_t i = 1; i < passes.size(); i += 3) {
    EXPECT_EQ(WeftOut({"dump", kModel, "--before", passes[i]}),
              WeftOut({"dump", kModel, "--after", passes[i - 1]}));
  }
  EXPECT_EQ(WeftOut({"dump", kModel, "--after", "plan-buffers"}),
            WeftOut({"dump", kModel}));
  EXPECT_EQ(WeftOut({"dump", kModel, "--stop-after", "fuse-qkv"}),
            WeftOut({"dump", kModel, "--after", "fuse-qkv"}));
}

TEST(Dump, TheFirstGraphIsTheTextbook) {
  const nlohmann::json graph = nlohmann::json::parse(
      WeftOut({"dump", kModel, "--before", "dead-code", "--format", "json"}));
  std::set<std::string> ops, names;
  for (const nlohmann::json& node : graph["nodes"]) {
    ops.insert(node["op"].get<std::string>());
    names.insert(node["name"].get<std::string>());
  }
  for (const char* op : {"embed", "rms_norm", "matmul", "rope", "kv_write",
                         "attention_scores", "softmax", "attention_values"}) {
    EXPECT_EQ(ops.count(op), 1u) << op;
  }
  EXPECT_EQ(names.count("blk.1.attn_q"), 1u);
}

TEST(Dump, TheLastGraphHasKernelsAndPlaces) {
  for (const char* bucket : {"1", "512"}) {
    const nlohmann::json graph = nlohmann::json::parse(
        WeftOut({"dump", kModel, "--bucket", bucket, "--format", "json"}));
    EXPECT_EQ(graph["bounds"]["tokens"], std::stoi(bucket));
    EXPECT_GT(graph["arena"]["bytes"], 0);
    int kernels = 0, offsets = 0;
    for (const nlohmann::json& node : graph["nodes"]) {
      kernels += node["attributes"].contains("kernel");
    }
    for (const nlohmann::json& value : graph["values"]) {
      offsets += value.contains("offset");
    }
    EXPECT_GT(kernels, 5);
    EXPECT_GT(offsets, 5);
  }
}

TEST(Dump, LayersBeyondTheModelAreAnErrorWithBothNumbers) {
  const std::string plan = TemporaryPath("layers.weft");
  WeftOut({"compile", kModel, "-o", plan});
  for (const std::vector<std::string>& dump :
       std::vector<std::vector<std::string>>{
           {"dump", kModel},
           {"dump", plan},
           {"dump", kModel, "--diff", "fuse-qkv"},
           {"dump", kModel, "--format", "html"}}) {
    std::vector<std::string> words = dump;
    words.insert(words.end(), {"--layers", "1-41"});
    const RunResult run = Weft(words);
    ExpectError(run, 2);
    EXPECT_NE(run.err.find("block 41 "), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("has 2 blocks"), std::string::npos) << run.err;
  }
}

TEST(Dump, LayersShowsTheseBlocksOnly) {
  const std::string text = WeftOut({"dump", kModel, "--layers", "1-1"});
  EXPECT_NE(text.find(": blk.1."), std::string::npos);
  EXPECT_EQ(text.find(": blk.0."), std::string::npos);
  EXPECT_NE(text.find("left out"), std::string::npos);
  // Lines are those of the whole dump.
  const std::string whole = WeftOut({"dump", kModel});
  for (const std::string& line : Lines(text)) {
    if (line.find('#') != std::string::npos) continue;
    EXPECT_NE(whole.find(line + "\n"), std::string::npos) << line;
  }
  const nlohmann::json json = nlohmann::json::parse(
      WeftOut({"dump", kModel, "--layers", "0", "--format", "json"}));
  for (const nlohmann::json& node : json["nodes"]) EXPECT_EQ(node["block"], 0);
  EXPECT_GT(json["nodes_left_out"], 0);
}

TEST(Dump, DotGroupsBlocks) {
  const std::string dot = WeftOut({"dump", kModel, "--format", "dot"});
  EXPECT_EQ(dot.rfind("digraph ", 0), 0u);
  EXPECT_NE(dot.find("subgraph cluster_blk_0"), std::string::npos);
  EXPECT_NE(dot.find("subgraph cluster_blk_1"), std::string::npos);
  EXPECT_EQ(dot.find("0x"), std::string::npos);
}

TEST(Dump, DiffShowsWhatAPassChangedAndNothingElse) {
  const std::string diff = WeftOut({"dump", kModel, "--diff", "fuse-residual"});
  EXPECT_EQ(
      diff.rfind("--- before fuse-residual\n+++ after fuse-residual\n", 0), 0u)
      << diff;
  const int changed_before =
      Lines(WeftOut({"dump", kModel, "--before", "fuse-residual"})).size();
  int removed = 0, added = 0;
  for (const std::string& line : Lines(diff)) {
    removed += line[0] == '-';
    added += line[0] == '+';
  }
  // Two additions in each of two blocks: the rest of the graph stays out of it,
  // although later values have other numbers.
  EXPECT_LE(removed, 1 + 2 * 4);
  EXPECT_LE(added, 1 + 2 * 4);
  EXPECT_GT(changed_before, 3 * removed);
  // Nothing to remove, nothing to show.
  EXPECT_EQ(WeftOut({"dump", kModel, "--diff", "fuse-qkv", "--disable-pass",
                     "fuse-qkv"}),
            "");
}

TEST(Inspect, JsonHasTheKeysOfTheContract) {
  const nlohmann::json json = WeftJson({"inspect", kModel, "--json"});
  for (const char* key :
       {"architecture", "name", "parameters", "context_length", "vocabulary"}) {
    EXPECT_TRUE(json["model"].contains(key)) << key;
  }
  EXPECT_EQ(json["model"]["architecture"], "llama");
  EXPECT_EQ(json["model"]["vocabulary"], 300);
  EXPECT_EQ(json["model"]["context_length"], 64);
  int64_t parameters = 0;
  for (const nlohmann::json& tensor : json["tensors"]) {
    int64_t n = 1;
    for (int64_t dim : tensor["shape"]) n *= dim;
    parameters += n;
    EXPECT_EQ(tensor["type"], "F32");
    EXPECT_EQ(tensor["bytes"], 4 * n);
    EXPECT_TRUE(tensor.contains("name") && tensor.contains("offset"));
  }
  EXPECT_EQ(json["model"]["parameters"], parameters);
  const nlohmann::json& plan = json["plan"];
  for (const char* key :
       {"nodes", "steps", "weight_bytes", "packed_overhead",
        "kv_bytes_per_token", "scratch_bytes", "peak_bytes"}) {
    EXPECT_TRUE(plan[key].is_number()) << key;
  }
  // Two blocks, keys and values, two heads of eight numbers of 16 bits.
  EXPECT_EQ(plan["kv_bytes_per_token"], 2 * 2 * 2 * 8 * 2);
  ASSERT_EQ(plan["buckets"].size(), 7u);
  const int tokens[] = {1, 2, 8, 32, 64, 256, 512};
  for (int i = 0; i < 7; ++i) {
    const nlohmann::json& bucket = plan["buckets"][i];
    EXPECT_EQ(bucket["tokens"], tokens[i]);
    EXPECT_LE(bucket["arena_lower_bound"], bucket["arena_bytes"]);
    EXPECT_LE(bucket["arena_bytes"], bucket["sum_of_intermediates"]);
  }
  int steps = 0;
  for (const auto& [name, count] : plan["kernels"].items()) {
    steps += count.get<int>();
  }
  EXPECT_EQ(steps, plan["steps"]);
  const std::vector<std::string> passes =
      Lines(WeftOut({"dump", "--list-passes"}));
  ASSERT_EQ(plan["passes"].size(), passes.size());
  for (size_t i = 0; i < passes.size(); ++i) {
    EXPECT_EQ(plan["passes"][i]["name"], passes[i]);
    EXPECT_TRUE(plan["passes"][i].contains("nodes_before"));
    EXPECT_TRUE(plan["passes"][i].contains("nodes_after"));
    EXPECT_TRUE(plan["passes"][i].contains("seconds"));
  }
}

TEST(Inspect, HashesTellFilesApart) {
  const auto hash = [](const std::string& model) {
    return WeftJson({"inspect", model, "--hash", "--json"});
  };
  const nlohmann::json one = hash(SmallModel("00b-valid-micro.gguf"));
  const nlohmann::json other = hash(SmallModel("18-align-64.gguf"));
  EXPECT_NE(one["model"]["xxh3"], other["model"]["xxh3"]);
  ASSERT_EQ(one["tensors"].size(), other["tensors"].size());
  // The same weights in another place.
  for (size_t i = 0; i < one["tensors"].size(); ++i) {
    EXPECT_EQ(one["tensors"][i]["xxh3"], other["tensors"][i]["xxh3"]);
    EXPECT_EQ(one["tensors"][i]["xxh3"].get<std::string>().size(), 16u);
  }
}

TEST(Inspect, TextTellsPeopleTheSame) {
  const std::string text = WeftOut({"inspect", kModel});
  for (const char* part : {"general.architecture", "token_embd.weight", "F32",
                           "plan-buffers", "kv_bytes_per_token"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace weft
