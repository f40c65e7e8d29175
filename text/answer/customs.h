// What one chat template is like: how its model writes calls and reasoning, and
// in what shape it takes the messages of a conversation with tools.
//
// Idea: nothing is told of a template but its source, so it is asked: a
// conversation with a call that is easily found again is rendered, in one shape
// after the other, until the call, its result and its text are all in what
// comes out. The form of calls is the one in which they can be read there
// (AnswerReader itself does); only where a template shows no calls, its source
// and the model's control tokens are looked at.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "text/answer/forms.h"
#include "text/chat_template.h"

namespace weft::answer {

struct TemplateCustoms {
  enum class Content { kEmpty, kNull, kAbsent };

  AnswerForms forms;
  // False: no form was found, and `forms` holds Hermes', as good as any.
  bool knows_form = false;
  bool shows_tools = false;

  // Of messages with calls: whether the template shows them; what stands for
  // absent content; whether it takes content beside calls.
  bool shows_calls = false;
  Content no_content = Content::kEmpty;
  bool content_with_calls = true;
  // Arguments as text, for templates that do not write objects.
  bool text_arguments = false;
  // Ids of calls must be nine letters and digits.
  bool short_ids = false;
  // One call in each message only.
  bool single_calls = false;
  // Whether it takes the role "tool".
  bool shows_results = false;
  // Where there are no tools, it wants an empty list, not none.
  bool empty_tools = false;
  // It shows contents only where they are lists of parts.
  bool parts = false;
  // It calls earlier reasoning `thinking`, not `reasoning_content`.
  bool thinking = false;
};

// `has_token` tells whether the model has a token of this text.
TemplateCustoms FindCustoms(
    const ChatTemplate& chat_template,
    const std::function<bool(absl::string_view)>& has_token);

// ChatTemplate::Render of `request` in the shape that the template takes.
// Messages are as in OpenAI's API: calls with ids, arguments as text or
// objects, results with tool_call_id, earlier reasoning as reasoning_content.
// Arguments that are no object become one where the template wants that
// (arguments.h), and ids what it wants them to be, of calls and results alike.
// What a template has no place for is put in words: calls in their form,
// results as the user's. Where it fails for want of what a tool may leave out
// (a description, say), that is filled in.
absl::StatusOr<std::vector<TextSegment>> RenderConversation(
    const ChatTemplate& chat_template, const TemplateCustoms& customs,
    ChatRequest request);

}  // namespace weft::answer
