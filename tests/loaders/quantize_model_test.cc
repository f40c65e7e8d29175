#include "loaders/quantize_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "graph/dtype.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "loaders/gguf_writer.h"
#include "loaders/importance_matrix.h"
#include "loaders/quantization_mix.h"
#include "ops/dequantize.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string TempPath(const std::string& name) {
  return testing::TempDir() + "/" + name;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::Span<const uint8_t> Bytes(const std::vector<float>& values) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values.data()),
                             values.size() * sizeof(float));
}

// Four layers, with matrices of 256, 96 (no K type) and 40 (no block) columns.
class QuantizeModelTest : public testing::Test {
 protected:
  void SetUp() override {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0.0f, 0.05f);
    weights_.resize(256 * 300);
    for (float& weight : weights_) weight = normal(random);
  }

  void Write(const std::string& path) {
    GgufWriter writer;
    writer.SetString("general.architecture", "llama");
    writer.SetString("general.name", "made up");
    writer.SetUint32("llama.block_count", 4);
    if (next_token_blocks_ > 0) {
      writer.SetUint32("llama.nextn_predict_layers", next_token_blocks_);
    }
    const absl::Span<const uint8_t> data = Bytes(weights_);
    const auto add = [&](const std::string& name, std::vector<int64_t> dims) {
      int64_t bytes = 4;
      for (int64_t dim : dims) bytes *= dim;
      writer.AddTensor(name, DType::kF32, dims,
                       data.subspan(0, static_cast<size_t>(bytes)));
    };
    add("token_embd.weight", {256, 300});
    for (int layer = 0; layer < 4; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      add(block + "attn_norm.weight", {256});
      add(block + "attn_v.weight", {256, 64});
      add(block + "ffn_up.weight", {256, 96});
      add(block + "ffn_down.weight", {96, 256});
    }
    add("odd.weight", {40, 8});
    const absl::Status status = writer.WriteTo(path);
    ASSERT_TRUE(status.ok()) << status;
  }

  GgufFile Quantize(const QuantizeOptions& options) {
    Write(TempPath("source.gguf"));
    const auto report = QuantizeModel(TempPath("source.gguf"),
                                      TempPath("result.gguf"), options);
    EXPECT_TRUE(report.ok()) << report.status();
    if (report.ok()) report_ = *report;
    auto file = GgufFile::Open(TempPath("result.gguf"));
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }

  std::string Failure(const QuantizeOptions& options) {
    Write(TempPath("source.gguf"));
    const std::string path = TempPath("never.gguf");
    std::remove(path.c_str());
    const auto report = QuantizeModel(TempPath("source.gguf"), path, options);
    EXPECT_FALSE(report.ok());
    EXPECT_FALSE(std::ifstream(path).good()) << "a partial file stays behind";
    return std::string(report.status().message());
  }

  static QuantizeOptions Options(const std::string& type) {
    QuantizeOptions options;
    options.type = type;
    return options;
  }

  std::vector<float> weights_;
  uint32_t next_token_blocks_ = 0;
  QuantizeReport report_;
};

TEST_F(QuantizeModelTest, GivesEachTensorItsTypeAndKeepsMetadata) {
  const GgufFile file = Quantize(Options("Q4_K_M"));
  EXPECT_EQ(*file.GetString("general.name"), "made up");
  EXPECT_EQ(*file.GetUint("general.file_type"), 15u);
  EXPECT_EQ(*file.GetUint("general.quantization_version"), 2u);
  EXPECT_EQ(file.tensors().size(), 18u);
  const auto type = [&](const char* name) {
    return UpperName(file.FindTensor(name)->type);
  };
  EXPECT_EQ(type("token_embd.weight"), "Q6_K");  // tied
  EXPECT_EQ(type("blk.0.attn_norm.weight"), "F32");
  EXPECT_EQ(type("blk.1.attn_v.weight"), "Q4_K");
  EXPECT_EQ(type("blk.2.attn_v.weight"), "Q6_K");
  EXPECT_EQ(type("blk.1.ffn_down.weight"), "Q5_0");
  EXPECT_EQ(type("blk.2.ffn_down.weight"), "Q8_0");
  EXPECT_EQ(type("odd.weight"), "F16");
}

TEST_F(QuantizeModelTest, WarnsOfEveryFallbackOnceForAllAlike) {
  Quantize(Options("Q4_K_M"));
  EXPECT_THAT(
      report_.warnings,
      ElementsAre("2 tensors (blk.0.ffn_down.weight and blk.1.ffn_down.weight)"
                  ": rows of 96 are no multiple of the 256 of Q4_K: stored as "
                  "Q5_0",
                  "2 tensors (blk.2.ffn_down.weight and blk.3.ffn_down.weight)"
                  ": rows of 96 are no multiple of the 256 of Q6_K: stored as "
                  "Q8_0",
                  "tensor odd.weight: rows of 40 are no multiple of the 256 of "
                  "Q4_K: stored as F16"));
}

TEST_F(QuantizeModelTest, WeightsSurvive) {
  const GgufFile file = Quantize(Options("Q6_K"));
  for (const GgufTensor& tensor : file.tensors()) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    DequantizeRow(tensor.type, tensor.data.data(), values.data(),
                  tensor.elements());
    double error = 0.0, square = 0.0;
    for (size_t i = 0; i < values.size(); ++i) {
      error += std::pow(double{values[i]} - weights_[i], 2);
      square += std::pow(double{weights_[i]}, 2);
    }
    EXPECT_LE(std::sqrt(error / square), 0.018) << tensor.name;
  }
}

TEST_F(QuantizeModelTest, BytesDoNotDependOnThreads) {
  QuantizeOptions options = Options("Q5_K_M");
  Quantize(options);
  const std::string alone = ReadFile(TempPath("result.gguf"));
  options.threads = 3;
  Quantize(options);
  EXPECT_EQ(ReadFile(TempPath("result.gguf")), alone);
}

TEST_F(QuantizeModelTest, ReportsProgressAndSizes) {
  QuantizeOptions options = Options("Q8_0");
  int calls = 0;
  options.progress = [&](const std::string& tensor, int done, int total) {
    EXPECT_FALSE(tensor.empty());
    EXPECT_EQ(done, calls++);
    EXPECT_EQ(total, 18);
  };
  Quantize(options);
  EXPECT_EQ(calls, 18);
  EXPECT_GT(report_.source_bytes, 3 * report_.result_bytes);
}

TEST_F(QuantizeModelTest, SixteenBitModelsGiveWhatTheirValuesGive) {
  Quantize(Options("BF16"));
  const auto report = QuantizeModel(TempPath("result.gguf"),
                                    TempPath("from16.gguf"), Options("Q4_0"));
  ASSERT_TRUE(report.ok()) << report.status();
  // The same through F32.
  ASSERT_TRUE(QuantizeModel(TempPath("result.gguf"), TempPath("wide.gguf"),
                            Options("F32"))
                  .ok());
  ASSERT_TRUE(QuantizeModel(TempPath("wide.gguf"), TempPath("from32.gguf"),
                            Options("Q4_0"))
                  .ok());
  EXPECT_EQ(ReadFile(TempPath("from16.gguf")),
            ReadFile(TempPath("from32.gguf")));
}

TEST_F(QuantizeModelTest, MayReplaceItsSource) {
  const std::string path = TempPath("in_place.gguf");
  Write(path);
  ASSERT_TRUE(QuantizeModel(path, path, Options("Q4_0")).ok());
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->FindTensor("token_embd.weight")->type, DType::kQ4_0);
}

TEST_F(QuantizeModelTest, RefusesQuantisedSources) {
  Quantize(Options("Q8_0"));
  const auto report = QuantizeModel(TempPath("result.gguf"),
                                    TempPath("again.gguf"), Options("Q4_0"));
  EXPECT_THAT(std::string(report.status().message()),
              HasSubstr("tensor token_embd.weight: it is already Q8_0"));
  // The same type is a copy, and it is said.
  const auto copied = QuantizeModel(TempPath("result.gguf"),
                                    TempPath("again.gguf"), Options("Q8_0"));
  ASSERT_TRUE(copied.ok()) << copied.status();
  ASSERT_FALSE(copied->warnings.empty());
  EXPECT_THAT(copied->warnings.back(), HasSubstr("nothing was quantised"));
  EXPECT_EQ(ReadFile(TempPath("again.gguf")),
            ReadFile(TempPath("result.gguf")));
}

// Also where its types are those of the mix that a search begins with.
TEST_F(QuantizeModelTest, RefusesToSearchTypesForQuantisedSources) {
  Quantize(Options("Q4_K_M"));
  QuantizeOptions options = Options("Q4_K_M");
  options.target_bits = 5.0;
  const auto report =
      QuantizeModel(TempPath("result.gguf"), TempPath("again.gguf"), options);
  EXPECT_THAT(std::string(report.status().message()),
              HasSubstr("it is already "));
}

TEST_F(QuantizeModelTest, SaysWhatKeepsExpertsOfMxfp4) {
  QuantizeOptions options = Options("Q8_0");
  options.tensor_types = {"ffn_up=MXFP4"};
  Quantize(options);
  for (const char* type : {"Q4_K_M", "MXFP4"}) {
    const auto report = QuantizeModel(TempPath("result.gguf"),
                                      TempPath("again.gguf"), Options(type));
    EXPECT_THAT(std::string(report.status().message()),
                HasSubstr("or ask for MXFP4_MOE, which keeps experts of"));
  }
}

// Not by the mix that was asked for.
TEST_F(QuantizeModelTest, AMixDoesNotAdviseItself) {
  Quantize(Options("MXFP4"));
  const auto report = QuantizeModel(
      TempPath("result.gguf"), TempPath("again.gguf"), Options("MXFP4_MOE"));
  EXPECT_THAT(std::string(report.status().message()),
              AllOf(HasSubstr("it is already MXFP4"),
                    Not(HasSubstr("or ask for MXFP4_MOE"))));
}

TEST_F(QuantizeModelTest, NamesTensorRowAndElementOfBadWeights) {
  weights_[256 * 200 + 5] = std::numeric_limits<float>::quiet_NaN();
  QuantizeOptions options = Options("Q4_0");
  for (int threads : {1, 4}) {
    options.threads = threads;
    EXPECT_THAT(Failure(options),
                HasSubstr("tensor token_embd.weight: row 200: NaN: element 5"));
  }
}

TEST_F(QuantizeModelTest, RefusesBadRequestsBeforeWriting) {
  EXPECT_THAT(Failure(Options("Q9_9")), HasSubstr("unknown type"));
  QuantizeOptions options = Options("Q4_0");
  options.tensor_types = {"nothing=Q8_0"};
  EXPECT_THAT(Failure(options), HasSubstr("no tensor matches"));
  EXPECT_FALSE(QuantizeModel(TempPath("absent.gguf"), TempPath("x.gguf"),
                             Options("Q4_0"))
                   .ok());
  Write(TempPath("source.gguf"));
  EXPECT_FALSE(QuantizeModel(TempPath("source.gguf"), "/no/such/folder/x.gguf",
                             Options("Q4_0"))
                   .ok());
}

TEST_F(QuantizeModelTest, TinyTypesWantAnImportanceMatrix) {
  Write(TempPath("source.gguf"));
  QuantizeOptions options;
  for (const char* type : {"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S",
                           "IQ2_M", "Q2_K_S", "IQ3_XXS"}) {
    options.type = type;
    const auto report = QuantizeModel(TempPath("source.gguf"),
                                      TempPath("result.gguf"), options);
    EXPECT_THAT(std::string(report.status().message()),
                HasSubstr("run weft imatrix " + TempPath("source.gguf")))
        << type;
  }
}

TEST_F(QuantizeModelTest, SaysWhatAMatrixDoesNotHave) {
  ImportanceMatrix importance;
  QuantizeOptions options = Options("Q2_K_S");
  options.importance = &importance;
  EXPECT_THAT(Failure(options),
              HasSubstr("importance matrix does not have this tensor"));
  options.type = "Q4_K_M";
  EXPECT_THAT(Failure(options), HasSubstr("no entry for any of its tensors: "
                                          "it is empty"));
  const InputSquares ones = {std::vector<double>(256, 1.0), {1.0}};
  importance.tensors["blk.9.attn_q.weight"] = ones;
  EXPECT_THAT(Failure(options), HasSubstr("it has blk.9.attn_q.weight"));
  importance.tensors["blk.0.attn_v.weight"] = ones;
  Quantize(options);
  EXPECT_EQ(report_.warnings.back(),
            "the importance matrix has no entry for 12 of 13 tensors "
            "(blk.0.ffn_up.weight to odd.weight): their columns count alike");
  // A mix that needs all of them.
  options.type = "Q2_K_S";
  EXPECT_THAT(Failure(options), HasSubstr("tensor blk.0.ffn_up.weight: Q2_K"));
}

TEST_F(QuantizeModelTest, BlocksThatPredictFurtherNeedNoMatrix) {
  next_token_blocks_ = 1;
  ImportanceMatrix importance;
  const InputSquares ones = {std::vector<double>(256, 1.0), {1.0}};
  for (int layer = 0; layer < 3; ++layer) {
    for (const char* name : {"attn_v", "ffn_up"}) {
      importance.tensors[absl::StrCat("blk.", layer, ".", name, ".weight")] =
          ones;
    }
  }
  QuantizeOptions options = Options("IQ1_S");
  options.importance = &importance;
  const GgufFile file = Quantize(options);
  EXPECT_EQ(file.FindTensor("blk.2.ffn_up.weight")->type, DType::kIQ1_S);
  EXPECT_EQ(file.FindTensor("blk.3.ffn_up.weight")->type, DType::kQ2_K);
  EXPECT_THAT(report_.warnings.back(),
              HasSubstr("tensors of blocks that predict further tokens "
                        "(blk.3.ffn_up.weight)"));
  // Asked for by name it is refused as any other.
  options.tensor_types = {"blk.3.ffn_up=IQ1_S"};
  EXPECT_THAT(Failure(options), HasSubstr("tensor blk.3.ffn_up.weight: IQ1_S"));
}

TEST_F(QuantizeModelTest, ASearchKeepsTypesThatAreGiven) {
  QuantizeOptions options = Options("Q4_K_M");
  options.target_bits = 7.0;
  options.tensor_types = {"token_embd=Q2_K", "blk.1.ffn_up=Q8_0",
                          "blk.2.ffn_up=F16", "ffn_down=Q6_K"};
  const GgufFile file = Quantize(options);
  EXPECT_EQ(file.FindTensor("token_embd.weight")->type, DType::kQ2_K);
  EXPECT_EQ(file.FindTensor("blk.1.ffn_up.weight")->type, DType::kQ8_0);
  EXPECT_EQ(file.FindTensor("blk.2.ffn_up.weight")->type, DType::kF16);
  // As without a search, the next that fits, and it is said.
  EXPECT_EQ(file.FindTensor("blk.0.ffn_down.weight")->type, DType::kQ8_0);
  EXPECT_THAT(report_.warnings.front(), HasSubstr("4 tensors"));
  double weights = 0.0, bytes = 0.0;
  for (const GgufTensor& tensor : file.tensors()) {
    weights += static_cast<double>(tensor.elements());
    bytes += static_cast<double>(tensor.data.size());
  }
  EXPECT_LE(8.0 * bytes / weights, 7.0);
  EXPECT_GE(8.0 * bytes / weights, 6.0);
  options.tensor_types = {".*=F16"};
  EXPECT_THAT(Failure(options), HasSubstr("or without --tensor-type"));
}

TEST_F(QuantizeModelTest, AFileOfManyTypesIsNamedByMostWeights) {
  QuantizeOptions options = Options("Q4_K_M");
  options.target_bits = 9.0;
  const GgufFile file = Quantize(options);
  std::map<DType, int64_t> weights;
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.dims.size() > 1) weights[tensor.type] += tensor.elements();
  }
  const auto most = std::max_element(
      weights.begin(), weights.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_EQ(*file.GetUint("general.file_type"), FileTypeOf(most->first));
  options.target_bits = 16.0;
  EXPECT_EQ(Quantize(options).FindTensor("blk.0.ffn_up.weight")->type,
            DType::kF16);
}

TEST_F(QuantizeModelTest, WeighsErrorsByTheImportanceOfColumns) {
  ImportanceMatrix importance;
  std::vector<double> sums(256, 1.0);
  sums[3] = 1000.0;
  for (int layer = 0; layer < 4; ++layer) {
    for (const char* name : {"attn_v", "ffn_up"}) {
      importance
          .tensors["blk." + std::to_string(layer) + "." + name + ".weight"] = {
          sums, {1.0}};
    }
  }
  const auto error_of_column = [&](const GgufFile& file) {
    const GgufTensor& tensor = *file.FindTensor("blk.1.ffn_up.weight");
    std::vector<float> row(256);
    double error = 0.0;
    for (int64_t r = 0; r < 96; ++r) {
      DequantizeRow(tensor.type,
                    tensor.data.data() + r * RowBytes(tensor.type, 256),
                    row.data(), 256);
      error += std::pow(row[3] - weights_[static_cast<size_t>(256 * r + 3)], 2);
    }
    return error;
  };
  QuantizeOptions options;
  options.type = "Q3_K_S";
  const double plain = error_of_column(Quantize(options));
  options.importance = &importance;
  EXPECT_LT(error_of_column(Quantize(options)), 0.5 * plain);
  options.type = "IQ2_XXS";
  const GgufFile tiny = Quantize(options);
  EXPECT_EQ(tiny.FindTensor("blk.1.ffn_up.weight")->type, DType::kIQ2_XXS);
  EXPECT_EQ(tiny.FindTensor("blk.1.attn_v.weight")->type, DType::kQ2_K);
}

TEST_F(QuantizeModelTest, FindsTypesForASize) {
  QuantizeOptions options;
  options.type = "Q4_K_M";
  for (double bits : {4.0, 5.0, 7.0}) {
    options.target_bits = bits;
    const GgufFile file = Quantize(options);
    double weights = 0.0, bytes = 0.0;
    for (const GgufTensor& tensor : file.tensors()) {
      if (tensor.dims.size() < 2) continue;
      weights += static_cast<double>(tensor.elements());
      bytes += static_cast<double>(tensor.data.size());
    }
    EXPECT_LE(8.0 * bytes / weights, bits);
    EXPECT_GE(8.0 * bytes / weights, bits - 0.6);
  }
  options.target_bits = 1.0;
  Write(TempPath("source.gguf"));
  const auto report =
      QuantizeModel(TempPath("source.gguf"), TempPath("result.gguf"), options);
  EXPECT_THAT(std::string(report.status().message()),
              HasSubstr("no types are so small"));
}

}  // namespace
}  // namespace weft
