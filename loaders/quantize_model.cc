// Chooses every tensor's type first, so that all refusals that need no
// arithmetic come before the file is begun; then streams tensor after tensor
// through the writer.

#include "loaders/quantize_model.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/on_threads.h"
#include "base/status.h"
#include "loaders/gguf.h"
#include "loaders/gguf_writer.h"
#include "loaders/importance_matrix.h"
#include "loaders/model_config.h"
#include "loaders/quantization_mix.h"
#include "loaders/type_search.h"
#include "ops/dequantize.h"
#include "ops/quantize.h"

namespace weft {
namespace {

// Elements that one thread takes at a time, at most: a tenth of a second of
// work (a few with codebooks), 4 MB as float32.
constexpr int64_t kElementsPerThread = int64_t{1} << 20;

bool IsPlainFloat(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
}

// A number of the model, of its first block where each has its own; 0 where
// there is none. Any number will do for mixes: they only compare.
absl::StatusOr<std::optional<int64_t>> FirstNumber(const GgufFile& file,
                                                   const std::string& key) {
  constexpr int64_t kMost = int64_t{1} << 32;
  const GgufValue* value = file.FindValue(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_array()) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                          file.GetInts(key));
    return numbers.empty() ? 0 : std::clamp<int64_t>(numbers[0], 0, kMost);
  }
  WEFT_ASSIGN_OR_RETURN(const uint64_t number, file.GetUint(key));
  return static_cast<int64_t>(std::min<uint64_t>(number, kMost));
}

// What the mix rules ask of a model. Heads are those of the metadata: products
// of queries may hold gates too, and not every block has attention.
absl::StatusOr<MixModel> DescribeModel(const GgufFile& file) {
  WEFT_ASSIGN_OR_RETURN(const std::string architecture,
                        file.GetString("general.architecture"));
  const auto number = [&](const char* key) {
    return FirstNumber(file, absl::StrCat(architecture, ".", key));
  };
  WEFT_ASSIGN_OR_RETURN(const auto blocks, number("block_count"));
  WEFT_ASSIGN_OR_RETURN(const auto heads, number("attention.head_count"));
  WEFT_ASSIGN_OR_RETURN(const auto kv_heads, number("attention.head_count_kv"));
  WEFT_ASSIGN_OR_RETURN(const auto experts, number("expert_count"));
  std::vector<TensorRole> tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    tensors.push_back({tensor.name, tensor.dims});
  }
  MixMetadata metadata;
  metadata.architecture = architecture;
  metadata.block_count = blocks.value_or(0);
  metadata.heads = heads.value_or(0);
  metadata.kv_heads = kv_heads.value_or(metadata.heads);
  metadata.experts = experts.value_or(0);
  return DescribeMixModel(metadata, tensors);
}

// The first block behind the model's own, or none: such blocks predict further
// tokens, and importance matrices seldom know them.
absl::StatusOr<std::optional<int64_t>> FirstNextTokenBlock(
    const GgufFile& file, const MixModel& model) {
  WEFT_ASSIGN_OR_RETURN(const std::string architecture,
                        file.GetString("general.architecture"));
  WEFT_ASSIGN_OR_RETURN(
      const auto count,
      FirstNumber(file, absl::StrCat(architecture, ".", kNextTokenBlocks)));
  if (count.value_or(0) == 0) return std::nullopt;
  return model.block_count - *count;
}

absl::Status InTensor(const absl::Status& status, const std::string& path,
                      const std::string& name) {
  return absl::Status(status.code(),
                      absl::StrCat("cannot quantise ", path, ": tensor ", name,
                                   ": ", status.message()));
}

// Matrices in a tensor: of experts, several.
int64_t MatricesOf(const GgufTensor& tensor) {
  return tensor.dims.size() < 3
             ? 1
             : tensor.elements() / (tensor.dims[0] * tensor.dims[1]);
}

// The weights of row `row`, or null. means: as ImportanceMatrix::Means.
const float* ImportanceOf(const GgufTensor& tensor,
                          const std::vector<float>& means, int64_t row) {
  if (means.empty()) return nullptr;
  return means.data() + row / tensor.dims[1] * tensor.dims[0];
}

// Rows [first, first + count) of `tensor` as `type`, into `out`.
absl::Status QuantizeRows(const GgufTensor& tensor, DType type,
                          const std::vector<float>& means, int64_t first,
                          int64_t count, uint8_t* out) {
  const int64_t columns = tensor.dims[0];
  const int64_t source_row = RowBytes(tensor.type, columns);
  const int64_t result_row = RowBytes(type, columns);
  std::vector<float> values(static_cast<size_t>(columns));
  for (int64_t r = 0; r < count; ++r) {
    DequantizeRow(tensor.type, tensor.data.data() + (first + r) * source_row,
                  values.data(), columns);
    const absl::Status status =
        QuantizeRow(type, values.data(), out + r * result_row, columns,
                    ImportanceOf(tensor, means, first + r));
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("row ", first + r, ": ",
                                                      status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status QuantizeTensor(const GgufTensor& tensor, DType type,
                            const std::vector<float>& means, int threads,
                            const GgufWriter::Sink& sink) {
  const int64_t columns = tensor.dims[0];
  const int64_t rows = tensor.elements() / columns;
  const int64_t row_bytes = RowBytes(type, columns);
  const int64_t per_thread = std::max<int64_t>(
      1,
      std::min(kElementsPerThread / columns, (rows + threads - 1) / threads));
  std::vector<uint8_t> buffer;
  for (int64_t first = 0; first < rows; first += threads * per_thread) {
    const int64_t count = std::min(rows - first, threads * per_thread);
    buffer.resize(static_cast<size_t>(count * row_bytes));
    WEFT_RETURN_IF_ERROR(OnThreads(threads, [&](int thread) {
      const int64_t begin = std::min(count, thread * per_thread);
      const int64_t end = std::min(count, begin + per_thread);
      return QuantizeRows(tensor, type, means, first + begin, end - begin,
                          buffer.data() + begin * row_bytes);
    }));
    const absl::Status written = sink(buffer);
    if (!written.ok()) return written;
  }
  return absl::OkStatus();
}

absl::Status NoImportance(const std::string& path, bool has_matrix,
                          DType type) {
  return absl::InvalidArgumentError(absl::StrCat(
      UpperName(type), " is of no use without the importance of the columns: ",
      has_matrix
          ? "the importance matrix does not have this tensor: give it another "
            "type with --tensor-type"
          : absl::StrCat("run weft imatrix ", path,
                         " -f TEXT -o FILE, then give --imatrix FILE")));
}

// Models that are published with experts of MXFP4 have no other weights for
// them, and a mix that keeps these (and nothing else).
absl::Status AlreadyQuantised(const GgufFile& file, const GgufTensor& tensor,
                              const QuantizationMix& mix) {
  constexpr char kKeepsExperts[] = "MXFP4_MOE";
  const bool mxfp4 =
      mix.name() != absl::string_view(kKeepsExperts) &&
      std::any_of(file.tensors().begin(), file.tensors().end(),
                  [](const GgufTensor& t) { return t.type == DType::kMXFP4; });
  return InTensor(absl::InvalidArgumentError(absl::StrCat(
                      "it is already ", UpperName(tensor.type),
                      ": start from an F32, F16 or BF16 model",
                      mxfp4 ? absl::StrCat(", or ask for ", kKeepsExperts,
                                           ", which keeps experts of MXFP4")
                            : "")),
                  file.path(), tensor.name);
}

// How much of a tensor's relative error reaches the logits, relative to one of
// a matrix of attention. Measured on the trained model in models/ (four blocks,
// output tied): each kind of matrix alone in IQ3_S or Q4_K, all else in Q8_0,
// mean KL divergence by error. The two types agree within 10%. Attention's four
// kinds lie between 0.8 and 1.1 of their mean; gate, up and down are 2.2, 1.6
// and 2.4 times it; the embedding that is the output too, as much as three such
// matrices in every block.
double ReachOfNoise(absl::string_view name, const MixModel& model) {
  const double blocks =
      static_cast<double>(std::max<int64_t>(1, model.block_count));
  if (name == "output.weight") return 3.0 * blocks;
  if (name == "token_embd.weight") {
    return model.tied_output ? 3.0 * blocks : blocks;
  }
  return absl::StrContains(name, ".ffn_") ? 2.0 : 1.0;
}

// Rows of a matrix on which types are tried.
constexpr int64_t kSampledRows = 48;

// What each of these types costs.
TensorCosts MeasureTypes(const GgufTensor& tensor,
                         absl::Span<const DType> types,
                         const std::vector<float>& means, int threads) {
  const int64_t columns = tensor.dims[0];
  const int64_t rows = tensor.elements() / columns;
  const int64_t count = std::min(rows, kSampledRows);
  TensorCosts costs;
  costs.tensor = tensor.name;
  for (DType type : types) {
    costs.types.push_back({type, RowBytes(type, tensor.elements()), 0.0});
  }
  // Rows of different experts have different weights: errors are summed row by
  // row.
  std::vector<std::vector<double>> errors(
      static_cast<size_t>(count), std::vector<double>(costs.types.size()));
  std::vector<std::thread> workers;
  const auto work = [&](int64_t first) {
    std::vector<float> values(static_cast<size_t>(columns));
    for (int64_t i = first; i < count; i += threads) {
      const int64_t at = i * rows / count;
      DequantizeRow(tensor.type,
                    tensor.data.data() + at * RowBytes(tensor.type, columns),
                    values.data(), columns);
      for (size_t t = 0; t < costs.types.size(); ++t) {
        errors[static_cast<size_t>(i)][t] =
            RelativeErrorOf(costs.types[t].type, values, columns,
                            ImportanceOf(tensor, means, at));
      }
    }
  };
  for (int thread = 1; thread < threads; ++thread) {
    workers.emplace_back(work, thread);
  }
  work(0);
  for (std::thread& worker : workers) worker.join();
  for (const std::vector<double>& of_row : errors) {
    for (size_t t = 0; t < of_row.size(); ++t) {
      costs.types[t].error += of_row[t] / static_cast<double>(count);
    }
  }
  return costs;
}

// The types that a tensor may get: the one that was asked for, or any.
std::vector<DType> TypesToTry(const GgufTensor& tensor,
                              const TypeChoice& choice, bool has_importance) {
  if (choice.fixed) return {choice.type};
  std::vector<DType> types;
  for (DType type : SearchedTypes()) {
    if (tensor.dims[0] % Info(type).block_elements != 0) continue;
    if (NeedsImportance(type, tensor.name) && !has_importance) continue;
    types.push_back(type);
  }
  return types;
}

// Types by the names of tensors.
using ChosenTypes = std::map<std::string, QuantizeReport::Choice>;

absl::StatusOr<ChosenTypes> SearchTypes(const GgufFile& file,
                                        const QuantizationMix& mix,
                                        const MixModel& model,
                                        const QuantizeOptions& options,
                                        int threads) {
  std::vector<TensorCosts> costs;
  std::vector<int64_t> elements;
  double weights = 0.0, kept_bytes = 0.0;
  const int total = static_cast<int>(file.tensors().size());
  int index = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    if (options.progress) options.progress(tensor.name, index, 2 * total);
    ++index;
    // Those that stay as they are count too, as in `inspect`.
    weights += static_cast<double>(tensor.elements());
    const TypeChoice choice = mix.Choose({tensor.name, tensor.dims}, model);
    const bool copy =
        choice.keep || (choice.fixed && choice.type == tensor.type);
    // It would be no choice, whatever type the mix has for it.
    if (!copy && !IsPlainFloat(tensor.type)) {
      return AlreadyQuantised(file, tensor, mix);
    }
    if (copy) {
      kept_bytes += static_cast<double>(tensor.data.size());
      continue;
    }
    std::vector<float> means;
    if (options.importance != nullptr) {
      WEFT_ASSIGN_OR_RETURN(
          means, options.importance->Means(tensor.name, tensor.dims[0],
                                           MatricesOf(tensor)));
    }
    TensorCosts measured = MeasureTypes(
        tensor, TypesToTry(tensor, choice, !means.empty()), means, threads);
    const double reach = ReachOfNoise(tensor.name, model);
    for (TypeCost& cost : measured.types) cost.error *= reach;
    costs.push_back(std::move(measured));
    elements.push_back(tensor.elements());
  }
  const double most_bytes = options.target_bits * weights / 8.0;
  const std::vector<size_t> chosen = ChooseTypes(
      costs, static_cast<int64_t>(std::max(0.0, most_bytes - kept_bytes)));
  ChosenTypes types;
  double bytes = kept_bytes;
  for (size_t i = 0; i < costs.size(); ++i) {
    const TypeCost& cost = costs[i].types[chosen[i]];
    types[costs[i].tensor] = {
        costs[i].tensor, cost.type,
        8.0 * static_cast<double>(cost.bytes) /
            static_cast<double>(elements[i]),
        cost.error / ReachOfNoise(costs[i].tensor, model)};
    bytes += static_cast<double>(cost.bytes);
  }
  if (bytes > most_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no types are so small: ", options.target_bits,
        " bits per weight: the least are ", 8.0 * bytes / weights,
        options.importance == nullptr ? ", or fewer with --imatrix" : "",
        options.tensor_types.empty() ? "" : ", or without --tensor-type",
        ": ask for more"));
  }
  return types;
}

// The type of which there is most.
DType Most(const std::map<DType, int64_t>& weights_of_type) {
  DType type = DType::kF32;
  int64_t most = 0;
  for (const auto& [candidate, weights] : weights_of_type) {
    if (weights <= most) continue;
    type = candidate;
    most = weights;
  }
  return type;
}

// What an importance matrix, if there is one, has of the tensors that are
// quantised.
class MatrixUse {
 public:
  explicit MatrixUse(const ImportanceMatrix* matrix) : matrix_(matrix) {}

  // Empty where nothing is known of the tensor.
  absl::StatusOr<std::vector<float>> Means(const GgufTensor& tensor) {
    if (matrix_ == nullptr) return std::vector<float>();
    auto means =
        matrix_->Means(tensor.name, tensor.dims[0], MatricesOf(tensor));
    // Of these there is seldom an entry, and nobody misses it.
    if (means.ok() && !IsEmbeddingOrOutput(tensor.name)) {
      ++asked_;
      if (means->empty()) missing_.push_back(tensor.name);
    }
    return means;
  }

  // The tensor got another type, since it has no entry.
  void AddReplaced(const std::string& tensor) { replaced_.push_back(tensor); }

  // Error: the matrix is of another model altogether.
  absl::Status Check(const GgufFile& file) const {
    if (matrix_ == nullptr) return absl::OkStatus();
    for (const auto& [name, squares] : matrix_->tensors) {
      if (file.FindTensor(name) != nullptr) return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot quantise ", file.path(),
        ": the importance matrix has no entry for any of its tensors: ",
        matrix_->tensors.empty()
            ? "it is empty"
            : absl::StrCat("it has ", matrix_->tensors.begin()->first),
        ": make one with weft imatrix of this model"));
  }

  void AddWarnings(std::vector<std::string>* warnings) const {
    if (!missing_.empty()) {
      warnings->push_back(
          absl::StrCat("the importance matrix has no entry for ",
                       missing_.size(), " of ", asked_, " tensors (",
                       FirstAndLast(missing_), "): their columns count alike"));
    }
    if (!replaced_.empty()) {
      warnings->push_back(absl::StrCat(
          replaced_.size(), " tensors of blocks that predict further tokens (",
          FirstAndLast(replaced_),
          ") have types that do without an importance matrix"));
    }
  }

 private:
  static std::string FirstAndLast(const std::vector<std::string>& names) {
    return names.size() == 1 ? names[0]
                             : absl::StrCat(names[0], " to ", names.back());
  }

  const ImportanceMatrix* matrix_;
  int64_t asked_ = 0;
  std::vector<std::string> missing_, replaced_;
};

}  // namespace

absl::StatusOr<QuantizeReport> QuantizeModel(const std::string& source_path,
                                             const std::string& result_path,
                                             const QuantizeOptions& options) {
  WEFT_ASSIGN_OR_RETURN(
      QuantizationMix mix,
      QuantizationMix::Parse(options.type, options.tensor_types));
  WEFT_ASSIGN_OR_RETURN(GgufFile file, GgufFile::Open(source_path));
  WEFT_ASSIGN_OR_RETURN(const MixModel model, DescribeModel(file));

  std::vector<absl::string_view> names;
  for (const GgufTensor& tensor : file.tensors()) names.push_back(tensor.name);
  absl::Status status = mix.CheckOverrides(names);
  if (!status.ok()) return status;

  GgufWriter writer;
  writer.CopyMetadata(file);
  writer.SetUint32("general.quantization_version", 2);

  QuantizeReport report;
  TypeFallbacks fallbacks;
  bool copies = true;
  const int total = static_cast<int>(file.tensors().size());
  const int threads = std::max(1, options.threads);
  int index = 0;
  ChosenTypes searched;
  if (options.target_bits > 0.0) {
    WEFT_ASSIGN_OR_RETURN(searched,
                          SearchTypes(file, mix, model, options, threads));
  }
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> first_further,
                        FirstNextTokenBlock(file, model));
  MatrixUse use(options.importance);
  std::map<DType, int64_t> weights_of_type;
  for (const GgufTensor& tensor : file.tensors()) {
    TypeChoice choice = mix.Choose({tensor.name, tensor.dims}, model);
    const auto found = searched.find(tensor.name);
    if (found != searched.end()) {
      choice.type = found->second.type;
      if (!choice.fixed) choice.wanted = choice.type;
      report.choices.push_back(found->second);
    }
    DType type = choice.keep ? tensor.type : choice.type;
    if (!(type == tensor.type) && !IsPlainFloat(tensor.type)) {
      return AlreadyQuantised(file, tensor, mix);
    }
    std::vector<float> means;
    if (type != tensor.type) {
      WEFT_ASSIGN_OR_RETURN(means, use.Means(tensor));
      if (means.empty() && mix.NeedsImportanceOf(type, tensor.name)) {
        const bool further =
            first_further.has_value() && !choice.fixed &&
            BlockOfTensor(tensor.name).value_or(-1) >= *first_further;
        if (options.importance == nullptr || !further) {
          return InTensor(
              NoImportance(source_path, options.importance != nullptr, type),
              source_path, tensor.name);
        }
        choice.type = FitToRows(TypeWithoutImportance(type), tensor.dims[0]);
        choice.wanted = type = choice.type;
        use.AddReplaced(tensor.name);
      }
    }
    const bool copy = type == tensor.type;
    copies = copies && copy;
    fallbacks.Add(tensor.name, tensor.dims[0], choice);
    if (!choice.keep) weights_of_type[type] += tensor.elements();
    report.source_bytes += static_cast<int64_t>(tensor.data.size());
    report.result_bytes += RowBytes(type, tensor.elements());
    writer.AddTensor(
        tensor.name, type, tensor.dims,
        [&tensor, &options, &source_path, type, copy, threads, index, total,
         means](const GgufWriter::Sink& sink) -> absl::Status {
          if (options.progress) options.progress(tensor.name, index, total);
          if (copy) return sink(tensor.data);
          const absl::Status done =
              QuantizeTensor(tensor, type, means, threads, sink);
          return done.ok() ? done : InTensor(done, source_path, tensor.name);
        });
    ++index;
  }
  WEFT_RETURN_IF_ERROR(use.Check(file));
  writer.SetUint32("general.file_type", options.target_bits > 0.0
                                            ? FileTypeOf(Most(weights_of_type))
                                            : mix.file_type());
  status = writer.WriteTo(result_path);
  if (!status.ok()) return status;
  report.warnings = fallbacks.Lines();
  use.AddWarnings(&report.warnings);
  if (copies) {
    report.warnings.push_back(absl::StrCat(
        source_path,
        ": nothing was quantised: each tensor has its type already"));
  }
  return report;
}

}  // namespace weft
