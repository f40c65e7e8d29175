#include "loaders/importance_matrix.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "loaders/byte_reader.h"
#include "loaders/gguf.h"
#include "loaders/gguf_writer.h"

namespace weft {
namespace {

constexpr char kSumsSuffix[] = ".in_sum2";
constexpr char kCountsSuffix[] = ".counts";
constexpr uint32_t kLongestName = 1024;
constexpr char kTextHash[] = "weft.imatrix.texts";
constexpr char kModelHash[] = "weft.imatrix.model";

absl::Status Bad(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read ", path, ": ", what,
                   ": give an importance matrix that weft imatrix wrote"));
}

absl::Status CheckNumbers(const std::string& path, const std::string& name,
                          const InputSquares& squares) {
  for (const std::vector<double>* numbers : {&squares.sums, &squares.counts}) {
    for (double number : *numbers) {
      if (std::isfinite(number) && number >= 0.0) continue;
      return Bad(path, absl::StrCat("tensor ", name, " holds ", number,
                                    ", expected finite numbers from 0"));
    }
  }
  if (squares.counts.empty() || squares.sums.empty() ||
      squares.sums.size() % squares.counts.size() != 0) {
    return Bad(path,
               absl::StrCat("tensor ", name, " has ", squares.sums.size(),
                            " sums and ", squares.counts.size(), " counts"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> Numbers(const GgufFile& file,
                                            const GgufTensor& tensor) {
  if (tensor.type != DType::kF32) {
    return Bad(file.path(),
               absl::StrCat("tensor ", tensor.name, " is ",
                            UpperName(tensor.type), ", expected F32"));
  }
  std::vector<double> numbers(tensor.data.size() / sizeof(float));
  for (size_t i = 0; i < numbers.size(); ++i) {
    float number;
    std::memcpy(&number, tensor.data.data() + i * sizeof(float),
                sizeof(number));
    numbers[i] = number;
  }
  return numbers;
}

absl::StatusOr<ImportanceMatrix> ReadNewer(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  WEFT_ASSIGN_OR_RETURN(const auto type, file.OptionalString("general.type"));
  if (type.value_or("") != "imatrix") {
    return Bad(path, absl::StrCat("its general.type is \"", type.value_or(""),
                                  "\", expected \"imatrix\""));
  }
  ImportanceMatrix matrix;
  WEFT_ASSIGN_OR_RETURN(const auto datasets,
                        file.OptionalStrings("imatrix.datasets"));
  if (datasets.has_value()) {
    for (absl::string_view name : *datasets) {
      matrix.datasets.emplace_back(name);
    }
  }
  WEFT_ASSIGN_OR_RETURN(const auto chunks,
                        file.OptionalUint("imatrix.chunk_count"));
  WEFT_ASSIGN_OR_RETURN(const auto chunk_size,
                        file.OptionalUint("imatrix.chunk_size"));
  matrix.chunks = static_cast<int64_t>(chunks.value_or(0) & 0xffffffffu);
  matrix.chunk_size =
      static_cast<int64_t>(chunk_size.value_or(0) & 0xffffffffu);
  WEFT_ASSIGN_OR_RETURN(const auto text_hash, file.OptionalString(kTextHash));
  WEFT_ASSIGN_OR_RETURN(const auto model_hash, file.OptionalString(kModelHash));
  matrix.text_hash = text_hash.value_or("");
  matrix.model_hash = model_hash.value_or("");
  for (const GgufTensor& tensor : file.tensors()) {
    absl::string_view stripped = tensor.name;
    if (!absl::ConsumeSuffix(&stripped, kSumsSuffix)) continue;
    const std::string name(stripped);
    const GgufTensor* counts = file.FindTensor(name + kCountsSuffix);
    if (counts == nullptr) {
      return Bad(path, absl::StrCat("tensor ", name, " has no counts"));
    }
    InputSquares& squares = matrix.tensors[name];
    WEFT_ASSIGN_OR_RETURN(squares.sums, Numbers(file, tensor));
    WEFT_ASSIGN_OR_RETURN(squares.counts, Numbers(file, *counts));
    WEFT_RETURN_IF_ERROR(CheckNumbers(path, name, squares));
  }
  return matrix;
}

absl::StatusOr<ImportanceMatrix> ReadOlder(const std::string& path,
                                           absl::Span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  const absl::Status cut = Bad(path, "it ends early, or is none");
  ImportanceMatrix matrix;
  uint32_t entries = 0;
  if (!reader.Read(&entries)) return cut;
  for (uint32_t i = 0; i < entries; ++i) {
    uint32_t length = 0, calls = 0, values = 0;
    if (!reader.Read(&length) || length > kLongestName) return cut;
    std::string name(length, '\0');
    for (char& c : name) {
      if (!reader.Read(&c)) return cut;
    }
    if (!reader.Read(&calls) || !reader.Read(&values) ||
        values > reader.left() / sizeof(float)) {
      return cut;
    }
    InputSquares squares;
    squares.counts = {static_cast<double>(calls)};
    for (uint32_t v = 0; v < values; ++v) {
      float value = 0.0f;
      reader.Read(&value);
      squares.sums.push_back(value);
    }
    WEFT_RETURN_IF_ERROR(CheckNumbers(path, name, squares));
    if (!matrix.tensors.emplace(name, std::move(squares)).second) {
      return Bad(path, absl::StrCat("tensor ", name, " stands in it twice"));
    }
  }
  // The oldest files end here.
  uint32_t chunks = 0, length = 0;
  if (reader.left() == 0) return matrix;
  if (!reader.Read(&chunks) || !reader.Read(&length) ||
      length > reader.left()) {
    return cut;
  }
  matrix.chunks = chunks;
  std::string dataset(length, '\0');
  for (char& c : dataset) reader.Read(&c);
  matrix.datasets = {dataset};
  return matrix;
}

}  // namespace

absl::StatusOr<ImportanceMatrix> ImportanceMatrix::Read(
    const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                        MappedFile::Open(path));
  const absl::Span<const uint8_t> bytes = file->bytes();
  if (bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0) {
    return ReadNewer(path);
  }
  return ReadOlder(path, bytes);
}

absl::Status ImportanceMatrix::Write(const std::string& path) const {
  GgufWriter writer;
  writer.SetString("general.type", "imatrix");
  writer.SetStrings("imatrix.datasets", datasets);
  writer.SetUint32("imatrix.chunk_count", static_cast<uint32_t>(chunks));
  writer.SetUint32("imatrix.chunk_size", static_cast<uint32_t>(chunk_size));
  if (!text_hash.empty()) writer.SetString(kTextHash, text_hash);
  if (!model_hash.empty()) writer.SetString(kModelHash, model_hash);
  // The writer wants the bytes until it has written.
  std::vector<std::unique_ptr<std::vector<float>>> kept;
  const auto add = [&](const std::string& name,
                       const std::vector<double>& numbers, int64_t columns) {
    kept.push_back(
        std::make_unique<std::vector<float>>(numbers.begin(), numbers.end()));
    const int64_t rows = static_cast<int64_t>(numbers.size()) / columns;
    // Readers do not want a last dimension of 1.
    std::vector<int64_t> dims = {columns};
    if (rows > 1) dims.push_back(rows);
    writer.AddTensor(name, DType::kF32, dims,
                     absl::MakeConstSpan(
                         reinterpret_cast<const uint8_t*>(kept.back()->data()),
                         kept.back()->size() * sizeof(float)));
  };
  for (const auto& [name, squares] : tensors) {
    const int64_t matrices = static_cast<int64_t>(squares.counts.size());
    add(name + kSumsSuffix, squares.sums,
        static_cast<int64_t>(squares.sums.size()) / matrices);
    add(name + kCountsSuffix, squares.counts, 1);
  }
  return writer.WriteTo(path);
}

absl::StatusOr<std::vector<float>> ImportanceMatrix::Means(
    const std::string& tensor, int64_t columns, int64_t matrices) const {
  const auto found = tensors.find(tensor);
  if (found == tensors.end()) return std::vector<float>();
  const InputSquares& squares = found->second;
  const size_t wanted = static_cast<size_t>(columns * matrices);
  if (squares.sums.size() != wanted ||
      (squares.counts.size() != 1 &&
       squares.counts.size() != static_cast<size_t>(matrices))) {
    return absl::InvalidArgumentError(
        absl::StrCat("the importance matrix has ", squares.sums.size(),
                     " columns for tensor ", tensor, " of ", wanted,
                     ": make one with weft imatrix of this model"));
  }
  std::vector<float> means(wanted, 1.0f);
  for (size_t i = 0; i < wanted; ++i) {
    const double count = squares.counts.size() == 1
                             ? squares.counts[0]
                             : squares.counts[i / static_cast<size_t>(columns)];
    if (count > 0.0) means[i] = static_cast<float>(squares.sums[i] / count);
  }
  return means;
}

}  // namespace weft
