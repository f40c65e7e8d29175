// Chooses every tensor's type first, so that all refusals that need no
// arithmetic come before the file is begun; then streams tensor after tensor
// through the writer.

#include "loaders/quantize_model.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "loaders/gguf.h"
#include "loaders/gguf_writer.h"
#include "loaders/quantization_mix.h"
#include "ops/dequantize.h"
#include "ops/quantize.h"

namespace weft {
namespace {

// Elements that one thread takes at a time: a tenth of a second of work, 4 MB
// as float32.
constexpr int64_t kElementsPerThread = int64_t{1} << 20;

bool IsPlainFloat(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
}

// What the mix rules ask of a model, as far as its metadata says.
absl::StatusOr<MixModel> DescribeModel(const GgufFile& file) {
  MixModel model;
  model.tied_output = file.FindTensor("output.weight") == nullptr;
  WEFT_ASSIGN_OR_RETURN(const std::string architecture,
                        file.GetString("general.architecture"));
  const auto blocks =
      file.OptionalUint(absl::StrCat(architecture, ".block_count"));
  if (!blocks.ok()) return blocks.status();
  // Any number will do: it is only compared with layer numbers.
  model.block_count = static_cast<int64_t>(
      std::min<uint64_t>(blocks->value_or(0), uint64_t{1} << 32));
  const GgufTensor* queries = file.FindTensor("blk.0.attn_q.weight");
  const GgufTensor* keys = file.FindTensor("blk.0.attn_k.weight");
  if (queries != nullptr && keys != nullptr && queries->dims.size() == 2 &&
      keys->dims.size() == 2) {
    model.heads_per_kv_head = queries->dims[1] / keys->dims[1];
  }
  return model;
}

absl::Status InTensor(const absl::Status& status, const std::string& path,
                      const std::string& name) {
  return absl::Status(status.code(),
                      absl::StrCat("cannot quantise ", path, ": tensor ", name,
                                   ": ", status.message()));
}

// Rows [first, first + count) of `tensor` as `type`, into `out`.
absl::Status QuantizeRows(const GgufTensor& tensor, DType type, int64_t first,
                          int64_t count, uint8_t* out) {
  const int64_t columns = tensor.dims[0];
  const int64_t source_row = RowBytes(tensor.type, columns);
  const int64_t result_row = RowBytes(type, columns);
  std::vector<float> values(static_cast<size_t>(columns));
  for (int64_t r = 0; r < count; ++r) {
    DequantizeRow(tensor.type, tensor.data.data() + (first + r) * source_row,
                  values.data(), columns);
    const absl::Status status =
        QuantizeRow(type, values.data(), out + r * result_row, columns);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("row ", first + r, ": ",
                                                      status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status QuantizeTensor(const GgufTensor& tensor, DType type, int threads,
                            const GgufWriter::Sink& sink) {
  const int64_t columns = tensor.dims[0];
  const int64_t rows = tensor.elements() / columns;
  const int64_t row_bytes = RowBytes(type, columns);
  const int64_t per_thread = std::max<int64_t>(1, kElementsPerThread / columns);
  std::vector<uint8_t> buffer;
  for (int64_t first = 0; first < rows; first += threads * per_thread) {
    const int64_t count = std::min(rows - first, threads * per_thread);
    buffer.resize(static_cast<size_t>(count * row_bytes));
    std::vector<absl::Status> results(static_cast<size_t>(threads));
    const auto work = [&](int thread) {
      const int64_t begin = std::min(count, thread * per_thread);
      const int64_t end = std::min(count, begin + per_thread);
      results[static_cast<size_t>(thread)] =
          QuantizeRows(tensor, type, first + begin, end - begin,
                       buffer.data() + begin * row_bytes);
    };
    std::vector<std::thread> workers;
    for (int thread = 1; thread < threads; ++thread) {
      workers.emplace_back(work, thread);
    }
    work(0);
    for (std::thread& worker : workers) worker.join();
    for (const absl::Status& result : results) {
      if (!result.ok()) return result;
    }
    const absl::Status written = sink(buffer);
    if (!written.ok()) return written;
  }
  return absl::OkStatus();
}

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
  writer.SetUint32("general.file_type", mix.file_type());

  QuantizeReport report;
  const int total = static_cast<int>(file.tensors().size());
  const int threads = std::max(1, options.threads);
  int index = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    const TypeChoice choice = mix.Choose({tensor.name, tensor.dims}, model);
    const DType type = choice.keep ? tensor.type : choice.type;
    const bool copy = type == tensor.type;
    if (!copy && !IsPlainFloat(tensor.type)) {
      return InTensor(absl::InvalidArgumentError(absl::StrCat(
                          "it is already ", UpperName(tensor.type),
                          ": start from an F32, F16 or BF16 model")),
                      source_path, tensor.name);
    }
    if (!choice.keep && type != choice.wanted) {
      report.warnings.push_back(absl::StrCat(
          "tensor ", tensor.name, ": rows of ", tensor.dims[0],
          " are no multiple of the ", Info(choice.wanted).block_elements,
          " of ", UpperName(choice.wanted), ": stored as ", UpperName(type)));
    }
    report.source_bytes += static_cast<int64_t>(tensor.data.size());
    report.result_bytes += RowBytes(type, tensor.elements());
    writer.AddTensor(
        tensor.name, type, tensor.dims,
        [&tensor, &options, &source_path, type, copy, threads, index,
         total](const GgufWriter::Sink& sink) -> absl::Status {
          if (options.progress) options.progress(tensor.name, index, total);
          if (copy) return sink(tensor.data);
          const absl::Status done = QuantizeTensor(tensor, type, threads, sink);
          return done.ok() ? done : InTensor(done, source_path, tensor.name);
        });
    ++index;
  }
  status = writer.WriteTo(result_path);
  if (!status.ok()) return status;
  return report;
}

}  // namespace weft
