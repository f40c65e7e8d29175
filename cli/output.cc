#include "cli/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "cli/command.h"

namespace weft {

void PrintJson(const nlohmann::ordered_json& json) {
  std::cout << json.dump(-1, ' ', false,
                         nlohmann::ordered_json::error_handler_t::replace)
            << "\n";
}

absl::Status WriteResult(const std::string& path, absl::string_view content) {
  if (!path.empty()) return WriteFile(path, content);
  std::cout << content;
  return absl::OkStatus();
}

absl::Status FinishOutput() {
  std::cout << std::flush;
  if (std::cout) return absl::OkStatus();
  // Once more, for the reason: errno of the first failure is long gone.
  std::cout.clear();
  errno = 0;
  std::cout << std::flush;
  const int reason = errno;
  pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  if (poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("cannot write: standard output: ",
                   reason != 0 ? std::strerror(reason) : "input/output error"));
}

}  // namespace weft
