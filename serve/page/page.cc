#include "serve/page/page.h"

#include "absl/strings/str_replace.h"
#include "serve/page/page_parts.inc"

namespace weft {

const std::string& ChatPage() {
  static const std::string* const page = new std::string(absl::StrReplaceAll(
      kHtml, {{"{{style}}", kStyle}, {"{{script}}", kScript}}));
  return *page;
}

const char* ChatPagePolicy() {
  return "default-src 'none'; style-src 'nonce-weft'; script-src "
         "'nonce-weft'; connect-src 'self'; base-uri 'none'; form-action "
         "'none'; frame-ancestors 'none'";
}

}  // namespace weft
