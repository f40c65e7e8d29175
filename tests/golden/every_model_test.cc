// Every golden model that generates: bits that depend on nothing but tokens.
#include <string>

#include "gtest/gtest.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/made_up_model.h"

namespace weft {
namespace {

class EveryModelTest : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryModelTest, BitsDependOnTokensAlone) {
  int models = 0;
  for (const GoldenModel& model : GoldenModels(GetParam())) {
    if (model.name == "bert") continue;  // an encoder: experts_test.cc
    ExpectBitsOfTokensAlone(model.path());
    ++models;
  }
  EXPECT_GE(models, 5);
}

TEST_P(EveryModelTest, ExpertsThatStayInTheFileGiveTheSameBits) {
  int models = 0;
  for (const GoldenModel& model : GoldenModels(GetParam())) {
    if (model.name == "bert") continue;
    if (ExpectBitsOfStreamedExperts(model.path()) > 0) ++models;
  }
  EXPECT_GE(models, 1);
}

INSTANTIATE_TEST_SUITE_P(Sets, EveryModelTest,
                         ::testing::Values("arch", "families", "recurrent"),
                         [](const auto& set) {
                           return std::string(set.param);
                         });

}  // namespace
}  // namespace weft
