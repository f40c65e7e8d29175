// weft imatrix, over every family that there is.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "loaders/importance_matrix.h"
#include "loaders/quantization_mix.h"
#include "tests/e2e/weft.h"
#include "tests/golden/golden_data.h"

namespace weft {
namespace {

// One entry for each matrix of a block that would be quantised, of its size,
// and by names of the file alone.
void ExpectEntries(const std::string& model, const std::string& matrix_path) {
  const auto file = GgufFile::Open(model);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto matrix = ImportanceMatrix::Read(matrix_path);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  const auto mix = QuantizationMix::Parse("IQ1_S", {});
  ASSERT_TRUE(mix.ok());
  std::string unsupported;
  for (const GgufTensor& tensor : file->tensors()) {
    const size_t nextn = tensor.name.find("nextn.");
    if (nextn != std::string::npos) unsupported = tensor.name.substr(0, nextn);
  }
  for (const GgufTensor& tensor : file->tensors()) {
    if (!absl::StartsWith(tensor.name, "blk.") ||
        mix->Choose({tensor.name, tensor.dims}, MixModel()).keep) {
      continue;
    }
    // A block that predicts further tokens, of a family whose block is not
    // supported: quantize gives it types that need no entry.
    if (absl::StrContains(model, "bailingmoe2-nextn") &&
        absl::StartsWith(tensor.name, unsupported)) {
      continue;
    }
    const int64_t columns = tensor.dims[0];
    const int64_t matrices =
        tensor.dims.size() < 3 ? 1
                               : tensor.elements() / (columns * tensor.dims[1]);
    const auto means = matrix->Means(tensor.name, columns, matrices);
    EXPECT_TRUE(means.ok()) << model << ": " << means.status();
    if (!means.ok()) continue;
    EXPECT_FALSE(means->empty()) << model << ": no " << tensor.name;
    if (means->empty()) continue;
    double sum = 0.0;
    for (float mean : *means) sum += mean;
    EXPECT_GT(sum, 0.0) << model << ": " << tensor.name;
  }
  for (const auto& [name, squares] : matrix->tensors) {
    EXPECT_NE(file->FindTensor(name), nullptr) << model << ": " << name;
    // Experts have theirs by choice; the others see each token once, and a
    // block that predicts further sees all but one.
    if (squares.counts.size() > 1 || absl::StrContains(name, "exps")) continue;
    EXPECT_GE(squares.counts[0], 31.0) << model << ": " << name;
    EXPECT_LE(squares.counts[0], 32.0) << model << ": " << name;
  }
}

class ImatrixTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ImatrixTest, HasEveryTensorThatIsMultiplied) {
  const std::string text = TemporaryPath("all.txt"),
                    result = TemporaryPath("all.imatrix");
  WriteTextFile(text, ReadFile("models/austen-heldout.txt").substr(0, 2000));
  int models = 0;
  for (const GoldenModel& model : GoldenModels(GetParam())) {
    const RunResult run = Weft({"imatrix", model.path(), "-f", text, "-o",
                                result, "--chunk", "32", "--chunks", "1"});
    if (absl::StrContains(run.err, "is an encoder")) continue;
    ASSERT_EQ(run.exit_code, 0) << model.path() << ": " << run.err;
    ExpectEntries(model.path(), result);
    ++models;
  }
  EXPECT_GE(models, 1);
}

INSTANTIATE_TEST_SUITE_P(Sets, ImatrixTest,
                         ::testing::Values("arch", "families", "recurrent"),
                         [](const auto& set) {
                           return std::string(set.param);
                         });

// Of another model of the same tensors, of another text of the same name, and
// of a program that does not say.
TEST(Imatrix, ResumesOnlyWhatIsOfTheSameModelAndText) {
  const std::string text = TemporaryPath("resume.txt"),
                    result = TemporaryPath("resume.imatrix"),
                    other = TemporaryPath("other.gguf");
  const std::string words = ReadFile("models/austen-heldout.txt");
  WriteTextFile(text, words.substr(0, 1500));
  const auto resume = [&](const std::string& model) {
    return Weft({"imatrix", model, "-f", text, "-o", result, "--chunk", "32",
                 "--chunks", "2", "--resume"});
  };
  const auto expect_refused = [&](const RunResult& run, const char* why) {
    ExpectError(run, 1);
    EXPECT_NE(run.err.find(why), std::string::npos) << run.err;
  };
  const std::string model = SmallModel("00-valid.gguf");
  WeftOut({"imatrix", model, "-f", text, "-o", result, "--chunk", "32",
           "--chunks", "1"});
  WeftOut({"quantize", model, other, "Q8_0"});
  expect_refused(resume(other), "a model with other weights");
  expect_refused(resume(""), "for tensor ");
  WriteTextFile(text, words.substr(100, 1500));
  expect_refused(resume(model), "its texts were others");
  WriteTextFile(text, words.substr(0, 1500));
  EXPECT_EQ(resume(model).exit_code, 0);
  auto matrix = ImportanceMatrix::Read(result);
  ASSERT_TRUE(matrix.ok());
  matrix->text_hash = "";
  ASSERT_TRUE(matrix->Write(result).ok());
  expect_refused(resume(model), "does not say of which model and texts");
}

}  // namespace
}  // namespace weft
