// The engine's numbers against reference data, and its promise that bits depend
// on nothing but the tokens.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loaders/architectures/architecture.h"
#include "passes/pipeline.h"
#include "runtime/api/completion.h"
#include "runtime/api/engine.h"
#include "runtime/api/scheduler.h"
#include "tests/golden/golden_data.h"

namespace weft {
namespace {

EngineOptions ExactCache() {
  EngineOptions options;
  options.model.graph.kv_type = DType::kF32;
  options.threads = 2;
  return options;
}

std::unique_ptr<Engine> Load(const std::string& path,
                             const EngineOptions& options) {
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

std::vector<float> Logits(Engine& engine, const std::vector<int32_t>& tokens,
                          const std::vector<int64_t>& positions,
                          int64_t chunk) {
  std::vector<float> result;
  const absl::Status status = engine.Evaluate(
      tokens, positions, chunk, [&](int64_t, absl::Span<const float> row) {
        result.insert(result.end(), row.begin(), row.end());
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

std::vector<int64_t> AllPositions(size_t n) {
  std::vector<int64_t> positions;
  for (size_t i = 0; i < n; ++i) positions.push_back(i);
  return positions;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The committed subset keeps the default model's file where it is shipped.
std::string ModelPath(const std::string& folder, const std::string& file) {
  const std::string path = folder + file;
  return std::ifstream(path).good() ? path : "models/" + file;
}

struct Austen {
  explicit Austen(std::string folder = GoldenFolder("austen"))
      : folder(std::move(folder)), cases(ReadCases(this->folder)) {}

  const std::string folder;
  const nlohmann::json cases;

  std::vector<int32_t> Sequence(size_t i) const {
    return cases["sequences"][i].get<std::vector<int32_t>>();
  }
};

// Tests that run each model many times take all of them in the long suite only.
Austen FewModels() {
  return std::getenv("WEFT_LONG") != nullptr
             ? Austen()
             : Austen("tests/data/golden/austen/");
}

bool IsBlockOf32(const std::string& type) {
  return type == "Q4_0" || type == "Q4_1" || type == "Q5_0" || type == "Q5_1" ||
         type == "Q8_0" || type == "IQ4_NL";
}

TEST(AustenTest, ErrorIsWithinTheBoundsOfEachType) {
  const Austen austen;
  double sum_of_32 = 0;
  int count_of_32 = 0;
  for (const auto& [type, model] : austen.cases["models"].items()) {
    const auto engine =
        Load(ModelPath(austen.folder, model["file"]), ExactCache());
    ASSERT_NE(engine, nullptr);
    ErrorSums ours;
    double reference = 0;
    for (size_t s = 0; s < model["per_sequence"].size(); ++s) {
      const nlohmann::json& sequence = model["per_sequence"][s];
      const std::vector<float> truth =
          ReadFloats(austen.folder + sequence["truth"].get<std::string>());
      ASSERT_FALSE(truth.empty());
      const double power_before = ours.power;
      ours.Add(Logits(*engine, austen.Sequence(s),
                      sequence["positions"].get<std::vector<int64_t>>(), 0),
               truth);
      reference += sequence["llama_cpp_nmse"].get<double>() *
                   (ours.power - power_before);
    }
    const double ratio = ours.error / reference;
    RecordProperty(type, absl::StrCat(ours.nmse(), " ratio ", ratio));
    if (type == "F32" || type == "F16") {
      EXPECT_LT(ours.nmse(), 1e-10) << type;
    } else if (type == "BF16") {
      EXPECT_LE(ratio, 1.5) << type;
    } else if (IsBlockOf32(type)) {
      EXPECT_LE(ratio, 1.5) << type;
      sum_of_32 += ratio;
      ++count_of_32;
    } else {
      EXPECT_LE(ratio, 0.8) << type;
    }
  }
  ASSERT_GT(count_of_32, 0);
  EXPECT_LE(sum_of_32 / count_of_32, 1.1);
}

TEST(AustenTest, GreedyTextFollowsTheTruthWhereItsMarginIsClear) {
  const Austen austen;
  for (const auto& [type, model] : austen.cases["models"].items()) {
    auto engine = Load(ModelPath(austen.folder, model["file"]), ExactCache());
    ASSERT_NE(engine, nullptr);
    const nlohmann::json& greedy = model["greedy"];
    const std::vector<int32_t> want = greedy["tokens"];
    const std::vector<double> margins = greedy["margins"];
    const auto scheduler = Scheduler::Create(std::move(engine), {});
    ASSERT_TRUE(scheduler.ok()) << scheduler.status();
    Request request;
    request.prompt_tokens = austen.Sequence(greedy["from"]);
    request.max_tokens = want.size();
    request.sampling.temperature = 0;
    const auto result = Complete(**scheduler, std::move(request));
    ASSERT_TRUE(result.ok()) << result.status();
    const std::vector<GeneratedToken>& tokens = result->choices[0].tokens;
    for (size_t i = 0; i < want.size() && margins[i] >= 0.1; ++i) {
      ASSERT_LT(i, tokens.size()) << type;
      EXPECT_EQ(tokens[i].id, want[i]) << type << " step " << i;
    }
  }
}

TEST(ArchitectureTest, EveryFamilyIsExact) {
  const std::string folder = GoldenFolder("arch");
  const nlohmann::json cases = ReadCases(folder);
  int models = 0;
  for (const auto& [name, model] : cases["models"].items()) {
    const Architecture* architecture =
        FindArchitecture(model["architecture"].get<std::string>());
    ASSERT_NE(architecture, nullptr) << name;
    // What encoders give is tried beside them.
    if (architecture->traits.encoder) continue;
    ++models;
    for (Isa isa : {DetectIsa(), kLeastIsa, Isa::kRef}) {
      EngineOptions options = ExactCache();
      options.model.compile.isa = isa;
      const auto engine =
          Load(folder + model["file"].get<std::string>(), options);
      ASSERT_NE(engine, nullptr);
      for (const nlohmann::json& sequence : model["sequences"]) {
        const std::vector<int32_t> tokens = sequence["tokens"];
        ErrorSums sums;
        const char* const values =
            sequence.contains("truth") ? "truth" : "values";
        sums.Add(Logits(*engine, tokens, AllPositions(tokens.size()), 0),
                 ReadFloats(folder + sequence[values].get<std::string>()));
        EXPECT_GT(sums.power, 0);
        EXPECT_LT(sums.nmse(), 1e-10) << name << " on " << Name(isa);
        RecordProperty(name, absl::StrCat(sums.nmse()));
      }
    }
  }
  EXPECT_GE(models, 11);
}

// The families of 2025 and 2026.
TEST(FamiliesTest, EveryModelIsExact) {
  const std::string folder = GoldenFolder("families");
  const nlohmann::json cases = ReadCases(folder);
  int models = 0;
  for (const auto& [name, model] : cases["models"].items()) {
    if (FindArchitecture(model["architecture"].get<std::string>()) == nullptr) {
      continue;
    }
    ++models;
    // Kernels round activations for such weights.
    const bool rounds = name.find("mxfp4") != std::string::npos ||
                        name.find("bf16") != std::string::npos;
    for (Isa isa : {DetectIsa(), Isa::kRef}) {
      EngineOptions options = ExactCache();
      options.model.compile.isa = isa;
      const auto engine =
          Load(folder + model["file"].get<std::string>(), options);
      if (engine == nullptr) continue;  // said already
      for (const nlohmann::json& sequence : model["sequences"]) {
        const std::vector<int32_t> tokens = sequence["tokens"];
        ErrorSums sums;
        sums.Add(Logits(*engine, tokens, AllPositions(tokens.size()), 0),
                 ReadFloats(folder + sequence["truth"].get<std::string>()));
        EXPECT_GT(sums.power, 0);
        EXPECT_LT(sums.nmse(), rounds ? 3e-3 : 1e-10)
            << name << " on " << Name(isa);
        RecordProperty(name, absl::StrCat(sums.nmse()));
      }
    }
  }
  EXPECT_GE(models, 10);
}

TEST(DeterminismTest, BitsDoNotDependOnChunksOrThreads) {
  const Austen austen = FewModels();
  const std::vector<int32_t> tokens = austen.Sequence(4);
  for (const auto& [type, model] : austen.cases["models"].items()) {
    for (Isa isa : {DetectIsa(), kLeastIsa}) {
      for (DType kv : {DType::kF16, DType::kBF16, DType::kQ8_0}) {
        std::vector<float> first;
        for (int threads : {1, 2, 3}) {
          EngineOptions options;
          options.model.graph.kv_type = kv;
          options.model.compile.isa = isa;
          options.threads = threads;
          const auto engine =
              Load(ModelPath(austen.folder, model["file"]), options);
          ASSERT_NE(engine, nullptr);
          for (int64_t chunk : {1, 7, 512}) {
            if (threads == 3 && chunk != 7) continue;
            const std::vector<float> logits =
                Logits(*engine, tokens, AllPositions(tokens.size()), chunk);
            if (first.empty()) first = logits;
            EXPECT_TRUE(SameBits(first, logits))
                << type << " " << Name(isa) << " threads " << threads
                << " chunk " << chunk;
          }
        }
      }
    }
  }
}

TEST(DeterminismTest, PassesThatKeepTheOrderOfSumsKeepTheBits) {
  const Austen austen = FewModels();
  const std::vector<int32_t> tokens = austen.Sequence(2);
  const std::vector<int64_t> positions = AllPositions(tokens.size());
  std::vector<std::string> names;
  for (const PassEntry& pass : Pipeline()) names.push_back(pass.name);
  std::mt19937 random(20261129);
  for (const auto& [type, model] : austen.cases["models"].items()) {
    const std::string path = ModelPath(austen.folder, model["file"]);
    const std::vector<float> truth = ReadFloats(
        austen.folder + model["per_sequence"][2]["truth"].get<std::string>());
    const double limit = std::max(
        1e-10, 4 * model["per_sequence"][2]["llama_cpp_nmse"].get<double>());
    const auto run = [&](const std::set<std::string>& disabled) {
      EngineOptions options = ExactCache();
      options.model.compile.disabled_passes = disabled;
      const auto engine = Load(path, options);
      return engine == nullptr ? std::vector<float>()
                               : Logits(*engine, tokens, positions, 0);
    };
    const std::vector<float> all = run({});
    std::vector<std::set<std::string>> sets;
    for (const std::string& name : names) sets.push_back({name});
    std::set<std::string> everything(names.begin(), names.end());
    sets.push_back(everything);
    everything.erase("fuse-attention");
    everything.erase("quantize-activations");
    sets.push_back(everything);
    for (int i = 0; i < 8; ++i) {
      std::set<std::string> some;
      for (const std::string& name : names) {
        if (random() % 2 == 0) some.insert(name);
      }
      sets.push_back(some);
    }
    for (const std::set<std::string>& disabled : sets) {
      const std::vector<float> logits = run(disabled);
      std::string label = type + " without";
      for (const std::string& name : disabled) label += " " + name;
      if (disabled.count("fuse-attention") == 0 &&
          disabled.count("quantize-activations") == 0) {
        EXPECT_TRUE(SameBits(all, logits)) << label;
      } else {
        ErrorSums sums;
        sums.Add(logits, truth);
        EXPECT_LT(sums.nmse(), limit) << label;
      }
    }
  }
}

}  // namespace
}  // namespace weft
