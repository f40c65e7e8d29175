// Makes adapters (LoRA) with random numbers for models of tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "loaders/gguf_writer.h"
#include "loaders/lora_adapter.h"
#include "ops/quantize.h"

namespace weft {

struct AdapterFile {
  int64_t rank = 4;
  float alpha = 8;
  uint32_t seed = 1;
  DType type = DType::kF32;
  // Ends of the names of matrices that it adapts; all others it leaves alone.
  std::vector<std::string> tensors = {"attn_q.weight",   "attn_k.weight",
                                      "attn_v.weight",   "attn_output.weight",
                                      "ffn_gate.weight", "ffn_up.weight",
                                      "ffn_down.weight", "output.weight"};
};

// Adds the tensor with numbers of this root mean square.
inline void AddRandomTensor(GgufWriter* writer, const std::string& name,
                            DType type, std::vector<int64_t> dims, double size,
                            std::mt19937* random) {
  std::normal_distribution<float> normal(0, static_cast<float>(size));
  int64_t elements = 1;
  for (int64_t dim : dims) elements *= dim;
  auto bytes = std::make_shared<std::vector<uint8_t>>(RowBytes(type, elements));
  std::vector<float> numbers(elements);
  for (float& number : numbers) number = normal(*random);
  ASSERT_TRUE(QuantizeRow(type, numbers.data(), bytes->data(), elements).ok());
  writer->AddTensor(name, type, std::move(dims),
                    [bytes](const GgufWriter::Sink& sink) {
                      return sink(absl::MakeConstSpan(*bytes));
                    });
}

inline void SetAdapterKeys(GgufWriter* writer, const std::string& architecture,
                           float alpha) {
  writer->SetString("general.type", "adapter");
  writer->SetString("adapter.type", "lora");
  writer->SetString("general.architecture", architecture);
  writer->SetFloat32("adapter.lora.alpha", alpha);
}

// Writes an adapter for the model, large enough to change every logit.
inline void WriteAdapter(const GgufFile& model, const AdapterFile& adapter,
                         const std::string& path) {
  GgufWriter writer;
  SetAdapterKeys(&writer, *model.GetString("general.architecture"),
                 adapter.alpha);
  std::mt19937 random(adapter.seed);
  for (const GgufTensor& tensor : model.tensors()) {
    for (const std::string& end : adapter.tensors) {
      if (!absl::EndsWith(tensor.name, end) || tensor.dims.size() != 2) {
        continue;
      }
      const double inputs = static_cast<double>(tensor.dims[0]);
      AddRandomTensor(&writer, tensor.name + ".lora_a", adapter.type,
                      {tensor.dims[0], adapter.rank}, 1 / std::sqrt(inputs),
                      &random);
      AddRandomTensor(&writer, tensor.name + ".lora_b", adapter.type,
                      {adapter.rank, tensor.dims[1]}, 0.2, &random);
      break;
    }
  }
  const absl::Status status = writer.WriteTo(path);
  ASSERT_TRUE(status.ok()) << status;
}

inline AdapterChoice MakeAdapter(const GgufFile& model,
                                 const AdapterFile& adapter, float scale = 1) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/adapter-", adapter.seed, "-",
                   adapter.rank, ".gguf");
  WriteAdapter(model, adapter, path);
  absl::StatusOr<std::shared_ptr<const LoraAdapter>> read =
      LoraAdapter::Open(path);
  EXPECT_TRUE(read.ok()) << read.status();
  AdapterChoice choice;
  if (read.ok()) choice.adapter = *std::move(read);
  choice.scale = scale;
  return choice;
}

// The model with the tensors that it has now, as a file.
inline void WriteModel(const GgufFile& model, const std::string& path) {
  GgufWriter writer;
  writer.CopyMetadata(model);
  for (const GgufTensor& tensor : model.tensors()) {
    writer.AddTensor(tensor.name, tensor.type, tensor.dims, tensor.data);
  }
  const absl::Status status = writer.WriteTo(path);
  ASSERT_TRUE(status.ok()) << status;
}

}  // namespace weft
