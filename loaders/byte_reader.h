// Reads little-endian values from bytes that nobody has checked.
//
// Every read compares with the bytes that are left before it touches them, and
// a failed read leaves the position where it was. The host is little-endian, as
// all supported processors are.
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

class ByteReader {
 public:
  // The bytes must outlive the reader and every string it gives out.
  explicit ByteReader(absl::Span<const uint8_t> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t left() const { return bytes_.size() - position_; }

  // The bytes from `begin` to the present position.
  absl::Span<const uint8_t> Since(uint64_t begin) const {
    return bytes_.subspan(begin, position_ - begin);
  }

  bool Skip(uint64_t count) {
    if (count > left()) return false;
    position_ += count;
    return true;
  }

  template <typename T>
  bool Read(T* value) {
    if (sizeof(T) > left()) return false;
    std::memcpy(value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }

  // A 64-bit length and that many bytes. The view points into the input.
  bool ReadString(absl::string_view* value) {
    const uint64_t begin = position_;
    uint64_t length;
    if (!Read(&length)) return false;
    if (length > left()) {
      position_ = begin;
      return false;
    }
    *value = absl::string_view(
        reinterpret_cast<const char*>(bytes_.data() + position_), length);
    position_ += length;
    return true;
  }

 private:
  absl::Span<const uint8_t> bytes_;
  uint64_t position_ = 0;
};

}  // namespace weft
