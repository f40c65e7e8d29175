#include "cli/html/page.h"

#include "absl/strings/str_replace.h"
#include "cli/html/page_parts.inc"
#include "cli/html/program_data.h"

namespace weft {

std::string HtmlPage(const nlohmann::json& program) {
  // All at once: a place for a part that is named within the data stays text.
  return absl::StrReplaceAll(kHtml, {{"{{style}}", kStyle},
                                     {"{{script}}", kScript},
                                     {"{{program}}", ScriptJson(program)}});
}

}  // namespace weft
