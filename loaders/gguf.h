// A GGUF model file: metadata and tensors, checked when opened.
//
// Reads versions 2 and 3, little-endian, and models split into several files.
// Files without tensors (vocabulary only) are fine. Weights are not copied:
// tensor data points into mapped files, which each tensor keeps alive.
//
// Format: GGUF specification (ggml-org/ggml docs/gguf.md). Thread-safe once
// open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/mapped_file.h"
#include "loaders/gguf_metadata.h"
#include "loaders/gguf_parser.h"

namespace weft {

// Of a split model, the metadata is that of the first part.
class GgufFile : public GgufMetadata {
 public:
  // Of a split model (`x-00001-of-00003.gguf`) any part may be named; all parts
  // must lie in one folder. Errors are those of MappedFile::Open and ParseGguf,
  // and for a split model: a part is missing, belongs to another split, or the
  // parts do not hold the tensors that the first one announces.
  static absl::StatusOr<GgufFile> Open(const std::string& path);

  // A whole model in one file or memory block (the embedded model), which
  // should begin at a multiple of the alignment in it (by default 32 bytes).
  static absl::StatusOr<GgufFile> FromFile(
      std::shared_ptr<const MappedFile> file);

  GgufFile(GgufFile&&) = default;
  GgufFile& operator=(GgufFile&&) = default;

  uint32_t version() const { return version_; }

  // In the order of the file, part after part. Names are unique.
  absl::Span<const GgufTensor> tensors() const { return tensors_; }
  // Null when there is none of that name.
  const GgufTensor* FindTensor(absl::string_view name) const;

  // Gives tensor `index` other bytes, as many as it has. What is asked for
  // afterwards has them; the file stays as it is.
  void SetData(size_t index, std::shared_ptr<const std::vector<uint8_t>> data) {
    tensors_[index].data = *data;
    tensors_[index].made = std::move(data);
    altered_ = true;
  }
  // Whether some tensor has other bytes than the file.
  bool altered() const { return altered_; }

  // All parts together.
  int64_t file_bytes() const { return file_bytes_; }
  int part_count() const { return part_count_; }

 private:
  explicit GgufFile(GgufContents first_part);
  static absl::StatusOr<GgufFile> FromContents(GgufContents contents,
                                               const MappedFile& file);
  static absl::StatusOr<GgufFile> OpenSplit(const std::string& path,
                                            uint64_t part_count);
  absl::Status AddTensors(std::vector<GgufTensor> tensors);

  uint32_t version_;
  std::vector<GgufTensor> tensors_;
  absl::flat_hash_map<std::string, size_t> tensor_index_;
  int64_t file_bytes_ = 0;
  int part_count_ = 1;
  bool altered_ = false;
};

}  // namespace weft
