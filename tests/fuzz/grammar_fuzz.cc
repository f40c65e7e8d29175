// Fuzz target: any bytes as a grammar, or as a JSON schema, either compile or
// give an error; what compiles can be matched against any text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "text/grammar/automaton.h"
#include "text/grammar/compiled.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/json_schema.h"

namespace {

constexpr absl::string_view kTexts[] = {
    "a = (b+1)-23\n[\"\u4e2d\\x\",[]]",
    R"({"name": "x", "id": "ab12-3", "when": "2024-01-01T00:00:00Z", "n": 12,
        "kind": {"x":[]}, "or": null, "pair": [1.5, {}], "kids": [{"name": "y",
        "n": -1}], "z": "more"})",
    "\x00\xff\xf4\x90((((((((((((((((((((((((((((((((",
};

void Try(const absl::StatusOr<weft::grammar::Syntax>& syntax) {
  if (!syntax.ok()) return;
  const auto compiled = weft::grammar::Compiled::Create(*syntax);
  if (!compiled.ok()) return;
  for (const absl::string_view text : kTexts) {
    weft::grammar::Automaton automaton(&*compiled);
    int32_t set = automaton.SetAt({compiled->start(), 0});
    for (const char c : text) {
      const int32_t next = automaton.Step(set, static_cast<uint8_t>(c));
      // What is alive has a next byte or may end.
      if (next != weft::grammar::Automaton::kDead &&
          automaton.places(next).empty() && !automaton.ended(next)) {
        std::abort();
      }
      set = next;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view source(reinterpret_cast<const char*>(data), size);
  Try(weft::grammar::ParseGbnf(source));
  const auto json = nlohmann::ordered_json::parse(source, nullptr,
                                                  /*allow_exceptions=*/false);
  if (!json.is_discarded()) Try(weft::grammar::FromJsonSchema(json));
  return 0;
}
