// Mixtures of experts and encoders against reference data, and the promise that
// bits depend on nothing but the tokens.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "loaders/gguf_writer.h"
#include "loaders/quantize_model.h"
#include "passes/pipeline.h"
#include "runtime/api/engine.h"
#include "runtime/check/check_nodes.h"
#include "tests/golden/golden_data.h"

namespace weft {
namespace {

using testing::HasSubstr;

const char* const kExpertModels[] = {"mixtral-moe", "qwen2moe"};

EngineOptions ExactCache(int threads = 2) {
  EngineOptions options;
  options.model.graph.kv_type = DType::kF32;
  options.threads = threads;
  return options;
}

std::unique_ptr<Engine> Load(const std::string& path,
                             const EngineOptions& options) {
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

struct Model {
  explicit Model(const std::string& name)
      : folder(GoldenFolder("arch")), data(ReadCases(folder)["models"][name]) {}

  std::string path() const { return folder + data["file"].get<std::string>(); }
  std::vector<int32_t> Tokens(size_t sequence) const {
    return data["sequences"][sequence]["tokens"];
  }
  std::vector<float> Values(size_t sequence, const char* which) const {
    return ReadFloats(folder +
                      data["sequences"][sequence][which].get<std::string>());
  }

  const std::string folder;
  const nlohmann::json data;
};

std::vector<float> Logits(Engine& engine, const std::vector<int32_t>& tokens,
                          int64_t chunk) {
  std::vector<int64_t> positions;
  for (size_t i = 0; i < tokens.size(); ++i) positions.push_back(i);
  std::vector<float> result;
  const absl::Status status = engine.Evaluate(
      tokens, positions, chunk, [&](int64_t, absl::Span<const float> row) {
        result.insert(result.end(), row.begin(), row.end());
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double Nmse(const std::vector<float>& found, const std::vector<float>& want) {
  EXPECT_EQ(found.size(), want.size());
  ErrorSums sums;
  sums.Add(found, want);
  EXPECT_GT(sums.power, 0);
  return sums.nmse();
}

// The model in this type, in the test's own folder.
std::string Quantized(const Model& model, const std::string& type) {
  const std::string path = absl::StrCat(testing::TempDir(), "/experts_",
                                        getpid(), "_", type, ".gguf");
  QuantizeOptions options;
  options.type = type;
  const auto report = QuantizeModel(model.path(), path, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return path;
}

TEST(ExpertsTest, LogitsAreThoseOfTheReference) {
  for (const char* name : kExpertModels) {
    const Model model(name);
    for (Isa isa : {DetectIsa(), kLeastIsa, Isa::kRef}) {
      EngineOptions options = ExactCache();
      options.model.compile.isa = isa;
      const auto engine = Load(model.path(), options);
      ASSERT_NE(engine, nullptr);
      for (size_t s = 0; s < 2; ++s) {
        EXPECT_LT(Nmse(Logits(*engine, model.Tokens(s), 0),
                       model.Values(s, "values")),
                  1e-10)
            << name << " on " << Name(isa);
      }
    }
  }
}

TEST(ExpertsTest, BitsDependOnTokensAlone) {
  for (const char* name : kExpertModels) {
    const Model model(name);
    for (const std::string type : {"F32", "Q8_0", "Q4_K_M"}) {
      const std::string path =
          type == "F32" ? model.path() : Quantized(model, type);
      const std::vector<int32_t> tokens = model.Tokens(1);
      std::vector<float> first;
      for (int threads : {1, 2}) {
        const auto engine = Load(path, ExactCache(threads));
        ASSERT_NE(engine, nullptr);
        for (int64_t chunk : {1, 7, 512}) {
          const std::vector<float> logits = Logits(*engine, tokens, chunk);
          if (first.empty()) first = logits;
          EXPECT_TRUE(SameBits(first, logits))
              << name << " " << type << " threads " << threads << " chunk "
              << chunk;
        }
      }
      if (type != "F32") {
        // Coarse: a router may choose otherwise where two experts are close.
        EXPECT_LT(Nmse(first, model.Values(1, "values")),
                  type == "Q8_0" ? 0.03 : 0.2)
            << name << " " << type;
        std::remove(path.c_str());
      }
    }
  }
}

TEST(ExpertsTest, PassesThatKeepTheOrderOfSumsKeepTheBits) {
  for (const char* name : kExpertModels) {
    const Model model(name);
    for (const std::string type : {"F32", "Q8_0"}) {
      const std::string path =
          type == "F32" ? model.path() : Quantized(model, type);
      const std::vector<int32_t> tokens = model.Tokens(1);
      const auto run = [&](const std::set<std::string>& disabled) {
        EngineOptions options = ExactCache();
        options.model.compile.disabled_passes = disabled;
        const auto engine = Load(path, options);
        return engine == nullptr ? std::vector<float>()
                                 : Logits(*engine, tokens, 0);
      };
      const std::vector<float> all = run({});
      for (const PassEntry& pass : Pipeline()) {
        const std::string without = pass.name;
        if (without == "fuse-attention" || without == "quantize-activations") {
          continue;
        }
        EXPECT_TRUE(SameBits(all, run({without})))
            << name << " " << type << " without " << without;
      }
      if (type != "F32") std::remove(path.c_str());
    }
  }
}

// Every kernel against its reference function, on a plan for every bucket.
TEST(ExpertsTest, KernelsAgreeWithTheirReferences) {
  for (const char* name : {"mixtral-moe", "qwen2moe", "bert"}) {
    const Model model(name);
    for (const std::string type : {"F32", "Q8_0"}) {
      const std::string path =
          type == "F32" ? model.path() : Quantized(model, type);
      EngineOptions options = ExactCache();
      const auto engine = Load(path, options);
      ASSERT_NE(engine, nullptr);
      auto threads = ThreadPool::Create(2);
      ASSERT_TRUE(threads.ok());
      ReferenceEvaluator evaluator;
      const auto report =
          CheckNodes(engine->plan(), model.Tokens(1), **threads, &evaluator);
      ASSERT_TRUE(report.ok()) << report.status();
      for (const NodeFault& fault : report->faults) {
        ADD_FAILURE() << name << " " << type << ": " << fault.node << ": "
                      << fault.fault;
      }
      for (const Graph& graph : engine->plan().buckets) {
        EXPECT_EQ(graph.arena.bytes, graph.arena.lower_bound)
            << name << " " << type << " " << graph.bounds.tokens;
      }
      if (type != "F32") std::remove(path.c_str());
    }
  }
}

TEST(EncoderTest, VectorsAreThoseOfTheReference) {
  const Model model("bert");
  for (Isa isa : {DetectIsa(), kLeastIsa, Isa::kRef}) {
    EngineOptions options;
    options.threads = 2;
    options.model.compile.isa = isa;
    const auto engine = Load(model.path(), options);
    ASSERT_NE(engine, nullptr);
    for (size_t s = 0; s < 2; ++s) {
      const std::vector<int32_t> tokens = model.Tokens(s);
      const std::vector<float> truth = model.Values(s, "truth");
      std::vector<float> hidden;
      const absl::Status status = engine->Hidden(
          tokens, [&](int64_t position, absl::Span<const float> row) {
            EXPECT_EQ(position, static_cast<int64_t>(hidden.size() / 64));
            hidden.insert(hidden.end(), row.begin(), row.end());
            return absl::OkStatus();
          });
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_LT(Nmse(hidden, truth), 1e-10) << Name(isa);
      const auto embedding = engine->Embed(tokens);
      ASSERT_TRUE(embedding.ok()) << embedding.status();
      std::vector<float> mean(64);
      for (size_t i = 0; i < truth.size(); ++i) {
        mean[i % 64] += truth[i] / static_cast<float>(tokens.size());
      }
      EXPECT_LT(Nmse(*embedding, mean), 1e-10);
    }
  }
}

TEST(EncoderTest, PassesThatKeepTheOrderOfSumsKeepTheBits) {
  const Model model("bert");
  const auto run = [&](const std::string& disabled, int threads) {
    EngineOptions options = ExactCache(threads);
    if (!disabled.empty()) options.model.compile.disabled_passes = {disabled};
    const auto engine = Load(model.path(), options);
    return engine == nullptr ? std::vector<float>()
                             : engine->Embed(model.Tokens(1)).value();
  };
  const std::vector<float> all = run("", 1);
  for (const PassEntry& pass : Pipeline()) {
    const std::string without = pass.name;
    if (without == "fuse-attention") continue;
    EXPECT_TRUE(SameBits(all, run(without, 2))) << without;
  }
}

TEST(EncoderTest, AVectorIsTheSameWhateverElseIsInTheStep) {
  const Model model("bert");
  EngineOptions options = ExactCache();
  options.slots = 2;
  const auto engine = Load(model.path(), options);
  ASSERT_NE(engine, nullptr);
  std::vector<int32_t> ids, positions, slots, rows;
  for (int32_t slot = 0; slot < 2; ++slot) {
    const std::vector<int32_t> tokens = model.Tokens(slot);
    ASSERT_TRUE(engine->cache().Reserve(slot, tokens.size()).ok());
    for (size_t t = 0; t < tokens.size(); ++t) {
      rows.push_back(static_cast<int32_t>(ids.size()));
      ids.push_back(tokens[t]);
      positions.push_back(static_cast<int32_t>(t));
      slots.push_back(slot);
    }
  }
  std::vector<float> both(ids.size() * 64);
  ASSERT_TRUE(
      engine->executor().Run({ids, positions, slots, rows, both.data()}).ok());
  std::vector<float> alone;
  for (size_t s = 0; s < 2; ++s) {
    ASSERT_TRUE(engine->cache().Release(s).ok());
    ASSERT_TRUE(engine
                    ->Hidden(model.Tokens(s),
                             [&](int64_t, absl::Span<const float> row) {
                               alone.insert(alone.end(), row.begin(),
                                            row.end());
                               return absl::OkStatus();
                             })
                    .ok());
  }
  EXPECT_TRUE(SameBits(both, alone));
}

TEST(EncoderTest, RefusesWhatItCannotDo) {
  const Model model("bert");
  const auto engine = Load(model.path(), ExactCache());
  ASSERT_NE(engine, nullptr);
  EXPECT_THAT(std::string(engine->Evaluate({}, {}, 0, nullptr).message()),
              HasSubstr("bert is an encoder"));
  EXPECT_THAT(std::string(engine->Embed({}).status().message()),
              HasSubstr("the model takes 1 to 128 at once"));
  EXPECT_THAT(
      std::string(
          engine->Embed(std::vector<int32_t>(129, 5)).status().message()),
      HasSubstr("text is too long: 129 tokens"));
  const auto decoder = Load(Model("mixtral-moe").path(), ExactCache());
  ASSERT_NE(decoder, nullptr);
  EXPECT_THAT(std::string(decoder->Embed({1, 2}).status().message()),
              HasSubstr("llama was made to write text"));
}

TEST(EncoderTest, TokensAreThoseOfTheReference) {
  const std::string folder = GoldenFolder("arch");
  const nlohmann::json cases = ReadCases(folder)["tokenize"]["bert"];
  const auto engine =
      Load(folder + cases["model"].get<std::string>(), ExactCache());
  ASSERT_NE(engine, nullptr);
  for (const nlohmann::json& one : cases["cases"]) {
    const auto ids = engine->tokenizer().Encode(one["text"], {});
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, one["ids"].get<std::vector<int32_t>>()) << one["text"];
  }
}

// The model as files of 2023 have it: a tensor for each expert.
std::string WithSeparateExperts(const Model& model) {
  const auto source = GgufFile::Open(model.path());
  EXPECT_TRUE(source.ok()) << source.status();
  GgufWriter writer;
  writer.CopyMetadata(*source);
  int split = 0;
  for (const GgufTensor& tensor : source->tensors()) {
    const std::string end = "_exps.weight";
    if (!absl::EndsWith(tensor.name, end)) {
      writer.AddTensor(tensor.name, tensor.type, tensor.dims, tensor.data);
      continue;
    }
    ++split;
    const std::string name =
        tensor.name.substr(0, tensor.name.size() - end.size());
    const int64_t experts = tensor.dims[2];
    const size_t bytes = tensor.data.size() / experts;
    for (int64_t i = 0; i < experts; ++i) {
      writer.AddTensor(absl::StrCat(name, ".", i, ".weight"), tensor.type,
                       {tensor.dims[0], tensor.dims[1]},
                       tensor.data.subspan(i * bytes, bytes));
    }
  }
  EXPECT_GT(split, 0);
  const std::string path =
      absl::StrCat(testing::TempDir(), "/", getpid(), "-separate.gguf");
  EXPECT_TRUE(writer.WriteTo(path).ok());
  return path;
}

TEST(Experts, OneTensorForEachGivesTheSameBits) {
  const Model model("mixtral-moe");
  const std::string path = WithSeparateExperts(model);
  const std::vector<int32_t> tokens = model.Tokens(0);
  for (const std::set<std::string>& disabled :
       {std::set<std::string>(), std::set<std::string>{"pack-weights"}}) {
    EngineOptions options = ExactCache();
    options.model.compile.disabled_passes = disabled;
    const auto joined = Load(model.path(), options);
    const auto separate = Load(path, options);
    ASSERT_NE(joined, nullptr);
    ASSERT_NE(separate, nullptr);
    EXPECT_TRUE(
        SameBits(Logits(*joined, tokens, 4), Logits(*separate, tokens, 4)));
  }
  unlink(path.c_str());
}

}  // namespace
}  // namespace weft
