// A list of tensors by shape, then pools of blocks, then random picks from
// them.

#include "loaders/synthesize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "loaders/gguf_writer.h"
#include "loaders/model_shape.h"
#include "loaders/quantization_mix.h"
#include "loaders/synthetic_vocabulary.h"
#include "ops/quantize.h"

namespace weft {
namespace {

// Elements of a pool: 2048 blocks of a K type, enough that no pattern shows.
constexpr int64_t kPoolElements = int64_t{1} << 19;
constexpr size_t kPieceBytes = size_t{1} << 20;

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Normal to the eye: twelve uniform numbers have variance 1 together. Integer
  // sums, so the same everywhere, unlike log and cos.
  float Normal() {
    int64_t sum = 0;
    for (int word = 0; word < 3; ++word) {
      for (uint64_t bits = Next(), i = 0; i < 4; ++i, bits >>= 16) {
        sum += static_cast<int64_t>(bits & 0xffff);
      }
    }
    return static_cast<float>(sum + 6) * 0x1p-16f - 6.0f;
  }

 private:
  uint64_t state_;
};

struct TensorPlan {
  std::string name;
  std::vector<int64_t> dims;
  float mean;
  float deviation;
};

float InverseRoot(int64_t n) { return 1.0f / std::sqrt(static_cast<float>(n)); }

// Every tensor of the architecture, in the order files have them.
std::vector<TensorPlan> PlanTensors(const ModelShape& shape) {
  const int64_t width = shape.embedding_length;
  const int64_t ffn = shape.feed_forward_length;
  const int64_t q_rows = shape.head_count * shape.key_length;
  const int64_t kv_rows = shape.head_count_kv * shape.key_length;
  const float branch = InverseRoot(2 * shape.block_count);

  std::vector<TensorPlan> plan;
  const auto matrix = [&](std::string name, int64_t columns, int64_t rows,
                          float factor) {
    plan.push_back({absl::StrCat(name, ".weight"),
                    {columns, rows},
                    0.0f,
                    factor * InverseRoot(columns)});
  };
  const auto norm = [&](std::string name) {
    plan.push_back({absl::StrCat(name, ".weight"), {width}, 1.0f, 0.1f});
  };
  const auto bias = [&](std::string name, int64_t rows) {
    if (shape.architecture != "qwen2") return;
    plan.push_back({absl::StrCat(name, ".bias"), {rows}, 0.0f, 0.02f});
  };

  plan.push_back(
      {"token_embd.weight", {width, shape.vocabulary_size}, 0.0f, 0.02f});
  for (int64_t layer = 0; layer < shape.block_count; ++layer) {
    const std::string block = absl::StrCat("blk.", layer, ".");
    norm(block + "attn_norm");
    matrix(block + "attn_q", width, q_rows, 1.0f);
    bias(block + "attn_q", q_rows);
    matrix(block + "attn_k", width, kv_rows, 1.0f);
    bias(block + "attn_k", kv_rows);
    matrix(block + "attn_v", width, kv_rows, 1.0f);
    bias(block + "attn_v", kv_rows);
    matrix(block + "attn_output", q_rows, width, branch);
    norm(block + "ffn_norm");
    matrix(block + "ffn_gate", width, ffn, 1.0f);
    matrix(block + "ffn_up", width, ffn, 1.0f);
    matrix(block + "ffn_down", ffn, width, branch);
  }
  norm("output_norm");
  if (!shape.tied_output) matrix("output", width, shape.vocabulary_size, 1.0f);
  return plan;
}

// Pools by type and deviation, made when first wanted.
class BlockPools {
 public:
  explicit BlockPools(uint64_t seed) : seed_(seed) {}

  absl::StatusOr<const std::vector<uint8_t>*> Get(DType type, float deviation) {
    std::vector<uint8_t>& pool = pools_[{type, deviation}];
    if (pool.empty()) {
      Random random(seed_ ^ (static_cast<uint64_t>(type) << 56));
      std::vector<float> values(static_cast<size_t>(kPoolElements));
      for (float& value : values) value = deviation * random.Normal();
      pool.resize(static_cast<size_t>(RowBytes(type, kPoolElements)));
      const absl::Status status =
          QuantizeRow(type, values.data(), pool.data(), kPoolElements);
      if (!status.ok()) return status;
    }
    return &pool;
  }

 private:
  const uint64_t seed_;
  std::map<std::pair<DType, float>, std::vector<uint8_t>> pools_;
};

absl::Status WriteVector(const TensorPlan& tensor, Random random,
                         const GgufWriter::Sink& sink) {
  std::vector<float> values(static_cast<size_t>(tensor.dims[0]));
  for (float& value : values) {
    value = tensor.mean + tensor.deviation * random.Normal();
  }
  return sink(absl::MakeConstSpan(reinterpret_cast<uint8_t*>(values.data()),
                                  values.size() * sizeof(float)));
}

absl::Status WriteMatrix(const TensorPlan& tensor, DType type, Random random,
                         BlockPools* pools, const GgufWriter::Sink& sink) {
  const absl::StatusOr<const std::vector<uint8_t>*> pool =
      pools->Get(type, tensor.deviation);
  if (!pool.ok()) return pool.status();
  // Of types without blocks, 32 elements at a time where they come out even.
  const int64_t elements = tensor.dims[0] * tensor.dims[1];
  const int64_t block = Info(type).block_elements > 1
                            ? Info(type).block_elements
                        : elements % 32 == 0 ? 32
                                             : 1;
  const size_t bytes = static_cast<size_t>(RowBytes(type, 32 * block)) / 32;
  const uint64_t choices = static_cast<uint64_t>(kPoolElements / block);
  std::vector<uint8_t> piece(kPieceBytes / bytes * bytes);
  size_t filled = 0;
  for (int64_t left = elements / block; left > 0; --left) {
    std::memcpy(piece.data() + filled,
                (*pool)->data() + random.Next() % choices * bytes, bytes);
    filled += bytes;
    if (filled == piece.size() || left == 1) {
      const absl::Status status =
          sink(absl::MakeConstSpan(piece.data(), filled));
      if (!status.ok()) return status;
      filled = 0;
    }
  }
  return absl::OkStatus();
}

void AddMetadata(const ModelShape& shape, GgufWriter* writer) {
  writer->SetString("general.architecture", shape.architecture);
  writer->SetString("general.name", absl::StrCat("synthetic ", shape.name));
  const auto set = [&](const char* key, int64_t value) {
    writer->SetUint32(absl::StrCat(shape.architecture, ".", key),
                      static_cast<uint32_t>(value));
  };
  set("context_length", shape.context_length);
  set("embedding_length", shape.embedding_length);
  set("block_count", shape.block_count);
  set("feed_forward_length", shape.feed_forward_length);
  set("attention.head_count", shape.head_count);
  set("attention.head_count_kv", shape.head_count_kv);
  set("rope.dimension_count", shape.key_length);
  set("vocab_size", shape.vocabulary_size);
  if (shape.key_length * shape.head_count != shape.embedding_length) {
    set("attention.key_length", shape.key_length);
    set("attention.value_length", shape.key_length);
  }
  writer->SetFloat32(
      absl::StrCat(shape.architecture, ".attention.layer_norm_rms_epsilon"),
      static_cast<float>(shape.norm_epsilon));
  writer->SetFloat32(absl::StrCat(shape.architecture, ".rope.freq_base"),
                     static_cast<float>(shape.rope_freq_base));
}

}  // namespace

absl::StatusOr<SynthesizeReport> SynthesizeModel(
    const SynthesizeOptions& options, const std::string& path) {
  const absl::StatusOr<ModelShape> shape = FindModelShape(options.shape);
  if (!shape.ok()) return shape.status();
  absl::StatusOr<QuantizationMix> mix =
      QuantizationMix::Parse(options.type, options.tensor_types);
  if (!mix.ok()) return mix.status();
  const std::vector<TensorPlan> plan = PlanTensors(*shape);
  std::vector<absl::string_view> names;
  for (const TensorPlan& tensor : plan) names.push_back(tensor.name);
  const absl::Status overrides = mix->CheckOverrides(names);
  if (!overrides.ok()) return overrides;

  GgufWriter writer;
  AddMetadata(*shape, &writer);
  writer.SetUint32("general.file_type", mix->file_type());
  writer.SetUint32("general.quantization_version", 2);
  AddSyntheticVocabulary(shape->vocabulary_size, &writer);

  MixModel model;
  model.block_count = shape->block_count;
  model.heads_per_kv_head = shape->head_count / shape->head_count_kv;
  model.tied_output = shape->tied_output;

  SynthesizeReport report;
  BlockPools pools(options.seed);
  Random seeds(options.seed);
  for (const TensorPlan& tensor : plan) {
    const TypeChoice choice = mix->Choose({tensor.name, tensor.dims}, model);
    const Random random(seeds.Next());
    const DType type = choice.keep ? DType::kF32 : choice.type;
    if (!choice.keep && choice.type != choice.wanted) {
      report.warnings.push_back(absl::StrCat(
          "tensor ", tensor.name, ": rows of ", tensor.dims[0],
          " are no multiple of the ", Info(choice.wanted).block_elements,
          " of ", UpperName(choice.wanted), ": stored as ", UpperName(type)));
    }
    int64_t elements = 1;
    for (int64_t dim : tensor.dims) elements *= dim;
    report.parameters += elements;
    report.tensor_bytes += RowBytes(type, elements);
    if (options.hollow) {
      writer.AddHole(tensor.name, type, tensor.dims);
      continue;
    }
    writer.AddTensor(
        tensor.name, type, tensor.dims,
        [&tensor, &pools, type, random](const GgufWriter::Sink& sink) {
          if (tensor.dims.size() == 1) return WriteVector(tensor, random, sink);
          return WriteMatrix(tensor, type, random, &pools, sink);
        });
  }
  const absl::Status written = writer.WriteTo(path);
  if (!written.ok()) return written;
  return report;
}

}  // namespace weft
