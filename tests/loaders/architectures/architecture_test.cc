// Models that are not whole, or whose tensors hold what cannot be: none may
// load as another model.
#include "loaders/architectures/architecture.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf_writer.h"
#include "loaders/synthesize.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A file of three blocks; `more` goes into its shape.
std::string Synthesize(const std::string& architecture,
                       const std::string& more) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/", getpid(), "-", architecture);
  std::ofstream(path + ".json")
      << R"({"architecture": ")" << architecture
      << R"(", "embedding_length": 64, "block_count": 3,
           "feed_forward_length": 64, "head_count": 2, "head_count_kv": 2,
           "vocabulary_size": 300, "context_length": 1024)"
      << more << "}";
  SynthesizeOptions options;
  options.shape = path + ".json";
  options.type = "F32";
  const auto report = SynthesizeModel(options, path + ".gguf");
  EXPECT_TRUE(report.ok()) << report.status();
  return path + ".gguf";
}

struct Change {
  std::string without = "";  // a tensor
  std::string factors = "";  // a tensor
  float factor = 0;          // what all of it is then
  std::function<void(GgufWriter*)> keys = [](GgufWriter*) {};
};

absl::Status Load(const std::string& path, const Change& change,
                  int64_t context = 0) {
  const auto source = GgufFile::Open(path);
  if (!source.ok()) return source.status();
  GgufWriter writer;
  writer.CopyMetadata(*source);
  change.keys(&writer);
  std::vector<uint8_t> changed;
  bool found = change.without.empty() && change.factors.empty();
  for (const GgufTensor& tensor : source->tensors()) {
    found |= tensor.name == change.without || tensor.name == change.factors;
    if (tensor.name == change.without) continue;
    if (tensor.name != change.factors) {
      writer.AddTensor(tensor.name, tensor.type, tensor.dims, tensor.data);
      continue;
    }
    changed.resize(tensor.data.size());
    for (size_t at = 0; at < changed.size(); at += sizeof(float)) {
      std::memcpy(&changed[at], &change.factor, sizeof(float));
    }
    writer.AddTensor(tensor.name, tensor.type, tensor.dims, changed);
  }
  EXPECT_TRUE(found) << change.without << change.factors;
  const std::string result = path + ".changed";
  if (absl::Status s = writer.WriteTo(result); !s.ok()) return s;
  const auto file = GgufFile::Open(result);
  unlink(result.c_str());
  if (!file.ok()) return file.status();
  GraphOptions options;
  options.context = context;
  return BuildGraph(*file, options).status();
}

std::string Without(const std::string& path, const std::string& tensor,
                    int64_t context = 0) {
  Change change;
  change.without = tensor;
  return std::string(Load(path, change, context).message());
}

constexpr char kLongPhi3[] = R"(,
    "keys": {"rope.scaling.original_context_length": 128},
    "optional_tensors": ["rope_factors_long.weight",
                         "rope_factors_short.weight"])";

TEST(LongRope, NeedsBothSetsOfFactorsInEveryContext) {
  const std::string path = Synthesize("phi3", kLongPhi3);
  for (int64_t context : {64, 1024}) {
    EXPECT_TRUE(Load(path, {}, context).ok());
    for (const char* tensor :
         {"rope_factors_long.weight", "rope_factors_short.weight"}) {
      EXPECT_THAT(Without(path, tensor, context),
                  HasSubstr(absl::StrCat("missing tensor '", tensor, "'")));
    }
  }
}

TEST(LongRope, NeedsFactorsWhenTheMetadataSaysSo) {
  Change change;
  change.keys = [](GgufWriter* writer) {
    writer->SetString("phi3.rope.scaling.type", "longrope");
  };
  const std::string path = Synthesize("phi3", "");
  EXPECT_TRUE(Load(path, {}).ok());
  EXPECT_THAT(std::string(Load(path, change).message()),
              HasSubstr("missing tensor 'rope_factors_long.weight'"));
  const absl::Status whole = Load(Synthesize("phi3", kLongPhi3), change);
  EXPECT_TRUE(whole.ok()) << whole;
}

TEST(RopeFactors, AreAboveZeroAndNotInfinite) {
  const std::string phi3 = Synthesize("phi3", kLongPhi3);
  const std::string llama =
      Synthesize("llama", R"(, "optional_tensors": ["rope_freqs.weight"])");
  for (const auto& [path, tensor] :
       {std::pair<std::string, std::string>{phi3, "rope_factors_long.weight"},
        {phi3, "rope_factors_short.weight"},
        {llama, "rope_freqs.weight"}}) {
    Change change;
    change.factors = tensor;
    for (float factor :
         {0.0f, -0.0f, -1.0f, 1e-40f, std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      change.factor = factor;
      EXPECT_THAT(std::string(Load(path, change).message()),
                  AllOf(HasSubstr(absl::StrCat("bad tensor '", tensor, "'")),
                        HasSubstr("above 0")))
          << factor;
    }
    change.factor = 8;
    EXPECT_TRUE(Load(path, change).ok());
  }
}

// One block that lacks what the others have, whichever it is.
TEST(OptionalTensors, AreInAllBlocksOrInNone) {
  struct Case {
    const char* architecture;
    const char* more;
    const char* tensor;
  };
  for (const Case& c :
       {Case{"llama", "", "attn_q.bias"}, Case{"llama", "", "ffn_down.bias"},
        Case{"bert", "", "attn_q.bias"}, Case{"stablelm", "", "attn_v.bias"},
        Case{"stablelm", R"(, "keys": {"use_parallel_residual": 1})",
             "attn_q_norm.weight"}}) {
    const std::string path = Synthesize(
        c.architecture, absl::StrCat(c.more, R"(, "optional_tensors": [".)",
                                     c.tensor, R"("])"));
    EXPECT_TRUE(Load(path, {}).ok()) << c.architecture;
    for (int block : {0, 1, 2}) {
      const std::string tensor = absl::StrCat("blk.", block, ".", c.tensor);
      EXPECT_THAT(Without(path, tensor),
                  HasSubstr(absl::StrCat("missing tensor '", tensor, "'")));
    }
  }
}

constexpr char kGemma4E[] = R"(, "key_length": 32, "keys": {
    "attention.sliding_window": 9, "attention.sliding_window_pattern": [1, 0, 1],
    "attention.key_length_swa": 16, "attention.value_length_swa": 16,
    "attention.shared_kv_layers": 1, "embedding_length_per_layer_input": 8},
    "optional_tensors": ["attn_v.weight", "layer_output_scale.weight"])";

TEST(Gemma4, IsWholeOrRefused) {
  const std::string path = Synthesize("gemma4", kGemma4E);
  const absl::Status whole = Load(path, {});
  EXPECT_TRUE(whole.ok()) << whole;
  for (const char* tensor :
       {"blk.1.layer_output_scale.weight", "per_layer_token_embd.weight",
        "per_layer_proj_norm.weight", "blk.0.attn_v.weight",
        "blk.0.attn_k.weight", "blk.2.inp_gate.weight"}) {
    EXPECT_THAT(Without(path, tensor),
                HasSubstr(absl::StrCat("missing tensor '", tensor, "'")));
  }
}

// Without the key the last block has its own, and what it shares is not read.
TEST(Gemma4, BlocksThatShareACacheMayHaveWhatTheyDoNotRead) {
  std::string own = kGemma4E;
  own.replace(own.find("_layers\": 1"), 11, "_layers\": 0");
  Change change;
  change.keys = [](GgufWriter* writer) {
    writer->SetUint32("gemma4.attention.shared_kv_layers", 1);
  };
  const absl::Status status = Load(Synthesize("gemma4", own), change);
  EXPECT_TRUE(status.ok()) << status;
}

// Each of several experts would have an input of its own.
TEST(Llama4, ChoosesOneExpertOrIsRefused) {
  const std::string path = Synthesize(
      "llama4", R"(, "keys": {"expert_count": 4, "expert_used_count": 1,
                  "expert_feed_forward_length": 64})");
  EXPECT_TRUE(Load(path, {}).ok());
  Change change;
  change.keys = [](GgufWriter* writer) {
    writer->SetUint32("llama4.expert_used_count", 2);
  };
  const absl::Status status = Load(path, change);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("not supported: llama4.expert_used_count is 2"));
}

TEST(SlidingWindow, ThatNoTextReachesIsNone) {
  const std::string path = Synthesize("phi3", "");
  for (uint64_t window : {uint64_t{1024}, uint64_t{4294967295},
                          std::numeric_limits<uint64_t>::max()}) {
    Change change;
    change.keys = [window](GgufWriter* writer) {
      writer->SetUint64("phi3.attention.sliding_window", window);
      writer->SetUint64("phi3.context_length",
                        window == 1024 ? 1024 : uint64_t{1} << 40);
    };
    const absl::Status status = Load(path, change);
    EXPECT_TRUE(status.ok()) << status;
  }
}

}  // namespace
}  // namespace weft
