#include "serve/completions.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "serve/answer_writer.h"
#include "serve/json_fields.h"
#include "serve/prompts.h"

namespace weft {
namespace {

MakeForm MakeOpenAiForm(const ServedModel& model, AnswerKind kind) {
  return [&model, kind](const Job& job) {
    const bool chat = kind == AnswerKind::kChat;
    AnswerHead head;
    head.id = RandomId(chat ? "chatcmpl-" : "cmpl-");
    head.created = absl::ToUnixSeconds(absl::Now());
    head.model = model.id;
    head.schema_dropped = job.dropped;
    std::vector<std::string> echoes;
    for (int64_t i = 0; i < job.choices() && !job.echoes.empty(); ++i) {
      echoes.push_back(job.echoes[job.PromptOf(i)]);
    }
    std::vector<answer::AnswerReader> readers =
        ReadersFor(job, head.id.substr(head.id.find('-') + 1));
    return std::make_unique<AnswerWriter>(
        kind, std::move(head), job.fields, &model.tokenizer(),
        std::move(readers), std::move(echoes));
  };
}

// Leaves of a rendered chat what stands before `mark`. False: it is not there.
bool CutAt(const std::string& mark, std::vector<TextSegment>* segments) {
  for (size_t i = segments->size(); i-- > 0;) {
    TextSegment& segment = (*segments)[i];
    const size_t at = segment.text.rfind(mark);
    if (at == std::string::npos) continue;
    segment.text.resize(at);
    segments->resize(at == 0 ? i : i + 1);
    return true;
  }
  return false;
}

// The tools that the answer may call. Their schemas are compared with what is
// written: numbers are numbers.
nlohmann::ordered_json Callable(const ChatCompletionRequest& request) {
  nlohmann::ordered_json tools = PlainNumbers(request.tools);
  if (!request.allowed_tools.has_value()) return tools;
  nlohmann::ordered_json allowed = nlohmann::ordered_json::array();
  for (nlohmann::ordered_json& tool : tools) {
    if (absl::c_linear_search(*request.allowed_tools,
                              tool["function"]["name"].get<std::string>())) {
      allowed.push_back(std::move(tool));
    }
  }
  return allowed;
}

}  // namespace

absl::StatusOr<Job> CompletionJob(const ServedModel& model,
                                  const ServiceLimits& limits,
                                  const EncodeOptions& encode,
                                  CompletionRequest request) {
  Job job;
  const int64_t more = request.generation.max_tokens == 0 ? 0 : 1;
  job.fields = std::move(request.generation);
  for (const Prompt& prompt : request.prompts) {
    WEFT_ASSIGN_OR_RETURN(
        std::vector<int32_t> tokens,
        EncodePrompt(model, prompt, request.parse_special, encode));
    if (request.suffix.has_value()) {
      WEFT_ASSIGN_OR_RETURN(tokens,
                            EncodeFill(model, prompt, *request.suffix, encode));
    }
    WEFT_RETURN_IF_ERROR(CheckPrompt(model, limits, tokens, "prompt", more));
    if (request.echo) {
      absl::StatusOr<std::string> text = prompt.text;
      if (prompt.is_tokens) text = model.tokenizer().Decode(tokens, {});
      if (!text.ok()) return text.status();
      job.echoes.push_back(*std::move(text));
    }
    job.prompts.push_back(std::move(tokens));
  }
  return job;
}

absl::StatusOr<Job> ChatJob(const ServedModel& model,
                            const ServiceLimits& limits,
                            const EncodeOptions& encode,
                            ChatCompletionRequest request) {
  WEFT_ASSIGN_OR_RETURN(std::vector<TextSegment> segments,
                        RenderChat(model, request));
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                        model.tokenizer().EncodeSegments(segments, encode));
  const int64_t more = request.generation.max_tokens == 0 ? 0 : 1;
  WEFT_RETURN_IF_ERROR(CheckPrompt(model, limits, tokens, "messages", more));
  Job job;
  job.fields = std::move(request.generation);
  job.prompts.push_back(std::move(tokens));
  job.forms = model.customs.forms;
  if (request.tool_choice != ToolChoice::kNone) job.tools = Callable(request);
  job.one_call = request.one_call;
  job.separate_reasoning = request.separate_reasoning;
  job.forces_call = request.tool_choice == ToolChoice::kRequired ||
                    request.tool_choice == ToolChoice::kNamed;
  job.forced_tool = request.tool_name;
  job.marker_tokens = model.marker_tokens;
  // A format leaves no room for reasoning. The prompt's end says whether it is
  // open.
  if (job.fields.format == OutputFormat::kText) {
    constexpr size_t kPromptEnd = 512;
    const std::string prompt = JoinSegments(segments);
    job.prompt_end =
        prompt.substr(prompt.size() - std::min(prompt.size(), kPromptEnd));
    job.reasoning_close = answer::OpenReasoning(job.forms, job.prompt_end);
  }
  return job;
}

absl::StatusOr<std::vector<TextSegment>> RenderChat(
    const ServedModel& model, const ChatCompletionRequest& request) {
  ChatRequest chat;
  chat.messages = request.messages;
  if (request.tool_choice != ToolChoice::kNone) chat.tools = request.tools;
  chat.variables = request.variables;
  chat.add_generation_prompt = request.add_generation_prompt;
  // Where the last message ends is known by a mark that is put there; the
  // template may close its turn behind it.
  std::string mark;
  if (request.continues_last) {
    mark = RandomId("end-");
    nlohmann::ordered_json& content = chat.messages.back()["content"];
    content = content.get<std::string>() + mark;
  }
  absl::StatusOr<std::vector<TextSegment>> segments =
      answer::RenderConversation(*model.chat_template, model.customs,
                                 std::move(chat));
  if (!segments.ok()) {
    return FieldError("messages", segments.status().message());
  }
  if (!mark.empty() && !CutAt(mark, &*segments)) {
    return FieldError(
        "messages",
        "the chat template leaves out the end of the last message, "
        "so it cannot be continued");
  }
  return segments;
}

absl::StatusOr<size_t> CountChatTokens(const ServedModel& model,
                                       const EncodeOptions& encode,
                                       const ChatCompletionRequest& request) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<TextSegment> segments,
                        RenderChat(model, request));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                        model.tokenizer().EncodeSegments(segments, encode));
  return tokens.size();
}

void AnswerCompletion(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call) {
  if (model.encoder()) return call->Answer(WritesNoText(model));
  absl::StatusOr<CompletionRequest> request =
      ParseCompletionRequest(call->body, limits.request);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  absl::StatusOr<Job> job = CompletionJob(
      model, limits, WhileClientIsThere(call), *std::move(request));
  if (!job.ok()) return call->Answer(ToApiError(job.status()));
  RunJob(model, limits, *std::move(job),
         MakeOpenAiForm(model, AnswerKind::kCompletion), call);
}

void AnswerChat(const ServedModel& model, const ServiceLimits& limits,
                HttpCall* call) {
  if (model.encoder()) return call->Answer(WritesNoText(model));
  absl::StatusOr<ChatCompletionRequest> request =
      ParseChatCompletionRequest(call->body, limits.request);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  absl::StatusOr<Job> job =
      ChatJob(model, limits, WhileClientIsThere(call), *std::move(request));
  if (!job.ok()) return call->Answer(ToApiError(job.status()));
  RunJob(model, limits, *std::move(job),
         MakeOpenAiForm(model, AnswerKind::kChat), call);
}

}  // namespace weft
