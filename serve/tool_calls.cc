#include "serve/tool_calls.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "serve/json_fields.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

constexpr absl::string_view kOpen = "<tool_call>";
constexpr absl::string_view kClose = "</tool_call>";

// How much of the end of `text` may be the beginning of `tag`.
size_t BeginningAtEnd(absl::string_view text, absl::string_view tag) {
  size_t size = std::min(text.size(), tag.size() - 1);
  while (size > 0 && !absl::EndsWith(text, tag.substr(0, size))) --size;
  return size;
}

}  // namespace

ToolCustom ToolCustomOf(absl::string_view template_source) {
  if (absl::StrContains(template_source, kOpen)) return ToolCustom::kTagged;
  if (absl::StrContains(template_source, "\"parameters\": ") &&
      absl::StrContains(template_source, "\"name\": ")) {
    return ToolCustom::kBare;
  }
  return ToolCustom::kNone;
}

ToolCallReader::ToolCallReader(ToolCustom custom, const json& tools,
                               std::string id)
    : custom_(custom), id_(std::move(id)) {
  if (!tools.is_array() || custom == ToolCustom::kNone) {
    state_ = State::kText;
    return;
  }
  for (const json& tool : tools) {
    names_.push_back(tool["function"]["name"].get<std::string>());
  }
}

std::string ToolCallReader::Push(absl::string_view text) {
  if (state_ == State::kText) return std::string(text);
  absl::StrAppend(&held_, text);
  if (state_ == State::kCall) return "";
  size_t certain = 0;
  if (custom_ == ToolCustom::kTagged) {
    const size_t open = absl::string_view(held_).find(kOpen);
    if (open != std::string::npos) state_ = State::kCall;
    certain = open != std::string::npos
                  ? open
                  : held_.size() - BeginningAtEnd(held_, kOpen);
  } else {
    // A bare call is the whole text or there is none.
    const absl::string_view rest = absl::StripLeadingAsciiWhitespace(held_);
    if (rest.empty()) return "";
    state_ = rest[0] == '{' ? State::kCall : State::kText;
    certain = state_ == State::kText ? held_.size() : 0;
  }
  std::string text_now = held_.substr(0, certain);
  held_.erase(0, certain);
  return text_now;
}

bool ToolCallReader::ReadCall(absl::string_view text,
                              std::vector<ToolCall>* calls) const {
  absl::StatusOr<json> parsed = ParseJson(text);
  if (!parsed.ok() || !parsed->is_object()) return false;
  const auto name = parsed->find("name");
  auto arguments = parsed->find("arguments");
  if (arguments == parsed->end()) arguments = parsed->find("parameters");
  if (name == parsed->end() || !name->is_string() ||
      !absl::c_linear_search(names_, name->get<std::string>())) {
    return false;
  }
  ToolCall call;
  call.id = absl::StrCat("call_", id_, "_", calls->size());
  call.name = name->get<std::string>();
  call.arguments = "{}";
  if (arguments != parsed->end()) {
    if (!arguments->is_object()) return false;
    call.arguments = arguments->dump();
  }
  calls->push_back(std::move(call));
  return true;
}

// Calls one after the other with space between; the rest is text again.
void ToolCallReader::ReadTagged(ParsedAnswer* answer) {
  absl::string_view rest = held_;
  while (absl::StartsWith(rest, kOpen)) {
    const size_t close = rest.find(kClose);
    // The end of the text closes the last one, too.
    const absl::string_view inside = rest.substr(
        kOpen.size(),
        close == absl::string_view::npos ? close : close - kOpen.size());
    if (!ReadCall(inside, &answer->calls)) break;
    rest = close == absl::string_view::npos
               ? ""
               : rest.substr(close + kClose.size());
    const absl::string_view after = absl::StripLeadingAsciiWhitespace(rest);
    if (absl::StartsWith(after, kOpen) || after.empty()) rest = after;
  }
  absl::StrAppend(&answer->content, rest);
}

ParsedAnswer ToolCallReader::Finish() {
  ParsedAnswer answer;
  if (custom_ == ToolCustom::kTagged) {
    ReadTagged(&answer);
  } else if (held_.empty() || !ReadCall(held_, &answer.calls)) {
    answer.content = held_;
  }
  held_.clear();
  return answer;
}

}  // namespace weft
