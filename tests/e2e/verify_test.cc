// weft verify and weft profile.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/e2e/weft.h"

namespace weft {
namespace {

using Json = nlohmann::json;

const std::string kModel = SmallModel("00-valid.gguf");

TEST(Verify, FindsNothingWrongWithTheModelsThereAre) {
  for (const std::string& model : {std::string(), kModel}) {
    const Json json = WeftJson({"verify", model, "--tokens", "7", "--json"});
    EXPECT_TRUE(json["ok"]);
    EXPECT_EQ(json["tokens"], 7);
    std::set<std::string> passes;
    for (const Json& pass : json["passes"]) {
      EXPECT_TRUE(pass["ok"]) << pass;
      passes.insert(pass["pass"].get<std::string>());
    }
    EXPECT_TRUE(passes.count("fuse-qkv") && passes.count("plan-buffers"));
    EXPECT_TRUE(json["nodes"]["faults"].empty());
    ASSERT_EQ(json["nodes"]["buckets"].size(), 7u);
    for (const Json& bucket : json["nodes"]["buckets"]) {
      EXPECT_GT(bucket["nodes"], 10);
      EXPECT_EQ(bucket["steps"], 2);
    }
  }
}

TEST(Verify, TakesCompilationFlagsAndTellsPeople) {
  const std::string text =
      WeftOut({"verify", "", "--tokens", "1", "--buckets", "1,4", "--kv-type",
               "q8_0", "--disable-pass", "fuse-qkv"});
  EXPECT_NE(text.find("pass  fuse-silu-gate"), std::string::npos) << text;
  EXPECT_NE(text.find("nodes     4 tokens:"), std::string::npos) << text;
  EXPECT_EQ(text.find("WRONG"), std::string::npos) << text;
}

TEST(Verify, AcceptsOtherTypesOfCache) {
  for (const char* type : {"f32", "bf16"}) {
    const Json json = WeftJson({"verify", "", "--tokens", "5", "--buckets",
                                "1,8", "--kv-type", type, "--json"});
    EXPECT_EQ(json["ok"], true) << type;
  }
}

TEST(Verify, OfAPlanNeedsTheModelItCameFrom) {
  const std::string plan = TemporaryPath("verify.weft");
  WeftOut({"compile", kModel, "-o", plan, "--buckets", "1,8"});
  ExpectError(Weft({"verify", plan}), 2);
  ExpectError(Weft({"verify", kModel, "--source", kModel}), 2);
  const Json json =
      WeftJson({"verify", plan, "--source", kModel, "--tokens", "3", "--json"});
  EXPECT_TRUE(json["ok"]);
  EXPECT_EQ(json["nodes"]["buckets"].size(), 2u);
  // Another model.
  const std::string other = TemporaryPath("other.gguf");
  WeftOut({"quantize", kModel, other, "F16"});
  ExpectError(Weft({"verify", plan, "--source", other}), 1);
}

// A tiny model with this epsilon; weights are the same whatever it is.
std::string SyntheticModel(const std::string& name, const char* epsilon) {
  const std::string shape = TemporaryPath(name + ".json");
  WriteTextFile(shape, std::string(R"({"name": "tiny", "architecture": "llama",
      "embedding_length": 64, "block_count": 2, "feed_forward_length": 128,
      "head_count": 4, "head_count_kv": 2, "key_length": 16,
      "vocabulary_size": 512, "context_length": 64, "rope_freq_base": 10000,
      "norm_epsilon": )") + epsilon +
                           "}");
  const std::string model = TemporaryPath(name + ".gguf");
  WeftOut({"synth", "--shape", shape, "--type", "F16", "-o", model});
  return model;
}

TEST(Verify, APlanOfAnotherGraphIsFound) {
  const std::string model = SyntheticModel("eps5", "1e-5");
  const std::string other = SyntheticModel("eps4", "1e-4");
  const std::string plan = TemporaryPath("eps.weft");
  WeftOut({"compile", model, "-o", plan, "--buckets", "1,8"});
  WeftOut({"verify", plan, "--source", model, "--tokens", "3"});
  const RunResult wrong =
      Weft({"verify", plan, "--source", other, "--tokens", "3"});
  ExpectError(wrong, 1);
  EXPECT_NE(wrong.err.find("bucket of 1 tokens"), std::string::npos)
      << wrong.err;
  EXPECT_NE(wrong.err.find("eps=1e-05"), std::string::npos) << wrong.err;
}

TEST(Verify, RoundedWeightsOfBfloat16AreNoFault) {
  const std::string model = SyntheticModel("bf16", "1e-5");
  WeftOut({"verify", model, "--f16-compute", "bf16", "--tokens", "5"});
}

// The reference agrees with the kernels, so nothing of weft is at fault, but
// the file is.
TEST(Verify, WeightsThatAreNoNumbersAreNamed) {
  const std::string model = SyntheticModel("nan", "1e-5");
  const std::string sound = WeftOut({"verify", model, "--tokens", "2"});
  EXPECT_EQ(sound.find("NaN"), std::string::npos) << sound;
  std::string bytes = ReadFile(model);
  // The last weights of the file.
  for (size_t i = 0; i < 64; ++i) bytes[bytes.size() - 1 - i] = '\x7f';
  WriteTextFile(model, bytes);
  const RunResult broken = Weft({"verify", model, "--tokens", "2"});
  ExpectError(broken, 1);
  EXPECT_NE(broken.err.find("weights are no numbers: output: row 511"),
            std::string::npos)
      << broken.err;
}

TEST(Verify, TellsTheTokensThatWereRun) {
  const Json json =
      WeftJson({"verify", "", "--context", "9", "--tokens", "1000", "--json"});
  EXPECT_EQ(json["tokens"], 9);
}

TEST(Verify, WrongUseIsAnError) {
  ExpectError(Weft({"verify"}), 2);
  ExpectError(Weft({"verify", kModel, "--tokens", "0"}), 2);
  ExpectError(Weft({"verify", "no-such-file.gguf"}), 1);
}

TEST(Profile, TellsTimeBytesAndOperationsOfEveryNode) {
  const Json json =
      WeftJson({"profile", "--prompt", "20", "--generate", "3", "--json"});
  ASSERT_EQ(json["phases"].size(), 2u);
  EXPECT_GT(json["limits"]["read_bytes_per_second"], 0);
  const Json inspect = WeftJson({"inspect", "", "--json"});
  for (const Json& phase : json["phases"]) {
    const bool decode = phase["name"] == "decode";
    EXPECT_EQ(phase["tokens"], decode ? 3 : 20);
    EXPECT_EQ(phase["steps"], decode ? 3 : 1);
    // The same nodes, grouped in three ways.
    int64_t counts[3] = {}, operations[3] = {};
    double seconds[3] = {};
    const char* groups[] = {"ops", "blocks", "nodes"};
    for (int i = 0; i < 3; ++i) {
      for (const Json& row : phase[groups[i]]) {
        counts[i] += row["count"].get<int64_t>();
        operations[i] += row["operations"].get<int64_t>();
        seconds[i] += row["seconds"].get<double>();
      }
      EXPECT_EQ(counts[i], counts[0]);
      EXPECT_EQ(operations[i], phase["operations"].get<int64_t>());
      EXPECT_NEAR(seconds[i], seconds[0], 1e-9 + 1e-6 * seconds[0]);
      EXPECT_LE(seconds[i], phase["seconds"].get<double>());
    }
    EXPECT_EQ(counts[0] % phase["steps"].get<int64_t>(), 0);
  }
  // A token of decode reads every weight but the rows of the embedding, and a
  // tied one, too.
  EXPECT_GT(json["phases"][1]["bytes_per_token"].get<double>(),
            0.5 * inspect["plan"]["weight_bytes"].get<double>());
}

TEST(Profile, WritesATraceOfNestedEvents) {
  const std::string path = TemporaryPath("trace.json");
  const std::string text =
      WeftOut({"profile", "--prompt", "5", "--generate", "2", "--trace", path});
  EXPECT_NE(text.find("longest nodes"), std::string::npos);
  const Json trace = Json::parse(ReadFile(path));
  double begin = -1, end = -1, last = 0;
  int steps = 0, nodes = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] == "range") continue;
    const double start = event["ts"], stop = start + event["dur"].get<double>();
    if (event["cat"] == "step") {
      EXPECT_GE(start, end);
      begin = start;
      end = stop;
      last = start;
      ++steps;
    } else {
      EXPECT_GE(start, last);
      EXPECT_LE(stop, end + 1e-3);
      EXPECT_TRUE(event["args"].contains("kernel"));
      last = stop - 1e-3;
      ++nodes;
    }
  }
  EXPECT_GE(begin, 0);
  EXPECT_EQ(steps, 3);
  EXPECT_GT(nodes, 3 * 10);
}

// Lanes below the nodes' show who did which part of a node.
TEST(Profile, TracesWhatEachThreadDid) {
  const std::string path = TemporaryPath("trace.json");
  WeftOut({"profile", "--prompt", "5", "--generate", "1", "--threads", "2",
           "--trace", path});
  const Json trace = Json::parse(ReadFile(path));
  std::set<int> named;
  std::map<int, double> last;  // by lane, where its last range ends
  std::vector<Json> ranges;
  for (const Json& event : trace["traceEvents"]) {
    const int lane = event["tid"];
    if (event["name"] == "thread_name") named.insert(lane);
    if (event["ph"] != "X") continue;
    EXPECT_EQ(named.count(lane), 1u) << lane;
    EXPECT_EQ(event["cat"] == "range", lane > 1);
    if (lane == 1) continue;
    EXPECT_GE(event["ts"].get<double>(), last[lane]);
    last[lane] = event["ts"].get<double>() + event["dur"].get<double>() - 1e-3;
    ranges.push_back(event);
  }
  EXPECT_EQ(named, (std::set<int>{1, 2, 3}));
  for (const Json& node : trace["traceEvents"]) {
    if (node["ph"] != "X" || node["tid"] != 1 || node["cat"] == "step") {
      continue;
    }
    const double begin = node["ts"];
    const double end = begin + node["dur"].get<double>();
    const bool worked =
        std::any_of(ranges.begin(), ranges.end(), [&](const Json& range) {
          const double start = range["ts"];
          const double stop = start + range["dur"].get<double>();
          return range["name"] == node["name"] && start >= begin - 1e-3 &&
                 stop <= end + 1e-3;
        });
    EXPECT_TRUE(worked) << node["name"] << " has no range inside it";
  }
}

TEST(Profile, WrongUseIsAnError) {
  ExpectError(Weft({"profile", "--prompt", "0"}), 2);
  ExpectError(Weft({"profile", "--prompt", "100000"}), 2);
  ExpectError(Weft({"profile", "--generate", "-1"}), 2);
  ExpectError(Weft({"profile", "no-such-file.gguf"}), 1);
  ExpectError(Weft({"profile", "--trace", "/no/such/folder/trace.json",
                    "--prompt", "2", "--generate", "1"}),
              1);
}

}  // namespace
}  // namespace weft
