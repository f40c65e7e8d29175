#include "serve/generation_fields.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "loaders/lora_adapter.h"
#include "serve/output_format.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
constexpr size_t kMostStops = 16;
constexpr size_t kMostStopBytes = 1024;  // runtime/generation/request.h

void ReadSampling(JsonFields* fields, GenerationFields* generation) {
  SamplingOptions& sampling = generation->sampling;
  sampling.temperature = 1;
  sampling.top_p = 1;
  sampling.min_p = 0;
  sampling.repeat_penalty = 1;
  fields->Number("temperature", 0, 100, &sampling.temperature);
  fields->Number("top_p", 0, 1, &sampling.top_p);
  fields->Number("min_p", 0, 1, &sampling.min_p);
  fields->Number("frequency_penalty", -2, 2, &sampling.frequency_penalty);
  fields->Number("presence_penalty", -2, 2, &sampling.presence_penalty);
  fields->Number("repeat_penalty", 0.01, 100, &sampling.repeat_penalty);
  int64_t top_k = 0, window = sampling.repeat_window;
  fields->Integer("top_k", -1, kMost, &top_k);
  fields->Integer("repeat_window", -1, kMost, &window);
  sampling.top_k = static_cast<int32_t>(top_k);
  sampling.repeat_window = static_cast<int32_t>(window);
  absl::optional<int64_t> seed;
  fields->Integer("seed", std::numeric_limits<int64_t>::min(),
                  std::numeric_limits<int64_t>::max(), &seed);
  generation->has_seed = seed.has_value();
  sampling.seed = static_cast<uint64_t>(seed.value_or(0));
}

// The newer name goes before.
void ReadLengths(JsonFields* fields, const RequestLimits& limits,
                 GenerationFields* generation) {
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {
    absl::optional<int64_t> most;
    fields->Integer(name, -1, limits.generated_tokens, &most);
    if (most.has_value()) generation->max_tokens = *most;
  }
  fields->Integer("min_tokens", 0, limits.generated_tokens,
                  &generation->min_tokens);
  if (generation->max_tokens >= 0 &&
      generation->min_tokens > generation->max_tokens) {
    fields->Fail("min_tokens", absl::StrCat("is more than max_tokens, ",
                                            generation->max_tokens));
  }
}

void ReadLogitBias(JsonFields* fields, GenerationFields* generation) {
  const char* name = "logit_bias";
  const json* bias = fields->Find(name);
  if (bias == nullptr) return;
  if (!bias->is_object()) {
    return fields->Fail(name, "want an object of token ids and numbers");
  }
  for (const auto& entry : bias->items()) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(entry.key(), &id) || id < 0) {
      return fields->Fail(
          name, absl::StrCat(JsonExcerpt(entry.key()), " is no token id"));
    }
    if (!entry.value().is_number() || entry.value() < -100 ||
        entry.value() > 100) {
      return fields->Fail(
          name, absl::StrCat("of ", id, ": ", JsonExcerpt(entry.value()),
                             " is no number from -100 to 100"));
    }
    generation->logit_bias.emplace_back(id, entry.value().get<float>());
  }
}

void ReadOverflow(JsonFields* fields, GenerationFields* generation) {
  std::string overflow;
  fields->Text("context_overflow", &overflow);
  if (overflow == "stop") {
    generation->overflow = ContextOverflow::kStop;
  } else if (overflow == "shift") {
    generation->overflow = ContextOverflow::kShift;
  } else if (!overflow.empty()) {
    fields->Fail("context_overflow", "want stop or shift");
  }
}

// false or "off": no tokens are guessed.
void ReadSpeculate(JsonFields* fields, GenerationFields* generation) {
  const json* value = fields->Find("speculate");
  if (value == nullptr) return;
  if (value->is_boolean()) {
    generation->speculate = value->get<bool>();
  } else if (*value == "off" || *value == "lookup" || *value == "draft") {
    generation->speculate = *value != "off";
  } else {
    fields->Fail("speculate", "want true, false, or off, lookup or draft");
  }
}

}  // namespace

absl::Status ReadAdapterScales(const json& list, const std::string& path,
                               std::vector<std::pair<int64_t, float>>* scales) {
  if (!list.is_array()) {
    return FieldError(path, "want a list of objects with id and scale");
  }
  std::set<int64_t> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    JsonFields entry(list[i], absl::StrCat(path, "[", i, "]"));
    absl::optional<int64_t> id;
    float scale = 0;
    entry.Integer("id", 0, kMost, &id);
    entry.Number("scale", -kLargestAdapterScale, kLargestAdapterScale, &scale);
    if (!id.has_value()) entry.Fail("id", "want the number of an adapter");
    if (!entry.Has("scale")) entry.Fail("scale", "want a number");
    if (!entry.status().ok()) return entry.status();
    if (!seen.insert(*id).second) {
      return FieldError(path, absl::StrCat("has adapter ", *id, " twice"));
    }
    scales->emplace_back(*id, scale);
  }
  return absl::OkStatus();
}

void ReadGenerationFields(JsonFields* fields, const RequestLimits& limits,
                          GenerationFields* generation) {
  std::string model;  // any name: there is one model
  fields->Text("model", &model);
  ReadSampling(fields, generation);
  ReadLengths(fields, limits, generation);
  fields->Integer("n", 1, limits.choices, &generation->choices);
  fields->Texts("stop", kMostStops, &generation->stop);
  for (const std::string& stop : generation->stop) {
    if (stop.size() > kMostStopBytes) {
      fields->Fail("stop", absl::StrCat("a string has ", stop.size(),
                                        " bytes: at most ", kMostStopBytes));
    }
  }
  ReadLogitBias(fields, generation);
  ReadOutputFormat(fields, generation);
  fields->Bool("ignore_eos", &generation->ignore_eos);
  ReadOverflow(fields, generation);
  fields->Bool("cache_prompt", &generation->cache_prompt);
  ReadSpeculate(fields, generation);
  fields->Bool("stream", &generation->stream);
  fields->Integer("id_slot", -1, kMost, &generation->slot);
  fields->Bool("return_progress", &generation->progress);
  if (const json* lora = fields->Find("lora")) {
    fields->Keep(ReadAdapterScales(*lora, fields->Path("lora"),
                                   &generation->lora.emplace()));
  }
  if (const json* options = fields->Find("stream_options")) {
    JsonFields inner(*options, fields->Path("stream_options"));
    inner.Bool("include_usage", &generation->stream_usage);
    fields->Keep(inner.status());
  }
}

}  // namespace weft
