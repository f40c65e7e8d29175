// The C interface: each function checks what it got, calls the C++ API, and
// turns statuses into codes. What could throw is caught here.
#include "runtime/c/weft.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "runtime/api/scheduler.h"
#include "runtime/api/speculation.h"
#include "runtime/generation/constraint_cache.h"
#include "text/chat_template.h"

struct weft_engine {
  std::unique_ptr<weft::Scheduler> scheduler;
  std::unique_ptr<weft::ConstraintCache> constraints;
  // Made when it is first wanted.
  absl::Mutex mutex;
  std::optional<weft::ChatTemplate> chat_template ABSL_GUARDED_BY(mutex);
};

namespace {

std::string& LastError() {
  thread_local std::string error;
  return error;
}

weft_code Fail(weft_code code, absl::string_view message) noexcept {
  try {
    LastError().assign(message.data(), message.size());
  } catch (...) {
    LastError().clear();
  }
  return code;
}

weft_code CodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDataLoss:
      return WEFT_INVALID_ARGUMENT;
    case absl::StatusCode::kNotFound:
      return WEFT_NOT_FOUND;
    case absl::StatusCode::kOutOfRange:
      return WEFT_OUT_OF_RANGE;
    case absl::StatusCode::kResourceExhausted:
      return WEFT_RESOURCE_EXHAUSTED;
    case absl::StatusCode::kUnavailable:
      return WEFT_UNAVAILABLE;
    case absl::StatusCode::kUnimplemented:
      return WEFT_UNSUPPORTED;
    default:
      return WEFT_INTERNAL;
  }
}

weft_code ToCode(const absl::Status& status) {
  if (status.ok()) return WEFT_OK;
  return Fail(CodeOf(status.code()), status.message());
}

// `body` returns a weft_code.
template <typename Body>
weft_code Guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fail(WEFT_RESOURCE_EXHAUSTED, "out of memory: free some");
  } catch (const std::exception& e) {
    return Fail(WEFT_INTERNAL, e.what());
  } catch (...) {
    return Fail(WEFT_INTERNAL, "an unknown error");
  }
}

weft_code Missing(const char* what) {
  return Fail(WEFT_INVALID_ARGUMENT,
              absl::StrCat(what, " is NULL: give a pointer"));
}

// A caller's struct over the defaults in `to`. One that is shorter is of an
// older program. A longer one must have nothing in what is unknown here.
template <typename T>
absl::Status Take(const T& from, const char* name, T* to) {
  const size_t size = from.struct_size;
  if (size < sizeof(size_t)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".struct_size is ", size, ": call ", name, "_init"));
  }
  const auto* bytes = reinterpret_cast<const char*>(&from);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      return absl::UnimplementedError(absl::StrCat(
          name, " has a field that this library does not know (byte ", i,
          "): use a newer library"));
    }
  }
  std::memcpy(to, &from, std::min(size, sizeof(T)));
  return absl::OkStatus();
}

template <typename T>
weft_code Init(const T& defaults, const char* name, T* to, size_t size) {
  if (to == nullptr) return Missing(name);
  if (size < sizeof(size_t)) {
    return Fail(
        WEFT_INVALID_ARGUMENT,
        absl::StrCat("struct_size is ", size, ": give sizeof(", name, ")"));
  }
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(to, &defaults, std::min(size, sizeof(T)));
  to->struct_size = size;
  return WEFT_OK;
}

weft_options DefaultOptions() {
  const weft::SchedulerOptions scheduler;
  weft_options options = {};
  options.struct_size = sizeof options;
  options.slots = 4;
  options.queue_limit = static_cast<int32_t>(scheduler.queue_limit);
  options.prefill_tokens = static_cast<int32_t>(scheduler.prefill_tokens);
  options.prefix_cache = scheduler.prefix_cache;
  options.huge_pages = weft::EngineOptions().huge_pages;
  return options;
}

weft_request DefaultRequest() {
  const weft::Request request;
  weft_request defaults = {};
  defaults.struct_size = sizeof defaults;
  defaults.text_size = SIZE_MAX;
  defaults.choices = request.choices;
  defaults.max_tokens = request.max_tokens;
  defaults.min_tokens = request.min_tokens;
  defaults.temperature = request.sampling.temperature;
  defaults.top_k = request.sampling.top_k;
  defaults.top_p = request.sampling.top_p;
  defaults.min_p = request.sampling.min_p;
  defaults.repeat_penalty = request.sampling.repeat_penalty;
  defaults.repeat_window = request.sampling.repeat_window;
  defaults.frequency_penalty = request.sampling.frequency_penalty;
  defaults.presence_penalty = request.sampling.presence_penalty;
  defaults.seed = request.sampling.seed;
  defaults.shift_keep = request.shift_keep;
  defaults.speculate = request.speculate;
  return defaults;
}

absl::StatusOr<std::unique_ptr<weft_engine>> Load(const char* path,
                                                  const weft_options& asked) {
  weft::EngineOptions engine_options;
  engine_options.threads = asked.threads;
  engine_options.slots = asked.slots;
  engine_options.checkpoints = 2 * asked.slots;
  engine_options.huge_pages = asked.huge_pages != 0;
  engine_options.force = asked.force != 0;
  engine_options.model.graph.context = asked.context;
  if (asked.threads < 0 || asked.context < 0 || asked.slots < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("weft_options: threads ", asked.threads, ", context ",
                     asked.context, ", slots ", asked.slots,
                     ": the first two must be 0 or above, the last above 0"));
  }
  if (asked.kv_type != nullptr) {
    absl::StatusOr<weft::KvTypes> types = weft::KvTypes::Parse(asked.kv_type);
    if (!types.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("weft_options.kv_type: ", types.status().message()));
    }
    engine_options.model.graph.kv_type = *std::move(types);
  }
  if (asked.isa != nullptr) {
    const std::optional<weft::Isa> cap = weft::IsaFromName(asked.isa);
    if (!cap) {
      return absl::InvalidArgumentError(
          absl::StrCat("weft_options.isa: unknown instruction set '", asked.isa,
                       "': see weft run --help for those there are"));
    }
    if (weft::RunsHere(*cap)) engine_options.model.compile.isa = *cap;
  }
  weft::SpeculationOptions speculation;
  speculation.draft = engine_options;
  if (asked.lora == nullptr && asked.lora_count > 0) {
    return absl::InvalidArgumentError(
        "weft_options.lora is NULL: give lora_count files");
  }
  for (size_t i = 0; i < asked.lora_count; ++i) {
    if (asked.lora[i] == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("weft_options.lora[", i, "] is NULL: give a file"));
    }
    WEFT_ASSIGN_OR_RETURN(weft::AdapterChoice choice,
                          weft::OpenAdapter(asked.lora[i]));
    engine_options.model.graph.adapters.push_back(std::move(choice));
  }
  if (asked.speculate != nullptr) speculation.mode = asked.speculate;
  if (absl::Status s = weft::CheckSpeculationMode(speculation.mode); !s.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("weft_options.speculate: ", s.message()));
  }
  weft::AskFor(speculation.mode, &engine_options);
  weft::SchedulerOptions scheduler_options;
  scheduler_options.queue_limit = asked.queue_limit;
  scheduler_options.prefill_tokens = asked.prefill_tokens;
  scheduler_options.prefix_cache = asked.prefix_cache != 0;

  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<weft::Engine> engine,
      weft::Engine::Load(path == nullptr ? "" : path, engine_options));
  WEFT_RETURN_IF_ERROR(weft::CheckGenerates(engine->plan()));
  WEFT_ASSIGN_OR_RETURN(scheduler_options.proposer,
                        weft::MakeProposer(*engine, speculation));
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<weft::Scheduler> scheduler,
      weft::Scheduler::Create(std::move(engine), scheduler_options));
  auto result = std::make_unique<weft_engine>();
  result->scheduler = std::move(scheduler);
  result->constraints = std::make_unique<weft::ConstraintCache>(
      &result->scheduler->engine().tokenizer());
  return result;
}

// A text of the caller: SIZE_MAX for one with a zero at its end.
absl::StatusOr<absl::string_view> TextOf(const char* name, const char* text,
                                         size_t size) {
  if (size == SIZE_MAX) return absl::string_view(text == nullptr ? "" : text);
  if (size > PTRDIFF_MAX) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": a size of ", size,
        " bytes cannot be: give the size, or SIZE_MAX for a text with a zero "
        "at its end"));
  }
  return absl::string_view(text, size);
}

absl::StatusOr<std::vector<int32_t>> PromptOf(const weft::Tokenizer& tokenizer,
                                              const weft_request& asked) {
  if (asked.tokens != nullptr) {
    if (asked.token_count > INT32_MAX) {
      return absl::InvalidArgumentError(
          absl::StrCat("weft_request.token_count is ", asked.token_count,
                       ": give the number of tokens"));
    }
    return std::vector<int32_t>(asked.tokens, asked.tokens + asked.token_count);
  }
  if (asked.text == nullptr) {
    return absl::InvalidArgumentError(
        "weft_request: neither tokens nor text: give one");
  }
  weft::EncodeOptions options;
  options.parse_special = asked.parse_special != 0;
  WEFT_ASSIGN_OR_RETURN(
      absl::string_view text,
      TextOf("weft_request.text", asked.text, asked.text_size));
  return tokenizer.Encode(text, options);
}

// Null for any text.
absl::StatusOr<std::unique_ptr<weft::TokenConstraint>> ConstraintOf(
    weft_engine& engine, const weft_request& asked) {
  if (asked.grammar == nullptr && asked.json_schema == nullptr) return nullptr;
  if (asked.grammar != nullptr && asked.json_schema != nullptr) {
    return absl::InvalidArgumentError(
        "weft_request: both grammar and json_schema: give one");
  }
  absl::StatusOr<std::unique_ptr<weft::TokenConstraint>> constraint =
      asked.grammar != nullptr
          ? engine.constraints->OfGrammar(asked.grammar)
          : engine.constraints->OfJsonSchema(asked.json_schema);
  if (constraint.ok()) return constraint;
  return absl::Status(
      constraint.status().code(),
      absl::StrCat(asked.grammar != nullptr ? "weft_request.grammar: "
                                            : "weft_request.json_schema: ",
                   constraint.status().message()));
}

absl::StatusOr<weft::Request> ToRequest(weft_engine& engine,
                                        const weft_request& asked) {
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> prompt,
                        PromptOf(engine.scheduler->tokenizer(), asked));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<weft::TokenConstraint> constraint,
                        ConstraintOf(engine, asked));
  weft::Request request;
  request.constraint = std::move(constraint);
  request.prompt_tokens = std::move(prompt);
  request.choices = asked.choices;
  request.max_tokens = asked.max_tokens;
  request.min_tokens = asked.min_tokens;
  request.sampling.temperature = asked.temperature;
  request.sampling.top_k = asked.top_k;
  request.sampling.top_p = asked.top_p;
  request.sampling.min_p = asked.min_p;
  request.sampling.repeat_penalty = asked.repeat_penalty;
  request.sampling.repeat_window = asked.repeat_window;
  request.sampling.frequency_penalty = asked.frequency_penalty;
  request.sampling.presence_penalty = asked.presence_penalty;
  request.sampling.seed = asked.seed;
  request.stop_at_end_of_text = asked.ignore_end_of_text == 0;
  request.logprobs = asked.logprobs != 0 ? 0 : -1;
  if (asked.context_shift != 0) {
    request.overflow = weft::ContextOverflow::kShift;
  }
  request.shift_keep = asked.shift_keep;
  request.speculate = asked.speculate != 0;
  if (asked.bias_count > 0 &&
      (asked.bias_tokens == nullptr || asked.biases == nullptr)) {
    return absl::InvalidArgumentError(
        "weft_request.bias_tokens or biases is NULL: give both");
  }
  if (asked.bias_count >
      static_cast<size_t>(engine.scheduler->tokenizer().vocabulary_size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("weft_request.bias_count is ", asked.bias_count,
                     ": give at most one for each token"));
  }
  for (size_t i = 0; i < asked.bias_count; ++i) {
    request.logit_bias.emplace_back(asked.bias_tokens[i], asked.biases[i]);
  }
  const size_t adapters =
      engine.scheduler->engine().plan().model.adapters.size();
  if (asked.adapter_scale_count > 0 &&
      (asked.adapter_scales == nullptr ||
       asked.adapter_scale_count != adapters)) {
    return absl::InvalidArgumentError(
        absl::StrCat("weft_request.adapter_scales: ",
                     asked.adapter_scales == nullptr ? "NULL" : "other",
                     " than a number for each of the ", adapters, " adapters"));
  }
  request.adapter_scales.assign(
      asked.adapter_scales, asked.adapter_scales + asked.adapter_scale_count);
  if (asked.stop_count > weft::kMaxStopStrings ||
      (asked.stop == nullptr && asked.stop_count > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("weft_request.stop: ", asked.stop_count, " texts",
                     asked.stop == nullptr ? ", but NULL" : "",
                     ": give at most ", weft::kMaxStopStrings));
  }
  for (size_t i = 0; i < asked.stop_count; ++i) {
    if (asked.stop[i] == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("weft_request.stop[", i, "] is NULL: give a text"));
    }
    request.stop_strings.emplace_back(asked.stop[i]);
  }
  if (std::isnan(asked.timeout_seconds) || asked.timeout_seconds < 0) {
    return absl::InvalidArgumentError(
        "weft_request.timeout_seconds is below 0: give 0 for none");
  }
  if (asked.timeout_seconds > 0) {
    request.deadline = weft::SteadyTimeIn(absl::Seconds(asked.timeout_seconds));
  }
  return request;
}

weft_reason ReasonOf(weft::FinishReason reason) {
  switch (reason) {
    case weft::FinishReason::kEndOfText:
      return WEFT_END_OF_TEXT;
    case weft::FinishReason::kStopToken:
    case weft::FinishReason::kStopString:
      return WEFT_STOP;
    case weft::FinishReason::kLength:
      return WEFT_LENGTH;
    case weft::FinishReason::kContext:
      return WEFT_CONTEXT;
    case weft::FinishReason::kDeadline:
      return WEFT_DEADLINE;
    case weft::FinishReason::kCancelled:
      return WEFT_CANCELLED;
    case weft::FinishReason::kEmbedded:
    case weft::FinishReason::kError:
      break;
  }
  return WEFT_FAILED;
}

// Tokens to the caller's memory.
weft_code Give(const absl::StatusOr<std::vector<int32_t>>& ids, int32_t* tokens,
               size_t capacity, size_t* count) {
  if (!ids.ok()) return ToCode(ids.status());
  *count = ids->size();
  if (ids->size() > capacity) {
    return Fail(WEFT_BUFFER_TOO_SMALL,
                absl::StrCat("the text has ", ids->size(),
                             " tokens, and there is room for ", capacity,
                             ": give more"));
  }
  std::copy(ids->begin(), ids->end(), tokens);
  return WEFT_OK;
}

// Whose callback runs on this thread.
thread_local const weft_engine* calling_back = nullptr;

weft_code CheckNoCallback(const weft_engine* engine, const char* name) {
  if (engine == nullptr || calling_back != engine) return WEFT_OK;
  return Fail(WEFT_INVALID_ARGUMENT,
              absl::StrCat(name,
                           ": called from a callback of the same engine, "
                           "for which it would wait: call it elsewhere"));
}

// Calls a weft_callback with each event. `with_logprobs`: they were asked for.
class Teller {
 public:
  Teller(const weft_engine* engine, weft_callback callback, void* user,
         bool with_logprobs)
      : engine_(engine),
        callback_(callback),
        user_(user),
        with_logprobs_(with_logprobs) {}

  void operator()(const weft::Event& event) {
    tokens_.clear();
    logprobs_.clear();
    for (const weft::GeneratedToken& token : event.tokens) {
      tokens_.push_back(token.id);
      if (with_logprobs_) logprobs_.push_back(token.logprob);
    }
    const std::string error(event.status.message());
    weft_event told = {};
    told.struct_size = sizeof told;
    told.request = event.request;
    told.choice = event.choice;
    told.finished = event.finished;
    told.reason = ReasonOf(event.reason);
    told.last = event.last;
    told.text = event.text.c_str();
    told.text_size = event.text.size();
    told.tokens = tokens_.data();
    told.logprobs = with_logprobs_ ? logprobs_.data() : nullptr;
    told.token_count = tokens_.size();
    told.error = error.c_str();
    told.prompt_tokens = event.usage.prompt_tokens;
    told.cached_tokens = event.usage.cached_tokens;
    told.completion_tokens = event.usage.completion_tokens;
    told.drafted_tokens = event.usage.drafted_tokens;
    told.accepted_tokens = event.usage.accepted_tokens;
    calling_back = engine_;
    callback_(&told, user_);
    calling_back = nullptr;
  }

 private:
  const weft_engine* engine_;
  weft_callback callback_;
  void* user_;
  bool with_logprobs_;
  std::vector<int32_t> tokens_;
  std::vector<double> logprobs_;
};

// `done` may be null.
weft_code Submit(weft_engine* engine, const weft_request* request,
                 weft_callback callback, void* user, int64_t* id,
                 std::shared_ptr<absl::Notification> done) {
  if (engine == nullptr) return Missing("engine");
  if (request == nullptr) return Missing("request");
  if (callback == nullptr) return Missing("callback");
  weft_request asked = DefaultRequest();
  if (absl::Status s = Take(*request, "weft_request", &asked); !s.ok()) {
    return ToCode(s);
  }
  absl::StatusOr<weft::Request> converted = ToRequest(*engine, asked);
  if (!converted.ok()) return ToCode(converted.status());
  absl::StatusOr<weft::RequestId> submitted = engine->scheduler->Submit(
      *std::move(converted),
      [teller = Teller(engine, callback, user, asked.logprobs != 0),
       done = std::move(done)](const weft::Event& event) mutable {
        teller(event);
        if (event.last && done != nullptr) done->Notify();
      });
  if (!submitted.ok()) return ToCode(submitted.status());
  if (id != nullptr) *id = *submitted;
  return WEFT_OK;
}

}  // namespace

extern "C" {

int32_t weft_abi_version(void) { return WEFT_ABI_VERSION; }

const char* weft_error(void) { return LastError().c_str(); }

weft_code weft_options_init(weft_options* options, size_t struct_size) {
  return Guarded([&] {
    return Init(DefaultOptions(), "weft_options", options, struct_size);
  });
}

weft_code weft_request_init(weft_request* request, size_t struct_size) {
  return Guarded([&] {
    return Init(DefaultRequest(), "weft_request", request, struct_size);
  });
}

weft_code weft_load(const char* path, const weft_options* options,
                    weft_engine** engine) {
  return Guarded([&]() -> weft_code {
    if (engine == nullptr) return Missing("engine");
    *engine = nullptr;
    weft_options asked = DefaultOptions();
    if (options != nullptr) {
      if (absl::Status s = Take(*options, "weft_options", &asked); !s.ok()) {
        return ToCode(s);
      }
    }
    absl::StatusOr<std::unique_ptr<weft_engine>> loaded = Load(path, asked);
    if (!loaded.ok()) return ToCode(loaded.status());
    *engine = loaded->release();
    return WEFT_OK;
  });
}

weft_code weft_free(weft_engine* engine) {
  return Guarded([&]() -> weft_code {
    const weft_code code = CheckNoCallback(engine, "weft_free");
    if (code == WEFT_OK) delete engine;
    return code;
  });
}

int32_t weft_vocabulary_size(const weft_engine* engine) {
  return engine == nullptr ? 0
                           : engine->scheduler->tokenizer().vocabulary_size();
}

int64_t weft_capacity(const weft_engine* engine) {
  return engine == nullptr ? 0 : engine->scheduler->capacity();
}

int32_t weft_is_end_of_text(const weft_engine* engine, int32_t token) {
  if (engine == nullptr) return 0;
  const weft::Tokenizer& tokenizer = engine->scheduler->tokenizer();
  return tokenizer.InRange(token) && tokenizer.IsEndOfGeneration(token);
}

weft_code weft_chat_prompt(weft_engine* engine, const char* messages,
                           size_t messages_size, int32_t* tokens,
                           size_t capacity, size_t* count) {
  return Guarded([&]() -> weft_code {
    if (engine == nullptr) return Missing("engine");
    if (messages == nullptr) return Missing("messages");
    if (count == nullptr) return Missing("count");
    if (tokens == nullptr && capacity > 0) return Missing("tokens");
    weft::ChatRequest request;
    absl::StatusOr<absl::string_view> given =
        TextOf("messages", messages, messages_size);
    if (!given.ok()) return ToCode(given.status());
    request.messages =
        nlohmann::ordered_json::parse(given->begin(), given->end(), nullptr,
                                      /*allow_exceptions=*/false);
    if (!request.messages.is_array()) {
      return Fail(WEFT_INVALID_ARGUMENT,
                  "messages: no JSON array: give objects with role and "
                  "content");
    }
    absl::StatusOr<std::vector<weft::TextSegment>> text;
    {
      const absl::MutexLock lock(&engine->mutex);
      if (!engine->chat_template) {
        absl::StatusOr<weft::ChatTemplate> made =
            weft::ChatTemplate::ForVocabulary(
                engine->scheduler->engine().plan().vocabulary, nullptr);
        if (!made.ok()) return ToCode(made.status());
        engine->chat_template = *std::move(made);
      }
      text = engine->chat_template->Render(request);
    }
    if (!text.ok()) return ToCode(text.status());
    return Give(engine->scheduler->tokenizer().EncodeSegments(*text, {}),
                tokens, capacity, count);
  });
}

weft_code weft_tokenize(const weft_engine* engine, const char* text,
                        size_t text_size, int32_t add_special,
                        int32_t parse_special, int32_t* tokens, size_t capacity,
                        size_t* count) {
  return Guarded([&]() -> weft_code {
    if (engine == nullptr) return Missing("engine");
    if (text == nullptr && text_size > 0) return Missing("text");
    if (count == nullptr) return Missing("count");
    if (tokens == nullptr && capacity > 0) return Missing("tokens");
    weft::EncodeOptions options;
    options.add_special = add_special != 0;
    options.parse_special = parse_special != 0;
    absl::StatusOr<absl::string_view> given = TextOf("text", text, text_size);
    if (!given.ok()) return ToCode(given.status());
    return Give(engine->scheduler->tokenizer().Encode(*given, options), tokens,
                capacity, count);
  });
}

weft_code weft_detokenize(const weft_engine* engine, const int32_t* tokens,
                          size_t count, char* text, size_t capacity,
                          size_t* text_size) {
  return Guarded([&]() -> weft_code {
    if (engine == nullptr) return Missing("engine");
    if (tokens == nullptr && count > 0) return Missing("tokens");
    if (text_size == nullptr) return Missing("text_size");
    if (text == nullptr && capacity > 0) return Missing("text");
    absl::StatusOr<std::string> decoded =
        engine->scheduler->tokenizer().Decode({tokens, count}, {});
    if (!decoded.ok()) return ToCode(decoded.status());
    *text_size = decoded->size();
    if (decoded->size() > capacity) {
      return Fail(WEFT_BUFFER_TOO_SMALL,
                  absl::StrCat("the text has ", decoded->size(),
                               " bytes, and there is room for ", capacity,
                               ": give more"));
    }
    std::copy(decoded->begin(), decoded->end(), text);
    return WEFT_OK;
  });
}

weft_code weft_submit(weft_engine* engine, const weft_request* request,
                      weft_callback callback, void* user, int64_t* id) {
  return Guarded(
      [&] { return Submit(engine, request, callback, user, id, nullptr); });
}

weft_code weft_generate(weft_engine* engine, const weft_request* request,
                        weft_callback callback, void* user) {
  return Guarded([&]() -> weft_code {
    weft_code code = CheckNoCallback(engine, "weft_generate");
    if (code != WEFT_OK) return code;
    const auto done = std::make_shared<absl::Notification>();
    code = Submit(engine, request, callback, user, nullptr, done);
    if (code == WEFT_OK) done->WaitForNotification();
    return code;
  });
}

weft_code weft_cancel(weft_engine* engine, int64_t id) {
  return Guarded([&]() -> weft_code {
    if (engine == nullptr) return Missing("engine");
    if (engine->scheduler->Cancel(id)) return WEFT_OK;
    return Fail(WEFT_NOT_FOUND,
                absl::StrCat("no request ", id, " runs: nothing to cancel"));
  });
}

weft_code weft_drain(weft_engine* engine, double timeout_seconds) {
  return Guarded([&]() -> weft_code {
    if (engine == nullptr) return Missing("engine");
    if (std::isnan(timeout_seconds) || timeout_seconds < 0) {
      return Fail(WEFT_INVALID_ARGUMENT,
                  "timeout_seconds is below 0: give 0 or above");
    }
    const weft_code code = CheckNoCallback(engine, "weft_drain");
    if (code != WEFT_OK) return code;
    engine->scheduler->Drain(absl::Seconds(timeout_seconds));
    return WEFT_OK;
  });
}

}  // extern "C"
