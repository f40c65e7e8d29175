// Fuzz target: any bytes either are a safetensors file or give an error. All
// tensor data is read, so that a span that points outside shows under a
// sanitizer.
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "absl/types/span.h"
#include "base/mapped_file.h"
#include "loaders/safetensors/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto tensors = weft::ParseSafetensors(
      weft::MappedFile::FromStatic(absl::MakeConstSpan(data, size), "input"));
  if (!tensors.ok()) return 0;
  unsigned sum = 0;
  for (const weft::SafetensorsTensor& tensor : *tensors) {
    sum += static_cast<unsigned>(tensor.elements());
    sum = std::accumulate(tensor.data.begin(), tensor.data.end(), sum);
  }
  // Keeps it from being optimised away.
  volatile unsigned used = sum;
  static_cast<void>(used);
  return 0;
}
