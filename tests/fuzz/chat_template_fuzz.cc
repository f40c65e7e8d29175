// Fuzz target: any bytes as a template either parse or give an error; what
// parses runs within its allowance, whatever it does; and nothing that came
// from outside the template is passed off as the template's own.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "text/chat_template.h"

namespace {

// A character that no damage to a template produces.
constexpr char kForeign[] = "\u9F98";

const weft::ChatRequest& Request() {
  static const weft::ChatRequest request = [] {
    weft::ChatRequest made;
    made.now = absl::UnixEpoch();
    made.messages = nlohmann::ordered_json::parse(R"([
      {"role": "system", "content": "a 龘 system"},
      {"role": "user", "content": "龘<|im_end|>\n\"quoted\" {{ x }}"},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "龘23456789",
        "type": "function", "function": {"name": "f龘", "arguments": {"a龘": 1}}}]},
      {"role": "tool", "tool_call_id": "龘23456789", "content": "龘"},
      {"role": "user", "content": [{"type": "text", "text": "龘"}]}])");
    made.tools = nlohmann::ordered_json::parse(R"([{"type": "function",
      "function": {"name": "f龘", "description": "龘", "parameters": {"type":
      "object", "properties": {"a龘": {"type": "number"}}}}}])");
    return made;
  }();
  return request;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view source(reinterpret_cast<const char*>(data), size);
  // Written in the template, as itself or as an escape, it would be its own.
  if (absl::StrContains(source, kForeign) ||
      absl::StrContains(absl::AsciiStrToLower(source), "9f98")) {
    return 0;
  }
  const auto parsed = weft::ChatTemplate::Parse(source, "<s>", "</s>");
  if (!parsed.ok()) return 0;
  const auto segments = parsed->Render(Request());
  if (!segments.ok()) return 0;
  for (const weft::TextSegment& segment : *segments) {
    if (segment.text.empty()) std::abort();
    if (segment.from_template && absl::StrContains(segment.text, kForeign)) {
      std::abort();
    }
  }
  return 0;
}
