#include "serve/field_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "serve/json_fields.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

// How much of `param` the path `ours` is, 0 if it is none of it; `*places` are
// the numbers that its [] stand for.
size_t Leads(absl::string_view ours, absl::string_view param,
             std::vector<std::string>* places) {
  const bool all = absl::ConsumeSuffix(&ours, "*");
  size_t at = 0;
  while (!ours.empty()) {
    if (absl::ConsumePrefix(&ours, "[]")) {
      const size_t end = param.find(']', at);
      if (at >= param.size() || param[at] != '[' || end == param.npos) return 0;
      places->emplace_back(param.substr(at, end + 1 - at));
      at = end + 1;
    } else {
      if (at == param.size() || param[at] != ours[0]) return 0;
      ++at;
      ours.remove_prefix(1);
    }
  }
  if (at < param.size() && param[at] != '.' && param[at] != '[') return 0;
  return all ? param.size() : at;
}

}  // namespace

void CopyFields(const json& from, absl::Span<const FieldName> names, json* to) {
  if (!from.is_object()) return;
  for (const FieldName& name : names) {
    const auto found = from.find(name.theirs);
    if (found != from.end() && !found->is_null()) (*to)[name.ours] = *found;
  }
}

FieldNames& FieldNames::Add(absl::Span<const FieldName> names,
                            absl::string_view path) {
  for (const FieldName& name : names) {
    names_.emplace_back(absl::StrCat(path, name.theirs), name.ours);
  }
  return *this;
}

absl::Status FieldNames::Told(const absl::Status& status) const {
  const std::string param = ErrorParam(status);
  if (param.empty()) return status;
  size_t most = 0;
  std::string told;
  for (const auto& [theirs, ours] : names_) {
    std::vector<std::string> places;
    const size_t size = Leads(ours, param, &places);
    if (size <= most) continue;
    most = size;
    told = theirs;
    for (const std::string& place : places) {
      const size_t at = told.find("[]");
      if (at != std::string::npos) told.replace(at, 2, place);
    }
  }
  if (most == 0) return status;
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, absl::StrCat("'", param, "': "));
  return FieldError(absl::StrCat(told, param.substr(most)), message);
}

}  // namespace weft
