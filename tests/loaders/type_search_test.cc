#include "loaders/type_search.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

// Three types of 100, 200 and 400 bytes for each of some tensors.
std::vector<TensorCosts> Tensors(std::vector<std::vector<double>> errors) {
  std::vector<TensorCosts> tensors;
  for (const std::vector<double>& e : errors) {
    tensors.push_back({"t",
                       {{DType::kQ2_K, 100, e[0]},
                        {DType::kQ4_K, 200, e[1]},
                        {DType::kQ8_0, 400, e[2]}}});
  }
  return tensors;
}

double ErrorOf(const std::vector<TensorCosts>& tensors,
               const std::vector<size_t>& chosen, int64_t* bytes) {
  double error = 0.0;
  *bytes = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    error += tensors[i].types[chosen[i]].error;
    *bytes += tensors[i].types[chosen[i]].bytes;
  }
  return error;
}

TEST(ChooseTypes, GivesBytesWhereTheyGainMost) {
  const auto tensors = Tensors({{1.0, 0.5, 0.4}, {9.0, 2.0, 0.1}});
  EXPECT_THAT(ChooseTypes(tensors, 200), testing::ElementsAre(0, 0));
  EXPECT_THAT(ChooseTypes(tensors, 300), testing::ElementsAre(0, 1));
  EXPECT_THAT(ChooseTypes(tensors, 600), testing::ElementsAre(1, 2));
  EXPECT_THAT(ChooseTypes(tensors, 1 << 20), testing::ElementsAre(2, 2));
  // There is nothing smaller.
  EXPECT_THAT(ChooseTypes(tensors, 10), testing::ElementsAre(0, 0));
}

TEST(ChooseTypes, IsNearTheBestOfAllChoices) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> number(0.0, 1.0);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<double>> errors;
    for (int t = 0; t < 6; ++t) {
      const double first = number(random), second = first * number(random);
      errors.push_back({first, second, second * number(random)});
    }
    const auto tensors = Tensors(errors);
    const int64_t budget = 600 + static_cast<int64_t>(random() % 1800);
    int64_t bytes;
    const double error = ErrorOf(tensors, ChooseTypes(tensors, budget), &bytes);
    EXPECT_LE(bytes, budget);
    double best = 1e9;
    for (int code = 0; code < 729; ++code) {
      std::vector<size_t> chosen;
      for (int t = 0, rest = code; t < 6; ++t, rest /= 3) {
        chosen.push_back(static_cast<size_t>(rest % 3));
      }
      int64_t here;
      const double tried = ErrorOf(tensors, chosen, &here);
      if (here <= budget) best = std::min(best, tried);
    }
    EXPECT_LE(error, best + 0.35) << round;
  }
}

TEST(RelativeErrorOf, FallsWithTheBits) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> row(1024);
  for (float& x : row) x = normal(random);
  double last = 1.0;
  for (DType type : {DType::kIQ1_S, DType::kIQ2_XXS, DType::kIQ2_S,
                     DType::kIQ3_S, DType::kQ4_K, DType::kQ6_K}) {
    const double error = RelativeErrorOf(type, row, 512, nullptr);
    EXPECT_LT(error, last) << Info(type).name;
    EXPECT_GT(error, 0.0) << Info(type).name;
    last = error;
  }
}

}  // namespace
}  // namespace weft
