#include "cli/filter_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// The two ends of a pipe; the child gets none but those that it is given.
class Pipe {
 public:
  Pipe() = default;
  ~Pipe() {
    Close(&ends_[0]);
    Close(&ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool Open() { return pipe2(ends_, O_CLOEXEC) == 0; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void CloseRead() { Close(&ends_[0]); }
  void CloseWrite() { Close(&ends_[1]); }

 private:
  static void Close(int* end) {
    if (*end >= 0) close(*end);
    *end = -1;
  }
  int ends_[2] = {-1, -1};
};

// Appends what there is to read; closes the pipe at its end.
void Take(Pipe* pipe, std::string* text) {
  char buffer[1 << 16];
  const ssize_t n = read(pipe->read_end(), buffer, sizeof(buffer));
  if (n > 0) {
    text->append(buffer, n);
  } else if (n == 0 || errno != EINTR) {
    pipe->CloseRead();
  }
}

int Spawn(const std::vector<std::string>& command, const Pipe& in,
          const Pipe& out, const Pipe& err, pid_t* child) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.read_end(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.write_end(), STDERR_FILENO);
  // This process ignores the signal of a closed pipe; the child should not.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(child, command.front().c_str(), &files,
                                 &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

absl::StatusOr<std::string> FilterThrough(
    const std::vector<std::string>& command, absl::string_view input) {
  const std::string& program = command.front();
  Pipe in, out, err;
  pid_t child;
  int error = in.Open() && out.Open() && err.Open() ? 0 : errno;
  if (error == 0) error = Spawn(command, in, out, err, &child);
  if (error != 0) {
    const std::string reason = absl::StrCat("cannot start program: ", program,
                                            ": ", std::strerror(error));
    return error == ENOENT ? absl::NotFoundError(reason)
                           : absl::UnavailableError(reason);
  }
  in.CloseRead();
  out.CloseWrite();
  err.CloseWrite();
  // Else a child that reads slowly would make this end wait in write() while
  // its own output pipe is full.
  fcntl(in.write_end(), F_SETFL, O_NONBLOCK);

  std::string result, complaint;
  if (input.empty()) in.CloseWrite();
  while (out.read_end() >= 0 || err.read_end() >= 0) {
    pollfd ends[] = {{in.write_end(), POLLOUT, 0},
                     {out.read_end(), POLLIN, 0},
                     {err.read_end(), POLLIN, 0}};
    if (poll(ends, 3, -1) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (ends[0].revents != 0) {
      const ssize_t n = write(in.write_end(), input.data(), input.size());
      if (n > 0) input.remove_prefix(n);
      // A child that stops reading early may still succeed.
      const bool gone = n < 0 && errno != EAGAIN && errno != EINTR;
      if (gone || input.empty()) in.CloseWrite();
    }
    if (ends[1].revents != 0) Take(&out, &result);
    if (ends[2].revents != 0) Take(&err, &complaint);
  }
  in.CloseWrite();
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return result;
  std::string how = WIFSIGNALED(status)
                        ? absl::StrCat("signal ", WTERMSIG(status))
                        : absl::StrCat("exit code ", WEXITSTATUS(status));
  const std::string line = complaint.substr(0, complaint.find('\n'));
  if (!line.empty()) absl::StrAppend(&how, ": ", line);
  return absl::UnavailableError(
      absl::StrCat("program failed: ", program, ": ", how));
}

}  // namespace weft
