// Fuzz target: any bytes either are an adapter or give an error; what is read
// of one is all numbers that it says, finite, and fits or does not fit the file
// itself taken for a model.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/types/span.h"
#include "base/mapped_file.h"
#include "loaders/lora_adapter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto mapped =
      weft::MappedFile::FromStatic(absl::MakeConstSpan(data, size), "input");
  const auto file = weft::GgufFile::FromFile(mapped);
  if (!file.ok()) return 0;
  const auto adapter = weft::LoraAdapter::FromFile(*file);
  if (!adapter.ok()) return 0;
  for (const weft::LoraAdapter::Pair& pair : (*adapter)->pairs()) {
    const size_t ranks = static_cast<size_t>(pair.parts * pair.rank);
    if (pair.a.size() != ranks * pair.inputs ||
        pair.b.size() != ranks * pair.outputs) {
      std::abort();
    }
    for (const std::vector<float>* numbers : {&pair.a, &pair.b}) {
      for (float number : *numbers) {
        if (!std::isfinite(number)) std::abort();
      }
    }
  }
  static_cast<void>((*adapter)->CheckFits(*file));
  return 0;
}
