// What must hold for the results of every plan: the same bits whatever passes,
// buckets, threads, planner and instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "passes/pipeline.h"
#include "runtime/execution/executor.h"
#include "runtime/plan/compile.h"
#include "tests/passes/random_models.h"
#include "tests/passes/run_poisoned.h"

namespace weft {
namespace {

using Logits = std::vector<float>;

ThreadPool& Threads(int n) {
  static auto* one = ThreadPool::Create(1).value().release();
  static auto* three = ThreadPool::Create(3).value().release();
  return n == 1 ? *one : *three;
}

// On the caps of this machine that have kernels of their own.
std::vector<Isa> Caps() {
  std::vector<Isa> caps = {DetectIsa()};
  if (caps[0] != kLeastIsa && Includes(caps[0], kLeastIsa)) {
    caps.push_back(kLeastIsa);
  }
  return caps;
}

std::shared_ptr<const Plan> MakePlan(const RandomModel& model,
                                     const CompileOptions& options) {
  absl::StatusOr<Plan> plan = Compile(model.graph, options);
  if (plan.ok()) {
    plan->model.vocabulary_size = model.vocabulary;
    const absl::Status made = MakeWeights(*plan, Threads(1));
    if (!made.ok()) plan = made;
  }
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return nullptr;
  return std::make_shared<const Plan>(*std::move(plan));
}

CompileOptions Options(std::vector<int64_t> buckets = {16},
                       std::set<std::string> disabled = {}) {
  CompileOptions options;
  options.isa = DetectIsa();
  options.buckets = std::move(buckets);
  options.disabled_passes = std::move(disabled);
  // Nothing here depends on how good a plan is, and the search takes time.
  options.planner = PlanStrategy::kBySize;
  return options;
}

std::unique_ptr<KvCache> MakeCache(const Plan& plan, int64_t tokens) {
  KvCacheShape shape;
  shape.states = StatesOf(plan.buckets[0]);
  shape.pages = 4;
  shape.slots = 2;
  shape.pages_per_sequence = 2;
  auto cache = KvCache::Create(shape).value();
  // The second slot, so that a slot that is taken for granted shows.
  EXPECT_TRUE(cache->Reserve(0, 1).ok());
  EXPECT_TRUE(cache->Reserve(1, tokens).ok());
  return cache;
}

struct Text {
  std::vector<int32_t> ids, positions, sequences, rows;
};

Text MakeText(const RandomModel& model, uint32_t seed, int tokens) {
  std::mt19937 random(seed);
  Text text;
  for (int t = 0; t < tokens; ++t) {
    text.ids.push_back(random() % model.vocabulary);
    text.positions.push_back(t);
    text.sequences.push_back(1);
    text.rows.push_back(t);
  }
  return text;
}

// Logits of every token of a text that is run in chunks.
Logits RunChunks(std::shared_ptr<const Plan> plan, const Text& text,
                 const std::vector<int>& chunks, int threads = 1) {
  const int64_t vocabulary = plan->model.vocabulary_size;
  Logits logits(text.ids.size() * vocabulary, NAN);
  auto cache = MakeCache(*plan, text.ids.size());
  PoisonPages(*cache, plan->buckets[0]);
  auto executor = Executor::Create(plan, &Threads(threads), cache.get());
  EXPECT_TRUE(executor.ok()) << executor.status();
  size_t begin = 0;
  for (int n : chunks) {
    Batch batch;
    batch.ids = absl::MakeConstSpan(text.ids).subspan(begin, n);
    batch.positions = absl::MakeConstSpan(text.positions).subspan(begin, n);
    batch.slots = absl::MakeConstSpan(text.sequences).subspan(begin, n);
    batch.output_rows = absl::MakeConstSpan(text.rows).subspan(0, n);
    batch.logits = logits.data() + begin * vocabulary;
    const absl::Status ran = (*executor)->Run(batch);
    EXPECT_TRUE(ran.ok()) << ran;
    begin += n;
  }
  return logits;
}

Logits RunWhole(const RandomModel& model, const CompileOptions& options,
                const Text& text) {
  auto plan = MakePlan(model, options);
  if (plan == nullptr) return {};
  return RunChunks(plan, text, {static_cast<int>(text.ids.size())});
}

bool SameBits(const Logits& a, const Logits& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Whether fused attention here rounds queries and weights to bfloat16, as the
// cache is: on other instruction sets and in parts it does not.
bool RoundsAttention(const RandomModel& model) {
  if (!Includes(DetectIsa(), Isa::kAvx512Bf16)) return false;
  for (ValueId id = 0; id < model.graph.value_count(); ++id) {
    const Value& value = model.graph.value(id);
    if (value.kind == ValueKind::kState && value.type.dtype == DType::kBF16) {
      return true;
    }
  }
  return false;
}
constexpr double kAttentionRounding = 0.05;

bool Finite(const Logits& x) {
  return std::all_of(x.begin(), x.end(),
                     [](float v) { return std::isfinite(v); });
}

// The same bits with and without the pass, where it promises that; else about
// the same.
void ExpectKept(const PassEntry& pass, const RandomModel& model,
                const Logits& found, const Logits& want) {
  ASSERT_EQ(found.size(), want.size()) << pass.name;
  if (pass.tolerance == 0) {
    EXPECT_TRUE(SameBits(found, want)) << pass.name;
  } else {
    EXPECT_LT(RelativeError(found, want),
              std::max(LogitsTolerance(model),
                       RoundsAttention(model) ? kAttentionRounding : 0.0))
        << pass.name;
  }
}

int Tokens(uint32_t seed) { return 1 + seed % 9; }

TEST(RandomPlan, SwitchingAPassOffKeepsEveryBit) {
  ForRandomModels(60, [](uint32_t seed, const RandomModel& model) {
    const Text text = MakeText(model, seed, Tokens(seed));
    const Logits want = RunWhole(model, Options(), text);
    ASSERT_TRUE(Finite(want));
    for (const PassEntry& pass : Pipeline()) {
      const Logits found = RunWhole(model, Options({16}, {pass.name}), text);
      ExpectKept(pass, model, found, want);
    }
  });
}

// Each pass against the pipeline up to it, before others build on what it made.
TEST(RandomPlan, EachPassAddedKeepsEveryBit) {
  ForRandomModels(60, [](uint32_t seed, const RandomModel& model) {
    const Text text = MakeText(model, seed, Tokens(seed));
    std::set<std::string> off;
    for (const PassEntry& pass : Pipeline()) off.insert(pass.name);
    Logits before = RunWhole(model, Options({16}, off), text);
    ASSERT_TRUE(Finite(before));
    for (const PassEntry& pass : Pipeline()) {
      off.erase(pass.name);
      Logits after = RunWhole(model, Options({16}, off), text);
      ExpectKept(pass, model, after, before);
      before = std::move(after);
    }
  });
}

TEST(RandomPlan, ManyPassesOffKeepEveryBit) {
  ForRandomModels(100, [](uint32_t seed, const RandomModel& model) {
    const Text text = MakeText(model, seed, Tokens(seed));
    const Logits want = RunWhole(model, Options(), text);
    std::mt19937 random(seed);
    std::set<std::string> off;
    for (const PassEntry& pass : Pipeline()) {
      if (pass.tolerance == 0 && random() % 2 == 0) off.insert(pass.name);
    }
    EXPECT_TRUE(SameBits(RunWhole(model, Options({16}, off), text), want));
  });
}

TEST(RandomPlan, ChunksBucketsThreadsAndPlannersKeepEveryBit) {
  ForRandomModels(100, [](uint32_t seed, const RandomModel& model) {
    const int tokens = seed % 10 == 0 ? 70 : Tokens(seed);
    const Text text = MakeText(model, seed, tokens);
    const auto plan = MakePlan(model, Options({1, 4, 80}));
    ASSERT_NE(plan, nullptr);
    const Logits want = RunChunks(plan, text, {tokens});
    ASSERT_TRUE(Finite(want));
    EXPECT_TRUE(SameBits(RunChunks(plan, text, {tokens}, 3), want))
        << "threads";
    if (!model.rewrites_state) {
      EXPECT_TRUE(
          SameBits(RunChunks(plan, text, std::vector<int>(tokens, 1)), want))
          << "one by one";
      std::mt19937 random(seed);
      std::vector<int> chunks;
      for (int left = tokens; left > 0; left -= chunks.back()) {
        chunks.push_back(1 + random() % left);
      }
      EXPECT_TRUE(SameBits(RunChunks(plan, text, chunks, 3), want)) << "chunks";
    }
    const int64_t bucket = std::max(tokens, 1 + static_cast<int>(seed % 30));
    for (PlanStrategy planner :
         {PlanStrategy::kNoReuse, PlanStrategy::kFirstUse,
          seed % 20 == 0 ? PlanStrategy::kSearch : PlanStrategy::kBySize}) {
      CompileOptions options = Options({bucket});
      options.planner = planner;
      EXPECT_TRUE(SameBits(RunWhole(model, options, text), want))
          << "planner " << static_cast<int>(planner);
    }
    for (Isa isa : Caps()) {
      if (RoundsAttention(model) && !Includes(isa, Isa::kAvx512Bf16)) continue;
      CompileOptions options = Options();
      options.buckets = {80};
      options.isa = isa;
      EXPECT_TRUE(SameBits(RunWhole(model, options, text), want)) << Name(isa);
    }
  });
}

TEST(RandomPlan, PoisonedMemoryIsNeverRead) {
  ForRandomModels(
      100,
      [](uint32_t seed, const RandomModel& model) {
        const int tokens = Tokens(seed);
        const Text text = MakeText(model, seed, tokens);
        Batch batch;
        batch.ids = text.ids;
        batch.positions = text.positions;
        batch.slots = text.sequences;
        // Some of the rows, not in order.
        std::vector<int32_t> rows = text.rows;
        std::shuffle(rows.begin(), rows.end(), std::mt19937(seed));
        rows.resize(1 + rows.size() / 2);
        batch.output_rows = rows;
        std::set<std::string> off;
        std::map<std::string, std::vector<uint8_t>> want;
        // All passes, then some.
        for (int round = 0; round < 3; ++round) {
          const auto plan =
              MakePlan(model, Options({seed % 2 == 0 ? 9 : 40}, off));
          ASSERT_NE(plan, nullptr);
          auto cache = MakeCache(*plan, tokens);
          PoisonPages(*cache, plan->buckets[0]);
          const auto found =
              RunPoisoned(plan->buckets[0], DetectIsa(), batch, *cache);
          if (round == 0) want = found;
          for (const auto& [name, bytes] : found) {
            std::vector<float> numbers(bytes.size() / 4);
            std::memcpy(numbers.data(), bytes.data(), bytes.size());
            EXPECT_TRUE(Finite(numbers)) << name;
            EXPECT_TRUE(bytes == want[name]) << name;
          }
          EXPECT_EQ(found.size(), want.size());
          std::mt19937 random(seed + round);
          for (const PassEntry& pass : Pipeline()) {
            if (pass.tolerance == 0 && random() % 3 == 0) off.insert(pass.name);
          }
        }
      },
      true);
}

TEST(RandomPlan, PoisonedRunsAgreeWithTheExecutor) {
  ForRandomModels(60, [](uint32_t seed, const RandomModel& model) {
    const int tokens = Tokens(seed);
    const Text text = MakeText(model, seed, tokens);
    const auto plan = MakePlan(model, Options());
    ASSERT_NE(plan, nullptr);
    const Logits want = RunChunks(plan, text, {tokens});
    auto cache = MakeCache(*plan, tokens);
    PoisonPages(*cache, plan->buckets[0]);
    const Batch batch = {text.ids, text.positions, text.sequences, text.rows,
                         nullptr};
    const auto found =
        RunPoisoned(plan->buckets[0], DetectIsa(), batch, *cache);
    const std::vector<uint8_t>& logits = found.at("logits");
    ASSERT_EQ(logits.size(), want.size() * 4);
    EXPECT_EQ(std::memcmp(logits.data(), want.data(), logits.size()), 0);
  });
}

// The reference functions compute in float64, so rounding differs; and where
// activations or a cache are rounded to 8 bits, so may what is rounded.
TEST(RandomPlan, KernelsAgreeWithReferenceFunctions) {
  std::set<std::string> all;
  for (const PassEntry& pass : Pipeline()) all.insert(pass.name);
  double worst[2] = {};
  ForRandomModels(60, [&](uint32_t seed, const RandomModel& model) {
    const Text text = MakeText(model, seed, Tokens(seed));
    CompileOptions plain = Options({16}, all);
    plain.isa = Isa::kRef;
    const Logits want = RunWhole(model, plain, text);
    ASSERT_TRUE(Finite(want));
    // The fused ops' reference functions.
    CompileOptions fused = Options({16}, {"quantize-activations"});
    fused.isa = Isa::kRef;
    const Logits exact[] = {
        RunWhole(model, fused, text),
        RunWhole(model, Options({16}, {"quantize-activations"}), text)};
    bool coarse = false;
    for (ValueId id = 0; id < model.graph.value_count(); ++id) {
      const Value& value = model.graph.value(id);
      coarse |=
          value.kind == ValueKind::kState && value.type.dtype != DType::kF32;
    }
    const double tolerance = RoundsAttention(model) ? kAttentionRounding
                             : coarse               ? 1e-3
                                                    : 1e-4;
    for (const Logits& found : exact) {
      const double error = RelativeError(found, want);
      worst[0] = std::max(worst[0], error);
      EXPECT_LT(error, tolerance);
    }
    const double rounded =
        RelativeError(RunWhole(model, Options(), text), want);
    worst[1] = std::max(worst[1], rounded);
    EXPECT_LE(rounded, model.quantized ? LogitsTolerance(model) : tolerance);
  });
  RecordProperty("worst_relative_error", std::to_string(worst[0]));
  RecordProperty("worst_with_rounded_activations", std::to_string(worst[1]));
}

}  // namespace
}  // namespace weft
