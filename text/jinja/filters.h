// Filters, tests and global functions, found by name.
//
// Filters: abs attr batch capitalize center count d default dictsort e escape
// first float format indent int items join last length list lower map max min
// reject rejectattr replace reverse round safe select selectattr slice sort
// string sum title tojson trim unique upper wordcount.
// Tests: all of Jinja's.
// Functions: dict, namespace, range; of HuggingFace's environment
// raise_exception and strftime_now.
//
// tojson is HuggingFace's, which escapes nothing for HTML; escape gives a plain
// string, since nothing is escaped by itself.
#pragma once

#include "absl/strings/string_view.h"
#include "text/jinja/context.h"
#include "text/jinja/value.h"

namespace weft::jinja {

Value CallFilter(Context& context, absl::string_view name, const Value& input,
                 const Arguments& arguments);
bool CallTest(Context& context, absl::string_view name, const Value& input,
              const Arguments& arguments);

bool HasFilter(absl::string_view name);
bool HasTest(absl::string_view name);
bool HasFunction(absl::string_view name);
Value CallFunction(Context& context, absl::string_view name,
                   const Arguments& arguments);

}  // namespace weft::jinja
