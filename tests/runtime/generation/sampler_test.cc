#include "runtime/generation/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>

#include "base/allocation_counter.h"

namespace weft {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Everything off, temperature 1: the distribution is the softmax.
SamplingOptions Plain() {
  SamplingOptions options;
  options.temperature = 1;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  options.repeat_penalty = 1;
  options.repeat_window = -1;
  return options;
}

Sampler MakeSampler(const SamplingOptions& options, size_t vocabulary) {
  auto sampler = Sampler::Create(options, static_cast<int32_t>(vocabulary));
  EXPECT_TRUE(sampler.ok()) << sampler.status();
  return *std::move(sampler);
}

std::vector<int32_t> Ids(absl::Span<const Candidate> candidates) {
  std::vector<int32_t> ids;
  for (const Candidate& c : candidates) ids.push_back(c.id);
  return ids;
}

std::vector<double> Probabilities(absl::Span<const Candidate> candidates) {
  std::vector<double> probabilities;
  for (const Candidate& c : candidates) {
    probabilities.push_back(c.probability);
  }
  return probabilities;
}

std::vector<float> RandomLogits(std::mt19937* random, size_t count) {
  std::vector<float> logits(count);
  for (float& logit : logits) {
    // A coarse grid, so that ties happen.
    logit = (static_cast<int>((*random)() % 400) - 200) / 16.0f;
  }
  return logits;
}

// The chain as its definition says, with full sorts.
std::vector<Candidate> SlowDistribution(const SamplingOptions& options,
                                        std::vector<float> logits,
                                        std::vector<int32_t> history) {
  size_t window = history.size();
  if (options.repeat_window >= 0) {
    window = std::min<size_t>(window, options.repeat_window);
  }
  history.erase(history.begin(), history.end() - window);
  for (size_t id = 0; id < logits.size(); ++id) {
    const auto count = std::count(history.begin(), history.end(), id);
    if (count == 0) continue;
    double x = logits[id];
    x = x > 0 ? x / options.repeat_penalty : x * options.repeat_penalty;
    x -= double{options.frequency_penalty} * count;
    logits[id] = static_cast<float>(x - options.presence_penalty);
  }
  std::vector<Candidate> all;
  for (size_t id = 0; id < logits.size(); ++id) {
    all.push_back({static_cast<int32_t>(id), logits[id], 0});
  }
  std::stable_sort(
      all.begin(), all.end(),
      [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  const auto softmax = [&](double temperature) {
    double total = 0;
    for (Candidate& c : all) {
      c.probability = std::exp((double{c.logit} - all[0].logit) / temperature);
      total += c.probability;
    }
    for (Candidate& c : all) c.probability /= total;
  };
  if (options.top_k > 0 && all.size() > static_cast<size_t>(options.top_k)) {
    all.resize(options.top_k);
  }
  softmax(1);
  if (options.top_p < 1) {
    double sum = 0;
    size_t kept = 0;
    while (kept < all.size()) {
      sum += all[kept++].probability;
      if (sum >= options.top_p) break;
    }
    all.resize(kept);
  }
  softmax(1);
  const double least = all[0].probability * options.min_p;
  while (all.back().probability < least) all.pop_back();
  softmax(options.temperature);
  return all;
}

TEST(Sampler, PassesThePublishedCases) {
  std::ifstream file("tests/data/num/sampler.json");
  ASSERT_TRUE(file.good());
  const auto cases = nlohmann::json::parse(file);
  ASSERT_EQ(cases.size(), 9u);
  for (const auto& c : cases) {
    SCOPED_TRACE(std::string(c["name"]));
    const std::vector<float> logits = c["logits"];
    const auto& params = c["params"];
    const auto& expect = c["expect"];
    SamplingOptions options = Plain();
    options.temperature = params.value("temperature", options.temperature);
    options.top_k = params.value("top_k", options.top_k);
    options.top_p = params.value("top_p", options.top_p);
    options.min_p = params.value("min_p", options.min_p);
    options.repeat_penalty =
        params.value("repeat_penalty", options.repeat_penalty);
    options.repeat_window = params.value("repeat_last_n", 64);
    options.frequency_penalty =
        params.value("frequency_penalty", options.frequency_penalty);
    options.presence_penalty =
        params.value("presence_penalty", options.presence_penalty);
    options.seed = params.value("seed", options.seed);
    const auto history = params.value("last", std::vector<int32_t>());
    Sampler sampler = MakeSampler(options, logits.size());

    if (expect.contains("logits")) {
      const auto penalized = sampler.Penalize(logits, history);
      ASSERT_TRUE(penalized.ok());
      EXPECT_THAT(*penalized, Pointwise(FloatNear(1e-6f),
                                        std::vector<float>(expect["logits"])));
    }
    const auto distribution = sampler.Distribution(logits, history);
    ASSERT_TRUE(distribution.ok()) << distribution.status();
    if (expect.contains("kept")) {
      EXPECT_EQ(Ids(*distribution), std::vector<int32_t>(expect["kept"]));
    }
    if (expect.contains("final")) {
      EXPECT_THAT(
          Probabilities(*distribution),
          Pointwise(DoubleNear(1e-6), std::vector<double>(expect["final"])));
    }
    for (const double p : Probabilities(*distribution)) {
      EXPECT_TRUE(std::isfinite(p));
    }
    if (expect.contains("id")) {
      const auto drawn = sampler.Sample(logits, history);
      ASSERT_TRUE(drawn.ok());
      EXPECT_EQ(*drawn, static_cast<int32_t>(expect["id"]));
    }
  }
}

TEST(Sampler, AgreesWithTheDefinitionOnRandomSettings) {
  std::mt19937 random(1);
  const auto pick = [&](std::vector<float> values) {
    return values[random() % values.size()];
  };
  for (int round = 0; round < 600; ++round) {
    SamplingOptions options;
    options.temperature = pick({0.01f, 0.5f, 0.8f, 1, 3, 1e6f});
    options.top_k = static_cast<int32_t>(
        pick({-1, 0, 1, 2, 40, 511, 512, 513, 1000, 100000}));
    options.top_p = pick({0, 0.1f, 0.5f, 0.9f, 0.999f, 1});
    options.min_p = pick({0, 0.01f, 0.3f, 1});
    options.repeat_penalty = pick({1, 1.1f, 2, 0.5f});
    options.repeat_window = static_cast<int32_t>(pick({-1, 0, 1, 7, 64}));
    options.frequency_penalty = pick({0, 0.5f, -0.5f});
    options.presence_penalty = pick({0, 1.5f});
    const auto logits = RandomLogits(&random, 1 + random() % 3000);
    std::vector<int32_t> history(random() % 100);
    for (int32_t& id : history) {
      id = static_cast<int32_t>(random() % logits.size());
    }
    Sampler sampler = MakeSampler(options, logits.size());
    const auto found = sampler.Distribution(logits, history);
    ASSERT_TRUE(found.ok()) << found.status();
    std::vector<Candidate> sorted(found->begin(), found->end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.logit > b.logit;
                     });
    const auto wanted = SlowDistribution(options, logits, history);
    // A cumulative sum that meets top_p to the last bit may go either way.
    ASSERT_EQ(Ids(sorted), Ids(wanted))
        << "k " << options.top_k << " p " << options.top_p;
    ASSERT_THAT(Probabilities(sorted),
                Pointwise(DoubleNear(1e-12), Probabilities(wanted)));
  }
}

TEST(Sampler, TheSameSeedDrawsTheSameTokensAndAnotherSeedOthers) {
  std::mt19937 random(2);
  const auto logits = RandomLogits(&random, 500);
  SamplingOptions options = Plain();
  const auto draw = [&](uint64_t seed) {
    options.seed = seed;
    Sampler sampler = MakeSampler(options, logits.size());
    std::vector<int32_t> tokens;
    for (int i = 0; i < 50; ++i) {
      tokens.push_back(*sampler.Sample(logits, tokens));
    }
    return tokens;
  };
  EXPECT_EQ(draw(7), draw(7));
  EXPECT_NE(draw(7), draw(8));
}

TEST(Sampler, DrawsAreFixedForever) {
  // Uniform numbers for seed 0 from the published SplitMix64 sequence
  // e220a8397b1dcdaf 6e789e6aa1b965f4 06c45d188009454f f88bb8a8724c81ec.
  const std::vector<float> logits(256, 0.0f);
  Sampler sampler = MakeSampler(Plain(), logits.size());
  std::vector<int32_t> tokens;
  for (int i = 0; i < 4; ++i) tokens.push_back(*sampler.Sample(logits, {}));
  EXPECT_THAT(tokens, ElementsAre(0xe2, 0x6e, 0x06, 0xf8));
}

TEST(Sampler, DrawsInProportionToTheProbabilities) {
  SamplingOptions options = Plain();
  options.seed = 3;
  const std::vector<float> logits = {std::log(1.f), std::log(2.f),
                                     std::log(5.f), -kInfinity};
  Sampler sampler = MakeSampler(options, logits.size());
  std::vector<int> counts(4);
  constexpr int kDraws = 80000;
  for (int i = 0; i < kDraws; ++i) ++counts[*sampler.Sample(logits, {})];
  // Five standard deviations are below 700.
  EXPECT_NEAR(counts[0], kDraws / 8, 700);
  EXPECT_NEAR(counts[1], kDraws / 4, 700);
  EXPECT_NEAR(counts[2], kDraws * 5 / 8, 700);
  EXPECT_EQ(counts[3], 0);
}

TEST(Sampler, GreedyIgnoresPenalties) {
  SamplingOptions options;
  options.temperature = 0;
  options.repeat_penalty = 100;
  options.presence_penalty = 100;
  Sampler sampler = MakeSampler(options, 3);
  EXPECT_EQ(*sampler.Sample({1, 3, 2}, {1, 1}), 1);
}

TEST(Sampler, TiesAtTheEdgeOfTopKGoToTheLowestIds) {
  for (const int32_t k : {3, 600}) {
    SamplingOptions options = Plain();
    options.top_k = k;
    const std::vector<float> logits(1000, 1.0f);
    Sampler sampler = MakeSampler(options, logits.size());
    std::vector<int32_t> wanted(k);
    std::iota(wanted.begin(), wanted.end(), 0);
    EXPECT_EQ(Ids(*sampler.Distribution(logits, {})), wanted);
  }
}

TEST(Sampler, PlusInfinityIsCertainAndMinusInfinityIsNeverDrawn) {
  for (const int32_t k : {0, 2, 50, 600}) {
    for (const float p : {0.3f, 1.0f}) {
      SamplingOptions options = Plain();
      options.top_k = k;
      Sampler sampler = MakeSampler(options, 4);
      std::vector<double> probability(4, 0.0);
      const auto some =
          sampler.Distribution({-kInfinity, 1, -kInfinity, 1}, {});
      ASSERT_TRUE(some.ok());
      EXPECT_THAT(Ids(*some), ElementsAre(1, 3));
      EXPECT_THAT(Probabilities(*some), ElementsAre(0.5, 0.5));
      options.top_p = p;
      sampler = MakeSampler(options, 4);
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(*sampler.Sample({1, kInfinity, 5, -kInfinity}, {}), 1);
      }
      options.top_p = 1;
      sampler = MakeSampler(options, 4);
      for (int i = 0; i < 20; ++i) {
        const auto id = sampler.Sample({kInfinity, 1, 2, kInfinity}, {0, 1});
        ASSERT_TRUE(id.ok());
        EXPECT_TRUE(*id == 0 || *id == 3) << *id;
      }
    }
  }
}

TEST(Sampler, ExtremeLogitsAndTemperaturesStayFinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  for (const float temperature : {kTiny, 1e-6f, 1.0f, kMax}) {
    for (const float penalty : {kTiny, 1.0f, kMax}) {
      SamplingOptions options;
      options.temperature = temperature;
      options.repeat_penalty = penalty;
      options.frequency_penalty = 1;
      Sampler sampler = MakeSampler(options, 5);
      const auto all =
          sampler.Distribution({kMax, -kMax, 0, kTiny, 1}, {0, 1, 3});
      ASSERT_TRUE(all.ok()) << all.status();
      double total = 0;
      for (const Candidate& c : *all) {
        EXPECT_TRUE(c.probability >= 0 && c.probability <= 1);
        total += c.probability;
      }
      EXPECT_NEAR(total, 1, 1e-12);
    }
  }
}

TEST(Sampler, BrokenLogitsAreErrorsThatNameTheIndex) {
  for (const float temperature : {0.0f, 0.8f}) {
    SamplingOptions options;
    options.temperature = temperature;
    Sampler sampler = MakeSampler(options, 3);
    const auto message = [&](std::vector<float> logits,
                             std::vector<int32_t> history = {}) {
      return std::string(sampler.Sample(logits, history).status().message());
    };
    EXPECT_THAT(message({1, 2, kNaN}), HasSubstr("logit 2: is NaN"));
    EXPECT_THAT(message({kNaN, kInfinity, kNaN}), HasSubstr("logit 0: is NaN"));
    EXPECT_THAT(message({-kInfinity, -kInfinity, -kInfinity}),
                HasSubstr("all are -inf"));
    EXPECT_THAT(message({1, 2}), HasSubstr("2 values for a vocabulary of 3"));
    EXPECT_THAT(message({}), HasSubstr("0 values"));
    EXPECT_EQ(message({1, 2, 3}, {0, 1}), "");
  }
  Sampler sampler = MakeSampler(SamplingOptions(), 3);
  for (const int32_t id : {-1, 3, INT32_MAX}) {
    EXPECT_THAT(
        std::string(sampler.Sample({1, 2, 3}, {0, id}).status().message()),
        HasSubstr("token " + std::to_string(id)));
  }
  // The failed calls left no counts behind.
  EXPECT_THAT(*sampler.Penalize({-1, 2, 3}, {2}),
              ElementsAre(-1, 2, static_cast<float>(3 / double{1.1f})));
}

TEST(Sampler, AFailedCallDoesNotMoveTheRandomState) {
  SamplingOptions options = Plain();
  const std::vector<float> logits(256, 0.0f);
  Sampler sampler = MakeSampler(options, logits.size());
  EXPECT_FALSE(sampler.Sample({kNaN}, {}).ok());
  EXPECT_EQ(*sampler.Sample(logits, {}), 0xe2);
}

TEST(Sampler, TakesNoMemoryPerToken) {
  std::mt19937 random(4);
  const auto logits = RandomLogits(&random, 20000);
  std::vector<int32_t> history(200, 17);
  for (const int32_t k : {0, 50, 5000}) {
    SamplingOptions options;
    options.top_k = k;
    options.min_p = 0.01f;
    Sampler sampler = MakeSampler(options, logits.size());
    const int64_t before = AllocationCount();
    for (int i = 0; i < 5; ++i) {
      history[i] = *sampler.Sample(logits, history);
    }
    EXPECT_EQ(AllocationCount() - before, 0) << "top-k " << k;
  }
}

TEST(Sampler, OptionsThatMakeNoSenseAreNamed) {
  const auto message = [](void (*change)(SamplingOptions*)) {
    SamplingOptions options;
    change(&options);
    return std::string(Sampler::Create(options, 10).status().message());
  };
  using O = SamplingOptions;
  EXPECT_THAT(message([](O* o) { o->temperature = -1; }),
              HasSubstr("temperature: -1"));
  EXPECT_THAT(message([](O* o) { o->temperature = kNaN; }),
              HasSubstr("temperature: nan"));
  EXPECT_THAT(message([](O* o) { o->temperature = kInfinity; }),
              HasSubstr("temperature: inf"));
  EXPECT_THAT(message([](O* o) { o->top_p = 1.5; }), HasSubstr("top_p: 1.5"));
  EXPECT_THAT(message([](O* o) { o->top_p = kNaN; }), HasSubstr("top_p"));
  EXPECT_THAT(message([](O* o) { o->min_p = -0.5; }), HasSubstr("min_p: -0.5"));
  EXPECT_THAT(message([](O* o) { o->repeat_penalty = 0; }),
              HasSubstr("repeat_penalty: 0"));
  EXPECT_THAT(message([](O* o) { o->repeat_window = -2; }),
              HasSubstr("repeat_window: -2"));
  EXPECT_THAT(message([](O* o) { o->frequency_penalty = kInfinity; }),
              HasSubstr("frequency_penalty"));
  EXPECT_THAT(message([](O* o) { o->presence_penalty = kNaN; }),
              HasSubstr("presence_penalty"));
  EXPECT_EQ(message([](O* o) { o->top_k = -7; }), "");
  EXPECT_FALSE(Sampler::Create(SamplingOptions(), 0).ok());
  EXPECT_FALSE(Sampler::Create(SamplingOptions(), -5).ok());
}

TEST(LogProbability, IsTheLogarithmOfTheSoftmax) {
  EXPECT_NEAR(*LogProbability({3, 2, 1}, 0), std::log(0.665240956), 1e-8);
  EXPECT_NEAR(*LogProbability({3, 2, 1}, 2), std::log(0.090030573), 1e-8);
  // Far outside what exp can hold.
  EXPECT_NEAR(*LogProbability({1e30f, 1e30f}, 1), std::log(0.5), 1e-12);
  EXPECT_EQ(*LogProbability({0, -1000}, 1), -1000);
  EXPECT_EQ(*LogProbability({0, -kInfinity}, 1), -kInfinity);
  EXPECT_NEAR(*LogProbability({kInfinity, 1, kInfinity}, 0), std::log(0.5),
              1e-12);
  EXPECT_EQ(*LogProbability({kInfinity, 1}, 1), -kInfinity);
}

TEST(LogProbability, RefusesWhatHasNone) {
  EXPECT_THAT(std::string(LogProbability({1, kNaN}, 0).status().message()),
              HasSubstr("logit 1: is NaN"));
  EXPECT_FALSE(LogProbability({-kInfinity}, 0).ok());
  EXPECT_FALSE(LogProbability({1, 2}, 2).ok());
  EXPECT_FALSE(LogProbability({1, 2}, -1).ok());
  EXPECT_FALSE(LogProbability({}, 0).ok());
}

}  // namespace
}  // namespace weft
