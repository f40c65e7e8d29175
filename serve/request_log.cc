#include "serve/request_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "serve/generation_fields.h"
#include "serve/json_fields.h"
#include "serve/openai_response.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

void AddFormat(const GenerationFields& fields, json* request) {
  switch (fields.format) {
    case OutputFormat::kText:
      return;
    case OutputFormat::kJson:
      (*request)["response_format"] = {{"type", "json_object"}};
      return;
    case OutputFormat::kJsonSchema:
      if (fields.open_schema) {
        (*request)["structured_outputs"] = {
            {"json", json::parse(fields.format_source, nullptr, false)},
            {"disable_additional_properties", false}};
        return;
      }
      (*request)["response_format"] = {
          {"type", "json_schema"},
          {"json_schema",
           {{"schema", json::parse(fields.format_source, nullptr, false)},
            {"strict", fields.strict_schema}}}};
      return;
    case OutputFormat::kGrammar:
      (*request)["grammar"] = fields.format_source;
      return;
    case OutputFormat::kRegex:
      (*request)["guided_regex"] = fields.format_source;
      return;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RequestLog>> RequestLog::Open(
    const std::string& path,
    std::function<void(const std::string& line)> warn) {
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot write the request log: ", path, ": ", std::strerror(errno)));
  }
  return std::unique_ptr<RequestLog>(
      new RequestLog(file, path, std::move(warn)));
}

RequestLog::~RequestLog() { close(file_); }

void RequestLog::Write(const json& line) {
  const std::string text = absl::StrCat(JsonText(line), "\n");
  const absl::MutexLock lock(&mutex_);
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count =
        write(file_, text.data() + written, text.size() - written);
    if (count > 0) {
      written += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      break;
    }
  }
  if (written == text.size() || warned_) return;
  warned_ = true;
  if (warn_) {
    warn_(absl::StrCat("the request log misses lines: ", path_, ": ",
                       std::strerror(errno)));
  }
}

LoggedRequest::LoggedRequest(const ServedModel& model, std::string route,
                             Job job)
    : log_(model.log),
      route_(std::move(route)),
      model_(model.id),
      file_(model.path),
      capacity_(model.capacity()),
      job_(std::move(job)),
      answers_(job_.choices()) {}

void LoggedRequest::Add(int64_t choice, const Event& event) {
  Answer& answer = answers_[choice];
  for (const GeneratedToken& token : event.tokens) {
    answer.tokens.push_back(token.id);
  }
  answer.text += event.text;
  if (event.finished) answer.finish = Name(event.reason);
  if (event.last) {
    usage_.prompt_tokens += event.usage.prompt_tokens;
    usage_.cached_tokens += event.usage.cached_tokens;
    usage_.completion_tokens += event.usage.completion_tokens;
    usage_.drafted_tokens += event.usage.drafted_tokens;
    usage_.accepted_tokens += event.usage.accepted_tokens;
  }
}

LoggedRequest::~LoggedRequest() {
  bool complete = true;
  json answers = json::array();
  for (Answer& answer : answers_) {
    complete = complete && !answer.finish.empty() &&
               answer.finish != Name(FinishReason::kCancelled) &&
               answer.finish != Name(FinishReason::kError);
    answers.push_back({{"tokens", std::move(answer.tokens)},
                       {"text", std::move(answer.text)},
                       {"finish", std::move(answer.finish)}});
  }
  log_->Write({{"time", absl::FormatTime(absl::RFC3339_full, begun_,
                                         absl::UTCTimeZone())},
               {"route", route_},
               {"model", model_},
               {"file", file_},
               {"capacity", capacity_},
               {"request", JobJson(job_)},
               {"answers", std::move(answers)},
               {"complete", complete},
               {"usage", UsageJson(usage_)},
               {"seconds", absl::ToDoubleSeconds(absl::Now() - begun_)}});
}

json JobJson(const Job& job) {
  const GenerationFields& fields = job.fields;
  const SamplingOptions& sampling = fields.sampling;
  json request = {{"prompts", job.prompts},
                  {"seed", static_cast<int64_t>(sampling.seed)},
                  {"n", fields.choices},
                  {"max_tokens", fields.max_tokens},
                  {"min_tokens", fields.min_tokens},
                  {"temperature", sampling.temperature},
                  {"top_k", sampling.top_k},
                  {"top_p", sampling.top_p},
                  {"min_p", sampling.min_p},
                  {"repeat_penalty", sampling.repeat_penalty},
                  {"repeat_window", sampling.repeat_window},
                  {"frequency_penalty", sampling.frequency_penalty},
                  {"presence_penalty", sampling.presence_penalty},
                  {"stop", fields.stop},
                  {"ignore_eos", fields.ignore_eos}};
  json bias = json::object();
  for (const auto& [id, value] : fields.logit_bias) {
    bias[absl::StrCat(id)] = value;
  }
  request["logit_bias"] = std::move(bias);
  if (fields.lora.has_value()) {
    json lora = json::array();
    for (const auto& [id, scale] : *fields.lora) {
      lora.push_back({{"id", id}, {"scale", scale}});
    }
    request["lora"] = std::move(lora);
  }
  if (fields.overflow.has_value()) {
    request["context_overflow"] =
        *fields.overflow == ContextOverflow::kShift ? "shift" : "stop";
  }
  if (fields.prompt_logprobs.has_value()) {
    request["prompt_logprobs"] = *fields.prompt_logprobs;
  }
  AddFormat(fields, &request);
  if (ToolsConstrain(job)) {
    request["tools"] = job.tools;
    request["reasoning_close"] = job.reasoning_close;
  }
  if (job.forces_call) request["forced_call"] = job.forced_tool;
  // Tokens that are told in the text depend on the model alone.
  if (!job.marker_tokens.empty()) request["marked"] = true;
  return request;
}

absl::StatusOr<Job> ReadJob(const json& request, const RequestLimits& limits) {
  JsonFields fields(request, "request");
  Job job;
  ReadGenerationFields(&fields, limits, &job.fields);
  const json* prompts = fields.Find("prompts");
  if (prompts == nullptr || !prompts->is_array() || prompts->empty()) {
    return FieldError("request.prompts", "want lists of token ids");
  }
  for (const json& prompt : *prompts) {
    job.prompts.emplace_back();
    WEFT_RETURN_IF_ERROR(
        ReadTokenIds(prompt, "request.prompts", &job.prompts.back()));
  }
  fields.Integer("prompt_logprobs", 0, limits.top_logprobs,
                 &job.fields.prompt_logprobs);
  job.forces_call = fields.Find("forced_call") != nullptr;
  fields.Text("forced_call", &job.forced_tool);
  const json* tools = fields.Find("tools");
  if (tools != nullptr || job.forces_call) {
    if (tools == nullptr || !tools->is_array()) {
      return FieldError("request.tools", "want a list");
    }
    fields.Text("reasoning_close", &job.reasoning_close);
    job.tools = *tools;
  }
  if (!fields.status().ok()) return fields.status();
  return job;
}

}  // namespace weft
