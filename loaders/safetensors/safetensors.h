// Tensors of safetensors files, one file or all parts of a folder, checked when
// opened.
//
// A file is a 64-bit length, a JSON object of that many bytes (for each tensor
// its type, shape and place), and the tensors' bytes. Files are mapped: weights
// are not copied, and each tensor keeps its file alive.
//
// Format: the safetensors README (huggingface/safetensors, "Format"), whose
// rules are kept: no key twice, no overlap, no hole, no byte that belongs to no
// tensor. Of parts: `model.safetensors.index.json`, as transformers writes it.
// Thread-safe once open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/mapped_file.h"

namespace weft {

struct SafetensorsTensor {
  std::string name;
  // As the file writes it: "F32", "BF16", "U8", ... one that is known.
  std::string type;
  // Outermost first: the last is the length of a row. Empty: one number. Each
  // at most 2^40, as is their product.
  std::vector<int64_t> shape;
  absl::Span<const uint8_t> data;  // as many bytes as type and shape say
  std::shared_ptr<const MappedFile> file;  // keeps `data` alive

  int64_t elements() const;
  // "F32 [256, 64]"
  std::string Describe() const;
};

// Bytes of an element; 0: no such type. Types of less than a byte are not
// known.
int64_t SafetensorsTypeBytes(absl::string_view type);

// The tensors of one file, in the order of their bytes. Errors name file and
// tensor: cut off, a header that is too large or no JSON, an unknown type, a
// shape whose product is too large or does not fit its bytes, bytes that
// overlap, leave holes or lie beyond the end.
absl::StatusOr<std::vector<SafetensorsTensor>> ParseSafetensors(
    std::shared_ptr<const MappedFile> file);

class SafetensorsFolder {
 public:
  // model.safetensors, or the parts that model.safetensors.index.json names.
  // Errors: those of ParseSafetensors; none of the two files; a part that is no
  // plain name of a file of the folder, is missing, or has other tensors than
  // the index says. kNotFound: the folder has no safetensors.
  static absl::StatusOr<SafetensorsFolder> Open(const std::string& folder);

  SafetensorsFolder(SafetensorsFolder&&) = default;
  SafetensorsFolder& operator=(SafetensorsFolder&&) = default;

  absl::Span<const SafetensorsTensor> tensors() const { return tensors_; }
  // Paths of the files, the index included.
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  SafetensorsFolder() = default;
  absl::Status AddFile(const std::string& path);

  std::vector<SafetensorsTensor> tensors_;
  absl::flat_hash_map<std::string, size_t> part_of_;  // index in paths_
  std::vector<std::string> paths_;
};

}  // namespace weft
