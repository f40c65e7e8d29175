// Files of adapters: what is read of them, what is refused, and what merging
// makes of a tensor.
#include "loaders/lora_adapter.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gmock/gmock.h"
#include "ops/dequantize.h"
#include "tests/loaders/adapter_file.h"
#include "tests/loaders/gguf_test_util.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

struct Tensor {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<float> numbers;
};

std::vector<float> Counted(int64_t count) {
  std::vector<float> numbers(count);
  for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i + 1);
  return numbers;
}

GgufWriter Writer(const std::vector<Tensor>& tensors) {
  GgufWriter writer;
  SetAdapterKeys(&writer, "llama", 6);
  for (const Tensor& tensor : tensors) {
    writer.AddTensor(tensor.name, DType::kF32, tensor.dims,
                     [numbers = tensor.numbers](const GgufWriter::Sink& sink) {
                       return sink(absl::MakeConstSpan(
                           reinterpret_cast<const uint8_t*>(numbers.data()),
                           numbers.size() * sizeof(float)));
                     });
  }
  return writer;
}

absl::StatusOr<std::shared_ptr<const LoraAdapter>> Read(
    const GgufWriter& writer) {
  const absl::StatusOr<GgufFile> file = WriteAndOpen(writer, "adapter.gguf");
  if (!file.ok()) return file.status();
  return LoraAdapter::FromFile(*file);
}

std::string Refusal(const GgufWriter& writer) {
  const auto adapter = Read(writer);
  return adapter.ok() ? "it is taken" : ErrorOf(adapter.status());
}

// K = 4, rank 2, N = 3.
const Tensor kA = {"blk.0.attn_q.weight.lora_a", {4, 2}, Counted(8)};
const Tensor kB = {"blk.0.attn_q.weight.lora_b", {2, 3}, Counted(6)};

TEST(LoraAdapter, PairsHaveARowForEachRankAndAlphaInB) {
  const auto adapter = Read(Writer({kA, kB}));
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  EXPECT_EQ((*adapter)->architecture(), "llama");
  EXPECT_EQ((*adapter)->rank(), 2);
  ASSERT_EQ((*adapter)->pairs().size(), 1u);
  const LoraAdapter::Pair& pair = (*adapter)->pairs()[0];
  EXPECT_EQ(pair.tensor, "blk.0.attn_q.weight");
  EXPECT_EQ(pair.inputs, 4);
  EXPECT_EQ(pair.outputs, 3);
  EXPECT_EQ(pair.a, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  // Of [3][2] the columns, times 6 / 2.
  EXPECT_EQ(pair.b, (std::vector<float>{3, 9, 15, 6, 12, 18}));
}

TEST(LoraAdapter, AnAlphaOfZeroIsNoFactor) {
  GgufWriter writer = Writer({kA, kB});
  writer.SetFloat32("adapter.lora.alpha", 0);
  const auto adapter = Read(writer);
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  EXPECT_EQ((*adapter)->pairs()[0].b, (std::vector<float>{1, 3, 5, 2, 4, 6}));
}

// Its rows are what tokens are, so the halves stand the other way round.
TEST(LoraAdapter, OfTheTokenTableBHasTheColumns) {
  const auto adapter =
      Read(Writer({{"token_embd.weight.lora_a", {2, 3}, Counted(6)},
                   {"token_embd.weight.lora_b", {2, 4}, Counted(8)}}));
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  const LoraAdapter::Pair& pair = (*adapter)->pairs()[0];
  EXPECT_EQ(pair.inputs, 4);
  EXPECT_EQ(pair.outputs, 3);
  EXPECT_EQ(pair.a, (std::vector<float>{1, 3, 5, 7, 2, 4, 6, 8}));
  EXPECT_EQ(pair.b, (std::vector<float>{3, 9, 15, 6, 12, 18}));
}

TEST(LoraAdapter, MetadataThatIsOfNoneIsRefused) {
  GgufWriter writer = Writer({kA, kB});
  writer.SetString("general.type", "model");
  EXPECT_THAT(Refusal(writer), HasSubstr("general.type is 'model'"));
  writer = Writer({kA, kB});
  writer.Remove("general.type");
  EXPECT_THAT(Refusal(writer), HasSubstr("expected 'adapter'"));
  writer = Writer({kA, kB});
  writer.SetString("adapter.type", "control_vector");
  EXPECT_THAT(Refusal(writer), HasSubstr("expected 'lora'"));
  writer = Writer({kA, kB});
  writer.Remove("adapter.lora.alpha");
  EXPECT_THAT(Refusal(writer), HasSubstr("adapter.lora.alpha"));
  writer = Writer({kA, kB});
  writer.SetString("adapter.lora.alpha", "8");
  EXPECT_THAT(Refusal(writer), HasSubstr("adapter.lora.alpha"));
  writer = Writer({kA, kB});
  writer.SetFloat32("adapter.lora.alpha",
                    std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(Refusal(writer), HasSubstr("finite"));
  writer = Writer({kA, kB});
  writer.SetUint32s("adapter.alora.invocation_tokens", {1, 2});
  EXPECT_THAT(Refusal(writer), HasSubstr("activated by tokens"));
  EXPECT_THAT(Refusal(Writer({})), HasSubstr("no tensors"));
}

TEST(LoraAdapter, TensorsThatAreNoPairsAreRefused) {
  EXPECT_THAT(Refusal(Writer({kA})), HasSubstr("has no lora_b"));
  EXPECT_THAT(Refusal(Writer({kB})), HasSubstr("has no lora_a"));
  EXPECT_THAT(
      Refusal(Writer({kA, kB, {"blk.0.attn_norm.weight", {4}, Counted(4)}})),
      HasSubstr("neither lora_a nor lora_b"));
  Tensor other = kB;
  other.dims = {3, 2};
  EXPECT_THAT(Refusal(Writer({kA, other})), HasSubstr("do not fit"));
  other = {kB.name, {2, 3, 2}, Counted(12)};
  EXPECT_THAT(Refusal(Writer({kA, other})), HasSubstr("do not fit"));
  other = kA;
  other.numbers[3] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(Refusal(Writer({other, kB})), HasSubstr("not finite"));
  // Finite, but not times alpha / rank.
  other = kB;
  other.numbers[3] = std::numeric_limits<float>::max();
  EXPECT_THAT(Refusal(Writer({kA, other})), HasSubstr("not finite"));
  const int64_t ranks = (int64_t{1} << 16) + 1;
  EXPECT_THAT(Refusal(Writer({{kA.name, {1, ranks}, Counted(ranks)},
                              {kB.name, {ranks, 1}, Counted(ranks)}})),
              HasSubstr("above 65536"));
}

TEST(LoraAdapter, AFileThatEndsEarlyIsRefused) {
  const std::string path = TempPath("whole.gguf");
  ASSERT_TRUE(Writer({kA, kB}).WriteTo(path).ok());
  const std::string bytes = ReadBytes(path);
  // But for the zeros behind the last tensor.
  for (size_t size = 0; size + 32 < bytes.size(); size += 7) {
    WriteBytes(path, bytes.substr(0, size));
    EXPECT_FALSE(LoraAdapter::Open(path).ok()) << size << " bytes";
  }
  unlink(path.c_str());
}

GgufWriter ModelWriter(const std::vector<Tensor>& tensors) {
  GgufWriter writer = Writer(tensors);
  for (const char* key :
       {"general.type", "adapter.type", "adapter.lora.alpha"}) {
    writer.Remove(key);
  }
  return writer;
}

const Tensor kQ = {"blk.0.attn_q.weight", {4, 3}, Counted(12)};

std::string Misfit(const std::vector<Tensor>& model) {
  const auto file = WriteAndOpen(ModelWriter(model), "model.gguf");
  EXPECT_TRUE(file.ok()) << file.status();
  const auto adapter = Read(Writer({kA, kB}));
  return ErrorOf((*adapter)->CheckFits(*file));
}

TEST(LoraAdapter, FitsAModelWithItsTensorsAlone) {
  EXPECT_EQ(Misfit({kQ}), "");
  EXPECT_THAT(Misfit({{"blk.0.attn_k.weight", {4, 3}, Counted(12)}}),
              HasSubstr("has no tensor 'blk.0.attn_q.weight'"));
  EXPECT_THAT(Misfit({{kQ.name, {3, 4}, Counted(12)}}),
              HasSubstr("is [3, 4], the adapter is for [4, 3]"));
  GgufWriter writer = ModelWriter({kQ});
  writer.SetString("general.architecture", "qwen3");
  const auto file = WriteAndOpen(writer, "model.gguf");
  EXPECT_THAT(ErrorOf((*Read(Writer({kA, kB})))->CheckFits(*file)),
              HasSubstr("architecture is 'llama', the model's 'qwen3'"));
}

std::vector<float> NumbersOf(const GgufFile& model, const std::string& name) {
  const GgufTensor& tensor = *model.FindTensor(name);
  std::vector<float> numbers(tensor.elements());
  DequantizeRow(tensor.type, tensor.data.data(), numbers.data(),
                tensor.elements());
  return numbers;
}

TEST(MergeAdapters, AddsBTimesAByScale) {
  auto file = WriteAndOpen(ModelWriter({kQ}), "model.gguf");
  ASSERT_TRUE(file.ok());
  const AdapterChoice choice = {*Read(Writer({kA, kB})), 0.5f};
  EXPECT_FALSE(file->altered());
  ASSERT_TRUE(MergeAdapters({choice}, &*file).ok());
  EXPECT_TRUE(file->altered());
  // Row n: kQ + 0.5 * (b[0][n] * a[0] + b[1][n] * a[1]).
  std::vector<float> want = kQ.numbers;
  const float b[2][3] = {{3, 9, 15}, {6, 12, 18}};
  for (int n = 0; n < 3; ++n) {
    for (int k = 0; k < 4; ++k) {
      want[n * 4 + k] +=
          0.5f * (b[0][n] * kA.numbers[k] + b[1][n] * kA.numbers[4 + k]);
    }
  }
  EXPECT_EQ(NumbersOf(*file, kQ.name), want);
}

TEST(MergeAdapters, OfExpertsEachToItsOwn) {
  auto file = WriteAndOpen(
      ModelWriter({{"blk.0.ffn_up_exps.weight", {2, 1, 2}, {0, 0, 0, 0}}}),
      "model.gguf");
  ASSERT_TRUE(file.ok());
  GgufWriter writer =
      Writer({{"blk.0.ffn_up_exps.weight.lora_a", {2, 1, 2}, {1, 2, 3, 4}},
              {"blk.0.ffn_up_exps.weight.lora_b", {1, 1, 2}, {10, 100}}});
  writer.SetFloat32("adapter.lora.alpha", 1);
  const auto adapter = Read(writer);
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  ASSERT_TRUE(MergeAdapters({{*adapter, 1.0f}}, &*file).ok());
  EXPECT_EQ(NumbersOf(*file, "blk.0.ffn_up_exps.weight"),
            (std::vector<float>{10, 20, 300, 400}));
}

TEST(MergeAdapters, WhatTheTypeCannotHoldIsAnError) {
  GgufWriter writer = ModelWriter({});
  const std::vector<uint8_t> zeros(4 * 3 * 2);
  writer.AddTensor(kQ.name, DType::kF16, {4, 3}, absl::MakeConstSpan(zeros));
  auto file = WriteAndOpen(writer, "model.gguf");
  ASSERT_TRUE(file.ok());
  const absl::Status status =
      MergeAdapters({{*Read(Writer({kA, kB})), 1e6f}}, &*file);
  EXPECT_THAT(ErrorOf(status), HasSubstr("blk.0.attn_q.weight"));
  EXPECT_THAT(ErrorOf(status), HasSubstr("row 0"));
}

TEST(OpenAdapter, ANumberBehindTheLastEqualsIsAScale) {
  const std::string path = TempPath("a=b.gguf");
  ASSERT_TRUE(Writer({kA, kB}).WriteTo(path).ok());
  EXPECT_EQ(OpenAdapter(path)->scale, 1);
  EXPECT_EQ(OpenAdapter(path + "=-0.25")->scale, -0.25f);
  EXPECT_EQ(OpenAdapter(path + "=0")->adapter->path(), path);
  EXPECT_THAT(ErrorOf(OpenAdapter(path + "=inf").status()),
              HasSubstr("not finite"));
  EXPECT_EQ(OpenAdapter(path + "=-1e6")->scale, -1e6f);
  EXPECT_THAT(ErrorOf(OpenAdapter(path + "=1e30").status()),
              HasSubstr("too large"));
  EXPECT_FALSE(OpenAdapter(path + "=much").ok());
  unlink(path.c_str());
}

}  // namespace
}  // namespace weft
