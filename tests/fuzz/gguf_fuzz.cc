// Fuzz target: any bytes either load as a model or give an error. Besides the
// checks of a load it prints all metadata and reads all tensor data, so that a
// span that points outside shows under a sanitizer.
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "absl/types/span.h"
#include "base/mapped_file.h"
#include "tests/loaders/llama_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto mapped =
      weft::MappedFile::FromStatic(absl::MakeConstSpan(data, size), "input");
  auto file = weft::GgufFile::FromFile(mapped);
  if (!file.ok()) return 0;
  size_t printed = 0;
  for (const weft::GgufKeyValue& entry : file->metadata()) {
    printed += entry.value.Print().size();
  }
  unsigned sum = 0;
  for (const weft::GgufTensor& tensor : file->tensors()) {
    sum = std::accumulate(tensor.data.begin(), tensor.data.end(), sum);
  }
  // Keeps both from being optimised away.
  volatile size_t used = printed + sum;
  static_cast<void>(used);
  // Loading apart, each reader must stand alone: the others may have refused
  // first.
  static_cast<void>(weft::ReadVocabulary(*file));
  static_cast<void>(weft::CheckLlamaModel(file));
  return 0;
}
