#include "graph/attribute_text.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// The shortest text that reads back as the same double and looks like one.
std::string NumberText(double x) {
  char buffer[40];
  for (int digits : {6, 9, 17}) {
    std::snprintf(buffer, sizeof(buffer), "%.*g", digits, x);
    if (std::strtod(buffer, nullptr) == x) break;
  }
  std::string text = buffer;
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string ToText(const AttributeValue& value) {
  if (const int64_t* integer = std::get_if<int64_t>(&value)) {
    return absl::StrCat(*integer);
  }
  if (const double* number = std::get_if<double>(&value)) {
    return NumberText(*number);
  }
  return absl::StrCat("\"", absl::CHexEscape(std::get<std::string>(value)),
                      "\"");
}

}  // namespace weft
