// Python's two ways to put values into a string.
//
// Supported: of "%", the conversions s r d i f e g x X o c and %%, with flags,
// width, precision and %(names)s; of str.format, {} {0} {name} and {{ }},
// without format specifications.
#pragma once

#include "text/jinja/context.h"
#include "text/jinja/value.h"

namespace weft::jinja {

// format % values: a tuple of values, a mapping for %(names)s, or one value.
Value FormatPercent(Context& context, const Text& format, const Value& values);
// format.format(arguments)
Value FormatBraces(Context& context, const Text& format,
                   const Arguments& arguments);

}  // namespace weft::jinja
