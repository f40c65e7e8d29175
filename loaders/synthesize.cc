// A list of tensors by what the architecture asks for, then pools of blocks,
// then random picks from them.

#include "loaders/synthesize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "loaders/architectures/architecture.h"
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
constexpr int64_t kMostElements = int64_t{1} << 38;

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

// How large the numbers of a tensor are, by what its name says that it is.
TensorPlan PlanOf(const GgufTensor& tensor, int64_t block_count) {
  const std::string& name = tensor.name;
  TensorPlan plan = {name, tensor.dims, 0.0f, InverseRoot(tensor.dims[0])};
  const auto has = [&name](const char* part) {
    return absl::StrContains(name, part);
  };
  if (has("_embd.") || has("token_types.")) {
    plan.deviation = 0.02f;
  } else if (has(".bias")) {
    plan.deviation = 0.02f;
  } else if (absl::EndsWith(name, ".ssm_a")) {
    // Rates of decay: far from 0, below it.
    plan.mean = -2.0f;
    plan.deviation = 0.1f;
  } else if (has("_norm.") || absl::EndsWith(name, "_norm") || has("rope_f") ||
             has(".scale") || has("_scale.")) {
    plan.mean = 1.0f;
    plan.deviation = 0.1f;
  } else if (has(".attn_output.") || has(".ffn_down")) {
    plan.deviation *= InverseRoot(2 * block_count);
  }
  return plan;
}

double NumberOr(const ModelShape& shape, absl::string_view key,
                double otherwise) {
  const auto found = shape.keys.find(std::string(key));
  return found == shape.keys.end() ? otherwise : found->second;
}

// What a builder asks for, in the order in which it asks: the tensors of a
// model of this shape.
class TensorList : public TensorSource {
 public:
  explicit TensorList(const ModelShape& shape) : shape_(shape) {}

  const std::deque<GgufTensor>& tensors() const { return tensors_; }

  absl::StatusOr<const GgufTensor*> Require(
      absl::string_view name, absl::Span<const int64_t> dims) override {
    for (const GgufTensor& known : tensors_) {
      if (known.name == name) return &known;
    }
    int64_t elements = 1;
    for (int64_t dim : dims) {
      if (__builtin_mul_overflow(elements, dim, &elements) ||
          elements > kMostElements) {
        return absl::InvalidArgumentError(
            absl::StrCat("bad model shape: ", shape_.name, ": tensor ", name,
                         " has more than 2^38 elements: shrink it"));
      }
    }
    GgufTensor tensor;
    tensor.name = std::string(name);
    tensor.dims.assign(dims.begin(), dims.end());
    tensors_.push_back(std::move(tensor));
    return &tensors_.back();
  }

  absl::StatusOr<const GgufTensor*> Optional(
      absl::string_view name, absl::Span<const int64_t> dims) override {
    if (Has(name)) return Require(name, dims);
    return static_cast<const GgufTensor*>(nullptr);
  }

  bool Has(absl::string_view name) const override {
    bool has = name == "output.weight" && !shape_.tied_output;
    // Of families where it may be missing: those with a parallel residual.
    has |= absl::EndsWith(name, ".ffn_norm.weight") &&
           NumberOr(shape_, "use_parallel_residual", 0) == 0;
    for (const std::string& end : shape_.optional_tensors) {
      has |= absl::EndsWith(name, end);
    }
    return has;
  }

  void LeaveOut(absl::string_view) override {}
  absl::Status CheckAllUsed() const override { return absl::OkStatus(); }

 private:
  const ModelShape& shape_;
  std::deque<GgufTensor> tensors_;
};

// Every tensor of the architecture, in the order in which its builder asks.
absl::StatusOr<std::vector<TensorPlan>> PlanTensors(
    const ModelShape& shape, const Architecture& architecture,
    const GgufWriter& metadata) {
  TensorList list(shape);
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, metadata.WithoutTensors());
  WEFT_ASSIGN_OR_RETURN(
      const GgufFile file,
      GgufFile::FromFile(MappedFile::FromStatic(
          absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()),
                              bytes.size()),
          shape.name)));
  WEFT_ASSIGN_OR_RETURN(const ModelConfig config,
                        ReadModelConfig(file, architecture.traits));
  const GraphOptions options;
  Graph graph;
  graph.bounds = {1, 1, 1};
  ModelBuilder builder(&list, config, options, &graph);
  architecture.build(builder);
  WEFT_RETURN_IF_ERROR(builder.Finish());
  std::vector<TensorPlan> plan;
  for (const GgufTensor& tensor : list.tensors()) {
    plan.push_back(PlanOf(tensor, shape.block_count));
  }
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
  int64_t elements = 1;
  for (int64_t dim : tensor.dims) elements *= dim;
  std::vector<float> values(static_cast<size_t>(elements));
  for (float& value : values) {
    value = tensor.mean + tensor.deviation * random.Normal();
  }
  return sink(absl::MakeConstSpan(reinterpret_cast<uint8_t*>(values.data()),
                                  values.size() * sizeof(float)));
}

absl::Status WriteMatrix(const TensorPlan& tensor, DType type, Random random,
                         BlockPools* pools, const GgufWriter::Sink& sink) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<uint8_t>* pool,
                        pools->Get(type, tensor.deviation));
  // Of types without blocks, 32 elements at a time where they come out even.
  int64_t elements = 1;
  for (int64_t dim : tensor.dims) elements *= dim;
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
                pool->data() + random.Next() % choices * bytes, bytes);
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

void AddMetadata(const ModelShape& shape, const ModelTraits& traits,
                 GgufWriter* writer) {
  writer->SetString("general.architecture", shape.architecture);
  writer->SetString("general.name", absl::StrCat("synthetic ", shape.name));
  const auto set = [&](absl::string_view key, int64_t value) {
    writer->SetUint32(absl::StrCat(shape.architecture, ".", key),
                      static_cast<uint32_t>(value));
  };
  const auto set_float = [&](absl::string_view key, double value) {
    writer->SetFloat32(absl::StrCat(shape.architecture, ".", key),
                       static_cast<float>(value));
  };
  set("context_length", shape.context_length);
  set("embedding_length", shape.embedding_length);
  set("block_count", shape.block_count);
  set("feed_forward_length", shape.feed_forward_length);
  set("attention.head_count", shape.head_count);
  set("attention.head_count_kv", shape.head_count_kv);
  set("vocab_size", shape.vocabulary_size);
  if (shape.key_length * shape.head_count != shape.embedding_length) {
    set("attention.key_length", shape.key_length);
    set("attention.value_length", shape.key_length);
  }
  set_float(traits.norm == ModelTraits::Norm::kRms
                ? "attention.layer_norm_rms_epsilon"
                : "attention.layer_norm_epsilon",
            shape.norm_epsilon);
  if (traits.rope) {
    set("rope.dimension_count", shape.rope_dimension_count);
    set_float("rope.freq_base", shape.rope_freq_base);
  }
  for (const auto& [key, value] : shape.keys) {
    if (value >= 0 && value < 4294967296.0 && value == std::floor(value)) {
      set(key, static_cast<int64_t>(value));
    } else {
      set_float(key, value);
    }
  }
  for (const auto& [key, values] : shape.block_keys) {
    writer->SetInt32s(absl::StrCat(shape.architecture, ".", key),
                      std::vector<int32_t>(values.begin(), values.end()));
  }
}

}  // namespace

absl::StatusOr<SynthesizeReport> SynthesizeModel(
    const SynthesizeOptions& options, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(ModelShape shape, FindModelShape(options.shape));
  if (options.blocks < 0 || options.blocks > shape.block_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("blocks: is ", options.blocks, ": ", options.shape,
                     " has 1 to ", shape.block_count));
  }
  if (options.blocks > 0) {
    shape.block_count = options.blocks;
    for (auto& [key, numbers] : shape.block_keys) {
      numbers.resize(options.blocks);
    }
  }
  WEFT_ASSIGN_OR_RETURN(
      QuantizationMix mix,
      QuantizationMix::Parse(options.type, options.tensor_types));
  const Architecture* architecture = FindArchitecture(shape.architecture);
  if (architecture == nullptr) {
    std::vector<std::string> known;
    for (const Architecture* a : AllArchitectures()) known.push_back(a->name);
    return absl::InvalidArgumentError(absl::StrCat(
        "bad model shape: ", options.shape, ": architecture is \"",
        shape.architecture, "\": use one of ", absl::StrJoin(known, ", ")));
  }
  GgufWriter writer;
  AddMetadata(shape, architecture->traits, &writer);
  WEFT_ASSIGN_OR_RETURN(const std::vector<TensorPlan> plan,
                        PlanTensors(shape, *architecture, writer));
  std::vector<absl::string_view> names;
  for (const TensorPlan& tensor : plan) names.push_back(tensor.name);
  const absl::Status overrides = mix.CheckOverrides(names);
  if (!overrides.ok()) return overrides;

  writer.SetUint32("general.file_type", mix.file_type());
  writer.SetUint32("general.quantization_version", 2);
  AddSyntheticVocabulary(shape.vocabulary_size, &writer);

  std::vector<TensorRole> roles;
  for (const TensorPlan& tensor : plan) {
    roles.push_back({tensor.name, tensor.dims});
  }
  const auto experts = shape.keys.find("expert_count");
  const MixModel model = DescribeMixModel(
      {shape.architecture, shape.block_count, shape.head_count,
       shape.head_count_kv,
       experts == shape.keys.end() ? 0 : static_cast<int64_t>(experts->second)},
      roles);

  SynthesizeReport report;
  TypeFallbacks fallbacks;
  BlockPools pools(options.seed);
  Random seeds(options.seed);
  for (const TensorPlan& tensor : plan) {
    const TypeChoice choice = mix.Choose({tensor.name, tensor.dims}, model);
    const Random random(seeds.Next());
    const DType type = choice.keep ? DType::kF32 : choice.type;
    fallbacks.Add(tensor.name, tensor.dims[0], choice);
    int64_t elements = 1;
    for (int64_t dim : tensor.dims) elements *= dim;
    report.parameters += elements;
    report.tensor_bytes += RowBytes(type, elements);
    // Factors of rotation are divided by, so zeros would not load.
    if (options.hollow && !absl::StrContains(tensor.name, "rope_f")) {
      writer.AddHole(tensor.name, type, tensor.dims);
      continue;
    }
    writer.AddTensor(
        tensor.name, type, tensor.dims,
        [&tensor, &pools, type, random](const GgufWriter::Sink& sink) {
          if (tensor.dims.size() == 1 || tensor.mean != 0.0f) {
            return WriteVector(tensor, random, sink);
          }
          return WriteMatrix(tensor, type, random, &pools, sink);
        });
  }
  const absl::Status written = writer.WriteTo(path);
  if (!written.ok()) return written;
  report.warnings = fallbacks.Lines();
  return report;
}

}  // namespace weft
