#include "runtime/hub/curl.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// The name that the interface has since 2006.
constexpr char kLibrary[] = "libcurl.so.4";

absl::StatusOr<const Curl*> Load() {
  // Never closed: it may have started threads.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot download: ", why != nullptr ? why : kLibrary,
        ": install Debian's package libcurl4, or what has ", kLibrary));
  }
  static Curl curl;
  bool complete = true;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(
        dlsym(library, name));
    complete = complete && *function != nullptr;
  };
  decltype(&curl_global_init) global_init = nullptr;
  find("curl_global_init", &global_init);
  find("curl_easy_init", &curl.easy_init);
  find("curl_easy_cleanup", &curl.easy_cleanup);
  find("curl_easy_setopt", &curl.easy_setopt);
  find("curl_easy_getinfo", &curl.easy_getinfo);
  find("curl_easy_perform", &curl.easy_perform);
  find("curl_easy_strerror", &curl.easy_strerror);
  find("curl_slist_append", &curl.slist_append);
  find("curl_slist_free_all", &curl.slist_free_all);
  if (!complete || global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot download: ", kLibrary,
                     " does not start: install Debian's package libcurl4"));
  }
  return &curl;
}

}  // namespace

absl::StatusOr<const Curl*> LoadCurl() {
  static const absl::StatusOr<const Curl*> curl = Load();
  return curl;
}

}  // namespace weft
