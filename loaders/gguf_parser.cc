#include "loaders/gguf_parser.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "loaders/byte_reader.h"
#include "loaders/gguf_format.h"
#include "loaders/utf8.h"

namespace weft {
namespace {

// Of all that a tensor may have.
std::string StoredTypeNames() {
  std::vector<std::string> names;
  for (const DTypeInfo& row : AllDTypes()) {
    if (row.gguf_id >= 0 && row.type != DType::kI32) {
      names.push_back(UpperName(row.type));
    }
  }
  return absl::StrJoin(names, ", ");
}

// Rows stay below what RowBytes takes.
constexpr uint64_t kMaxRowElements = (uint64_t{1} << 40) - 1;
// Key length and type tag and the smallest value; name length, number of dims,
// one dim, type, offset. They bound the counts of the header.
constexpr uint64_t kMinKeyBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;

// ggml_type of ggml.h, also those that were taken out again.
constexpr const char* kTensorTypeNames[] = {
    "F32",
    "F16",
    "Q4_0",
    "Q4_1",
    "Q4_2",
    "Q4_3",
    "Q5_0",
    "Q5_1",
    "Q8_0",
    "Q8_1",
    "Q2_K",
    "Q3_K",
    "Q4_K",
    "Q5_K",
    "Q6_K",
    "Q8_K",
    "IQ2_XXS",
    "IQ2_XS",
    "IQ3_XXS",
    "IQ1_S",
    "IQ4_NL",
    "IQ3_S",
    "IQ2_S",
    "IQ4_XS",
    "I8",
    "I16",
    "I32",
    "I64",
    "F64",
    "IQ1_M",
    "BF16",
    "Q4_0_4_4",
    "Q4_0_4_8",
    "Q4_0_8_8",
    "TQ1_0",
    "TQ2_0",
    // Files with these are BitNet's: ggml's own of the numbers were in none.
    "I2_S (of BitNet)",
    "I8_S (of BitNet)",
    "TL1 (of BitNet)",
    "MXFP4",
    "NVFP4",
};

// Of ik_llama.cpp, from this number on; an empty name is not in files.
constexpr uint32_t kFirstOfIk = 133;
constexpr const char* kTypeNamesOfIk[] = {
    "Q6_0",   "IQ1_BN", "IQ2_BN", "",       "IQ2_K",  "IQ3_K",  "IQ4_K",
    "IQ5_K",  "IQ6_K",  "",       "",       "IQ4_KS", "IQ2_KS", "IQ4_KSS",
    "",       "",       "",       "",       "Q8_KV",  "IQ5_KS", "IQ2_KT",
    "IQ3_KT", "IQ4_KT", "IQ3_KS", "IQ2_KL",
};

// Of a file that seems to be empty: more are not looked at.
constexpr size_t kMostZeros = size_t{1} << 16;

struct TensorEntry {
  GgufTensor tensor;
  uint64_t relative_offset = 0;  // from the begin of the data section
  uint64_t bytes = 0;
};

bool IsZeros(absl::Span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](uint8_t byte) { return byte == 0; });
}

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

class Parser {
 public:
  explicit Parser(std::shared_ptr<const MappedFile> file)
      : file_(std::move(file)), reader_(file_->bytes()) {
    contents_.metadata = GgufMetadata(file_);
  }

  absl::StatusOr<GgufContents> Run() {
    absl::Status status = ReadHeader();
    if (status.ok()) status = ReadMetadata();
    if (status.ok()) status = ReadAlignment();
    if (status.ok()) status = ReadTensors();
    if (status.ok()) status = PlaceTensors();
    if (!status.ok()) return status;
    return std::move(contents_);
  }

 private:
  absl::Status Error(absl::string_view what, absl::string_view where,
                     absl::string_view action) const {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", file_->path(), ": ", where, ": ", action));
  }

  absl::Status CutOff(absl::string_view where) const {
    return Error("file is cut off",
                 absl::StrCat(where, " at byte ", reader_.position(), " of ",
                              file_->bytes().size()),
                 "copy or download it again");
  }

  absl::Status TensorError(const GgufTensor& tensor, absl::string_view found,
                           absl::string_view action) const {
    return Error(absl::StrCat("bad tensor ", QuoteForMessage(tensor.name)),
                 found, action);
  }

  absl::Status ReadHeader() {
    const uint64_t size = file_->bytes().size();
    if (size == 0) {
      return Error("not a GGUF file", "it is empty",
                   "copy or download it again");
    }
    uint32_t magic;
    if (!reader_.Read(&magic)) {
      return Error("not a GGUF file",
                   absl::StrCat("it has only ", size, " bytes"),
                   "give a .gguf model file");
    }
    constexpr uint32_t kSwappedMagic = 0x47475546;  // "FUGG"
    if (magic != kGgufMagic && magic != kSwappedMagic) {
      return Error(
          "not a GGUF file",
          absl::StrCat(
              "it begins with ",
              QuoteForMessage(absl::string_view(
                  reinterpret_cast<const char*>(file_->bytes().data()), 4))),
          "give a .gguf model file");
    }
    uint32_t version;
    if (!reader_.Read(&version)) return CutOff("header ends");
    // What a download leaves that made room first and was then broken off.
    if (version == 0 && IsZeros(file_->bytes().subspan(4, kMostZeros))) {
      return Error("not a GGUF file", "it is empty after the magic",
                   "copy or download it again");
    }
    // No version will ever be a multiple of 65536.
    if (magic == kSwappedMagic || (version & 0xffff) == 0) {
      return Error("wrong byte order", "the file is big-endian",
                   "convert it to little-endian GGUF");
    }
    if (version != 2 && version != 3) {
      return Error(absl::StrCat("GGUF version ", version, " is not supported"),
                   "the header says so", "convert the model to GGUF version 3");
    }
    contents_.version = version;
    if (!reader_.Read(&tensor_count_) || !reader_.Read(&key_count_)) {
      return CutOff("header ends");
    }
    if (key_count_ > reader_.left() / kMinKeyBytes) {
      return CountTooLarge(key_count_, "metadata keys");
    }
    if (tensor_count_ > reader_.left() / kMinTensorBytes) {
      return CountTooLarge(tensor_count_, "tensors");
    }
    return absl::OkStatus();
  }

  absl::Status CountTooLarge(uint64_t count, absl::string_view of_what) const {
    return Error("bad header",
                 absl::StrCat("it says ", count, " ", of_what, ", but only ",
                              reader_.left(), " bytes follow"),
                 "copy or download the file again");
  }

  absl::Status ReadMetadata() {
    for (uint64_t i = 0; i < key_count_; ++i) {
      absl::string_view key;
      uint32_t type;
      if (!reader_.ReadString(&key) || !reader_.Read(&type)) {
        return CutOff(absl::StrCat("metadata key ", i, " of ", key_count_));
      }
      if (key.empty() || !IsValidUtf8(key)) {
        return Error("bad metadata",
                     absl::StrCat("key ", i, " is ", QuoteForMessage(key)),
                     "expected UTF-8 text");
      }
      auto value = GgufValue::Read(type, &reader_);
      if (!value.ok()) {
        return Error(absl::StrCat("bad metadata key ", QuoteForMessage(key)),
                     value.status().message(),
                     "the file is damaged or cut off, download it again");
      }
      if (!contents_.metadata.Add(key, *value)) {
        return Error(
            "bad metadata",
            absl::StrCat("key ", QuoteForMessage(key), " is there twice"),
            "write the file again with one of them");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadAlignment() {
    auto alignment = contents_.metadata.OptionalUint(kGgufAlignmentKey);
    if (!alignment.ok()) return alignment.status();
    alignment_ = alignment->value_or(kGgufDefaultAlignment);
    if (IsGgufAlignment(alignment_)) return absl::OkStatus();
    return contents_.metadata.BadValue(
        kGgufAlignmentKey, absl::StrCat(alignment_),
        absl::StrCat("a power of two from ", kGgufMinAlignment, " to ",
                     kGgufMaxAlignment));
  }

  absl::Status ReadTensors() {
    absl::flat_hash_set<absl::string_view> names;
    for (uint64_t i = 0; i < tensor_count_; ++i) {
      absl::string_view name;
      if (!reader_.ReadString(&name)) {
        return CutOff(
            absl::StrCat("name of tensor ", i, " of ", tensor_count_));
      }
      TensorEntry entry;
      entry.tensor.name = std::string(name);
      if (name.empty() || !IsValidUtf8(name)) {
        return TensorError(entry.tensor,
                           absl::StrCat("it is tensor ", i, " of the file"),
                           "expected a name in UTF-8");
      }
      const absl::Status status = ReadTensor(&entry);
      if (!status.ok()) return status;
      if (!names.insert(name).second) {
        return TensorError(entry.tensor, "the name is there twice",
                           "write the file again with one of them");
      }
      entries_.push_back(std::move(entry));
    }
    return absl::OkStatus();
  }

  absl::Status ReadTensor(TensorEntry* entry) {
    GgufTensor& tensor = entry->tensor;
    uint32_t dim_count;
    if (!reader_.Read(&dim_count)) return CutOff("tensor list ends");
    if (dim_count == 0 || dim_count > kGgufMaxDims) {
      return TensorError(tensor,
                         absl::StrCat("it has ", dim_count, " dimensions"),
                         absl::StrCat("expected 1 to ", kGgufMaxDims));
    }
    const uint64_t file_bytes = file_->bytes().size();
    uint64_t rows = 1;
    for (uint32_t i = 0; i < dim_count; ++i) {
      uint64_t dim;
      if (!reader_.Read(&dim)) return CutOff("tensor list ends");
      if (dim == 0 || dim > kMaxRowElements) {
        return TensorError(tensor, absl::StrCat("dimension ", i, " is ", dim),
                           absl::StrCat("expected 1 to ", kMaxRowElements));
      }
      // A row has at least one byte, so more rows than the file has bytes
      // cannot be there, and neither product below can wrap.
      if (i > 0 && dim > file_bytes / rows) {
        return TensorError(
            tensor,
            absl::StrCat("dimensions up to ", i, " (", dim,
                         ") give more rows than the file has bytes (",
                         file_bytes, ")"),
            "the file is damaged or cut off, download it again");
      }
      if (i > 0) rows *= dim;
      tensor.dims.push_back(static_cast<int64_t>(dim));
    }
    uint32_t type_id;
    if (!reader_.Read(&type_id) || !reader_.Read(&entry->relative_offset)) {
      return CutOff("tensor list ends");
    }
    const std::optional<DType> type = DTypeFromGgufId(type_id);
    if (!type.has_value() || *type == DType::kI32) {
      return TensorError(
          tensor,
          absl::StrCat("it has type ", GgufTensorTypeName(type_id),
                       ", which is not supported"),
          absl::StrCat("use a model in ", StoredTypeNames()));
    }
    tensor.type = *type;
    const int block = Info(*type).block_elements;
    if (tensor.dims[0] % block != 0) {
      return TensorError(
          tensor,
          absl::StrCat("a row has ", tensor.dims[0],
                       " elements, not a multiple ", "of the ", block, " of a ",
                       UpperName(*type), " block"),
          "quantise this tensor to another type");
    }
    const uint64_t row_bytes = RowBytes(*type, tensor.dims[0]);
    if (row_bytes > file_bytes / rows) {
      return TensorError(
          tensor,
          absl::StrCat("its data takes ", rows, " rows of ", row_bytes,
                       " bytes, the whole file has ", file_bytes),
          "the file is damaged or cut off, download it again");
    }
    entry->bytes = rows * row_bytes;
    return absl::OkStatus();
  }

  absl::Status PlaceTensors() {
    if (entries_.empty()) return absl::OkStatus();
    const uint64_t file_bytes = file_->bytes().size();
    const uint64_t data_begin = AlignUp(reader_.position(), alignment_);
    for (TensorEntry& entry : entries_) {
      const uint64_t offset = entry.relative_offset;
      if (offset % alignment_ != 0) {
        return TensorError(
            entry.tensor, absl::StrCat("its data offset is ", offset),
            absl::StrCat("expected a multiple of the alignment ", alignment_));
      }
      const uint64_t room =
          data_begin > file_bytes ? 0 : file_bytes - data_begin;
      const uint64_t present =
          offset >= room ? 0 : std::min(entry.bytes, room - offset);
      if (present < entry.bytes) {
        return Error(
            "file is cut off",
            absl::StrCat("tensor ", QuoteForMessage(entry.tensor.name),
                         " needs ", entry.bytes, " bytes at offset ", offset,
                         " of the data, ", present, " are present"),
            "copy or download it again");
      }
      entry.tensor.offset = data_begin + offset;
      entry.tensor.data =
          file_->bytes().subspan(entry.tensor.offset, entry.bytes);
      entry.tensor.file = file_;
    }
    const absl::Status status = CheckOverlap();
    if (!status.ok()) return status;
    contents_.tensors.reserve(entries_.size());
    for (TensorEntry& entry : entries_) {
      contents_.tensors.push_back(std::move(entry.tensor));
    }
    return absl::OkStatus();
  }

  absl::Status CheckOverlap() const {
    std::vector<const GgufTensor*> order;
    order.reserve(entries_.size());
    for (const TensorEntry& entry : entries_) order.push_back(&entry.tensor);
    std::sort(order.begin(), order.end(),
              [](const GgufTensor* a, const GgufTensor* b) {
                return a->offset < b->offset;
              });
    for (size_t i = 1; i < order.size(); ++i) {
      const GgufTensor& before = *order[i - 1];
      if (order[i]->offset < before.offset + before.data.size()) {
        return TensorError(*order[i],
                           absl::StrCat("its data overlaps that of tensor ",
                                        QuoteForMessage(before.name)),
                           "the file is damaged, download it again");
      }
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<const MappedFile> file_;
  ByteReader reader_;
  GgufContents contents_;
  std::vector<TensorEntry> entries_;
  uint64_t tensor_count_ = 0;
  uint64_t key_count_ = 0;
  uint64_t alignment_ = kGgufDefaultAlignment;
};

}  // namespace

int64_t GgufTensor::elements() const {
  int64_t product = 1;
  for (int64_t dim : dims) product *= dim;
  return product;
}

std::string GgufTensor::ShapeText() const { return GgufShapeText(dims); }

std::string GgufShapeText(absl::Span<const int64_t> dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ", "), "]");
}

std::string GgufTensorTypeName(uint32_t id) {
  constexpr size_t kCount =
      sizeof(kTensorTypeNames) / sizeof(kTensorTypeNames[0]);
  if (id < kCount) return kTensorTypeNames[id];
  if (id >= kFirstOfIk && id - kFirstOfIk < std::size(kTypeNamesOfIk) &&
      kTypeNamesOfIk[id - kFirstOfIk][0] != '\0') {
    return absl::StrCat(kTypeNamesOfIk[id - kFirstOfIk], " (of ik_llama.cpp)");
  }
  return absl::StrCat("number ", id);
}

absl::StatusOr<GgufContents> ParseGguf(std::shared_ptr<const MappedFile> file) {
  return Parser(std::move(file)).Run();
}

}  // namespace weft
