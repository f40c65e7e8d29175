#include "serve/slot_routes.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/output_file.h"
#include "base/status.h"
#include "serve/generation.h"
#include "serve/json_fields.h"
#include "serve/openai_request.h"
#include "serve/prompts.h"
#include "serve/slots.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t kMostNameBytes = 200;

// No path, no hidden file: a name alone.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name.size() <= kMostNameBytes && name[0] != '.' &&
         absl::c_all_of(name, [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
         });
}

absl::StatusOr<std::string> ReadName(const std::string& body) {
  WEFT_ASSIGN_OR_RETURN(const json parsed, ParseJson(body));
  JsonFields fields(parsed, "");
  std::string name;
  fields.Text("filename", &name);
  if (!fields.status().ok()) return fields.status();
  if (!IsPlainName(name)) {
    return FieldError("filename",
                      "want letters, digits, '.', '-' and '_', no folder");
  }
  return name;
}

absl::StatusOr<std::string> ReadSlotFile(const std::string& path) {
  std::error_code error;
  std::ifstream file;
  // A pipe would be waited for.
  if (std::filesystem::is_regular_file(path, error)) {
    file.open(path, std::ios::binary);
  }
  if (!file.is_open()) return FieldError("filename", "there is no such file");
  std::string text;
  // As long as what is read of a request may be.
  text.resize(kMaxJsonBytes);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// The tokens that a file has, all the model's own.
absl::StatusOr<std::vector<int32_t>> ReadTokens(const ServedModel& model,
                                                const ServiceLimits& limits,
                                                const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadSlotFile(path));
  WEFT_ASSIGN_OR_RETURN(const json parsed, ParseJson(text));
  JsonFields fields(parsed, "");
  std::string name;
  fields.Text("model", &name);
  const json* list = fields.Find("tokens");
  if (!fields.status().ok() || list == nullptr) {
    return FieldError("filename", "is no slot that was saved");
  }
  if (name != model.id) {
    return FieldError("filename",
                      absl::StrCat("was saved of the model ", JsonExcerpt(name),
                                   ", not of ", model.id));
  }
  std::vector<int32_t> tokens;
  WEFT_RETURN_IF_ERROR(ReadTokenIds(*list, "filename", &tokens));
  WEFT_RETURN_IF_ERROR(CheckPrompt(model, limits, tokens, "filename", 0));
  return tokens;
}

// Lets the prefix cache have them.
absl::Status RunTokens(const ServedModel& model, const ServiceLimits& limits,
                       const std::vector<int32_t>& tokens, HttpCall* call) {
  Request request;
  request.prompt_tokens = tokens;
  request.max_tokens = 1;
  request.adapter_scales = model.adapters->Get();
  Generation generation(model.scheduler.get(), *call, limits.buffered_events);
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  WEFT_RETURN_IF_ERROR(generation.Start(std::move(requests)));
  while (!generation.done()) {
    WEFT_ASSIGN_OR_RETURN(std::vector<PromptEvent> events, generation.Next());
    for (const PromptEvent& event : events) {
      WEFT_RETURN_IF_ERROR(EventError(event.event));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<json> Save(const ServedModel& model, int64_t slot,
                          const std::string& name, const std::string& path) {
  const std::vector<int32_t> tokens = model.slots->Tokens(slot);
  const std::string text =
      JsonText(json{{"model", model.id}, {"tokens", tokens}});
  WEFT_RETURN_IF_ERROR(WriteFile(path, text));
  return json{{"id_slot", slot},
              {"filename", name},
              {"n_saved", tokens.size()},
              {"n_written", text.size()}};
}

absl::StatusOr<json> Restore(const ServedModel& model,
                             const ServiceLimits& limits, int64_t slot,
                             const std::string& name, const std::string& path,
                             HttpCall* call) {
  const absl::Time begun = absl::Now();
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                        ReadTokens(model, limits, path));
  WEFT_RETURN_IF_ERROR(RunTokens(model, limits, tokens, call));
  const size_t count = tokens.size();
  model.slots->Set(slot, std::move(tokens));
  return json{
      {"id_slot", slot},
      {"filename", name},
      {"n_restored", count},
      {"timings",
       {{"restore_ms", absl::ToDoubleMilliseconds(absl::Now() - begun)}}}};
}

absl::StatusOr<json> Act(const ServedModel& model, const ServiceLimits& limits,
                         HttpCall* call) {
  int64_t slot = -1;
  if (!absl::SimpleAtoi(call->rest, &slot) || slot < 0 ||
      slot >= model.slots->size()) {
    return absl::NotFoundError(absl::StrCat("there is no such slot, only 0 to ",
                                            model.slots->size() - 1));
  }
  const std::string action = call->Query("action");
  if (action == "erase") {
    const size_t count = model.slots->Tokens(slot).size();
    model.slots->Set(slot, {});
    return json{{"id_slot", slot}, {"n_erased", count}};
  }
  if (action != "save" && action != "restore") {
    return FieldError("action", "want save, restore or erase");
  }
  if (limits.slot_folder.empty()) {
    return absl::InvalidArgumentError(
        "slots are not saved here: start the server with --slot-save-path");
  }
  WEFT_ASSIGN_OR_RETURN(const std::string name, ReadName(call->body));
  const std::string path = absl::StrCat(limits.slot_folder, "/", name);
  return action == "save" ? Save(model, slot, name, path)
                          : Restore(model, limits, slot, name, path, call);
}

}  // namespace

void AnswerSlots(const ServedModel& model, HttpCall* call) {
  json list = json::array();
  for (const Slots::Seen& slot : model.slots->List()) {
    list.push_back({{"id", list.size()},
                    {"n_ctx", model.capacity()},
                    {"n_tokens", slot.tokens},
                    {"is_processing", slot.running}});
  }
  call->Answer(list);
}

void AnswerSlotAction(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call) {
  const absl::StatusOr<json> answer = Act(model, limits, call);
  if (!answer.ok()) return call->Answer(GenerationError(answer.status()));
  call->Answer(*answer);
}

}  // namespace weft
