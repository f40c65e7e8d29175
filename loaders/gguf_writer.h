// Writes GGUF version 3 files, little-endian.
//
// Keys and tensors stand in the file in the order they were set, padding is
// zero and nothing depends on time or place: equal calls give equal bytes.
// Tensor data is asked for one tensor at a time while writing, so big models
// need not be in memory.
//
// Layout: GGUF specification (ggml-org/ggml docs/gguf.md). Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/dtype.h"
#include "loaders/gguf_metadata.h"
#include "loaders/gguf_value.h"

namespace weft {

class GgufWriter {
 public:
  // Takes the next bytes of a tensor.
  using Sink = std::function<absl::Status(absl::Span<const uint8_t>)>;
  // Gives all bytes of a tensor to the sink, in pieces of any size.
  using Producer = std::function<absl::Status(const Sink& sink)>;

  // Setting a key again replaces its value and keeps its place.
  void SetUint8(absl::string_view key, uint8_t value);
  void SetInt8(absl::string_view key, int8_t value);
  void SetUint16(absl::string_view key, uint16_t value);
  void SetInt16(absl::string_view key, int16_t value);
  void SetUint32(absl::string_view key, uint32_t value);
  void SetInt32(absl::string_view key, int32_t value);
  void SetUint64(absl::string_view key, uint64_t value);
  void SetInt64(absl::string_view key, int64_t value);
  void SetFloat32(absl::string_view key, float value);
  void SetFloat64(absl::string_view key, double value);
  void SetBool(absl::string_view key, bool value);
  void SetString(absl::string_view key, absl::string_view value);

  void SetUint8s(absl::string_view key, absl::Span<const uint8_t> values);
  void SetInt8s(absl::string_view key, absl::Span<const int8_t> values);
  void SetUint16s(absl::string_view key, absl::Span<const uint16_t> values);
  void SetInt16s(absl::string_view key, absl::Span<const int16_t> values);
  void SetUint32s(absl::string_view key, absl::Span<const uint32_t> values);
  void SetInt32s(absl::string_view key, absl::Span<const int32_t> values);
  void SetUint64s(absl::string_view key, absl::Span<const uint64_t> values);
  void SetInt64s(absl::string_view key, absl::Span<const int64_t> values);
  void SetFloat32s(absl::string_view key, absl::Span<const float> values);
  void SetFloat64s(absl::string_view key, absl::Span<const double> values);
  void SetBools(absl::string_view key, absl::Span<const bool> values);
  void SetStrings(absl::string_view key,
                  absl::Span<const absl::string_view> values);
  void SetStrings(absl::string_view key, absl::Span<const std::string> values);

  // A value in the file's own encoding, without its type tag: nested arrays,
  // and values of another file (GgufValue::encoded).
  void SetEncoded(absl::string_view key, GgufType type,
                  absl::Span<const uint8_t> encoded);

  // Every key of `source` but those that describe its files (`split.*`).
  // `general.alignment` comes along and is obeyed.
  void CopyMetadata(const GgufMetadata& source);

  void Remove(absl::string_view key);

  // Default 32. Sets `general.alignment`. A power of two from 8 to 2^30.
  void SetAlignment(uint32_t alignment);

  // `dims` in GGUF order, dims[0] the row length. `data` must stay valid until
  // WriteTo has returned.
  void AddTensor(absl::string_view name, DType type, std::vector<int64_t> dims,
                 absl::Span<const uint8_t> data);
  // `producer` is called once by each WriteTo, tensors in the order added.
  void AddTensor(absl::string_view name, DType type, std::vector<int64_t> dims,
                 Producer producer);
  // A tensor of zeros that takes no space on disk where the file system has
  // holes.
  void AddHole(absl::string_view name, DType type, std::vector<int64_t> dims);

  // May refuse a file that is whole, under its temporary name.
  using Check = std::function<absl::Status(const std::string& path)>;

  // Writes to a temporary name beside `path`, then renames: `path` is either
  // the whole file or what it was before. Errors: a tensor of a type that
  // cannot stand in a file, of bad dims, added twice or with too few or too
  // many bytes; a bad alignment; whatever a producer, the check or the system
  // says.
  absl::Status WriteTo(const std::string& path,
                       const Check& check = nullptr) const;
  // The file as it would be without tensors: for those who read metadata.
  absl::StatusOr<std::string> WithoutTensors() const;

 private:
  struct KeyValue {
    std::string key;
    GgufType type;
    std::string encoded;
  };
  struct Tensor {
    std::string name;
    DType type;
    std::vector<int64_t> dims;
    Producer producer;  // null: a hole
  };

  template <typename T>
  void SetScalar(absl::string_view key, GgufType type, T value);
  template <typename T>
  void SetArray(absl::string_view key, GgufType type,
                absl::Span<const T> values);
  template <typename T>
  void SetStringArray(absl::string_view key, absl::Span<const T> values);
  void Set(absl::string_view key, GgufType type, std::string encoded);

  absl::StatusOr<uint64_t> Alignment() const;
  // Bytes of each tensor's data.
  absl::StatusOr<std::vector<uint64_t>> TensorBytes() const;
  // All before the data section, padding included.
  std::string Header(const std::vector<uint64_t>& tensor_bytes,
                     uint64_t alignment) const;

  std::vector<KeyValue> keys_;
  std::vector<Tensor> tensors_;
};

}  // namespace weft
