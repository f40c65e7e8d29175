#include "loaders/gguf_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/output_file.h"
#include "base/status.h"
#include "loaders/gguf_format.h"

namespace weft {
namespace {

template <typename T>
void Append(T value, std::string* out) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

void AppendString(absl::string_view text, std::string* out) {
  Append<uint64_t>(text.size(), out);
  out->append(text.data(), text.size());
}

uint64_t PaddingAfter(uint64_t bytes, uint64_t alignment) {
  return (alignment - bytes % alignment) % alignment;
}

absl::Status TensorError(absl::string_view name, absl::string_view found,
                         absl::string_view action) {
  return absl::InvalidArgumentError(absl::StrCat("cannot write tensor ",
                                                 QuoteForMessage(name), ": ",
                                                 found, ": ", action));
}

}  // namespace

void GgufWriter::Set(absl::string_view key, GgufType type,
                     std::string encoded) {
  for (KeyValue& entry : keys_) {
    if (entry.key == key) {
      entry.type = type;
      entry.encoded = std::move(encoded);
      return;
    }
  }
  keys_.push_back({std::string(key), type, std::move(encoded)});
}

template <typename T>
void GgufWriter::SetScalar(absl::string_view key, GgufType type, T value) {
  std::string encoded;
  Append(value, &encoded);
  Set(key, type, std::move(encoded));
}

template <typename T>
void GgufWriter::SetArray(absl::string_view key, GgufType type,
                          absl::Span<const T> values) {
  std::string encoded;
  Append(static_cast<uint32_t>(type), &encoded);
  Append<uint64_t>(values.size(), &encoded);
  for (const T& value : values) Append(value, &encoded);
  Set(key, GgufType::kArray, std::move(encoded));
}

template <typename T>
void GgufWriter::SetStringArray(absl::string_view key,
                                absl::Span<const T> values) {
  std::string encoded;
  Append(static_cast<uint32_t>(GgufType::kString), &encoded);
  Append<uint64_t>(values.size(), &encoded);
  for (const T& value : values) AppendString(value, &encoded);
  Set(key, GgufType::kArray, std::move(encoded));
}

void GgufWriter::SetUint8(absl::string_view key, uint8_t value) {
  SetScalar(key, GgufType::kUint8, value);
}
void GgufWriter::SetInt8(absl::string_view key, int8_t value) {
  SetScalar(key, GgufType::kInt8, value);
}
void GgufWriter::SetUint16(absl::string_view key, uint16_t value) {
  SetScalar(key, GgufType::kUint16, value);
}
void GgufWriter::SetInt16(absl::string_view key, int16_t value) {
  SetScalar(key, GgufType::kInt16, value);
}
void GgufWriter::SetUint32(absl::string_view key, uint32_t value) {
  SetScalar(key, GgufType::kUint32, value);
}
void GgufWriter::SetInt32(absl::string_view key, int32_t value) {
  SetScalar(key, GgufType::kInt32, value);
}
void GgufWriter::SetUint64(absl::string_view key, uint64_t value) {
  SetScalar(key, GgufType::kUint64, value);
}
void GgufWriter::SetInt64(absl::string_view key, int64_t value) {
  SetScalar(key, GgufType::kInt64, value);
}
void GgufWriter::SetFloat32(absl::string_view key, float value) {
  SetScalar(key, GgufType::kFloat32, value);
}
void GgufWriter::SetFloat64(absl::string_view key, double value) {
  SetScalar(key, GgufType::kFloat64, value);
}
void GgufWriter::SetBool(absl::string_view key, bool value) {
  SetScalar<uint8_t>(key, GgufType::kBool, value ? 1 : 0);
}
void GgufWriter::SetString(absl::string_view key, absl::string_view value) {
  std::string encoded;
  AppendString(value, &encoded);
  Set(key, GgufType::kString, std::move(encoded));
}

void GgufWriter::SetUint8s(absl::string_view key,
                           absl::Span<const uint8_t> values) {
  SetArray(key, GgufType::kUint8, values);
}
void GgufWriter::SetInt8s(absl::string_view key,
                          absl::Span<const int8_t> values) {
  SetArray(key, GgufType::kInt8, values);
}
void GgufWriter::SetUint16s(absl::string_view key,
                            absl::Span<const uint16_t> values) {
  SetArray(key, GgufType::kUint16, values);
}
void GgufWriter::SetInt16s(absl::string_view key,
                           absl::Span<const int16_t> values) {
  SetArray(key, GgufType::kInt16, values);
}
void GgufWriter::SetUint32s(absl::string_view key,
                            absl::Span<const uint32_t> values) {
  SetArray(key, GgufType::kUint32, values);
}
void GgufWriter::SetInt32s(absl::string_view key,
                           absl::Span<const int32_t> values) {
  SetArray(key, GgufType::kInt32, values);
}
void GgufWriter::SetUint64s(absl::string_view key,
                            absl::Span<const uint64_t> values) {
  SetArray(key, GgufType::kUint64, values);
}
void GgufWriter::SetInt64s(absl::string_view key,
                           absl::Span<const int64_t> values) {
  SetArray(key, GgufType::kInt64, values);
}
void GgufWriter::SetFloat32s(absl::string_view key,
                             absl::Span<const float> values) {
  SetArray(key, GgufType::kFloat32, values);
}
void GgufWriter::SetFloat64s(absl::string_view key,
                             absl::Span<const double> values) {
  SetArray(key, GgufType::kFloat64, values);
}
void GgufWriter::SetBools(absl::string_view key,
                          absl::Span<const bool> values) {
  SetArray(key, GgufType::kBool, values);
}
void GgufWriter::SetStrings(absl::string_view key,
                            absl::Span<const absl::string_view> values) {
  SetStringArray(key, values);
}
void GgufWriter::SetStrings(absl::string_view key,
                            absl::Span<const std::string> values) {
  SetStringArray(key, values);
}

void GgufWriter::SetEncoded(absl::string_view key, GgufType type,
                            absl::Span<const uint8_t> encoded) {
  Set(key, type,
      std::string(reinterpret_cast<const char*>(encoded.data()),
                  encoded.size()));
}

void GgufWriter::CopyMetadata(const GgufMetadata& source) {
  for (const GgufKeyValue& entry : source.metadata()) {
    if (absl::StartsWith(entry.key, "split.")) continue;
    SetEncoded(entry.key, entry.value.type(), entry.value.encoded());
  }
}

void GgufWriter::Remove(absl::string_view key) {
  keys_.erase(
      std::remove_if(keys_.begin(), keys_.end(),
                     [key](const KeyValue& entry) { return entry.key == key; }),
      keys_.end());
}

void GgufWriter::SetAlignment(uint32_t alignment) {
  SetUint32(kGgufAlignmentKey, alignment);
}

void GgufWriter::AddTensor(absl::string_view name, DType type,
                           std::vector<int64_t> dims,
                           absl::Span<const uint8_t> data) {
  AddTensor(name, type, std::move(dims),
            [data](const Sink& sink) { return sink(data); });
}

void GgufWriter::AddTensor(absl::string_view name, DType type,
                           std::vector<int64_t> dims, Producer producer) {
  tensors_.push_back(
      {std::string(name), type, std::move(dims), std::move(producer)});
}

void GgufWriter::AddHole(absl::string_view name, DType type,
                         std::vector<int64_t> dims) {
  AddTensor(name, type, std::move(dims), Producer());
}

absl::StatusOr<uint64_t> GgufWriter::Alignment() const {
  for (const KeyValue& entry : keys_) {
    if (entry.key != kGgufAlignmentKey) continue;
    ByteReader reader(absl::MakeConstSpan(
        reinterpret_cast<const uint8_t*>(entry.encoded.data()),
        entry.encoded.size()));
    auto value = GgufValue::Read(static_cast<uint32_t>(entry.type), &reader);
    if (!value.ok()) return value.status();
    const uint64_t alignment = value->ToUint().value_or(0);
    if (!IsGgufAlignment(alignment)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot write file: ", kGgufAlignmentKey, " is ",
                       value->Print(), ": use a power of two from 8 to 2^30"));
    }
    return alignment;
  }
  return kGgufDefaultAlignment;
}

absl::StatusOr<std::vector<uint64_t>> GgufWriter::TensorBytes() const {
  constexpr int64_t kMaxElements = int64_t{1} << 40;
  absl::flat_hash_set<absl::string_view> names;
  std::vector<uint64_t> bytes;
  for (const Tensor& tensor : tensors_) {
    const DTypeInfo& info = Info(tensor.type);
    if (info.gguf_id < 0) {
      return TensorError(
          tensor.name,
          absl::StrCat("type ", info.name, " has no place in a GGUF file"),
          "use another type");
    }
    if (!names.insert(tensor.name).second) {
      return TensorError(tensor.name, "it was added twice", "add it once");
    }
    if (tensor.dims.empty() || tensor.dims.size() > kGgufMaxDims) {
      return TensorError(
          tensor.name,
          absl::StrCat("it has ", tensor.dims.size(), " dimensions"),
          "use 1 to 4");
    }
    int64_t elements = 1;
    for (int64_t dim : tensor.dims) {
      if (dim < 1 || dim >= kMaxElements / elements) {
        return TensorError(tensor.name, absl::StrCat("a dimension is ", dim),
                           "use 1 or more, and below 2^40 elements in all");
      }
      elements *= dim;
    }
    if (tensor.dims[0] % info.block_elements != 0) {
      return TensorError(
          tensor.name,
          absl::StrCat("a row has ", tensor.dims[0],
                       " elements, not a multiple of the ", info.block_elements,
                       " of a ", UpperName(tensor.type), " block"),
          "use another type");
    }
    bytes.push_back(static_cast<uint64_t>(RowBytes(tensor.type, elements)));
  }
  return bytes;
}

std::string GgufWriter::Header(const std::vector<uint64_t>& tensor_bytes,
                               uint64_t alignment) const {
  std::string header;
  Append(kGgufMagic, &header);
  Append(kGgufVersion, &header);
  Append<uint64_t>(tensors_.size(), &header);
  Append<uint64_t>(keys_.size(), &header);
  for (const KeyValue& entry : keys_) {
    AppendString(entry.key, &header);
    Append(static_cast<uint32_t>(entry.type), &header);
    header += entry.encoded;
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    AppendString(tensor.name, &header);
    Append(static_cast<uint32_t>(tensor.dims.size()), &header);
    for (int64_t dim : tensor.dims) Append(dim, &header);
    Append(static_cast<uint32_t>(Info(tensor.type).gguf_id), &header);
    Append(offset, &header);
    offset += tensor_bytes[i] + PaddingAfter(tensor_bytes[i], alignment);
  }
  header.append(PaddingAfter(header.size(), alignment), '\0');
  return header;
}

absl::StatusOr<std::string> GgufWriter::WithoutTensors() const {
  WEFT_ASSIGN_OR_RETURN(const uint64_t alignment, Alignment());
  GgufWriter keys_alone;
  keys_alone.keys_ = keys_;
  return keys_alone.Header({}, alignment);
}

absl::Status GgufWriter::WriteTo(const std::string& path,
                                 const Check& check) const {
  auto alignment = Alignment();
  if (!alignment.ok()) return alignment.status();
  auto tensor_bytes = TensorBytes();
  if (!tensor_bytes.ok()) return tensor_bytes.status();

  WEFT_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  const std::string header = Header(*tensor_bytes, *alignment);
  WEFT_RETURN_IF_ERROR(file.Write(
      0, absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(header.data()),
                             header.size())));
  // Of the next tensor. Padding and hollow tensors are never written.
  uint64_t begin = header.size();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    const uint64_t wanted = (*tensor_bytes)[i];
    uint64_t written = 0;
    if (tensor.producer != nullptr) {
      WEFT_RETURN_IF_ERROR(
          tensor.producer([&](absl::Span<const uint8_t> bytes) {
            if (bytes.size() > wanted - written) {
              return TensorError(tensor.name,
                                 absl::StrCat("its data is longer than the ",
                                              wanted, " bytes of its shape"),
                                 "give exactly that many");
            }
            const absl::Status status =
                file.Write(static_cast<int64_t>(begin + written), bytes);
            written += bytes.size();
            return status;
          }));
      if (written != wanted) {
        return TensorError(tensor.name,
                           absl::StrCat("its data has ", written, " of the ",
                                        wanted, " bytes of its shape"),
                           "give exactly that many");
      }
    }
    begin += wanted + PaddingAfter(wanted, *alignment);
  }
  WEFT_RETURN_IF_ERROR(file.Resize(static_cast<int64_t>(begin)));
  if (check) WEFT_RETURN_IF_ERROR(check(file.temporary_path()));
  return file.Commit();
}

}  // namespace weft
