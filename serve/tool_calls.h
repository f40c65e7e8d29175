// Calls of tools in what a model writes.
//
// Idea: models write calls as text, in one of few customs, and the custom is
// known from the chat template, which shows earlier calls in it:
//   kTagged  <tool_call>{"name": .., "arguments": {..}}</tool_call>, any number
//            of them, after text or not (Hermes, Qwen)
//   kBare    the whole text is one such object, "parameters" instead of
//            "arguments" (Llama 3)
// Text is handed on as it comes; from where a call may begin it is held back
// until it is clear. What looks like a call but is none (no JSON, a tool that
// was not offered) is text, as it is.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weft {

enum class ToolCustom { kNone, kTagged, kBare };

// By what the template's source prints.
ToolCustom ToolCustomOf(absl::string_view template_source);

struct ToolCall {
  std::string id;         // "call_..."
  std::string name;       // one of the tools
  std::string arguments;  // the text of a JSON object
};

struct ParsedAnswer {
  std::string content;
  std::vector<ToolCall> calls;
};

// One choice of one answer. Not thread-safe.
class ToolCallReader {
 public:
  // `tools` as in the request, or null. `id` begins the ids of calls; it should
  // differ between choices.
  ToolCallReader(ToolCustom custom, const nlohmann::ordered_json& tools,
                 std::string id);

  // More text; what of it is certainly no call.
  std::string Push(absl::string_view text);
  // The rest of the text, and all calls.
  ParsedAnswer Finish();

 private:
  // kText: whatever comes is no call.
  enum class State { kOpen, kCall, kText };

  bool ReadCall(absl::string_view text, std::vector<ToolCall>* calls) const;
  void ReadTagged(ParsedAnswer* answer);

  const ToolCustom custom_;
  const std::string id_;
  std::vector<std::string> names_;
  std::string held_;  // may belong to a call
  State state_ = State::kOpen;
};

}  // namespace weft
