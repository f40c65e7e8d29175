// libcurl, loaded when something is first asked of a hub.
//
// Linked like other libraries it would bring some thirty more into the process,
// which take longer to load than a small model does, at every start of a
// program that hardly ever downloads.
#pragma once

#include <curl/curl.h>

#include "absl/status/statusor.h"

namespace weft {

struct Curl {
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_setopt) easy_setopt;
  decltype(&curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_perform) easy_perform;
  decltype(&curl_easy_strerror) easy_strerror;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;
};

// Thread-safe; the same one each time. Errors: the library is not there.
absl::StatusOr<const Curl*> LoadCurl();

}  // namespace weft
