#include "serve/generate.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "serve/generation.h"
#include "serve/json_fields.h"
#include "serve/request_log.h"
#include "text/answer/call_grammar.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

// Whether calls need not come, but fit their schemas if they do.
bool MayCallStrictly(const Job& job) {
  return !job.forces_call && job.fields.format == OutputFormat::kText &&
         job.forms.call.has_value() && answer::AnyStrict(job.tools);
}

// Whether a call may stand where JSON is asked for.
bool MayCall(const Job& job) {
  return !job.tools.is_null() && job.forms.call.has_value() &&
         (job.fields.format == OutputFormat::kJson ||
          job.fields.format == OutputFormat::kJsonSchema);
}

// The field that asks for what constrains the tokens.
std::string ConstraintField(const Job& job) {
  return job.forces_call || MayCallStrictly(job) ? "tools"
                                                 : job.fields.format_field;
}

// Of a header's value: printable ASCII, and not all of a long one.
std::string HeaderText(std::string text) {
  constexpr size_t kMost = 2000;
  text.resize(std::min(text.size(), kMost));
  for (char& c : text) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return text;
}

// The event's failure, with the field `constraint` where that was not possible.
absl::Status Failure(const Event& event, const std::string& constraint) {
  const absl::Status status = EventError(event);
  return absl::IsInvalidArgument(status) &&
                 absl::StartsWith(status.message(), "grammar:")
             ? FieldError(constraint, status.message())
             : status;
}

// The place in the list of slots of a text while it is written.
class HeldSlot {
 public:
  HeldSlot(const ServedModel& model, int64_t wanted,
           const std::vector<int32_t>& prompt)
      : slots_(model.slots),
        most_(static_cast<size_t>(model.capacity())),
        slot_(slots_->Begin(wanted, prompt)),
        tokens_(prompt) {}
  ~HeldSlot() {
    // Its beginning has been forgotten.
    if (tokens_.size() > most_) tokens_.clear();
    slots_->End(slot_, std::move(tokens_));
  }

  void Add(const Event& event) {
    for (const GeneratedToken& token : event.tokens) {
      if (tokens_.size() <= most_) tokens_.push_back(token.id);
    }
  }

 private:
  const std::shared_ptr<Slots> slots_;
  const size_t most_;
  const int64_t slot_;
  std::vector<int32_t> tokens_;
};

// What an answer is made of while it is generated.
class Answering {
 public:
  Answering(const ServedModel& model, const ServiceLimits& limits, Job job,
            const MakeForm& make_form, const HttpCall& call)
      : generation_(model.scheduler.get(), call, limits.buffered_events),
        form_(make_form(job)),
        silence_(absl::ToChronoNanoseconds(limits.silence)),
        choices_(job.fields.choices),
        constraint_(ConstraintField(job)),
        names_(job.names) {
    if (job.choices() == 1) {
      slot_ = std::make_unique<HeldSlot>(model, job.fields.slot,
                                         job.prompts.front());
    }
    if (model.log == nullptr) return;
    log_ = std::make_unique<LoggedRequest>(model, call.request.path,
                                           std::move(job));
  }

  absl::Status Start(std::vector<Request> requests) {
    return generation_.Start(std::move(requests));
  }

  // The next events, none at `until`, or kCancelled when the client has gone.
  absl::StatusOr<std::vector<PromptEvent>> Next(
      Clock::time_point until = Clock::time_point::max()) {
    WEFT_ASSIGN_OR_RETURN(std::vector<PromptEvent> events,
                          generation_.Next(until));
    for (const PromptEvent& event : events) {
      if (log_ != nullptr) log_->Add(ChoiceOf(event), event.event);
      if (slot_ != nullptr) slot_->Add(event.event);
      if (absl::Status s = Failure(event.event, constraint_); !s.ok()) {
        return names_.Told(s);
      }
    }
    return events;
  }

  int64_t ChoiceOf(const PromptEvent& event) const {
    return event.prompt * choices_ + event.event.choice;
  }
  bool done() const { return generation_.done(); }
  Usage usage() const { return generation_.usage(); }
  AnswerForm& form() { return *form_; }

  // More of a stream. False: the connection is to be closed.
  bool Write(httplib::DataSink* sink);

 private:
  bool Send(const std::string& text, httplib::DataSink* sink) {
    if (text.empty()) return true;
    spoken_ = Clock::now();
    return sink->write(text.data(), text.size());
  }

  Generation generation_;
  std::unique_ptr<AnswerForm> form_;
  std::unique_ptr<LoggedRequest> log_;
  std::unique_ptr<HeldSlot> slot_;
  const std::chrono::nanoseconds silence_;
  const int64_t choices_;
  const std::string constraint_;
  const FieldNames names_;
  bool begun_ = false;
  Clock::time_point spoken_ = Clock::now();  // when something was sent
};

bool Answering::Write(httplib::DataSink* sink) {
  if (!begun_) {
    begun_ = true;
    return Send(form_->Begin(), sink);
  }
  absl::StatusOr<std::vector<PromptEvent>> events = Next(spoken_ + silence_);
  if (absl::IsCancelled(events.status())) return false;
  if (!events.ok()) {
    if (Send(form_->Failure(ToApiError(events.status())), sink)) sink->done();
    return true;
  }
  std::string text;
  for (const PromptEvent& event : *events) {
    absl::StrAppend(&text, form_->Part(ChoiceOf(event), event.event));
  }
  if (done()) absl::StrAppend(&text, form_->End(usage()));
  if (text.empty() && Clock::now() >= spoken_ + silence_) {
    text = form_->StillHere();
  }
  if (!Send(text, sink)) return false;
  if (done()) sink->done();
  return true;
}

void AnswerWhole(std::shared_ptr<Answering> answering, int64_t most,
                 HttpCall* call) {
  while (!answering->done()) {
    absl::StatusOr<std::vector<PromptEvent>> events = answering->Next();
    if (!events.ok()) return call->Answer(GenerationError(events.status()));
    for (const PromptEvent& event : *events) {
      answering->form().Add(answering->ChoiceOf(event), event.event);
    }
    if (answering->form().bytes() > most) {
      return call->Answer(ToApiError(FieldError(
          "stream",
          absl::StrCat("the answer has more than ", most,
                       " bytes (--max-answer-bytes): ask for a stream"))));
    }
  }
  call->AnswerJson([answering](JsonStream* answer) {
    answering->form().Whole(answering->usage(), answer);
  });
}

// What the request left to the server.
void FillIn(const ServedModel& model, const ServiceLimits& limits,
            GenerationFields* fields) {
  if (!fields->has_seed) fields->sampling.seed = Random64();
  if (!fields->overflow.has_value()) fields->overflow = limits.overflow;
  if (!fields->lora.has_value() && model.adapters->count() > 0) {
    // As they are now, for the log too.
    fields->lora.emplace();
    for (const float scale : model.adapters->Get()) {
      fields->lora->emplace_back(fields->lora->size(), scale);
    }
  }
  if (fields->max_tokens >= 0) return;
  if (limits.request.generated_tokens < model.capacity()) {
    fields->max_tokens = limits.request.generated_tokens;
  } else if (fields->overflow == ContextOverflow::kShift) {
    fields->max_tokens = model.capacity();
  }
}

void AnswerStream(std::shared_ptr<Answering> answering, HttpCall* call) {
  call->response.set_header("Cache-Control", "no-cache");
  call->response.set_header("X-Accel-Buffering", "no");
  call->AnswerInParts(
      answering->form().stream_type(),
      [answering](httplib::DataSink& sink) { return answering->Write(&sink); });
}

}  // namespace

bool ToolsConstrain(const Job& job) {
  return job.forces_call || MayCallStrictly(job) || MayCall(job);
}

uint64_t Random64() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

std::string RandomId(const char* prefix) {
  return absl::StrFormat("%s%016x%08x", prefix, Random64(),
                         Random64() & 0xffffffff);
}

// The only tool that an answer can call, and must; empty: there is none.
std::string OnlyTool(const Job& job) {
  if (!job.forces_call || !job.forced_tool.empty()) return job.forced_tool;
  if (job.tools.size() != 1) return "";
  return job.tools[0]["function"].value("name", "");
}

std::vector<answer::AnswerReader> ReadersFor(const Job& job,
                                             const std::string& id) {
  std::vector<answer::AnswerReader> readers;
  for (int64_t i = 0; i < job.choices(); ++i) {
    answer::ReaderOptions options;
    options.tools = job.tools;
    options.forced_tool = OnlyTool(job);
    options.prompt = job.prompt_end;
    options.separate_reasoning = job.separate_reasoning;
    options.one_call = job.one_call;
    options.id = absl::StrCat(id, "_", i);
    readers.emplace_back(job.forms, std::move(options));
  }
  return readers;
}

absl::StatusOr<Request> MakeRequest(const ServedModel& model, const Job& job,
                                    const std::vector<int32_t>& prompt,
                                    const ConstraintAsker& asker) {
  const GenerationFields& fields = job.fields;
  Request request;
  request.prompt_tokens = prompt;
  request.max_tokens = fields.max_tokens;
  request.overflow = fields.overflow.value_or(ContextOverflow::kStop);
  if (fields.slot >= model.slots->size()) {
    return FieldError("id_slot", absl::StrCat("there are slots 0 to ",
                                              model.slots->size() - 1));
  }
  request.min_tokens = fields.min_tokens;
  request.speculate = fields.speculate;
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
  request.shown_special = job.marker_tokens;
  if (fields.top_logprobs.has_value()) {
    request.logprobs = static_cast<int>(*fields.top_logprobs);
  }
  request.prompt_logprobs =
      static_cast<int>(fields.prompt_logprobs.value_or(-1));
  // Who adds up log-probabilities counts on one for each token.
  request.tell_end = fields.prompt_logprobs.has_value();
  request.tell_progress = fields.stream && fields.progress;
  if (!fields.cache_prompt) request.cache_scope = Random64();
  if (fields.lora.has_value()) {
    WEFT_ASSIGN_OR_RETURN(request.adapter_scales,
                          model.adapters->ScalesOf(*fields.lora, "lora"));
  }
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<TokenConstraint> constraint,
      job.forces_call ? model.grammars->ForToolCall(*job.forms.call, job.tools,
                                                    job.forced_tool,
                                                    job.reasoning_close, asker)
      : MayCallStrictly(job) ? model.grammars->ForToolCall(
                                   *job.forms.call, answer::OrText(job.tools),
                                   "", job.reasoning_close, asker)
      : MayCall(job) ? model.grammars->ForCallOrFormat(*job.forms.call,
                                                       job.tools, fields, asker)
                     : model.grammars->ForFormat(fields, asker));
  request.constraint = std::move(constraint);
  return request;
}

void RunJob(const ServedModel& model, const ServiceLimits& limits, Job job,
            const MakeForm& make_form, HttpCall* call) {
  FillIn(model, limits, &job.fields);
  const bool stream = job.fields.stream;
  std::vector<Request> requests;
  for (const std::vector<int32_t>& prompt : job.prompts) {
    absl::StatusOr<Request> request =
        MakeRequest(model, job, prompt, {ClientOf(*call), &job.dropped});
    if (!request.ok()) {
      return call->Answer(ToApiError(job.names.Told(request.status())));
    }
    requests.push_back(*std::move(request));
  }
  if (!job.dropped.empty()) {
    call->response.set_header("Weft-Schema-Dropped",
                              HeaderText(absl::StrJoin(job.dropped, "; ")));
  }
  const FieldNames names = job.names;
  auto answering = std::make_shared<Answering>(model, limits, std::move(job),
                                               make_form, *call);
  if (absl::Status s = answering->Start(std::move(requests)); !s.ok()) {
    return call->Answer(ToApiError(names.Told(s)));
  }
  if (stream) return AnswerStream(std::move(answering), call);
  AnswerWhole(std::move(answering), limits.answer_bytes, call);
}

ApiError WritesNoText(const ServedModel& model) {
  return ToApiError(absl::InvalidArgumentError(absl::StrCat(
      model.id, " is an encoder and writes no text: ask for embeddings")));
}

}  // namespace weft
