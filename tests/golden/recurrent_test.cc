// Models with recurrent blocks against reference data: logits and states, and
// the promise that bits depend on nothing but the tokens, where a state cannot
// be cut and read again like keys and values.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "passes/pipeline.h"
#include "runtime/api/engine.h"
#include "runtime/check/check_nodes.h"
#include "tests/golden/golden_data.h"

namespace weft {
namespace {

using Tokens = std::vector<int32_t>;

struct Model {
  std::string name, folder;
  nlohmann::json data;

  std::string path() const { return folder + data["file"].get<std::string>(); }
};

std::vector<Model> Models() {
  const std::string folder = GoldenFolder("recurrent");
  std::vector<Model> models;
  const nlohmann::json cases = ReadCases(folder);
  for (const auto& [name, data] : cases["models"].items()) {
    models.push_back({name, folder, data});
  }
  return models;
}

std::unique_ptr<Engine> Load(const std::string& path,
                             EngineOptions options = {}) {
  options.model.graph.kv_type = DType::kF32;
  if (options.threads == 0) options.threads = 2;
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

std::vector<float> Logits(Engine& engine, const Tokens& tokens,
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

std::vector<int64_t> All(const Tokens& tokens) {
  std::vector<int64_t> positions(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) positions[i] = i;
  return positions;
}

double Nmse(const std::vector<float>& found, const std::vector<float>& want) {
  if (found.size() != want.size()) return 1e9;
  ErrorSums sums;
  sums.Add(found, want);
  return sums.nmse();
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Recurrent, LogitsAndStatesAreTheReferences) {
  for (const Model& model : Models()) {
    SCOPED_TRACE(model.name);
    const auto engine = Load(model.path());
    ASSERT_NE(engine, nullptr);
    for (const nlohmann::json& sequence : model.data["sequences"]) {
      const Tokens tokens = sequence["tokens"].get<Tokens>();
      EXPECT_LT(
          Nmse(Logits(*engine, tokens, All(tokens), 512),
               ReadFloats(model.folder + sequence["truth"].get<std::string>())),
          1e-10);
      if (!sequence.contains("states")) continue;
      for (const nlohmann::json& state : sequence["states"]) {
        const size_t after = state["after_tokens"];
        const auto states =
            engine->SlotStates(absl::MakeConstSpan(tokens).first(after), 512);
        ASSERT_TRUE(states.ok()) << states.status();
        EXPECT_LT(Nmse(*states, ReadFloats(model.folder +
                                           state["file"].get<std::string>())),
                  1e-10)
            << "after " << after;
      }
    }
    const nlohmann::json& text = model.data["long"];
    const Tokens tokens = text["tokens"].get<Tokens>();
    EXPECT_LT(Nmse(Logits(*engine, tokens,
                          text["positions"].get<std::vector<int64_t>>(), 64),
                   ReadFloats(model.folder + text["truth"].get<std::string>())),
              1e-10);
  }
}

TEST(Recurrent, BitsDependOnNoChunksThreadsOrPasses) {
  for (const Model& model : Models()) {
    SCOPED_TRACE(model.name);
    const Tokens tokens = model.data["long"]["tokens"].get<Tokens>();
    const std::vector<int64_t> positions = All(tokens);
    const auto engine = Load(model.path());
    ASSERT_NE(engine, nullptr);
    const std::vector<float> want = Logits(*engine, tokens, positions, 512);
    const auto states = engine->SlotStates(tokens, 512);
    ASSERT_TRUE(states.ok());
    for (int64_t chunk : {1, 7, 64}) {
      EXPECT_TRUE(SameBits(Logits(*engine, tokens, positions, chunk), want))
          << "chunks of " << chunk;
      EXPECT_TRUE(SameBits(*engine->SlotStates(tokens, chunk), *states))
          << "chunks of " << chunk;
    }
    EngineOptions one;
    one.threads = 1;
    const auto alone = Load(model.path(), one);
    ASSERT_NE(alone, nullptr);
    EXPECT_TRUE(SameBits(Logits(*alone, tokens, positions, 7), want));
    for (const PassEntry& pass : Pipeline()) {
      // Softmax in one sweep is another order of sums.
      if (pass.name == std::string("fuse-attention")) continue;
      EngineOptions options;
      options.model.compile.disabled_passes = {pass.name};
      const auto without = Load(model.path(), options);
      ASSERT_NE(without, nullptr);
      EXPECT_TRUE(SameBits(Logits(*without, tokens, positions, 64), want))
          << "without " << pass.name;
    }
  }
}

TEST(Recurrent, TruncatedSessionsGoOnAsIfNothingHadBeen) {
  for (const Model& model : Models()) {
    SCOPED_TRACE(model.name);
    const Tokens tokens = model.data["long"]["tokens"].get<Tokens>();
    const absl::Span<const int32_t> all = tokens;
    const auto engine = Load(model.path());
    ASSERT_NE(engine, nullptr);
    Session session(engine->plan(), &engine->executor(), &engine->cache(), 0);
    ASSERT_TRUE(session.Append(all).ok());
    const std::vector<float> want(session.logits().begin(),
                                  session.logits().end());
    for (int64_t size : {140, 64, 0}) {
      ASSERT_TRUE(session.Append(all.first(5)).ok());
      ASSERT_TRUE(session.Truncate(size).ok());
      ASSERT_EQ(session.tokens().size(), static_cast<size_t>(size));
      ASSERT_TRUE(session.Append(all.subspan(size)).ok());
      EXPECT_TRUE(
          SameBits({session.logits().begin(), session.logits().end()}, want))
          << "cut to " << size;
    }
  }
}

TEST(Recurrent, StepsThatDoNotFollowOnAreRefused) {
  const Model model = Models().front();
  const auto engine = Load(model.path());
  ASSERT_NE(engine, nullptr);
  std::vector<float> logits(engine->plan().model.output_columns());
  ASSERT_TRUE(engine->cache().Reserve(0, 10).ok());
  const auto run = [&](Tokens positions) {
    const Tokens ids(positions.size(), 20), slots(positions.size(), 0);
    return engine->executor().Run({ids, positions, slots, {0}, logits.data()});
  };
  EXPECT_TRUE(run({0, 1, 2}).ok());
  EXPECT_TRUE(run({3}).ok());
  for (const Tokens& positions : {Tokens{3}, Tokens{5}, Tokens{4, 6}}) {
    const absl::Status status = run(positions);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("does not follow on"), std::string::npos)
        << status;
  }
  EXPECT_TRUE(run({4, 5}).ok());
  EXPECT_TRUE(run({0}).ok());
}

TEST(Recurrent, MemoryIsStated) {
  const Model model = Models().front();
  EngineOptions options;
  options.sequences = 3;
  options.checkpoints = 2;
  const auto engine = Load(model.path(), options);
  ASSERT_NE(engine, nullptr);
  const PlanMemory memory = MemoryOf(engine->plan(), 3, 3, 0, 2);
  EXPECT_GT(memory.slot, 0);
  EXPECT_EQ(memory.slot, engine->cache().slot_bytes());
  EXPECT_GE(memory.slots, 5 * memory.slot);
  EXPECT_EQ(engine->cache().bytes(), memory.kv + memory.slots);
  EXPECT_EQ(memory.peak(1) - MemoryOf(engine->plan(), 3, 3).peak(1),
            memory.slots - MemoryOf(engine->plan(), 3, 3).slots +
                memory.batching - MemoryOf(engine->plan(), 3, 3).batching);
}

TEST(Recurrent, KernelsAreAsTheirReferences) {
  for (const Model& model : Models()) {
    SCOPED_TRACE(model.name);
    const Tokens tokens = model.data["sequences"][0]["tokens"].get<Tokens>();
    const auto engine = Load(model.path());
    ASSERT_NE(engine, nullptr);
    ReferenceEvaluator evaluator;
    const auto report =
        CheckNodes(engine->plan(), tokens, engine->thread_pool(), &evaluator);
    ASSERT_TRUE(report.ok()) << report.status();
    for (const NodeFault& fault : report->faults) {
      ADD_FAILURE() << fault.node << " on " << fault.kernel << ": "
                    << fault.fault;
    }
  }
}

}  // namespace
}  // namespace weft
