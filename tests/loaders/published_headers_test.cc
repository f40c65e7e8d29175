// What weft makes of the metadata of really published files, beside what their
// public loader logged (tests/data/published_headers.json: keys, and the
// numbers that the loader derived).
//
// The files are hollow: token texts are made up where the log does not show
// them, and tensors are only described, as the builder asks for them. A file of
// an architecture that weft does not have must say so; it is checked like the
// others as soon as weft has it.
#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <functional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/architectures/architecture.h"
#include "loaders/vocabulary.h"
#include "nlohmann/json.hpp"
#include "ops/ops.h"
#include "tests/loaders/gguf_test_util.h"
#include "text/tokenizer.h"

namespace weft {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::HasSubstr;

json Headers() {
  return json::parse(std::ifstream("tests/data/published_headers.json"));
}

void SetKey(const json& row, GgufWriter* writer) {
  const std::string key = row[0], type = row[1];
  const json& value = row[2];
  if (type == "str") return writer->SetString(key, value.get<std::string>());
  if (type == "bool") return writer->SetBool(key, value);
  if (type == "f32") return writer->SetFloat32(key, value);
  if (type == "u32") return writer->SetUint32(key, value);
  if (type == "i32") return writer->SetInt32(key, value);
  if (type == "u64") return writer->SetUint64(key, value);
  if (type == "arr f32") {
    return writer->SetFloat32s(key, std::vector<float>(value.get<size_t>()));
  }
  if (value.is_number()) {
    return writer->SetInt32s(key, std::vector<int32_t>(value.get<size_t>()));
  }
  std::vector<int32_t> numbers;
  for (const json& number : value) {
    numbers.push_back(number.is_boolean() ? number.get<bool>()
                                          : number.get<int32_t>());
  }
  writer->SetInt32s(key, numbers);
}

GgufWriter HollowFile(const json& header) {
  GgufWriter writer;
  std::set<int64_t> control;
  for (const json& row : header["keys"]) {
    SetKey(row, &writer);
    if (absl::EndsWith(row[0].get<std::string>(), "_token_id")) {
      control.insert(row[2].get<int64_t>());
    }
  }
  if (!header.contains("vocabulary")) {
    const std::string architecture = header["keys"][0][2];
    writer.SetUint32(architecture + ".vocab_size", 1000);
    return writer;
  }
  const int count = header["vocabulary"];
  std::vector<std::string> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(absl::StrCat("w", i));
  if (header.contains("names")) {
    for (const auto& [id, name] : header["names"].items()) {
      tokens[std::stoi(id)] = name;
      control.insert(std::stoi(id));
    }
  }
  std::vector<int32_t> types(count, 1);
  for (int64_t id : control) {
    if (id >= 0 && id < count) types[id] = 3;
  }
  writer.SetStrings("tokenizer.ggml.tokens", tokens);
  writer.SetInt32s("tokenizer.ggml.token_type", types);
  return writer;
}

// Describes what the builder asks for, and counts it.
class DescribedTensors : public TensorSource {
 public:
  explicit DescribedTensors(const json& header)
      : optional_(header.value("optional", std::vector<std::string>())) {}

  size_t count() const { return tensors_.size(); }

  absl::StatusOr<const GgufTensor*> Require(
      absl::string_view name, absl::Span<const int64_t> dims) override {
    for (const GgufTensor& known : tensors_) {
      if (known.name == name) return &known;
    }
    tensors_.emplace_back();
    tensors_.back().name = std::string(name);
    tensors_.back().dims.assign(dims.begin(), dims.end());
    return &tensors_.back();
  }
  absl::StatusOr<const GgufTensor*> Optional(
      absl::string_view name, absl::Span<const int64_t> dims) override {
    for (const std::string& end : optional_) {
      if (absl::EndsWith(name, end)) return Require(name, dims);
    }
    return static_cast<const GgufTensor*>(nullptr);
  }
  bool Has(absl::string_view name) const override {
    for (const std::string& end : optional_) {
      if (absl::EndsWith(name, end)) return true;
    }
    return false;
  }
  void LeaveOut(absl::string_view) override {}
  absl::Status CheckAllUsed() const override { return absl::OkStatus(); }

 private:
  std::vector<std::string> optional_;
  std::deque<GgufTensor> tensors_;
};

std::vector<double> Numbers(const Graph& graph, const char* op,
                            const char* attribute) {
  std::vector<double> numbers;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (absl::string_view(node.op->name) != op) continue;
    const AttributeValue* value = node.attributes.Find(attribute);
    if (value == nullptr) {
      numbers.push_back(0);
    } else if (const double* number = std::get_if<double>(value)) {
      numbers.push_back(*number);
    } else {
      numbers.push_back(static_cast<double>(std::get<int64_t>(*value)));
    }
  }
  return numbers;
}

void CheckGraph(const json& log, const Graph& graph, int64_t key_length) {
  const auto logged = [&](const char* key, double otherwise) {
    return log.value(key, otherwise);
  };
  const std::vector<double> dims = Numbers(graph, "rope", "rope_dims");
  if (!dims.empty()) {
    if (log.contains("rope_dimensions")) {
      EXPECT_THAT(dims, Each(log["rope_dimensions"].get<double>()));
    }
    if (log.contains("rope_base")) {
      EXPECT_THAT(Numbers(graph, "rope", "base"),
                  Contains(log["rope_base"].get<double>()));
    }
    if (log.contains("rope_scale")) {
      EXPECT_THAT(Numbers(graph, "rope", "scale"),
                  Contains(DoubleNear(log["rope_scale"].get<double>(), 1e-6)));
    }
    if (log.contains("rope_type")) {
      for (NodeId id : graph.order()) {
        if (!graph.node(id).Is(kRopeOp)) continue;
        EXPECT_EQ(graph.node(id).attributes.As<RopeAttributes>().style,
                  log["rope_type"] == 0 ? RopeStyle::kInterleaved
                                        : RopeStyle::kHalves);
      }
    }
  }
  EXPECT_THAT(Numbers(graph, "attention_scores", "window"),
              Contains(logged("window", 0)));
  EXPECT_THAT(
      Numbers(graph, "attention_scores", "scale"),
      Each(DoubleNear(logged("score_scale", 1 / std::sqrt(key_length)), 1e-3)));
}

void CheckVocabulary(const json& log, const Vocabulary& vocabulary) {
  const auto tokenizer = Tokenizer::Create(vocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::pair<const char*, int32_t> ids[] = {
      {"bos", vocabulary.bos()},
      {"eos", vocabulary.eos()},
      {"unk", vocabulary.unknown()},
      {"pad", vocabulary.padding()},
      {"eot", (*tokenizer)->end_of_turn()}};
  for (const auto& [name, id] : ids) {
    if (!log.contains(name)) continue;
    EXPECT_EQ(id, log[name].get<int32_t>()) << name;
  }
  // The log of an encoder has no ends that mean anything.
  if (!log.contains("ends") || vocabulary.model() == "bert") return;
  std::vector<int32_t> ends;
  for (int32_t id = 0; id < vocabulary.tokens_size(); ++id) {
    if ((*tokenizer)->IsEndOfGeneration(id)) ends.push_back(id);
  }
  EXPECT_EQ(ends, log["ends"].get<std::vector<int32_t>>());
}

TEST(PublishedHeaders, GiveWhatTheirLoaderLogged) {
  int known = 0;
  for (const json& header : Headers()) {
    SCOPED_TRACE(header["file"].get<std::string>());
    const json& log = header["log"];
    const auto file = WriteAndOpen(HollowFile(header), "hollow.gguf");
    ASSERT_TRUE(file.ok()) << file.status();
    const auto name = ReadArchitecture(*file);
    ASSERT_TRUE(name.ok()) << name.status();
    const Architecture* architecture = FindArchitecture(*name);
    if (architecture == nullptr) {
      EXPECT_THAT(ErrorOf(BuildGraph(*file, {}).status()),
                  HasSubstr(absl::StrCat("architecture '", *name,
                                         "' is not supported")));
      continue;
    }
    const auto config = ReadModelConfig(*file, architecture->traits);
    if (log.empty() && !config.ok()) {  // its header was logged in part
      EXPECT_THAT(ErrorOf(config.status()), HasSubstr("missing metadata"));
      continue;
    }
    ASSERT_TRUE(config.ok()) << config.status();
    for (const std::string& warning : config->warnings) {
      EXPECT_THAT(warning, HasSubstr("only texts are understood"));
    }
    if (log.contains("pooling") && log["pooling"] >= 0) {
      EXPECT_EQ(static_cast<double>(config->pooling),
                log["pooling"].get<double>());
    }
    if (header.contains("tensors")) {
      DescribedTensors tensors(header);
      const GraphOptions options;
      Graph graph;
      graph.bounds = {1, 1, std::min<int64_t>(config->context_length, 4096)};
      ModelBuilder builder(&tensors, *config, options, &graph);
      architecture->build(builder);
      const absl::Status built = builder.Finish();
      ASSERT_TRUE(built.ok()) << built;
      EXPECT_EQ(tensors.count(), header["tensors"].get<size_t>() -
                                     header.value("elsewhere", size_t{0}));
      CheckGraph(log, graph, config->key_length);
      ++known;
    }
    if (header.contains("vocabulary")) {
      const auto vocabulary = ReadVocabulary(*file);
      ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
      CheckVocabulary(log, *vocabulary);
    }
  }
  EXPECT_GE(known, 25);
}

// The changes that other converters make to such files, by what they must give.
struct Rotation {
  double base, scale;
  int64_t window;
  bool operator==(const Rotation& o) const {
    return base == o.base && scale == o.scale && window == o.window;
  }
};

// Of each block's keys.
absl::StatusOr<std::vector<Rotation>> RotationsOf(
    const std::string& file_name,
    const std::function<void(GgufWriter*)>& change) {
  const json all = Headers();
  const auto header = std::find_if(all.begin(), all.end(), [&](const json& h) {
    return h["file"] == file_name;
  });
  EXPECT_NE(header, all.end());
  GgufWriter writer = HollowFile(*header);
  change(&writer);
  WEFT_ASSIGN_OR_RETURN(GgufFile file, WriteAndOpen(writer, "changed.gguf"));
  WEFT_ASSIGN_OR_RETURN(std::string name, ReadArchitecture(file));
  const Architecture* architecture = FindArchitecture(name);
  WEFT_ASSIGN_OR_RETURN(ModelConfig config,
                        ReadModelConfig(file, architecture->traits));
  DescribedTensors tensors(*header);
  const GraphOptions options;
  Graph graph;
  graph.bounds = {1, 1, 4096};
  ModelBuilder builder(&tensors, config, options, &graph);
  architecture->build(builder);
  WEFT_RETURN_IF_ERROR(builder.Finish());
  const std::vector<double> bases = Numbers(graph, "rope", "base");
  const std::vector<double> scales = Numbers(graph, "rope", "scale");
  const std::vector<double> windows =
      Numbers(graph, "attention_scores", "window");
  std::vector<Rotation> rotations;
  for (size_t i = 0; i < windows.size(); ++i) {
    rotations.push_back(
        {bases[2 * i], scales[2 * i], static_cast<int64_t>(windows[i])});
  }
  return rotations;
}

constexpr char kGemma3[] = "google_gemma-3-1b-it-Q8_0.gguf";
constexpr Rotation kLocal = {1e4, 1, 512}, kGlobal = {1e6, 1, 0};

TEST(PublishedHeaders, Gemma3TurnsGlobalBlocksWithTheirBaseWhateverItsName) {
  for (const bool named : {true, false}) {
    const auto rotations = RotationsOf(kGemma3, [&](GgufWriter* writer) {
      writer->Remove("gemma3.rope.freq_base");
      writer->Remove("gemma3.attention.layer_norm_rms_epsilon");
      if (!named) return;
      writer->SetFloat32("gemma3.rope.global.freq_base", 1e6f);
      writer->SetFloat32("gemma3.rope.local.freq_base", 1e4f);
    });
    ASSERT_TRUE(rotations.ok()) << rotations.status();
    for (size_t block = 0; block < rotations->size(); ++block) {
      EXPECT_EQ((*rotations)[block], block % 6 == 5 ? kGlobal : kLocal);
    }
  }
}

TEST(PublishedHeaders, Gemma3WithoutAWindowIsGlobal) {
  const auto rotations = RotationsOf(kGemma3, [](GgufWriter* writer) {
    writer->Remove("gemma3.attention.sliding_window");
  });
  ASSERT_TRUE(rotations.ok()) << rotations.status();
  EXPECT_THAT(*rotations, Each(kGlobal));
}

TEST(PublishedHeaders, Gemma3ObeysItsPattern) {
  const auto rotations = RotationsOf(kGemma3, [](GgufWriter* writer) {
    writer->SetUint32("gemma3.attention.sliding_window_pattern", 4);
  });
  ASSERT_TRUE(rotations.ok()) << rotations.status();
  for (size_t block = 0; block < rotations->size(); ++block) {
    EXPECT_EQ((*rotations)[block], block % 4 == 3 ? kGlobal : kLocal);
  }
}

TEST(PublishedHeaders, LargerGemma3IsStretchedAsPublished) {
  const auto rotations =
      RotationsOf("gemma-3-12b-it ollama (gemma3:12b)", [](GgufWriter*) {});
  ASSERT_TRUE(rotations.ok()) << rotations.status();
  EXPECT_EQ((*rotations)[0], (Rotation{1e4, 1, 1024}));
  EXPECT_EQ((*rotations)[5], (Rotation{1e6, 1.0 / 8, 0}));
}

TEST(PublishedHeaders, EarlyGemma2HasItsWindow) {
  const auto rotations =
      RotationsOf("gemma-2-2b-it-Q4_K_M.gguf", [](GgufWriter* writer) {
        writer->Remove("gemma2.attention.sliding_window");
      });
  ASSERT_TRUE(rotations.ok()) << rotations.status();
  EXPECT_EQ((*rotations)[0].window, 4096);
  EXPECT_EQ((*rotations)[1].window, 0);
}

// A tiny model of the family, by what its metadata says beyond that.
absl::StatusOr<Graph> TinyGraph(
    const std::string& family, const std::function<void(GgufWriter*)>& change) {
  GgufWriter writer;
  writer.SetString("general.architecture", family);
  for (const auto& [key, value] :
       {std::pair<const char*, uint32_t>{"context_length", 512},
        {"embedding_length", 64},
        {"block_count", 4},
        {"feed_forward_length", 96},
        {"attention.head_count", 4},
        {"attention.head_count_kv", 2},
        {"vocab_size", 100}}) {
    writer.SetUint32(absl::StrCat(family, ".", key), value);
  }
  writer.SetFloat32(absl::StrCat(family, ".attention.layer_norm_rms_epsilon"),
                    1e-6f);
  change(&writer);
  WEFT_ASSIGN_OR_RETURN(GgufFile file, WriteAndOpen(writer, "tiny.gguf"));
  const Architecture* architecture = FindArchitecture(family);
  WEFT_ASSIGN_OR_RETURN(ModelConfig config,
                        ReadModelConfig(file, architecture->traits));
  DescribedTensors tensors(json::object());
  const GraphOptions options;
  Graph graph;
  graph.bounds = {1, 1, 512};
  ModelBuilder builder(&tensors, config, options, &graph);
  architecture->build(builder);
  WEFT_RETURN_IF_ERROR(builder.Finish());
  return graph;
}

// OLMo 3 calls itself olmo2, and stretches the blocks without a window alone.
TEST(PublishedHeaders, Olmo3StretchesItsFullBlocks) {
  for (const bool window : {true, false}) {
    const auto graph = TinyGraph("olmo2", [&](GgufWriter* writer) {
      writer->SetString("olmo2.rope.scaling.type", "yarn");
      writer->SetFloat32("olmo2.rope.scaling.factor", 8);
      writer->SetUint32("olmo2.rope.scaling.original_context_length", 128);
      writer->SetFloat32("olmo2.rope.scaling.attn_factor", 1.2f);
      if (window) writer->SetUint32("olmo2.attention.sliding_window", 256);
    });
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto scales = Numbers(*graph, "rope", "scale");
    const auto magnitudes = Numbers(*graph, "rope", "magnitude");
    const auto windows = Numbers(*graph, "attention_scores", "window");
    ASSERT_EQ(scales.size(), 8);
    for (int block = 0; block < 4; ++block) {
      const bool full = !window || block == 3;
      EXPECT_EQ(scales[2 * block], full ? 1.0 / 8 : 1);
      EXPECT_EQ(magnitudes[2 * block] > 1, full);
      EXPECT_EQ(windows[block], full ? 0 : 256);
    }
  }
}

TEST(PublishedHeaders, GraniteTurnsNothingWhereRotationIsOff) {
  for (const bool rotates : {true, false}) {
    const auto graph = TinyGraph("granite", [&](GgufWriter* writer) {
      writer->SetBool("granite.rope.scaling.finetuned", rotates);
      writer->SetFloat32("granite.logit_scale", 8);
    });
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(Numbers(*graph, "rope", "base").size(), rotates ? 8 : 0);
  }
}

TEST(PublishedHeaders, BlocksOfDifferentSizesAreBuiltAsTheyAre) {
  const auto graph = TinyGraph("llama", [](GgufWriter* writer) {
    writer->SetUint32s("llama.attention.head_count_kv", {4, 2, 1, 2});
    writer->SetUint32s("llama.feed_forward_length", {32, 64, 96, 128});
  });
  ASSERT_TRUE(graph.ok()) << graph.status();
  const int64_t heads[] = {4, 2, 1, 2};
  for (int block = 0; block < 4; ++block) {
    const auto rows = [&](const char* name) {
      const ValueId weight =
          graph->FindValue(absl::StrCat("blk.", block, ".", name));
      return weight == kNone ? 0 : graph->value(weight).type.shape[0].value;
    };
    EXPECT_EQ(rows("attn_k"), heads[block] * 16);
    EXPECT_EQ(rows("attn_v"), heads[block] * 16);
    EXPECT_EQ(rows("ffn_up"), 32 * (block + 1));
  }
}

}  // namespace
}  // namespace weft
