// Fuzz target: any text either parses as a graph or gives an error; what parses
// prints to text that parses to the same; verification judges it without harm;
// and what is legal goes through a message and back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "graph/serialize.h"
#include "graph/text_format.h"
#include "ops/op_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto graph = weft::ParseGraph(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!graph.ok()) return 0;
  const std::string text = weft::Dump(*graph);
  const auto again = weft::ParseGraph(text);
  if (!again.ok() || weft::Dump(*again) != text) std::abort();
  if (!weft::VerifyGraph(*graph).ok()) return 0;
  const auto read = weft::FromProto(weft::ToProto(*graph), weft::FindOpSchema);
  if (!read.ok() || !weft::VerifyGraph(*read).ok()) std::abort();
  return 0;
}
