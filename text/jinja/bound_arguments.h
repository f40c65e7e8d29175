// Arguments of a filter, test, method or function, by the names of its
// parameters.
#pragma once

#include <initializer_list>
#include <vector>

#include "absl/strings/string_view.h"
#include "text/jinja/context.h"
#include "text/jinja/value.h"

namespace weft::jinja {

class BoundArguments {
 public:
  // Parameters named in `names` may be given by place or by name; the first
  // `required` must be. What does not fit is an error of `context`, after which
  // all count as not given.
  BoundArguments(Context& context, absl::string_view function,
                 const Arguments& arguments,
                 std::initializer_list<absl::string_view> names,
                 size_t required = 0);

  // Null where it was not given.
  const Value* Get(size_t i) const { return values_[i]; }
  bool Has(size_t i) const { return values_[i] != nullptr; }
  bool Truth(size_t i, bool fallback) const;
  // Of the type asked for, else an error; the fallback where nothing was given.
  int64_t Integer(size_t i, int64_t fallback) const;
  Text String(size_t i, const Text& fallback = Text()) const;

 private:
  Context& context_;
  absl::string_view function_;
  std::vector<const Value*> values_;
};

}  // namespace weft::jinja
