// Requests in OpenAI's JSON as plain structs: every field checked, messages
// that name the field, null as default.
//
// Reading decides what a request says, not whether this model can do it: ids
// are only known to be no negative numbers, lengths are not compared with the
// context. Fields outside the lists below are ignored (README.md has them all).
// What would change the answer and is not supported is refused by name.
//
// Defaults are OpenAI's: temperature 1, top_p 1, no penalties; what OpenAI does
// not have (top_k, min_p, repeat_penalty) is off.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "nlohmann/json.hpp"
#include "runtime/generation/request.h"
#include "runtime/generation/sampler.h"

namespace weft {

// What the server's owner allows.
struct RequestLimits {
  int64_t choices = 16;                // n, and prompts times n
  int64_t prompts = 64;                // of one request
  int64_t generated_tokens = 1 << 30;  // max_tokens
  int64_t top_logprobs = 20;
  int64_t embedding_inputs = 2048;
  bool parse_special = true;  // of completions that do not say
};

enum class OutputFormat { kText, kJson, kJsonSchema, kGrammar, kRegex };

// What completions and chat have in common.
struct GenerationFields {
  SamplingOptions sampling;  // `seed` only where `has_seed`
  bool has_seed = false;
  // -1: until the end of the text or of the context.
  int64_t max_tokens = -1;
  int64_t min_tokens = 0;
  int64_t choices = 1;
  std::vector<std::string> stop;
  std::vector<std::pair<int32_t, float>> logit_bias;
  bool ignore_eos = false;
  bool cache_prompt = true;
  bool speculate = true;  // where the server does
  // Of the prompt's tokens, the same as below.
  absl::optional<int64_t> prompt_logprobs;
  // Alternatives per token; absent: no logprobs.
  absl::optional<int64_t> top_logprobs;
  absl::optional<ContextOverflow> overflow;  // absent: the server's
  OutputFormat format = OutputFormat::kText;
  std::string format_source;   // a JSON schema, a grammar, or a pattern
  std::string format_field;    // which asked for it; for messages
  bool strict_schema = false;  // what cannot be kept of it is an error
  bool open_schema = false;    // grammar::SchemaOptions::open
  bool stream = false;
  bool stream_usage = false;
  bool progress = false;  // of the prompt, in a stream
  int64_t slot = -1;      // serve/slots.h; below 0: any
  // Scales of adapters by their numbers, which are only known to be no negative
  // ones, each there once; the others have 0. Absent: the server's.
  absl::optional<std::vector<std::pair<int64_t, float>>> lora;
};

// Text, or ids.
struct Prompt {
  std::string text;
  std::vector<int32_t> tokens;
  bool is_tokens = false;
};

struct CompletionRequest {
  GenerationFields generation;
  std::vector<Prompt> prompts;
  absl::optional<std::string> suffix;  // what follows the text
  bool echo = false;
  // Control tokens written in the prompt are meant. Off: they are plain text.
  bool parse_special = true;
};

enum class ToolChoice { kNone, kAuto, kRequired, kNamed };

struct ChatCompletionRequest {
  GenerationFields generation;
  // As RenderConversation takes them: content is a string or null, the role
  // "developer" is "system".
  nlohmann::ordered_json messages;
  nlohmann::ordered_json tools;  // null: none
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::string tool_name;  // of kNamed
  // Those of `tools` that may be called, by name (allowed_tools); all if unset.
  // The model is shown all of them.
  absl::optional<std::vector<std::string>> allowed_tools;
  bool one_call = false;  // parallel_tool_calls is false
  // Further variables of the template (chat_template_kwargs, and
  // reasoning_effort where these do not have it).
  nlohmann::ordered_json variables;
  // Reasoning of the answer is told apart from its content (reasoning_format).
  bool separate_reasoning = true;
  bool add_generation_prompt = true;
  // The answer goes on from the last message, whose content is a string.
  bool continues_last = false;
};

struct EmbeddingsRequest {
  std::vector<Prompt> inputs;
  // The first so many numbers of a vector; unset: all.
  absl::optional<int64_t> dimensions;
  bool base64 = false;
  // Texts are cut to so many tokens; -1: to what fits; 0: not at all, and what
  // is too long is an error.
  int64_t truncate = 0;
};

struct TokenizeRequest {
  std::string content;
  bool add_special = false;
  bool parse_special = false;
  bool with_pieces = false;
};

struct DetokenizeRequest {
  std::vector<int32_t> tokens;
};

// A list of token ids, which is the value at `path`. Errors: it is none.
absl::Status ReadTokenIds(const nlohmann::ordered_json& list,
                          const std::string& path, std::vector<int32_t>* ids);

absl::StatusOr<CompletionRequest> ParseCompletionRequest(
    absl::string_view body, const RequestLimits& limits);
absl::StatusOr<ChatCompletionRequest> ParseChatCompletionRequest(
    absl::string_view body, const RequestLimits& limits);
// The same of bodies that are parsed, or translated from another dialect.
absl::StatusOr<CompletionRequest> ReadCompletionRequest(
    const nlohmann::ordered_json& body, const RequestLimits& limits);
absl::StatusOr<ChatCompletionRequest> ReadChatCompletionRequest(
    const nlohmann::ordered_json& body, const RequestLimits& limits);
// The same without what generates: messages, tools, chat_template_kwargs.
absl::StatusOr<ChatCompletionRequest> ParseTemplateRequest(
    absl::string_view body);
absl::StatusOr<EmbeddingsRequest> ParseEmbeddingsRequest(
    absl::string_view body, const RequestLimits& limits);
absl::StatusOr<EmbeddingsRequest> ReadEmbeddingsRequest(
    const nlohmann::ordered_json& body, const RequestLimits& limits);
absl::StatusOr<TokenizeRequest> ParseTokenizeRequest(absl::string_view body);
absl::StatusOr<DetokenizeRequest> ParseDetokenizeRequest(
    absl::string_view body);

}  // namespace weft
