#include "tests/golden/made_up_model.h"

#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "passes/pipeline.h"
#include "runtime/check/check_nodes.h"
#include "runtime/check/check_passes.h"

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

void ExpectReferenceResults(const std::string& path) {
  const auto threads = ThreadPool::Create(2);
  ASSERT_TRUE(threads.ok()) << threads.status();
  const std::vector<int32_t> tokens = SomeTokens(20);
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ModelOptions options = DefaultModelOptions();
  options.compile.buckets = {1, 8};
  options.graph.context = 64;
  ReferenceEvaluator evaluator;
  PassChecker passes(&evaluator, TokenInputs(tokens, 0), {20, 20, kPageTokens});
  absl::StatusOr<Plan> plan = CompileModel(
      *file, options,
      [&](const std::string& pass, int64_t bucket, const Graph& graph) {
        passes.Look(pass, bucket, graph);
      });
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(passes.status().ok()) << passes.status();
  if (const PassCheck* guilty = passes.Guilty()) {
    ADD_FAILURE() << path << " " << guilty->pass << ": " << guilty->fault;
  }
  for (const Graph& graph : plan->buckets) {
    EXPECT_EQ(graph.arena.bytes, graph.arena.lower_bound)
        << path << " " << graph.bounds.tokens;
  }
  ASSERT_TRUE(MakeWeights(*plan, **threads).ok());
  const auto nodes = CheckNodes(*plan, tokens, **threads, &evaluator);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  for (const NodeFault& fault : nodes->faults) {
    ADD_FAILURE() << path << " " << fault.node << " " << fault.kernel << ": "
                  << fault.fault;
  }
}

}  // namespace weft
