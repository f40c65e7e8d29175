// The attention of examples/custom_attention.cc in a whole model.
#include "examples/custom_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/engine.h"

namespace examples {
namespace {

using ::testing::HasSubstr;

constexpr int kTokens = 150;  // more than two pages of keys

int32_t Token(int i) { return 3 + i * 31 % 2000; }

std::vector<float> Logits(int64_t chunk = 64, int threads = 1,
                          weft::DType kv = weft::DType::kF16) {
  weft::EngineOptions options;
  options.threads = threads;
  options.model.graph.kv_type = kv;
  options.model.compile.buckets = {1, 8, 64};
  auto engine = weft::Engine::Load("", options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  if (!engine.ok()) return {};
  std::vector<int32_t> tokens;
  for (int i = 0; i < kTokens; ++i) tokens.push_back(Token(i));
  std::vector<float> logits;
  const absl::Status s =
      (*engine)->Evaluate(tokens, {0, 63, 64, kTokens - 1}, chunk,
                          [&](int64_t, absl::Span<const float> row) {
                            logits.insert(logits.end(), row.begin(), row.end());
                            return absl::OkStatus();
                          });
  EXPECT_TRUE(s.ok()) << s;
  return logits;
}

// The largest difference over the largest logit.
double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  if (a.size() != b.size() || a.empty()) return INFINITY;
  double largest = 0, most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::fmax(largest, std::fabs(double(a[i]) - b[i]));
    most = std::fmax(most, std::fabs(double(b[i])));
  }
  return largest / most;
}

std::vector<weft::Registration> Register(int64_t window, double slope) {
  auto all = RegisterWindowedAttention({window, slope});
  EXPECT_TRUE(all.ok()) << all.status();
  return all.ok() ? *std::move(all) : std::vector<weft::Registration>();
}

TEST(WindowedAttention, AWideWindowWithoutBiasIsPlainAttention) {
  const std::vector<float> plain = Logits();
  {
    const auto all = Register(100000, 0);
    EXPECT_LT(Distance(Logits(), plain), 0.02);  // int8 rows round anew
  }
  {
    const auto all = Register(100000, 1);
    EXPECT_GT(Distance(Logits(), plain), 0.05);
  }
  {
    const auto all = Register(40, 0);
    EXPECT_GT(Distance(Logits(), plain), 0.05);
  }
  // And gone with its registrations.
  EXPECT_EQ(Logits(), plain);
}

TEST(WindowedAttention, TheKernelAgreesWithTheReference) {
  for (const int64_t window : {2, 63, 64, 65, 200}) {
    for (const weft::DType kv : {weft::DType::kF32, weft::DType::kF16}) {
      auto all = Register(window, 0.5);
      ASSERT_EQ(all.size(), 3u);
      const std::vector<float> fast = Logits(64, 1, kv);
      all[1].End();
      EXPECT_LT(Distance(fast, Logits(64, 1, kv)), 0.02) << window;
    }
  }
}

TEST(WindowedAttention, ChunksAndThreadsDoNotMatter) {
  const auto all = Register(70, 0.5);
  const std::vector<float> want = Logits(64, 1);
  EXPECT_EQ(Logits(1, 1), want);
  EXPECT_EQ(Logits(7, 2), want);
}

TEST(WindowedAttention, AWindowOfOneSeesNothingButItself) {
  const auto all = Register(1, 1);
  weft::EngineOptions options;
  options.threads = 1;
  auto engine = weft::Engine::Load("", options);
  ASSERT_TRUE(engine.ok());
  std::vector<float> last, alone;
  const auto keep = [](std::vector<float>* to) {
    return [to](int64_t, absl::Span<const float> row) {
      to->assign(row.begin(), row.end());
      return absl::OkStatus();
    };
  };
  ASSERT_TRUE((*engine)->Evaluate({9, 8, 7, 6, 5}, {4}, 0, keep(&last)).ok());
  ASSERT_TRUE((*engine)->Evaluate({5}, {0}, 0, keep(&alone)).ok());
  EXPECT_EQ(last, alone);
}

TEST(WindowedAttention, TypesWithoutAKernelRunByReference) {
  const auto all = Register(20, 0.5);
  const std::vector<float> exact = Logits(64, 1, weft::DType::kF32);
  EXPECT_LT(Distance(Logits(64, 1, weft::DType::kBF16), exact), 0.1);
}

TEST(WindowedAttention, AttentionInPartsIsRefused) {
  const auto all = Register(20, 0.5);
  weft::EngineOptions options;
  options.model.compile.disabled_passes = {"fuse-attention"};
  const auto engine = weft::Engine::Load("", options);
  EXPECT_THAT(std::string(engine.status().message()),
              HasSubstr("leave fuse-attention on"));
}

TEST(WindowedAttention, OptionsThatCannotBe) {
  EXPECT_FALSE(RegisterWindowedAttention({0, 1}).ok());
  EXPECT_FALSE(RegisterWindowedAttention({1, -1}).ok());
  EXPECT_FALSE(
      RegisterWindowedAttention({1, std::numeric_limits<double>::quiet_NaN()})
          .ok());
}

}  // namespace
}  // namespace examples
