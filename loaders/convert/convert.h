// A published folder (config.json, tokenizer.json, safetensors) as a GGUF file.
//
// What a family of models is called on both sides are tables (family.h); here
// they are obeyed: keys, vocabulary and tensors are put together, and the file
// is written tensor by tensor, so memory stays at a few megabytes beside the
// mapped weights and the vocabulary. Equal folders give equal bytes.
//
// Names and what is done to weights are those of llama.cpp's converters, for
// which files and readers are made.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/dtype.h"

namespace weft {

struct ConvertOptions {
  // Of matrices: F32, F16 or BF16; unset: as they are stored. What is small and
  // matters is F32 in any case, and blocks of MXFP4 stay what they are.
  std::optional<DType> type;
  // `tokenizer.ggml.pre`, in place of the name that is found.
  std::string pre;
  // `general.name`; empty: the folder's.
  std::string name;
  // Called before each tensor; may be empty.
  std::function<void(const std::string& tensor, int done, int total)> progress;
};

struct ConvertReport {
  std::string architecture;  // `general.architecture`
  int64_t parameters = 0;
  int64_t tensor_bytes = 0;
  // The type that most bytes have: F32, F16, BF16 or MXFP4.
  DType type = DType::kF32;
  // One line each: what may make the result differ from what was published.
  std::vector<std::string> warnings;
};

// Writes `result_path` whole or not at all. Errors name file and key or tensor:
// no such folder or files, files that are damaged, an architecture that no
// family has, a key that changes results and is not obeyed, tensors that no
// rule has or that do not fit together, a vocabulary that no reader has; and
// whatever a reader of models says of the file, before it takes its place.
absl::StatusOr<ConvertReport> ConvertFolder(const std::string& folder,
                                            const std::string& result_path,
                                            const ConvertOptions& options);

// Whether a path is a folder that looks like one to convert: it has a
// config.json and safetensors.
bool IsConvertibleFolder(const std::string& path);

// What a conversion depends on: paths, sizes and times of all files that it
// reads, a line each. Equal texts: the folder was not written to. Errors: those
// of the file system.
absl::StatusOr<std::string> FolderStamp(const std::string& folder);

}  // namespace weft
