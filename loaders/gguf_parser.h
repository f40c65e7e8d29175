// Parses one GGUF file (one part of a split model) and checks all of it: the
// header, every key, every tensor's type, shape, offset and size.
//
// Nothing is allocated from a number in the file before that number has been
// compared with the bytes that are there, and the work is linear in the size of
// the header (sorting aside). Tensor data is not read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mapped_file.h"
#include "graph/dtype.h"
#include "loaders/gguf_metadata.h"

namespace weft {

struct GgufTensor {
  std::string name;
  DType type = DType::kF32;
  // One to four, each at least 1, in GGUF order: dims[0] is the row length and
  // a multiple of the type's block.
  std::vector<int64_t> dims;
  // All rows, one after the other. Aligned as the file says (at least to 8
  // bytes) when the file itself is.
  absl::Span<const uint8_t> data;
  std::shared_ptr<const MappedFile> file;  // keeps `data` alive
  uint64_t offset = 0;                     // of `data` in its file
  // What keeps `data` alive where a program gave the tensor other bytes
  // (GgufFile::SetData); null: it lies in the file.
  std::shared_ptr<const std::vector<uint8_t>> made;

  int64_t elements() const;
  // "[2048, 256]"
  std::string ShapeText() const;
};

std::string GgufShapeText(absl::Span<const int64_t> dims);

struct GgufContents {
  uint32_t version = 0;  // 2 or 3
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;
};

// Errors: not a GGUF file, wrong byte order, unsupported version, cut off, keys
// or tensors twice, bad `general.alignment`, unsupported tensor type, bad
// shape, data misplaced, overlapping or beyond the end.
absl::StatusOr<GgufContents> ParseGguf(std::shared_ptr<const MappedFile> file);

// "IQ2_XXS" for 16, "number 77" for one that has no name here.
std::string GgufTensorTypeName(uint32_t id);

}  // namespace weft
