#include "text/jinja/bound_arguments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft::jinja {

BoundArguments::BoundArguments(Context& context, absl::string_view function,
                               const Arguments& arguments,
                               std::initializer_list<absl::string_view> names,
                               size_t required)
    : context_(context), function_(function), values_(names.size(), nullptr) {
  std::string why;
  if (arguments.positional.size() > names.size()) {
    why = absl::StrCat("takes at most ", names.size(), " arguments");
  }
  for (size_t i = 0; i < arguments.positional.size() && why.empty(); ++i) {
    values_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.keywords) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      why = absl::StrCat("has no parameter '", name, "'");
    } else if (values_[found - names.begin()] != nullptr) {
      why = absl::StrCat("was given '", name, "' twice");
    } else {
      values_[found - names.begin()] = &value;
    }
  }
  for (size_t i = 0; i < required && why.empty(); ++i) {
    if (values_[i] == nullptr) {
      why = absl::StrCat("wants '", *(names.begin() + i), "'");
    }
  }
  if (why.empty()) return;
  context.Fail(absl::StrCat(function, " ", why));
  std::fill(values_.begin(), values_.end(), nullptr);
}

bool BoundArguments::Truth(size_t i, bool fallback) const {
  return Has(i) ? Get(i)->Truth() : fallback;
}

int64_t BoundArguments::Integer(size_t i, int64_t fallback) const {
  if (!Has(i)) return fallback;
  if (Get(i)->is_integer()) return Get(i)->integer();
  context_.Fail(absl::StrCat(function_,
                             " wants a whole number, not a value of "
                             "type ",
                             Get(i)->TypeName()));
  return fallback;
}

Text BoundArguments::String(size_t i, const Text& fallback) const {
  if (!Has(i)) return fallback;
  if (Get(i)->is_string()) return Get(i)->text();
  context_.Fail(absl::StrCat(function_, " wants a string, not a value of type ",
                             Get(i)->TypeName()));
  return fallback;
}

}  // namespace weft::jinja
