#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <streambuf>

#include "absl/strings/str_cat.h"
#include "base/output_file.h"
#include "cli/command.h"

namespace weft {
namespace {

// What std::cout writes through: it remembers why writing failed, which the
// standard library's own does not.
class OutputBuffer : public std::streambuf {
 public:
  OutputBuffer() { setp(buffer_, buffer_ + sizeof(buffer_)); }

  // errno of the first failure; 0: none so far.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (traits_type::eq_int_type(c, traits_type::eof())) {
      return traits_type::not_eof(c);
    }
    return sputc(traits_type::to_char_type(c));
  }

  int sync() override {
    const char* from = pbase();
    while (error_ == 0 && from < pptr()) {
      const ssize_t n = write(STDOUT_FILENO, from, pptr() - from);
      if (n >= 0) {
        from += n;
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    setp(buffer_, buffer_ + sizeof(buffer_));
    return error_ == 0 ? 0 : -1;
  }

 private:
  char buffer_[1 << 16];
  int error_ = 0;
};

OutputBuffer& Buffer() {
  // Never destroyed: std::cout is flushed after static objects are gone.
  static OutputBuffer* buffer = new OutputBuffer;
  return *buffer;
}

}  // namespace

void InstallOutput() { std::cout.rdbuf(&Buffer()); }

void PrintJson(const nlohmann::ordered_json& json) {
  std::cout << json.dump(-1, ' ', false,
                         nlohmann::ordered_json::error_handler_t::replace)
            << "\n";
}

std::string Plain(absl::string_view text) {
  std::string plain(text);
  for (char& c : plain) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return plain;
}

absl::Status WriteResult(const std::string& path, absl::string_view content) {
  if (!path.empty()) return WriteFile(path, content);
  std::cout << content;
  return absl::OkStatus();
}

absl::Status FinishOutput() {
  std::cout << std::flush;
  const int error = Buffer().error();
  if (error == 0 || error == EPIPE) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot write: standard output: ", std::strerror(error)));
}

}  // namespace weft
