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
#include "loaders/gguf.h"
#include "passes/pipeline.h"
#include "runtime/api/engine.h"
#include "runtime/check/check_nodes.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/made_up_model.h"

namespace weft {
namespace {

using Tokens = std::vector<int32_t>;

using Model = GoldenModel;

std::vector<Model> Models() { return GoldenModels("recurrent"); }

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

// The states by sequence of a slot, as they lie in memory.
std::vector<uint8_t> StateBytesOf(Engine& engine, int32_t slot) {
  std::vector<uint8_t> bytes;
  for (const KvState& state : engine.cache().states()) {
    if (state.page_table != nullptr) continue;
    const uint8_t* begin = state.pages + slot * state.page_bytes;
    bytes.insert(bytes.end(), begin, begin + state.page_bytes);
  }
  return bytes;
}

// Of all that runs; going back is not told.
class NodeCounter : public NodeObserver {
 public:
  void Before(const Graph&, NodeId, const KernelCall&) override { ++nodes; }
  void After(const Graph&, NodeId, const KernelCall&) override {}

  int nodes = 0;
};

EngineOptions WithRewind(int32_t rows) {
  EngineOptions options;
  options.slots = 3;
  options.rewind_rows = rows;
  return options;
}

// Some tokens that are tried turn out right, those behind are not kept.
TEST(Recurrent, TokensThatWereTriedLeaveNoTrace) {
  constexpr int kTried = 6;
  for (const Model& model : Models()) {
    SCOPED_TRACE(model.name);
    const Tokens tokens = model.data["long"]["tokens"].get<Tokens>();
    const absl::Span<const int32_t> all = tokens;
    const auto engine = Load(model.path(), WithRewind(kTried));
    ASSERT_NE(engine, nullptr);
    for (const int64_t before : {0, 1, 2, 65}) {
      for (const int64_t chunk :
           {0, 1}) {  // all in one step, or each by itself
        for (const int64_t right : {0, 1, 3, 6}) {
          SCOPED_TRACE(
              absl::StrCat(before, " and ", right, " of steps of ", chunk));
          const auto session = [&](int32_t slot) {
            return std::make_unique<Session>(
                engine->plan(), &engine->executor(), &engine->cache(), slot);
          };
          const auto plain = session(0), tried = session(1);
          ASSERT_TRUE(plain->Append(all.first(before + right)).ok());
          ASSERT_TRUE(tried->Append(all.first(before)).ok());
          tried->Mark();
          Tokens guess(all.begin() + before, all.begin() + before + right);
          guess.resize(kTried, 33);
          ASSERT_TRUE(tried->Append(guess, chunk).ok());
          NodeCounter counter;
          engine->executor().Observe(&counter);
          ASSERT_TRUE(tried->Truncate(before + right).ok());
          engine->executor().Observe(nullptr);
          EXPECT_EQ(counter.nodes, 0);
          ASSERT_EQ(tried->tokens(), all.first(before + right));
          if (before + right > 0) {
            EXPECT_TRUE(StateBytesOf(*engine, 0) == StateBytesOf(*engine, 1));
          }
          // And once more from the same mark.
          const absl::Span<const int32_t> next = all.subspan(before + right, 2);
          ASSERT_TRUE(plain->Append(next).ok());
          ASSERT_TRUE(tried->Append(next).ok());
          EXPECT_TRUE(
              SameBits({plain->logits().begin(), plain->logits().end()},
                       {tried->logits().begin(), tried->logits().end()}));
        }
      }
    }
  }
}

TEST(Recurrent, SequencesOfAStepGoBackEachForItself) {
  for (const Model& model : Models()) {
    SCOPED_TRACE(model.name);
    const Tokens tokens = model.data["long"]["tokens"].get<Tokens>();
    const auto engine = Load(model.path(), WithRewind(4));
    ASSERT_NE(engine, nullptr);
    Executor& executor = engine->executor();
    KvCache& cache = engine->cache();
    std::vector<float> logits(3 * engine->plan().model.output_columns());
    // Of each slot so many rows from here on; their last logits.
    const auto run = [&](const std::vector<int64_t>& from,
                         const std::vector<int64_t>& rows, bool wrong) {
      Tokens ids, positions, slots, last;
      for (int32_t slot = 0; slot < 3; ++slot) {
        EXPECT_TRUE(cache.Reserve(slot, from[slot] + rows[slot]).ok());
        for (int64_t i = 0; i < rows[slot]; ++i) {
          ids.push_back(wrong && i > 0 ? 40 : tokens[from[slot] + i]);
          positions.push_back(static_cast<int32_t>(from[slot] + i));
          slots.push_back(slot);
        }
        last.push_back(static_cast<int32_t>(ids.size()) - 1);
      }
      const absl::Status status =
          executor.Run({ids, positions, slots, last, logits.data()});
      EXPECT_TRUE(status.ok()) << status;
      return logits;
    };
    run({0, 0, 0}, {70, 30, 5}, false);
    const std::vector<float> want = run({70, 30, 5}, {1, 4, 2}, false);
    for (const int32_t slot : {0, 1, 2})
      ASSERT_TRUE(executor.Truncate(slot, 0).ok());
    run({0, 0, 0}, {70, 30, 5}, false);
    executor.Mark(0);
    executor.Mark(1);
    run({70, 30, 5}, {1, 4, 1}, true);
    ASSERT_TRUE(executor.Truncate(0, 70).ok());
    ASSERT_TRUE(executor.Truncate(1, 31).ok());
    EXPECT_FALSE(executor.CanTruncate(2, 5));
    const std::vector<float> found = run({70, 31, 6}, {1, 3, 1}, false);
    EXPECT_TRUE(SameBits(found, want));
  }
}

TEST(Recurrent, StatesGoBackNoFurtherThanTheirMarkAndRows) {
  const Model model = Models().front();
  const Tokens tokens = model.data["long"]["tokens"].get<Tokens>();
  const absl::Span<const int32_t> all = tokens;
  EngineOptions options = WithRewind(4);
  options.checkpoints = 1;
  const auto engine = Load(model.path(), options);
  ASSERT_NE(engine, nullptr);
  Executor& executor = engine->executor();
  const auto expect_refused = [&](int64_t to) {
    const int64_t at = engine->cache().position(0);
    const absl::Status status = executor.Truncate(0, to);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("cannot go back"), std::string::npos);
    EXPECT_EQ(engine->cache().position(0), at);
  };
  Session session(engine->plan(), &executor, &engine->cache(), 0);
  ASSERT_TRUE(session.Append(all.first(10)).ok());
  expect_refused(9);
  session.Mark();
  expect_refused(9);
  expect_refused(11);
  ASSERT_TRUE(session.Append(all.subspan(10, 3)).ok());
  EXPECT_TRUE(executor.CanTruncate(0, 10));
  expect_refused(9);
  // A fifth row is more than what is kept.
  ASSERT_TRUE(session.Append(all.subspan(13, 2)).ok());
  expect_refused(10);
  expect_refused(14);
  // Then the session runs its tokens again.
  ASSERT_TRUE(session.Truncate(12).ok());
  EXPECT_EQ(engine->cache().position(0), 12);
  // What stands in a slot now has nothing to do with the mark before.
  engine->cache().Save(0, 0);
  session.Mark();
  engine->cache().Restore(0, 0);
  ASSERT_TRUE(session.Append(all.subspan(12, 1)).ok());
  expect_refused(12);
  EXPECT_TRUE(executor.CanTruncate(0, 0));
  // A page that is kept for others, up to the mark, does not stand in the way.
  ASSERT_TRUE(session.Truncate(12).ok());
  session.Mark();
  ASSERT_TRUE(session.Append(all.subspan(12, 2)).ok());
  engine->cache().Keep(engine->cache().pool().page(0, 0));
  EXPECT_FALSE(engine->cache().Truncate(0, 12).ok());
  ASSERT_TRUE(executor.Truncate(0, 12).ok());
  EXPECT_EQ(engine->cache().position(0), 12);
  EXPECT_EQ(engine->cache().pool().held_pages(0), 1);
  // Only whoever asked can go back.
  const auto plain = Load(model.path());
  ASSERT_NE(plain, nullptr);
  Session other(plain->plan(), &plain->executor(), &plain->cache(), 0);
  ASSERT_TRUE(other.Append(all.first(3)).ok());
  other.Mark();
  ASSERT_TRUE(other.Append(all.subspan(3, 1)).ok());
  EXPECT_FALSE(plain->executor().CanTruncate(0, 3));
  for (const int32_t rows : {-1, 1 << 20}) {
    options.rewind_rows = rows;
    options.model.graph.kv_type = DType::kF32;
    const auto wrong = Engine::Load(model.path(), options);
    ASSERT_FALSE(wrong.ok());
    EXPECT_NE(wrong.status().message().find("rewind_rows"), std::string::npos);
  }
}

// What is kept behind a mark is of the text that was marked.
TEST(Recurrent, ATextThatBeginsAnewHasNoMarkOfTheOneBefore) {
  for (const Model& model : Models()) {
    SCOPED_TRACE(model.name);
    const Tokens tokens = model.data["long"]["tokens"].get<Tokens>();
    const absl::Span<const int32_t> all = tokens;
    const auto engine = Load(model.path(), WithRewind(6));
    ASSERT_NE(engine, nullptr);
    Executor& executor = engine->executor();
    KvCache& cache = engine->cache();
    Session plain(engine->plan(), &executor, &cache, 0);
    ASSERT_TRUE(plain.Append(all.first(4)).ok());
    Session session(engine->plan(), &executor, &cache, 1);
    ASSERT_TRUE(session.Append(all.first(80)).ok());
    session.Mark();
    EXPECT_EQ(cache.mark(1), 80);
    ASSERT_TRUE(session.Append(all.subspan(80, 2)).ok());
    ASSERT_TRUE(session.Truncate(0).ok());
    EXPECT_EQ(cache.mark(1), -1);
    for (const int32_t token : all.first(4)) {
      ASSERT_TRUE(session.Append(absl::MakeConstSpan(&token, 1)).ok());
    }
    EXPECT_TRUE(SameBits({plain.logits().begin(), plain.logits().end()},
                         {session.logits().begin(), session.logits().end()}));
    // Nor where only the mark was left behind.
    ASSERT_TRUE(session.Truncate(0).ok());
    cache.SetMark(1, 3);
    ASSERT_TRUE(session.Append(all.first(2)).ok());
    EXPECT_EQ(cache.mark(1), -1);
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
  options.slots = 3;
  options.checkpoints = 2;
  const auto engine = Load(model.path(), options);
  ASSERT_NE(engine, nullptr);
  const PlanMemory memory = MemoryOf(engine->plan(), 3, 3, 0, 2);
  EXPECT_GT(memory.slot, 0);
  EXPECT_EQ(memory.slot, engine->cache().slot_bytes());
  EXPECT_GE(memory.slots, 5 * memory.slot);
  EXPECT_EQ(memory.history, 0);
  EXPECT_EQ(engine->cache().bytes(), memory.kv + memory.slots);
  EXPECT_EQ(memory.peak(1) - MemoryOf(engine->plan(), 3, 3).peak(1),
            memory.slots - MemoryOf(engine->plan(), 3, 3).slots +
                memory.batching - MemoryOf(engine->plan(), 3, 3).batching);
  options.rewind_rows = 8;
  const auto rewinds = Load(model.path(), options);
  ASSERT_NE(rewinds, nullptr);
  const PlanMemory more = MemoryOf(rewinds->plan(), 3, 3, 0, 2, 8);
  EXPECT_GT(more.slots, memory.slots);
  EXPECT_EQ(rewinds->cache().bytes(), more.kv + more.slots);
  EXPECT_GT(more.history, 0);
  EXPECT_EQ(more.peak(1) - memory.peak(1),
            more.slots + more.history - memory.slots);
}

TEST(Recurrent, PassesKeepWhatTheModelComputes) {
  for (const Model& model : Models()) {
    SCOPED_TRACE(model.name);
    const auto file = GgufFile::Open(model.path());
    ASSERT_TRUE(file.ok()) << file.status();
    Tokens tokens = model.data["sequences"][0]["tokens"].get<Tokens>();
    tokens.resize(12);
    ReferenceEvaluator evaluator;
    EXPECT_TRUE(ExpectPassesKeepResults(*file, tokens, &evaluator).ok());
  }
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
