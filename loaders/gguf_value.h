// One metadata value of a GGUF file, as a view of the file's bytes.
//
// Nothing is decoded before it is asked for: a vocabulary of 128,000 strings
// costs a pointer and a count. GgufValue::Read has walked over the whole value
// once, so later reads stay inside it.
//
// Types and layouts: GGUF specification (ggml-org/ggml docs/gguf.md), versions
// 2 and 3. Thread-safe; a value is valid while the file's bytes are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loaders/byte_reader.h"

namespace weft {

enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// "u32", "string", ...
const char* GgufTypeName(GgufType type);

class GgufValue {
 public:
  // Arrays inside arrays inside arrays: files use one level at most.
  static constexpr int kMaxArrayDepth = 8;

  // Reads and checks a value whose type tag was `type`. On an error (unknown
  // type, a count or length beyond the end, too deep a nesting) the message
  // says what was found, and the caller adds file and key.
  static absl::StatusOr<GgufValue> Read(uint32_t type, ByteReader* reader);

  GgufType type() const { return type_; }
  bool is_array() const { return type_ == GgufType::kArray; }
  // Arrays only: type of the elements and how many there are.
  GgufType element_type() const { return element_type_; }
  uint64_t count() const { return count_; }

  // "u32", "array of 36 f32".
  std::string TypeText() const;

  // Empty when the value is of another type or does not fit. Any integer type
  // serves as an integer (but not a bool), any number as a double.
  std::optional<uint64_t> ToUint() const;
  std::optional<int64_t> ToInt() const;
  std::optional<double> ToDouble() const;
  std::optional<bool> ToBool() const;
  std::optional<absl::string_view> ToString() const;

  // Calls `visit` for each element of an array until it returns false.
  void ForEach(absl::FunctionRef<bool(const GgufValue&)> visit) const;

  // For people, on one line: numbers, quoted strings with escapes,
  // "[1, 2, 3, ... 36 in all]" with at most `max_elements` shown at each level.
  std::string Print(uint64_t max_elements = 8) const;

  // The bytes of the value as the file holds them, without its type tag.
  absl::Span<const uint8_t> encoded() const { return encoded_; }

 private:
  static absl::StatusOr<GgufValue> ReadNested(uint32_t type, int depth,
                                              ByteReader* reader);

  template <typename T>
  T Load() const;

  GgufType type_ = GgufType::kUint8;
  GgufType element_type_ = GgufType::kUint8;
  uint64_t count_ = 0;
  absl::Span<const uint8_t> encoded_;
};

// Text from a file as it may stand in a one-line message: in quotes, escaped,
// and cut when long.
std::string QuoteForMessage(absl::string_view text);

}  // namespace weft
