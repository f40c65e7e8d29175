#include "serve/completions.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "serve/answer_writer.h"
#include "serve/generation.h"
#include "serve/json_fields.h"
#include "serve/prompts.h"

namespace weft {
namespace {

uint64_t Random64() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// One HTTP request that generates, from its prompts to its answer.
struct Job {
  GenerationFields fields;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::string> echoes;  // per prompt, or none
  AnswerKind kind = AnswerKind::kCompletion;
  answer::AnswerForms forms;
  answer::ReaderOptions reading;  // but for the id
  bool forces_call = false;
  std::string forced_tool;      // empty: any
  std::string reasoning_close;  // where the prompt has opened reasoning
};

absl::StatusOr<Request> MakeRequest(const ServedModel& model,
                                    const ServiceLimits& limits, const Job& job,
                                    const std::vector<int32_t>& prompt) {
  const GenerationFields& fields = job.fields;
  Request request;
  request.prompt_tokens = prompt;
  request.max_tokens = fields.max_tokens;
  if (fields.max_tokens < 0 &&
      limits.request.generated_tokens < model.capacity()) {
    request.max_tokens = limits.request.generated_tokens;
  }
  request.overflow = fields.overflow.value_or(limits.overflow);
  if (request.overflow == ContextOverflow::kShift && request.max_tokens < 0) {
    request.max_tokens = model.capacity();
  }
  request.min_tokens = fields.min_tokens;
  request.choices = static_cast<int>(fields.choices);
  request.sampling = fields.sampling;
  for (const auto& bias : fields.logit_bias) {
    if (!model.tokenizer().InRange(bias.first)) {
      return FieldError("logit_bias", absl::StrCat(bias.first,
                                                   " is no token of this "
                                                   "model"));
    }
  }
  request.logit_bias = fields.logit_bias;
  request.stop_strings = fields.stop;
  request.stop_at_end_of_text = !fields.ignore_eos;
  if (job.kind == AnswerKind::kChat) {
    request.shown_special = model.marker_tokens;
  }
  if (fields.top_logprobs.has_value()) {
    request.logprobs = static_cast<int>(*fields.top_logprobs);
  }
  if (!fields.cache_prompt) request.cache_scope = Random64();
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<TokenConstraint> constraint,
      job.forces_call
          ? model.grammars->ForToolCall(*job.forms.call, job.reading.tools,
                                        job.forced_tool, job.reasoning_close)
          : model.grammars->ForFormat(fields));
  request.constraint = std::move(constraint);
  return request;
}

// The field that asks for what constrains the tokens.
const char* ConstraintField(const Job& job) {
  if (job.forces_call) return "tools";
  return job.fields.format == OutputFormat::kGrammar ? "grammar"
                                                     : "response_format";
}

// The event's failure, with the field `constraint` where that was not possible.
absl::Status Failure(const Event& event, const char* constraint) {
  const absl::Status status = EventError(event);
  return absl::IsInvalidArgument(status) &&
                 absl::StartsWith(status.message(), "grammar:")
             ? FieldError(constraint, status.message())
             : status;
}

// What an answer is made of while it is generated.
class Answering {
 public:
  Answering(const ServedModel& model, const ServiceLimits& limits, Job job,
            const HttpCall& call)
      : generation_(model.scheduler.get(), call, limits.buffered_events),
        writer_(MakeWriter(model, job)),
        choices_(job.fields.choices),
        constraint_(ConstraintField(job)) {}

  absl::Status Start(std::vector<Request> requests) {
    return generation_.Start(std::move(requests));
  }

  // The next events, or kCancelled when the client has gone.
  absl::StatusOr<std::vector<PromptEvent>> Next() {
    WEFT_ASSIGN_OR_RETURN(std::vector<PromptEvent> events, generation_.Next());
    for (const PromptEvent& event : events) {
      WEFT_RETURN_IF_ERROR(Failure(event.event, constraint_));
    }
    return events;
  }

  int64_t ChoiceOf(const PromptEvent& event) const {
    return event.prompt * choices_ + event.event.choice;
  }
  bool done() const { return generation_.done(); }
  Usage usage() const { return generation_.usage(); }
  AnswerWriter& writer() { return writer_; }

  // Taken before the answer's headers went out.
  std::vector<PromptEvent> first;

 private:
  static AnswerWriter MakeWriter(const ServedModel& model, const Job& job) {
    const bool chat = job.kind == AnswerKind::kChat;
    const std::string id =
        absl::StrFormat("%016x%08x", Random64(), Random64() & 0xffffffff);
    AnswerHead head;
    head.id = absl::StrCat(chat ? "chatcmpl-" : "cmpl-", id);
    head.created = absl::ToUnixSeconds(absl::Now());
    head.model = model.id;
    std::vector<answer::AnswerReader> readers;
    std::vector<std::string> echoes;
    for (size_t prompt = 0; prompt < job.prompts.size(); ++prompt) {
      for (int64_t i = 0; i < job.fields.choices; ++i) {
        answer::ReaderOptions reading = job.reading;
        reading.id = absl::StrCat(id, "_", readers.size());
        readers.emplace_back(job.forms, std::move(reading));
        echoes.push_back(job.echoes.empty() ? "" : job.echoes[prompt]);
      }
    }
    return AnswerWriter(job.kind, std::move(head), job.fields,
                        &model.tokenizer(), std::move(readers),
                        std::move(echoes));
  }

  Generation generation_;
  AnswerWriter writer_;
  const int64_t choices_;
  const char* const constraint_;
};

void AnswerWhole(std::shared_ptr<Answering> answering, int64_t most,
                 HttpCall* call) {
  while (!answering->done()) {
    absl::StatusOr<std::vector<PromptEvent>> events = answering->Next();
    if (!events.ok()) return call->Answer(GenerationError(events.status()));
    for (const PromptEvent& event : *events) {
      answering->writer().Add(answering->ChoiceOf(event), event.event);
    }
    if (answering->writer().bytes() > most) {
      return call->Answer(ToApiError(FieldError(
          "stream",
          absl::StrCat("the answer has more than ", most,
                       " bytes (--max-answer-bytes): ask for a stream"))));
    }
  }
  call->AnswerJson([answering](JsonStream* answer) {
    answering->writer().Whole(answering->usage(), answer);
  });
}

// More of a stream. False: the connection is to be closed.
bool WriteMore(Answering* answering, httplib::DataSink* sink) {
  std::vector<PromptEvent> events = std::move(answering->first);
  answering->first.clear();
  std::string text;
  if (events.empty()) {
    absl::StatusOr<std::vector<PromptEvent>> next = answering->Next();
    if (absl::IsCancelled(next.status())) return false;
    if (!next.ok()) {
      text = ServerSentEvent(ErrorJson(ToApiError(next.status())));
      if (sink->write(text.data(), text.size())) sink->done();
      return true;
    }
    events = *std::move(next);
  }
  for (const PromptEvent& event : events) {
    absl::StrAppend(&text, answering->writer().Part(answering->ChoiceOf(event),
                                                    event.event));
  }
  const bool done = answering->done();
  if (done) absl::StrAppend(&text, answering->writer().End(answering->usage()));
  if (!text.empty() && !sink->write(text.data(), text.size())) return false;
  if (done) sink->done();
  return true;
}

// The status goes out with the first event, so that what fails before has one
// of its own.
void AnswerStream(std::shared_ptr<Answering> answering, HttpCall* call) {
  absl::StatusOr<std::vector<PromptEvent>> first = answering->Next();
  if (!first.ok()) return call->Answer(GenerationError(first.status()));
  answering->first = *std::move(first);
  call->response.set_header("Cache-Control", "no-cache");
  call->response.set_header("X-Accel-Buffering", "no");
  call->AnswerInParts("text/event-stream",
                      [answering](httplib::DataSink& sink) {
                        return WriteMore(answering.get(), &sink);
                      });
}

void Run(const ServedModel& model, const ServiceLimits& limits, Job job,
         HttpCall* call) {
  if (!job.fields.has_seed) job.fields.sampling.seed = Random64();
  const bool stream = job.fields.stream;
  std::vector<Request> requests;
  for (const std::vector<int32_t>& prompt : job.prompts) {
    absl::StatusOr<Request> request = MakeRequest(model, limits, job, prompt);
    if (!request.ok()) return call->Answer(ToApiError(request.status()));
    requests.push_back(*std::move(request));
  }
  auto answering =
      std::make_shared<Answering>(model, limits, std::move(job), *call);
  if (absl::Status s = answering->Start(std::move(requests)); !s.ok()) {
    return call->Answer(ToApiError(s));
  }
  if (stream) return AnswerStream(std::move(answering), call);
  AnswerWhole(std::move(answering), limits.answer_bytes, call);
}

absl::StatusOr<Job> CompletionJob(const ServedModel& model,
                                  const ServiceLimits& limits,
                                  const EncodeOptions& encode,
                                  const std::string& body) {
  WEFT_ASSIGN_OR_RETURN(CompletionRequest request,
                        ParseCompletionRequest(body, limits.request));
  Job job;
  job.fields = std::move(request.generation);
  for (const Prompt& prompt : request.prompts) {
    WEFT_ASSIGN_OR_RETURN(
        std::vector<int32_t> tokens,
        EncodePrompt(model, prompt, request.parse_special, encode));
    WEFT_RETURN_IF_ERROR(CheckPrompt(model, limits, tokens, "prompt", 1));
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
                            const std::string& body) {
  WEFT_ASSIGN_OR_RETURN(ChatCompletionRequest request,
                        ParseChatCompletionRequest(body, limits.request));
  WEFT_ASSIGN_OR_RETURN(std::vector<TextSegment> segments,
                        RenderChat(model, request));
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                        model.tokenizer().EncodeSegments(segments, encode));
  WEFT_RETURN_IF_ERROR(CheckPrompt(model, limits, tokens, "messages", 1));
  Job job;
  job.kind = AnswerKind::kChat;
  job.fields = std::move(request.generation);
  job.prompts.push_back(std::move(tokens));
  job.forms = model.customs.forms;
  if (request.tool_choice != ToolChoice::kNone) {
    job.reading.tools = std::move(request.tools);
  }
  job.reading.separate_reasoning = request.separate_reasoning;
  job.forces_call = request.tool_choice == ToolChoice::kRequired ||
                    request.tool_choice == ToolChoice::kNamed;
  job.forced_tool = request.tool_name;
  // A format leaves no room for reasoning.
  if (job.fields.format == OutputFormat::kText) {
    // Its end says whether reasoning is open.
    constexpr size_t kPromptEnd = 512;
    const std::string prompt = JoinSegments(segments);
    job.reading.prompt =
        prompt.substr(prompt.size() - std::min(prompt.size(), kPromptEnd));
    job.reasoning_close = answer::OpenReasoning(job.forms, job.reading.prompt);
  }
  return job;
}

ApiError WritesNoText(const ServedModel& model) {
  return ToApiError(absl::UnimplementedError(absl::StrCat(
      model.id, " is an encoder and writes no text: ask for embeddings")));
}

}  // namespace

absl::StatusOr<std::vector<TextSegment>> RenderChat(
    const ServedModel& model, const ChatCompletionRequest& request) {
  ChatRequest chat;
  chat.messages = request.messages;
  if (request.tool_choice != ToolChoice::kNone) chat.tools = request.tools;
  chat.variables = request.variables;
  absl::StatusOr<std::vector<TextSegment>> segments =
      answer::RenderConversation(*model.chat_template, model.customs,
                                 std::move(chat));
  if (!segments.ok()) {
    return FieldError("messages", segments.status().message());
  }
  return segments;
}

void AnswerCompletion(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call) {
  if (model.encoder()) return call->Answer(WritesNoText(model));
  absl::StatusOr<Job> job =
      CompletionJob(model, limits, WhileClientIsThere(call), call->body);
  if (!job.ok()) return call->Answer(ToApiError(job.status()));
  Run(model, limits, *std::move(job), call);
}

void AnswerChat(const ServedModel& model, const ServiceLimits& limits,
                HttpCall* call) {
  if (model.encoder()) return call->Answer(WritesNoText(model));
  absl::StatusOr<Job> job =
      ChatJob(model, limits, WhileClientIsThere(call), call->body);
  if (!job.ok()) return call->Answer(ToApiError(job.status()));
  Run(model, limits, *std::move(job), call);
}

}  // namespace weft
