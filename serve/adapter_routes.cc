#include "serve/adapter_routes.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "serve/generation_fields.h"
#include "serve/json_fields.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

absl::Status SetAdapters(const ServedModel& model, const std::string& body) {
  WEFT_ASSIGN_OR_RETURN(const json list, ParseJson(body));
  std::vector<std::pair<int64_t, float>> asked;
  WEFT_RETURN_IF_ERROR(ReadAdapterScales(list, "adapters", &asked));
  WEFT_ASSIGN_OR_RETURN(std::vector<float> scales,
                        model.adapters->ScalesOf(asked, "adapters"));
  model.adapters->Set(std::move(scales));
  return absl::OkStatus();
}

}  // namespace

void AnswerAdapters(const ServedModel& model, HttpCall* call) {
  const std::vector<AdapterInfo>& adapters =
      model.engine().plan().model.adapters;
  const std::vector<float> scales = model.adapters->Get();
  json list = json::array();
  for (size_t i = 0; i < adapters.size(); ++i) {
    list.push_back({{"id", i},
                    {"path", adapters[i].path},
                    {"rank", adapters[i].rank},
                    {"scale", scales[i]}});
  }
  call->Answer(list);
}

void AnswerSetAdapters(const ServedModel& model, HttpCall* call) {
  if (absl::Status s = SetAdapters(model, call->body); !s.ok()) {
    return call->Answer(ToApiError(s));
  }
  call->Answer(json{{"success", true}});
}

}  // namespace weft
