#include "tests/golden/made_up_model.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "passes/pipeline.h"
#include "runtime/check/check_nodes.h"
#include "runtime/check/check_passes.h"
#include "runtime/plan/streamed_experts.h"

namespace weft {

std::vector<int32_t> SomeTokens(int count) {
  std::mt19937 random(20261130);
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(random() % 320);
  return tokens;
}

std::vector<float> Logits(const std::string& path, const EngineOptions& options,
                          const std::vector<int32_t>& tokens, int64_t chunk) {
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << path << ": " << engine.status();
  std::vector<float> result;
  if (!engine.ok()) return result;
  std::vector<int64_t> positions;
  for (size_t i = 0; i < tokens.size(); ++i) positions.push_back(i);
  const absl::Status status = (*engine)->Evaluate(
      tokens, positions, chunk, [&](int64_t, absl::Span<const float> row) {
        result.insert(result.end(), row.begin(), row.end());
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

namespace {

// What each of eight sequences gives in steps of some rows of all of them is
// what it gives by itself.
void ExpectBitsBesideOthers(const std::string& path) {
  constexpr int kSequences = 8;
  EngineOptions options;
  options.threads = 2;
  options.slots = kSequences;
  const auto engine = Engine::Load(path, options);
  ASSERT_TRUE(engine.ok()) << path << ": " << engine.status();
  const int64_t columns = (*engine)->plan().model.output_columns();
  const std::vector<int32_t> tokens = SomeTokens(64);
  std::vector<std::vector<int32_t>> texts;
  std::vector<std::vector<float>> together(kSequences);
  for (int i = 0; i < kSequences; ++i) {
    texts.emplace_back(tokens.begin() + 3 * i, tokens.begin() + 25 + 5 * i);
  }
  for (int step = 0;; ++step) {
    std::vector<int32_t> ids, positions, slots, rows;
    for (int32_t i = 0; i < kSequences; ++i) {
      const size_t done = together[i].size() / columns;
      const size_t end = std::min(done + (i + step) % 5, texts[i].size());
      for (size_t at = done; at < end; ++at) {
        rows.push_back(static_cast<int32_t>(ids.size()));
        ids.push_back(texts[i][at]);
        positions.push_back(static_cast<int32_t>(at));
        slots.push_back(i);
      }
      ASSERT_TRUE((*engine)->cache().Reserve(i, end).ok());
    }
    if (ids.empty()) break;
    std::vector<float> logits(ids.size() * columns);
    const absl::Status ran =
        (*engine)->executor().Run({ids, positions, slots, rows, logits.data()});
    ASSERT_TRUE(ran.ok()) << path << ": " << ran;
    for (size_t row = 0; row < slots.size(); ++row) {
      const float* begin = logits.data() + row * columns;
      std::vector<float>& all = together[slots[row]];
      all.insert(all.end(), begin, begin + columns);
    }
  }
  options.slots = 1;
  for (int i = 0; i < kSequences; ++i) {
    EXPECT_TRUE(SameBits(Logits(path, options, texts[i], 512), together[i]))
        << path << " sequence " << i << " of eight";
  }
}

}  // namespace

void ExpectBitsOfTokensAlone(const std::string& path) {
  std::vector<std::string> passes;
  for (const PassEntry& pass : Pipeline()) {
    if (pass.tolerance == 0) passes.push_back(pass.name);
  }
  const std::vector<int32_t> tokens = SomeTokens(70);
  EngineOptions options;
  options.threads = 2;
  const std::vector<float> logits = Logits(path, options, tokens, 512);
  for (int64_t chunk : {1, 7}) {
    EXPECT_TRUE(SameBits(logits, Logits(path, options, tokens, chunk)))
        << path << " chunk " << chunk;
  }
  options.threads = 1;
  EXPECT_TRUE(SameBits(logits, Logits(path, options, tokens, 512)))
      << path << " by one thread";
  ExpectBitsBesideOthers(path);
  options.threads = 2;
  for (const std::string& pass : passes) {
    options.model.compile.disabled_passes = {pass};
    EXPECT_TRUE(SameBits(logits, Logits(path, options, tokens, 512)))
        << path << " without " << pass;
  }
  options.model.compile.disabled_passes = {passes.begin(), passes.end()};
  EXPECT_TRUE(SameBits(logits, Logits(path, options, tokens, 512)))
      << path << " without all that keep bits";
}

int ExpectBitsOfStreamedExperts(const std::string& path) {
  EngineOptions options;
  options.threads = 2;
  const auto threads = ThreadPool::Create(2);
  const auto file = GgufFile::Open(path);
  EXPECT_TRUE(threads.ok() && file.ok()) << path;
  if (!threads.ok() || !file.ok()) return 0;
  absl::StatusOr<Plan> plan = CompileModel(*file, options.model);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return 0;
  const int64_t whole = Engine::PeakBytes(*plan, options);
  std::vector<ExpertGroup> groups = StreamableExperts(*plan);
  if (groups.empty()) return 0;
  const std::string plan_path = ::testing::TempDir() + "/streamed.weft";
  const absl::Status saved = SaveModelPlan(*plan, *file, plan_path, **threads);
  EXPECT_TRUE(saved.ok()) << saved;
  plan->streamed = groups;
  for (ExpertGroup& group : plan->streamed) {
    EXPECT_GE(group.weights.size(), 2u) << path;
    group.slots = 2;
  }
  const int64_t least = Engine::PeakBytes(*plan, options);
  const std::vector<int32_t> tokens = SomeTokens(70);
  const std::vector<float> logits = Logits(path, options, tokens, 512);
  for (const int64_t budget : {least, (least + whole) / 2}) {
    options.memory_budget = budget;
    for (const int64_t chunk : {1, 7, 512}) {
      EXPECT_TRUE(SameBits(logits, Logits(plan_path, options, tokens, chunk)))
          << path << " within " << budget << " bytes, chunk " << chunk;
    }
  }
  return static_cast<int>(groups.size());
}

absl::StatusOr<Plan> ExpectPassesKeepResults(
    const GgufFile& file, const std::vector<int32_t>& tokens,
    ReferenceEvaluator* evaluator, const std::vector<AdapterChoice>& adapters) {
  ModelOptions options = DefaultModelOptions();
  options.compile.buckets = {1, 8};
  options.graph.context = 64;
  options.graph.adapters = adapters;
  const int64_t size = static_cast<int64_t>(tokens.size());
  PassChecker passes(evaluator, TokenInputs(tokens, 0, AdapterScales(adapters)),
                     {size, size, kPageTokens});
  absl::StatusOr<Plan> plan = CompileModel(
      file, options,
      [&](const std::string& pass, int64_t bucket, const Graph& graph) {
        passes.Look(pass, bucket, graph);
      });
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(passes.status().ok()) << passes.status();
  if (const PassCheck* guilty = passes.Guilty()) {
    ADD_FAILURE() << file.path() << " " << guilty->pass << ": "
                  << guilty->fault;
  }
  return plan;
}

void ExpectReferenceResults(const GgufFile& file,
                            const std::vector<int32_t>& tokens,
                            const std::vector<AdapterChoice>& adapters) {
  const auto threads = ThreadPool::Create(2);
  ASSERT_TRUE(threads.ok()) << threads.status();
  ReferenceEvaluator evaluator;
  absl::StatusOr<Plan> plan =
      ExpectPassesKeepResults(file, tokens, &evaluator, adapters);
  ASSERT_TRUE(plan.ok());
  for (const Graph& graph : plan->buckets) {
    EXPECT_EQ(graph.arena.bytes, graph.arena.lower_bound)
        << file.path() << " " << graph.bounds.tokens;
  }
  ASSERT_TRUE(MakeWeights(*plan, **threads).ok());
  const auto nodes = CheckNodes(*plan, tokens, **threads, &evaluator);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  for (const NodeFault& fault : nodes->faults) {
    ADD_FAILURE() << file.path() << " " << fault.node << " " << fault.kernel
                  << ": " << fault.fault;
  }
}

void ExpectReferenceResults(const std::string& path) {
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ExpectReferenceResults(*file, SomeTokens(20));
}

}  // namespace weft
