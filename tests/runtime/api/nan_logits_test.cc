// Weights that are no numbers: what cannot be chosen is not, and what has
// nothing to choose from ends with an error, alone.
#include "runtime/generation/nan_logits.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mapped_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf_parser.h"
#include "tests/runtime/api/serving.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// A copy of the tiny model, with NaNs in `rows` of one of its F32 matrices.
std::string Broken(const std::string& tensor,
                   const std::vector<int32_t>& rows) {
  const auto file = MappedFile::Open(kTinyModel);
  EXPECT_TRUE(file.ok());
  const auto parsed = ParseGguf(*file);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  std::string bytes((*file)->bytes().begin(), (*file)->bytes().end());
  bool found = false;
  for (const GgufTensor& t : parsed->tensors) {
    if (t.name != tensor) continue;
    EXPECT_EQ(t.type, DType::kF32);
    found = true;
    const float nan = std::nanf("");
    for (const int32_t row : rows) {
      for (int64_t i = 0; i < t.dims[0]; ++i) {
        std::memcpy(&bytes[t.offset + (row * t.dims[0] + i) * 4], &nan, 4);
      }
    }
  }
  EXPECT_TRUE(found) << tensor;
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/broken-", rows.size(), "-",
                   rows.empty() ? 0 : rows[0], ".gguf");
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(NanLogitsTest, AreMaskedAndCounted) {
  for (const size_t size : {1, 7, 256, 257, 1000}) {
    std::vector<float> logits(size, 1.0f);
    EXPECT_EQ(MaskNans(absl::MakeSpan(logits)).count, 0);
    EXPECT_EQ(logits, std::vector<float>(size, 1.0f));
    logits[size / 2] = logits[size - 1] = -std::nanf("");
    logits[0] = std::numeric_limits<float>::infinity();
    const NanLogits nans = MaskNans(absl::MakeSpan(logits));
    EXPECT_EQ(nans.count, size == 1 ? 0 : 2);
    if (size == 1) continue;
    EXPECT_EQ(nans.first, static_cast<int64_t>(size / 2));
    EXPECT_EQ(logits[size - 1], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(logits[0], std::numeric_limits<float>::infinity());
  }
  EXPECT_TRUE(CheckSomeLeft({4, 0}, 5).ok());
  EXPECT_EQ(CheckSomeLeft({5, 0}, 5).code(), absl::StatusCode::kInternal);
}

TEST(NanLogitsTest, AnUnusedTokenIsNeverChosenAndToldOnce) {
  // Two tokens that are not in the text without them.
  const auto whole = MakeScheduler(kTinyModel, 2, 0);
  const auto request = [](float temperature) {
    Request request = MakeRequest({20, 21, 22}, 30);
    request.sampling.temperature = temperature;
    request.logprobs = 5;
    return request;
  };
  std::vector<std::string> lines;
  SchedulerOptions options;
  options.log = [&](const std::string& line) { lines.push_back(line); };
  const auto expected = Complete(*whole, request(0));
  ASSERT_TRUE(expected.ok());
  std::vector<int32_t> unused;
  for (int32_t id = 300; id < 320 && unused.size() < 2; ++id) {
    bool used = false;
    for (const GeneratedToken& token : expected->choices[0].tokens) {
      used = used || token.id == id;
    }
    if (!used) unused.push_back(id);
  }
  ASSERT_EQ(unused.size(), 2u);
  const auto scheduler =
      MakeScheduler(MakeEngine(Broken("output.weight", unused), 2, 0), options);
  const auto found = Complete(*scheduler, request(0));
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->choices[0].tokens.size(), 30u);
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(found->choices[0].tokens[i].id,
              expected->choices[0].tokens[i].id);
    EXPECT_TRUE(std::isfinite(found->choices[0].tokens[i].logprob));
  }
  const auto drawn = Complete(*scheduler, request(5.0f));
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("2 of 320 are NaN"));
  EXPECT_THAT(lines[0], HasSubstr(absl::StrCat("token ", unused[0])));
}

// A prompt token whose embedding is NaN breaks its own text only.
TEST(NanLogitsTest, ABrokenTextEndsWithAnErrorAndOthersGoOn) {
  std::vector<std::string> lines;
  SchedulerOptions options;
  options.log = [&](const std::string& line) { lines.push_back(line); };
  const auto scheduler = MakeScheduler(
      MakeEngine(Broken("token_embd.weight", {33}), 2, 0), options);
  auto good = SubmitForResult(*scheduler, MakeRequest({20, 21}, 60));
  ASSERT_TRUE(good.ok());
  const auto broken = Complete(*scheduler, MakeRequest({20, 33}, 5));
  EXPECT_EQ(broken.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(broken.status().message()),
              HasSubstr("all logits are NaN"));
  const auto result = good->get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->choices[0].tokens.size(), 60u);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("request 2 failed"));
  ExpectNoPagesUsed(*scheduler);
}

}  // namespace
}  // namespace weft
