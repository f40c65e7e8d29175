// The chat template of a model: messages to the text that the model was trained
// to continue.
//
// Idea: the template is a program that comes with the model (Jinja, as in
// tokenizer.chat_template) and is executed (text/jinja), with the variables and
// the whitespace rules of HuggingFace's apply_chat_template. Every character of
// the result knows whether the template wrote it or a value from outside did,
// however the template cut, joined or escaped it; the result comes in segments
// by author, for Tokenizer::EncodeSegments.
//
// What counts as the template's: its literal text and string constants, BOS and
// EOS, dates, numbers, and the `role` of a message where it is one of the usual
// names (user, assistant, tool, ...), since many templates make a control token
// of it. Everything else in messages, tools and variables counts as the
// sender's, names of keys too.
//
// Limits: templates and values are untrusted. Work, memory and depth are
// bounded (jinja/limits.h); what exceeds them is an error, as is what the
// interpreter does not know (jinja/parser.h lists what it does). Numbers
// that are spelled (text/json_tree.h) are printed so.
//
// A ChatTemplate never changes: all methods are thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "text/segment.h"
#include "text/vocabulary.pb.h"

namespace weft {

namespace jinja {
class Template;
}

struct ChatRequest {
  // An array of objects, in general with `role` and `content`. What else must
  // be in them the template says. Content is passed on as it is: many templates
  // want a string, few a list of parts.
  nlohmann::ordered_json messages;
  // An array in OpenAI's form, or null for none.
  nlohmann::ordered_json tools;
  // Ends the text with the opening of the assistant's turn.
  bool add_generation_prompt = true;
  // An object (or null) of further variables: enable_thinking, documents, ...
  // They count as the sender's text. Those named above go before.
  nlohmann::ordered_json variables;
  // What strftime_now shows, in UTC.
  absl::Time now = absl::Now();
};

class ChatTemplate {
 public:
  // Errors read "chat template: line N: <why>". `bos` and `eos` are the texts
  // of these tokens, empty where the model has none.
  static absl::StatusOr<ChatTemplate> Parse(absl::string_view source,
                                            absl::string_view bos,
                                            absl::string_view eos);

  // The vocabulary's own template; if it has none, Default, and `warning` (may
  // be null) says so in one line; it is emptied otherwise.
  static absl::StatusOr<ChatTemplate> ForVocabulary(
      const Vocabulary& vocabulary, std::string* warning);

  // For a model without a template of its own, or with one that does not work:
  // ChatML where its tokens (<|im_start|>, <|im_end|>) are in the vocabulary,
  // else plain lines ("User: ...", "Assistant:").
  static absl::StatusOr<ChatTemplate> Default(const Vocabulary& vocabulary);

  // The text, cut wherever the author changes; no segment is empty. Errors of
  // the template's own making (raise_exception) and of its execution have the
  // code kInvalidArgument: a message that the template refuses is the sender's
  // mistake. What exceeds a limit has kResourceExhausted.
  absl::StatusOr<std::vector<TextSegment>> Render(
      const ChatRequest& request) const;

  const std::string& source() const { return source_; }
  // Of a named template its name, else "the model's own".
  const std::string& name() const { return name_; }

 private:
  ChatTemplate() = default;

  std::string source_, name_, bos_, eos_;
  std::shared_ptr<const jinja::Template> template_;
};

// The source of a family's template (chat_template_table.h); nullopt: there is
// none of this name.
std::optional<std::string> NamedChatTemplate(absl::string_view name);
std::vector<absl::string_view> ChatTemplateNames();

// The whole text, for showing.
std::string JoinSegments(const std::vector<TextSegment>& segments);

}  // namespace weft
