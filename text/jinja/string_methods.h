// Methods of strings, with Python's names and meanings.
#pragma once

#include "absl/strings/string_view.h"
#include "text/jinja/context.h"
#include "text/jinja/value.h"

namespace weft::jinja {

bool HasStringMethod(absl::string_view name);
// `name` is one of them.
Value CallStringMethod(Context& context, absl::string_view name,
                       const Text& self, const Arguments& arguments);

}  // namespace weft::jinja
