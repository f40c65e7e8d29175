#include "serve/adapters.h"

#include "absl/strings/str_cat.h"
#include "serve/json_fields.h"

namespace weft {

absl::StatusOr<std::vector<float>> DefaultAdapters::ScalesOf(
    const std::vector<std::pair<int64_t, float>>& list,
    const char* param) const {
  std::vector<float> scales(count_);
  for (const auto& [id, scale] : list) {
    if (id >= count_) {
      return FieldError(
          param, count_ == 0
                     ? std::string("the model was loaded without adapters")
                     : absl::StrCat("there is no adapter ", id, ", only 0 to ",
                                    count_ - 1));
    }
    scales[id] = scale;
  }
  return scales;
}

}  // namespace weft
