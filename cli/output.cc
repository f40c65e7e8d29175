#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <mutex>
#include <streambuf>

#include "absl/strings/str_cat.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "text/printable.h"

namespace weft {
namespace {

// Writes to a file descriptor. A terminal is shown nothing that it would obey,
// whoever wrote it; anything else gets the bytes as they are.
class Gate {
 public:
  Gate(int file, bool filtered) : file_(file), filtered_(filtered) {}

  void Write(absl::string_view bytes) {
    if (filtered_) {
      WriteAll(stream_.Next(bytes));
    } else {
      WriteAll(bytes);
    }
  }
  void Finish() { WriteAll(stream_.Finish()); }

  // errno of the first failure; 0: none so far.
  int error() const { return error_; }

 private:
  void WriteAll(absl::string_view bytes) {
    while (error_ == 0 && !bytes.empty()) {
      const ssize_t n = write(file_, bytes.data(), bytes.size());
      if (n >= 0) {
        bytes.remove_prefix(static_cast<size_t>(n));
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
  }

  const int file_;
  const bool filtered_;
  PrintableStream stream_;
  int error_ = 0;
};

// What std::cout writes through: it remembers why writing failed, which the
// standard library's own does not.
class OutputBuffer : public std::streambuf {
 public:
  OutputBuffer() : gate_(STDOUT_FILENO, isatty(STDOUT_FILENO) != 0) {
    setp(buffer_, buffer_ + sizeof(buffer_));
  }

  void Finish() { gate_.Finish(); }
  int error() const { return gate_.error(); }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (traits_type::eq_int_type(c, traits_type::eof())) {
      return traits_type::not_eof(c);
    }
    return sputc(traits_type::to_char_type(c));
  }

  int sync() override {
    gate_.Write(absl::string_view(pbase(), pptr() - pbase()));
    setp(buffer_, buffer_ + sizeof(buffer_));
    return gate_.error() == 0 ? 0 : -1;
  }

 private:
  Gate gate_;
  char buffer_[1 << 16];
};

// What std::cerr writes through, at once, from any thread. Filtered whatever it
// is: logs are read on terminals later.
class ErrorBuffer : public std::streambuf {
 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    gate_.Write(absl::string_view(text, static_cast<size_t>(size)));
    return size;
  }

  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) {
      return traits_type::not_eof(c);
    }
    const char character = traits_type::to_char_type(c);
    xsputn(&character, 1);
    return c;
  }

 private:
  std::mutex mutex_;
  Gate gate_{STDERR_FILENO, true};
};

OutputBuffer& Buffer() {
  // Never destroyed: std::cout is flushed after static objects are gone.
  static OutputBuffer* buffer = new OutputBuffer;
  return *buffer;
}

}  // namespace

void InstallOutput() {
  std::cout.rdbuf(&Buffer());
  static ErrorBuffer* const errors = new ErrorBuffer;
  std::cerr.rdbuf(errors);
}

void PrintNotice(absl::string_view line) {
  std::cerr << absl::StrCat("weft: ", PrintableLine(line), "\n");
}

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
  Buffer().Finish();
  const int error = Buffer().error();
  if (error == 0 || error == EPIPE) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot write: standard output: ", std::strerror(error)));
}

}  // namespace weft
