// The reference functions against numbers worked out by hand: they are the
// oracle of every kernel.
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ops/reference_run.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

constexpr Bounds kBounds = {/*tokens=*/2, /*rows=*/1, /*context=*/128};
using Floats = std::vector<float>;

void ExpectNear(const Floats& got, const Floats& want) {
  EXPECT_THAT(got, Pointwise(FloatNear(1e-6f), want));
}

// f(x) of two rows of two.
Floats Unary(const std::string& node, const Floats& x) {
  return ReferenceRun("%0 = input x f32[T,2]\n %1 = " + node +
                          " f32[T,2]\n output y = %1",
                      kBounds)
      .Set("x", x)
      .Run("y");
}

TEST(ReferenceTest, EmbedTakesRowsOfTheTable) {
  EXPECT_THAT(ReferenceRun(R"(
    $t = weight f32[3,2]
    %0 = input ids i32[T]
    %1 = embed(%0, $t) f32[T,2]
    output y = %1)",
                           kBounds)
                  .Set<float>("t", {1, 2, 3, 4, 5, 6})
                  .Set<int32_t>("ids", {2, 0})
                  .Run("y"),
              ElementsAre(5, 6, 1, 2));
}

TEST(ReferenceTest, RmsNormDividesByTheRootOfTheMeanSquare) {
  // 3 and 4: mean square 12.5; and eps 12.5 makes the root 5.
  EXPECT_THAT(ReferenceRun(R"(
    $w = weight f32[2]
    %0 = input x f32[T,2]
    %1 = rms_norm(%0, $w) eps=12.5 f32[T,2]
    output y = %1)",
                           kBounds)
                  .Set<float>("w", {5, 10})
                  .Set<float>("x", {3, 4, 0, 0})
                  .Run("y"),
              ElementsAre(3, 8, 0, 0));
}

TEST(ReferenceTest, RmsNormNeedsNoWeight) {
  EXPECT_THAT(ReferenceRun(R"(
    %0 = input x f32[T,4]
    %1 = rms_norm(%0) eps=12.5 heads=2 f32[T,4]
    output y = %1)",
                           kBounds)
                  .Set<float>("x", {3, 4, 5, 0, 0, 0, 0, -5})
                  .Run("y"),
              ElementsAre(0.6f, 0.8f, 1, 0, 0, 0, 0, -1));
}

TEST(ReferenceTest, LayerNormCentresScalesAndShifts) {
  // 1 and 3: mean 2, variance 1; with eps 3 the root is 2.
  EXPECT_THAT(ReferenceRun(R"(
    $w = weight f32[2]
    $b = weight f32[2]
    %0 = input x f32[T,2]
    %1 = layer_norm(%0, $w, $b) eps=3.0 f32[T,2]
    output y = %1)",
                           kBounds)
                  .Set<float>("w", {2, 4})
                  .Set<float>("b", {10, 20})
                  .Set<float>("x", {1, 3, 7, 7})
                  .Run("y"),
              ElementsAre(9, 22, 10, 20));
}

// 3 and 4 as one head, 0 and 5 as the other: mean squares of 12.5.
TEST(ReferenceTest, NormsOfHeadsTakeEachByItself) {
  const std::string source = R"(
    %0 = input x f32[T,4]
    %1 = rms_norm(%0, $w) eps=12.5 heads=2 f32[T,4]
    output y = %1)";
  const Floats x = {3, 4, 0, 5, 0, 0, 0, 0};
  EXPECT_THAT(ReferenceRun("$w = weight f32[2]\n" + source, kBounds)
                  .Set<float>("w", {5, 10})
                  .Set("x", x)
                  .Run("y"),
              ElementsAre(3, 8, 0, 10, 0, 0, 0, 0));
  EXPECT_THAT(ReferenceRun("$w = weight f32[4]\n" + source, kBounds)
                  .Set<float>("w", {5, 10, 15, 20})
                  .Set("x", x)
                  .Run("y"),
              ElementsAre(3, 8, 0, 20, 0, 0, 0, 0));
}

TEST(ReferenceTest, FusedMatmulCentresWhatItMultiplies) {
  // 1 and 3 become -1 and 1 with eps 0, then -2 + 10 and 4 + 20.
  EXPECT_THAT(ReferenceRun(R"(
    $w = weight f32[2,2]
    $n = weight f32[2]
    $b = weight f32[2]
    %0 = input x f32[T,2]
    %1 = fused_matmul(%0, $w, $n, $b) eps=0.0 norm="layer" norm_bias=1 f32[T,2]
    output y = %1)",
                           kBounds)
                  .Set<float>("w", {1, 0, 1, 1})
                  .Set<float>("n", {2, 4})
                  .Set<float>("b", {10, 20})
                  .Set<float>("x", {1, 3, 3, 1})
                  .Run("y"),
              ElementsAre(8, 32, 12, 28));
}

TEST(ReferenceTest, ScaleAndSoftcap) {
  ExpectNear(Unary("scale(%0) factor=-0.5", {1, 2, 3, 4}),
             {-0.5, -1, -1.5, -2});
  const float half = 2 * std::tanh(0.5f);
  ExpectNear(Unary("softcap(%0) cap=2.0", {0, 1, -1, 1000}),
             {0, half, -half, 2});
}

TEST(ReferenceTest, MatmulMultipliesByTheTransposedWeight) {
  EXPECT_THAT(ReferenceRun(R"(
    $w = weight f32[3,2]
    %0 = input x f32[T,2]
    %1 = matmul(%0, $w) f32[T,3]
    output y = %1)",
                           kBounds)
                  .Set<float>("w", {1, 0, 0, 1, 1, -1})
                  .Set<float>("x", {2, 3, -1, 4})
                  .Run("y"),
              ElementsAre(2, 3, -1, -1, 4, -5));
}

TEST(ReferenceTest, FusedMatmulAddsBiasThenResidual) {
  EXPECT_THAT(ReferenceRun(R"(
    $w = weight f32[2,2]
    $b = weight f32[2]
    %0 = input x f32[T,2]
    %1 = input r f32[T,2]
    %2 = fused_matmul(%0, $w, $b, %1) bias=1 epilogue="residual" f32[T,2]
    output y = %2)",
                           kBounds)
                  .Set<float>("w", {1, 0, 0, 2})
                  .Set<float>("b", {10, 20})
                  .Set<float>("x", {1, 1, 2, 3})
                  .Set<float>("r", {100, 200, 300, 400})
                  .Run("y"),
              ElementsAre(111, 222, 312, 426));
}

TEST(ReferenceTest, FusedMatmulGatesSixteenRowsOfEachInTurn) {
  // Gate rows give x0 = 0, so silu is 0 but for row 16 of gate, which is row 32
  // of the weight; its partner is row 48.
  Floats w(64 * 2, 0.0f);
  w[32 * 2] = 1;  // gate 16 = x0
  w[48 * 2] = 3;  // up 16 = 3 x0
  Floats want(64, 0.0f);
  want[16] = 2.0f / (1.0f + std::exp(-2.0f)) * 6.0f;
  ExpectNear(ReferenceRun(R"(
    $w = weight f32[64,2]
    %0 = input x f32[T,2]
    %1 = fused_matmul(%0, $w) epilogue="silu_gate" f32[T,32]
    output y = %1)",
                          kBounds)
                 .Set("w", w)
                 .Set<float>("x", {2, 0, 0, 0})
                 .Run("y"),
             want);
}

TEST(ReferenceTest, TopKTakesTheLowerOfEquals) {
  const auto run = [](const char* normalize, const std::string& output) {
    return ReferenceRun(absl::StrCat(R"(
    %0 = input x f32[T,4]
    %1, %2 = top_k(%0) k=3 normalize=)",
                                     normalize, R"( i32[T,3], f32[T,3]
    output ids = %1
    output p = %2)"),
                        kBounds)
        .Set<float>("x", {1, 4, 3, 4, 0.5f, 0.25f, 0.25f, 0})
        .Run(output);
  };
  EXPECT_THAT(run("0", "p"), ElementsAre(4, 4, 3, 0.5f, 0.25f, 0.25f));
  EXPECT_THAT(run("1", "p"),
              ElementsAre(4 / 11.f, 4 / 11.f, 3 / 11.f, 0.5f, 0.25f, 0.25f));
  const Floats bits = run("0", "ids");
  std::vector<int32_t> ids(bits.size());
  std::memcpy(ids.data(), bits.data(), bits.size() * sizeof(float));
  EXPECT_THAT(ids, ElementsAre(1, 3, 2, 0, 1, 2));
}

TEST(ReferenceTest, TopKGoesByBiasAndGroupsAndGivesWhatIsThere) {
  // Groups of two. By the sums of both numbers the first and the last win, by
  // the larger number the second and the last would.
  const auto run = [](const char* attributes, const std::string& output) {
    return ReferenceRun(absl::StrCat(R"(
    $b = weight f32[6]
    %0 = input x f32[T,6]
    %1, %2 = top_k(%0, $b) )",
                                     attributes, R"( i32[T,2], f32[T,2]
    output ids = %1
    output p = %2)"),
                        {1, 1, 16})
        .Set<float>("x", {4, 3, 5, 0, 1, 1})
        .Set<float>("b", {0, 0, 0, 0, 2, 5})
        .Run(output);
  };
  const std::string kGroups =
      "group_best=2 groups=3 groups_used=2 k=2 normalize=0";
  EXPECT_THAT(run("k=2 normalize=0", "p"), ElementsAre(1, 5));
  EXPECT_THAT(run(kGroups.c_str(), "p"), ElementsAre(1, 4));
  EXPECT_THAT(run("groups=3 groups_used=2 k=2 normalize=0", "p"),
              ElementsAre(1, 5));
  EXPECT_THAT(run("k=2 least_sum=24.0 normalize=1", "p"),
              ElementsAre(1 / 24.f, 5 / 24.f));
}

TEST(ReferenceTest, TopKWithAMarginIsSparseMixer) {
  const Floats p = ReferenceRun(R"(
    %0 = input x f32[T,4]
    %1, %2 = top_k(%0) k=2 margin=0.02 normalize=0 i32[T,2], f32[T,2]
    output p = %2)",
                                {1, 1, 16})
                       .Set<float>("x", {10, 9.9f, 9.75f, -3})
                       .Run("p");
  // 9.9 is near both 10 and 9.75, which is not near 10.
  EXPECT_FLOAT_EQ(p[0], 1 / (1 + std::exp(-0.1)));
  EXPECT_FLOAT_EQ(p[1], 1 / (1 + std::exp(-0.15)));
}

TEST(ReferenceTest, NumbersOfExpertsGoToThoseWhoChoseThem) {
  const std::map<std::string, Floats> results =
      ReferenceRun(R"(
    $b = weight f32[6]
    %0 = input x f32[T,4]
    %1 = input scores f32[T,3]
    %2, %3 = top_k(%1) k=2 normalize=0 i32[T,2], f32[T,2]
    %4 = expert_add(%0, $b, %2) experts=3 f32[T,4]
    %5 = expert_mul(%0, $b, %2) experts=3 f32[T,4]
    output sum = %4
    output product = %5)",
                   kBounds)
          .Set<float>("b", {1, 2, 10, 20, 100, 200})
          .Set<float>("x", {1, 2, 3, 4, 5, 6, 7, 8})
          .Set<float>("scores", {2, 1, 3, 0, 2, 1})
          .Run();
  EXPECT_THAT(results.at("sum"), ElementsAre(101, 202, 4, 6, 15, 26, 107, 208));
  EXPECT_THAT(results.at("product"),
              ElementsAre(100, 400, 3, 8, 50, 120, 700, 1600));
}

TEST(ReferenceTest, ClampedGateIsClampedAboveAndOnBothSides) {
  const Floats y = ReferenceRun(R"(
    %0 = input a f32[T,3]
    %1 = input b f32[T,3]
    %2 = clamped_gate(%0, %1) limit=7.0 slope=1.702 f32[T,3]
    output y = %2)",
                                {1, 1, 16})
                       .Set<float>("a", {9, -20, 1})
                       .Set<float>("b", {0.5f, 9, -9})
                       .Run("y");
  EXPECT_FLOAT_EQ(y[0], 7 / (1 + std::exp(-1.702 * 7)) * 1.5);
  EXPECT_FLOAT_EQ(y[1], -20 / (1 + std::exp(1.702 * 20)) * 8);
  EXPECT_FLOAT_EQ(y[2], 1 / (1 + std::exp(-1.702)) * -6);
}

TEST(ReferenceTest, SliceRowsTakesSomeOfEachPart) {
  const Floats y = ReferenceRun(R"(
    $w = weight f32[6,1]
    %0 = input x f32[T,1]
    %1 = slice_rows($w) begin=1 parts=2 size=2 f32[4,1]
    %2 = matmul(%0, %1) f32[T,4]
    output y = %2)",
                                {1, 1, 16})
                       .Set<float>("w", {1, 2, 3, 4, 5, 6})
                       .Set<float>("x", {10})
                       .Run("y");
  EXPECT_THAT(y, ElementsAre(20, 30, 50, 60));
}

TEST(ReferenceTest, ExpertMatmulMultipliesByTheChosenMatrices) {
  // Three experts of two rows. The first row of x takes 2 and 0, the second 1
  // and 2.
  const std::string kLines = R"(
    $w = weight f32[6,2]
    $down = weight f32[3,2]
    %0 = input x f32[T,2]
    %1 = input scores f32[T,3]
    %2, %3 = top_k(%1) k=2 normalize=0 i32[T,2], f32[T,2]
    %4 = expert_matmul(%0, $w, %2) experts=3 f32[T,4]
    %5 = expert_matmul(%4, $down, %2) experts=3 f32[T,2]
    %6 = weighted_sum(%5, %3) f32[T,1]
    output y = %4
    output down = %5
    output sum = %6)";
  const std::map<std::string, Floats> results =
      ReferenceRun(kLines, kBounds)
          .Set<float>("w", {1, 0, 0, 1, 10, 0, 0, 10, 100, 0, 0, 100})
          .Set<float>("down", {1, 1, 1, -1, 2, 0})
          .Set<float>("x", {3, 4, 5, 6})
          .Set<float>("scores", {2, 1, 3, 0, 2, 1})
          .Run();
  EXPECT_THAT(results.at("y"), ElementsAre(300, 400, 3, 4, 50, 60, 500, 600));
  EXPECT_THAT(results.at("down"), ElementsAre(600, 7, -10, 1000));
  EXPECT_THAT(results.at("sum"), ElementsAre(1814, 980));
}

TEST(ReferenceTest, LoraAddsWhatARowHasOfEachAdapter) {
  // Ranks 1, 0 and 2; the third row has nothing of the first, which is no
  // number there.
  const std::map<std::string, Floats> results =
      ReferenceRun(R"(
    $a = weight f32[3,2]
    $b = weight f32[3,2]
    %0 = input x f32[T,2]
    %1 = input y f32[T,2]
    %2 = input scales f32[T,3]
    %3 = lora_add(%1, %0, $a, $b, %2) ranks="1,0,2" f32[T,2]
    output sum = %3)",
                   {3, 3, 8})
          .Set<float>("a", {1, 0, 0, 1, 1, 1})
          .Set<float>("b", {INFINITY, 1, 1, 2, 10, 20})
          .Set<float>("x", {3, 4, 3, 4, 3, 4})
          .Set<float>("y", {100, 200, 300, -0.0f, 500, 600})
          .Set<float>("scales", {0, 9, 0, 0, 0, -0.0f, 0, 1, 0.5f})
          .Run();
  // (4 * 1 + 7 * 10) / 2 and (4 * 2 + 7 * 20) / 2.
  EXPECT_THAT(results.at("sum"), ElementsAre(100, 200, 300, 0, 537, 674));
  EXPECT_TRUE(std::signbit(results.at("sum")[3]));
}

TEST(ReferenceTest, HeadsMeetTheirOwnMatricesAndAreJoinedInTurn) {
  // Two heads of two columns, matrices of one row.
  const std::map<std::string, Floats> results =
      ReferenceRun(R"(
    $w = weight f32[2,2]
    %0 = input x f32[T,4]
    %1 = head_matmul(%0, $w) heads=2 f32[T,2]
    %2 = concat_heads(%0, %1) heads=2 f32[T,6]
    output y = %1
    output joined = %2)",
                   kBounds)
          .Set<float>("w", {1, 10, 100, 1000})
          .Set<float>("x", {1, 2, 3, 4, 5, 6, 7, 8})
          .Run();
  EXPECT_THAT(results.at("y"), ElementsAre(21, 4300, 65, 8700));
  EXPECT_THAT(results.at("joined"),
              ElementsAre(1, 2, 21, 3, 4, 4300, 5, 6, 65, 7, 8, 8700));
}

TEST(ReferenceTest, RowsOfEachPartBecomeColumns) {
  // Two parts of three rows, of which the last two are taken.
  const std::map<std::string, Floats> results =
      ReferenceRun(R"(
    $w = weight f32[6,2]
    %0 = input x f32[T,2]
    %1 = transpose_rows($w) begin=1 parts=2 size=2 f32[4,2]
    %2 = matmul(%0, %1) f32[T,4]
    output y = %2)",
                   kBounds)
          .Set<float>("w", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
          .Set<float>("x", {1, 0, 0, 1})
          .Run();
  EXPECT_THAT(results.at("y"), ElementsAre(3, 4, 9, 10, 5, 6, 11, 12));
}

TEST(ReferenceTest, BiasesAreRepeatedForEachRow) {
  const char* kLines = R"(
    $b = weight f32[2]
    %0 = input x f32[T,2]
    %1 = $OP(%0, $b) f32[T,2]
    output y = %1)";
  const auto run = [&](const std::string& op) {
    std::string lines = kLines;
    lines.replace(lines.find("$OP"), 3, op);
    return ReferenceRun(lines, kBounds)
        .Set<float>("b", {10, 20})
        .Set<float>("x", {1, 2, 3, 4})
        .Run("y");
  };
  EXPECT_THAT(run("add"), ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(run("mul"), ElementsAre(10, 40, 30, 80));
}

TEST(ReferenceTest, ActivationsAtKnownPoints) {
  ExpectNear(Unary("silu(%0)", {0, 1, -1, 20}),
             {0, 0.731058579f, -0.268941421f, 20});
  ExpectNear(Unary("sigmoid(%0)", {0, 1, -1, 20}),
             {0.5f, 0.731058579f, 0.268941421f, 1});
  ExpectNear(Unary("gelu(%0) approximation=\"none\"", {0, 1, -1, 10}),
             {0, 0.841344746f, -0.158655254f, 10});
  ExpectNear(Unary("gelu(%0) approximation=\"tanh\"", {0, 1, -1, 10}),
             {0, 0.841191991f, -0.158808009f, 10});
  ExpectNear(Unary("silu_gate(%0, %0)", {0, 1, 2, -1}),
             {0, 0.731058579f, 3.523188312f, 0.268941421f});
}

TEST(ReferenceTest, SoftplusIsLinearAboveAndNothingBelow) {
  ExpectNear(Unary("softplus(%0)", {0, 100, -100, 1}),
             {0.693147181f, 100, 0, 1.31326169f});
}

TEST(ReferenceTest, L2NormMakesLengthsOneButOfShortRows) {
  ExpectNear(Unary("l2_norm(%0) eps=1.0", {3, 4, 0.3f, 0.4f}),
             {0.6f, 0.8f, 0.3f, 0.4f});
  ExpectNear(Unary("l2_norm(%0) eps=1e-06 heads=2", {3, -4, 2, 0}),
             {1, -1, 1, 0});
}

// Tokens of one sequence from its beginning on.
ReferenceRun& FromTheBeginning(ReferenceRun& run) {
  return run.Set<int32_t>("positions", {0, 1}).Set<int32_t>("sequence", {0, 0});
}

constexpr char kTokens[] = R"(
    %0 = input positions i32[T]
    %1 = input sequence i32[T]
)";

TEST(ReferenceTest, ShortConvLooksBackAndKeepsTheLastRows) {
  ReferenceRun run(std::string(kTokens) + R"(
    $taps = weight f32[2,2]
    $bias = weight f32[2]
    %2 = input x f32[T,2]
    %3 = state window f32[1,2]{window}
    %4, %5 = short_conv(%3, %2, $taps, %0, %1, $bias) f32[1,2]{window}, f32[T,2]
    output state = %4
    output y = %5)",
                   kBounds);
  EXPECT_THAT(FromTheBeginning(run)
                  .Set<float>("taps", {1, 10, 2, 20})
                  .Set<float>("bias", {0, 1000})
                  .Set<float>("x", {1, 2, 3, 4})
                  .Run("y"),
              ElementsAre(2, 1040, 7, 1100));
  Floats window(2);
  std::memcpy(window.data(), run.States()["window"].data(), 8);
  EXPECT_THAT(window, ElementsAre(3, 4));
}

TEST(ReferenceTest, DeltaRuleAddsWhatTheDecayedStateDoesNotPredict) {
  ReferenceRun run(std::string(kTokens) + R"(
    %2 = input q f32[T,1]
    %3 = input k f32[T,1]
    %4 = input v f32[T,1]
    %5 = input decay f32[T,1]
    %6 = input beta f32[T,1]
    %7 = state matrices f32[1,1,1]{matrices}
    %8, %9 = delta_rule(%7, %2, %3, %4, %5, %6, %0, %1) key_heads="grouped" scale=2.0 f32[1,1,1]{matrices}, f32[T,1]
    output state = %8
    output y = %9)",
                   kBounds);
  // 4; half of it is 2, and half of what is missing to 10 makes it 6.
  ExpectNear(FromTheBeginning(run)
                 .Set<float>("q", {1, 1})
                 .Set<float>("k", {1, 1})
                 .Set<float>("v", {4, 10})
                 .Set<float>("decay", {-5, -0.693147181f})
                 .Set<float>("beta", {1, 0.5f})
                 .Run("y"),
             {8, 12});
}

TEST(ReferenceTest, DeltaRuleReadsKeysByGroupOrInTurns) {
  for (const bool tiled : {false, true}) {
    ReferenceRun run(std::string(kTokens) + R"(
    %2 = input q f32[T,2]
    %3 = input v f32[T,4]
    %4 = input decay f32[T,4]
    %5 = state matrices f32[4,1,1]{matrices}
    %6, %7 = delta_rule(%5, %2, %2, %3, %4, %4, %0, %1) key_heads=")" +
                         (tiled ? "tiled" : "grouped") +
                         R"(" scale=1.0 f32[4,1,1]{matrices}, f32[T,4]
    output state = %6
    output y = %7)",
                     kBounds);
    const Floats y = FromTheBeginning(run)
                         .Set<float>("q", {2, 3, 0, 0})
                         .Set<float>("v", {1, 1, 1, 1, 0, 0, 0, 0})
                         .Set<float>("decay", {1, 1, 1, 1, 0, 0, 0, 0})
                         .Run("y");
    // beta v k q of heads with keys 2 and 3.
    ExpectNear(y, tiled ? Floats{4, 9, 4, 9, 0, 0, 0, 0}
                        : Floats{4, 4, 9, 9, 0, 0, 0, 0});
  }
}

TEST(ReferenceTest, SelectiveScanForgetsByItsStep) {
  ReferenceRun run(std::string(kTokens) + R"(
    $a = weight f32[1]
    $d = weight f32[1]
    %2 = input x f32[T,1]
    %3 = input b f32[T,1]
    %4 = input dt f32[T,1]
    %5 = state matrices f32[1,1,1]{matrices}
    %6, %7 = selective_scan(%5, %2, %3, %3, %4, $a, $d, %0, %1) f32[1,1,1]{matrices}, f32[T,1]
    output state = %6
    output y = %7)",
                   kBounds);
  // 2 * 4 and the skip; two halves of that and 2 * 10.
  ExpectNear(FromTheBeginning(run)
                 .Set<float>("a", {-0.693147181f})
                 .Set<float>("d", {3})
                 .Set<float>("x", {4, 10})
                 .Set<float>("b", {1, 1})
                 .Set<float>("dt", {2, 2})
                 .Run("y"),
             {8 + 12, 2 + 20 + 30});
}

TEST(ReferenceTest, SoftmaxSumsToOneAndDoesNotOverflow) {
  const float ln3 = std::log(3.0f);
  ExpectNear(Unary("softmax(%0)", {0, ln3, 1000, 1000}),
             {0.25f, 0.75f, 0.5f, 0.5f});
}

TEST(ReferenceTest, RopeTurnsPairsByPositionTimesFrequency) {
  // One head of four: frequencies 1 and base^(-1/2). Position 1, scale pi/2 and
  // base 4 turn the first pair by 90 degrees and the second by 45.
  const std::string kLines = R"(
    %0 = input x f32[T,4]
    %1 = input positions i32[T]
    %2 = rope(%0, %1) base=4.0 head_dim=4 rope_dims=4 scale=1.5707963267948966)";
  const float h = std::sqrt(0.5f);
  ExpectNear(ReferenceRun(kLines + R"( style="interleaved" f32[T,4]
    output y = %2)",
                          kBounds)
                 .Set<float>("x", {1, 2, 1, 0, 1, 2, 3, 4})
                 .Set<int32_t>("positions", {1, 0})
                 .Run("y"),
             {-2, 1, h, h, 1, 2, 3, 4});
  ExpectNear(ReferenceRun(kLines + R"( style="halves" f32[T,4]
    output y = %2)",
                          kBounds)
                 .Set<float>("x", {1, 1, 2, 0, 1, 2, 3, 4})
                 .Set<int32_t>("positions", {1, 0})
                 .Run("y"),
             {-2, h, 1, h, 1, 2, 3, 4});
}

TEST(ReferenceTest, RopeFactorsDivideFrequenciesAndRestIsCopied) {
  // Two of three numbers turn; factor 2 halves the angle of pi to 90 degrees.
  ExpectNear(ReferenceRun(R"(
    $f = weight f32[1]
    %0 = input x f32[T,3]
    %1 = input positions i32[T]
    %2 = rope(%0, %1, $f) base=10000.0 head_dim=3 rope_dims=2 scale=3.141592653589793 style="interleaved" f32[T,3]
    output y = %2)",
                          kBounds)
                 .Set<float>("f", {2})
                 .Set<float>("x", {1, 2, 9, 3, 4, 8})
                 .Set<int32_t>("positions", {1, 0})
                 .Run("y"),
             {-2, 1, 9, 3, 4, 8});
}

// Two query heads share one KV head of one dimension. Two rows stand at the
// positions 0 and 1.
constexpr char kKeysAndValues[] = R"(
    %0 = input q f32[T,2]
    %1 = input k f32[T,1]
    %2 = input v f32[T,1]
    %3 = input positions i32[T]
    %4 = input sequence i32[T]
    %5 = state keys f32[S,1,1]{keys}
    %6 = state values f32[S,1,1]{values}
    %7 = kv_write(%5, %1, %3, %4) f32[S,1,1]{keys}
    %8 = kv_write(%6, %2, %3, %4) f32[S,1,1]{values}
    output keys = %7
    output values = %8)";

Floats RunAttention(const std::string& nodes) {
  const float ln3 = std::log(3.0f);
  return ReferenceRun(kKeysAndValues + nodes, kBounds)
      .Set<float>("q", {1, 0, 1, 0})
      .Set<float>("k", {0, ln3})
      .Set<float>("v", {4, 8})
      .Set<int32_t>("positions", {0, 1})
      .Set<int32_t>("sequence", {0, 0})
      .Run("y");
}

TEST(ReferenceTest, ScoresAreMinusInfinityWhereARowMayNotLook) {
  const Floats scores = RunAttention(R"(
    %9 = attention_scores(%0, %7, %3, %4) heads=2 scale=2.0 f32[T,2,S]
    output y = %9)");
  const float ln3 = std::log(3.0f);
  const float unseen = -std::numeric_limits<float>::infinity();
  ASSERT_EQ(scores.size(), 2u * 2 * 128);
  for (int s = 2; s < 128; ++s) EXPECT_EQ(scores[s], unseen);
  EXPECT_EQ(scores[0], 0);
  EXPECT_EQ(scores[1], unseen) << "row 0 stands before position 1";
  EXPECT_FLOAT_EQ(scores[256 + 1], 2 * ln3) << "row 1 sees itself";
  EXPECT_EQ(scores[256 + 128 + 1], 0) << "the other head";
}

TEST(ReferenceTest, AttentionMixesValuesByTheSoftmaxOfScores) {
  // Row 1, head 0: weights 1/4 and 3/4 of 4 and 8; head 1: one half of each.
  const Floats want = {4, 4, 7, 6};
  ExpectNear(RunAttention(R"(
    %9 = attention_scores(%0, %7, %3, %4) heads=2 scale=1.0 f32[T,2,S]
    %10 = softmax(%9) f32[T,2,S]
    %11 = attention_values(%10, %8, %3, %4) f32[T,2]
    output y = %11)"),
             want);
  ExpectNear(RunAttention(R"(
    %9 = attention(%0, %7, %8, %3, %4) heads=2 scale=1.0 f32[T,2]
    output y = %9)"),
             want);
}

// Four tokens that see all four, but for a window of two to each side; scores
// are 0 but for the distance.
TEST(ReferenceTest, AttentionLooksBothWaysAndLessFarAway) {
  const auto run = [](const std::string& attributes) {
    return ReferenceRun(absl::StrCat(R"(
    %0 = input q f32[T,1]
    %1 = input k f32[T,1]
    %2 = input v f32[T,1]
    %3 = input positions i32[T]
    %4 = input sequence i32[T]
    %5 = state keys f32[S,1,1]{keys}
    %6 = state values f32[S,1,1]{values}
    %7 = kv_write(%5, %1, %3, %4) f32[S,1,1]{keys}
    %8 = kv_write(%6, %2, %3, %4) f32[S,1,1]{values}
    %9 = input last i32[T]
    output keys = %7
    output values = %8
    %10 = attention(%0, %7, %8, %9, %4, %3) )",
                                     attributes, R"( heads=1 scale=1.0 f32[T,1]
    output y = %10)"),
                        {4, 4, 128})
        .Set<float>("q", {0, 0, 0, 0})
        .Set<float>("k", {0, 0, 0, 0})
        .Set<float>("v", {1, 2, 4, 8})
        .Set<int32_t>("positions", {0, 1, 2, 3})
        .Set<int32_t>("last", {3, 3, 3, 3})
        .Set<int32_t>("sequence", {0, 0, 0, 0})
        .Run("y");
  };
  ExpectNear(run(""), {3.75f, 3.75f, 3.75f, 3.75f});
  ExpectNear(run("window=2"), {1.5f, 7.0f / 3, 14.0f / 3, 6});
  // One head: a slope of 2^-8, so weights are e^(-d / 256).
  const auto mean = [](int row) {
    const double values[] = {1, 2, 4, 8};
    double sum = 0, all = 0;
    for (int p = 0; p < 4; ++p) {
      const double weight = std::exp(-std::abs(p - row) / 256.0);
      sum += weight * values[p];
      all += weight;
    }
    return static_cast<float>(sum / all);
  };
  ExpectNear(run("alibi=8.0"), {mean(0), mean(1), mean(2), mean(3)});
}

TEST(ReferenceTest, RopeKvWriteIsRopeThenKvWrite) {
  const std::string kSources = R"(
    %0 = input x f32[T,2]
    %1 = input positions i32[T]
    %2 = input sequence i32[T]
    %3 = state keys f32[S,1,2]{keys}
    %4 = input q f32[T,2])";
  const std::string kRope =
      R"( base=100.0 head_dim=2 rope_dims=2 scale=1.0 style="halves" )";
  const std::string kScores =
      R"(attention_scores(%4, %9, %1, %2) heads=1 scale=1.0 f32[T,1,S]
    output keys = %9
    output y = %10)";
  const auto run = [&](const std::string& lines) {
    return ReferenceRun(kSources + lines + "\n%10 = " + kScores, kBounds)
        .Set<float>("x", {1, 2, 3, 4})
        .Set<float>("q", {5, 6, 7, 8})
        .Set<int32_t>("positions", {70, 71})  // the second page
        .Set<int32_t>("sequence", {0, 0})
        .Run("y");
  };
  const Floats fused =
      run("\n%9 = rope_kv_write(%3, %0, %1, %2)" + kRope + "f32[S,1,2]{keys}");
  const Floats plain = run("\n%8 = rope(%0, %1)" + kRope +
                           "f32[T,2]\n%9 = kv_write(%3, %8, %1, %2) "
                           "f32[S,1,2]{keys}");
  EXPECT_NE(fused[70], 0);
  ExpectNear(Floats(fused.begin() + 70, fused.begin() + 71),
             Floats(plain.begin() + 70, plain.begin() + 71));
}

TEST(ReferenceTest, TakeRowsAndSliceChoose) {
  EXPECT_THAT(ReferenceRun(R"(
    %0 = input x f32[T,3]
    %1 = input rows i32[R]
    %2 = take_rows(%0, %1) f32[R,3]
    %3 = slice(%2) begin=1 size=2 f32[R,2]
    output y = %3)",
                           kBounds)
                  .Set<float>("x", {1, 2, 3, 4, 5, 6})
                  .Set<int32_t>("rows", {1})
                  .Run("y"),
              ElementsAre(5, 6));
}

TEST(ReferenceTest, MeanRowsAreThoseOfTheRowsSequence) {
  EXPECT_THAT(ReferenceRun(R"(
    %0 = input x f32[T,2]
    %1 = input sequence i32[T]
    %2 = input rows i32[R]
    %3 = mean_rows(%0, %1, %2) f32[R,2]
    output y = %3)",
                           {3, 2, 128})
                  .Set<float>("x", {1, 2, 3, 4, 5, 8})
                  .Set<int32_t>("sequence", {1, 0, 1})
                  .Set<int32_t>("rows", {2, 1})
                  .Run("y"),
              ElementsAre(3, 5, 3, 4));
}

TEST(ReferenceTest, QuantizedRowsRoundToTheLargestOver127) {
  // The largest of the block is 127, so the scale is 1; ties go to even.
  Floats x(64, 0.0f);
  x[0] = 127;
  x[1] = 2.5f;
  x[2] = -3.5f;
  // Read back through a product: row i of the weight picks element i.
  std::vector<uint8_t> q8(3 * 34, 0);
  for (int row = 0; row < 3; ++row) {
    q8[row * 34 + 1] = 0x3c;  // the scale: 1.0 in f16
    q8[row * 34 + 2 + row] = 1;
  }
  EXPECT_THAT(ReferenceRun(R"(
    $w = weight q8_0[3,32]
    %0 = input x f32[T,32]
    %1 = quantize_rows(%0) q8r[T,32]
    %2 = matmul(%1, $w) f32[T,3]
    output y = %2)",
                           kBounds)
                  .Set("w", q8)
                  .Set("x", x)
                  .Run("y"),
              ElementsAre(127, 2, -4, 0, 0, 0));
}

// `op` of two weights of 32 rows: 0 to 31, and 100 to 131.
Floats JoinedRows(const std::string& op) {
  Floats a(32), b(32);
  std::iota(a.begin(), a.end(), 0.0f);
  std::iota(b.begin(), b.end(), 100.0f);
  return ReferenceRun(R"(
    $a = weight f32[32,1]
    $b = weight f32[32,1]
    %0 = input x f32[T,1]
    %1 = )" + op + R"(($a, $b) f32[64,1]
    %2 = matmul(%0, %1) f32[T,64]
    output y = %2)",
                      {1, 1, 1})
      .Set("a", a)
      .Set("b", b)
      .Set<float>("x", {1})
      .Run("y");
}

TEST(ReferenceTest, ConcatRowsPutsOneBelowTheOther) {
  const Floats y = JoinedRows("concat_rows");
  for (int i = 0; i < 64; ++i) EXPECT_EQ(y[i], i < 32 ? i : 100 + i - 32);
}

TEST(ReferenceTest, InterleaveRowsTakesSixteenOfEachInTurn) {
  const Floats y = JoinedRows("interleave_rows");
  for (int i = 0; i < 64; ++i) {
    const int row = i / 32 * 16 + i % 16;
    EXPECT_EQ(y[i], i / 16 % 2 == 0 ? row : 100 + row);
  }
}

TEST(ReferenceTest, APackedWeightMultipliesAsBefore) {
  Floats w(5 * 4);
  std::iota(w.begin(), w.end(), 1.0f);
  const auto run = [&](const std::string& lines) {
    return ReferenceRun("$w = weight f32[5,4]\n %0 = input x f32[T,4]\n" +
                            lines + " f32[T,5]\n output y = %2",
                        kBounds)
        .Set("w", w)
        .Set<float>("x", {1, -1, 2, 0, 0, 0, 0, 1})
        .Run("y");
  };
  EXPECT_EQ(run("%1 = pack_weight($w) layout=\"panel16\" f32[5,4]{panel16}\n"
                "%2 = matmul(%0, %1)"),
            run("%2 = matmul(%0, $w)"));
}

}  // namespace
}  // namespace weft
