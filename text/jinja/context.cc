#include "text/jinja/context.h"

#include "absl/strings/str_cat.h"
#include "text/jinja/limits.h"

namespace weft::jinja {

Value Context::Fail(absl::string_view why) {
  if (!failed()) {
    status_ =
        absl::InvalidArgumentError(absl::StrCat("line ", line_, ": ", why));
  }
  return Value();
}

bool Context::Spend(int64_t work) {
  if (failed()) return false;
  if (work <= work_left_) {
    work_left_ -= work;
    return true;
  }
  status_ = absl::ResourceExhaustedError(absl::StrCat(
      "line ", line_, ": this is more work than a template may do"));
  return false;
}

bool Context::CheckValueDepth(int depth) {
  if (failed()) return false;
  if (depth <= kMaxValueDepth) return true;
  status_ = absl::ResourceExhaustedError(
      absl::StrCat("line ", line_, ": lists and mappings are nested more than ",
                   kMaxValueDepth, " deep"));
  return false;
}

}  // namespace weft::jinja
