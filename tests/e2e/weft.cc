#include "tests/e2e/weft.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace weft {
namespace {

struct Pipe {
  Pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  void CloseRead() { Close(0); }
  void CloseWrite() { Close(1); }
  void Close(int i) {
    if (ends[i] >= 0) close(ends[i]);
    ends[i] = -1;
  }
  int ends[2] = {-1, -1};
};

// A terminal that shows what is written as it is.
void MakeTerminal(Pipe* out) {
  out->CloseRead();
  out->CloseWrite();
  out->ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_EQ(grantpt(out->ends[0]), 0);
  EXPECT_EQ(unlockpt(out->ends[0]), 0);
  out->ends[1] = open(ptsname(out->ends[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
  termios settings;
  EXPECT_EQ(tcgetattr(out->ends[1], &settings), 0);
  cfmakeraw(&settings);
  EXPECT_EQ(tcsetattr(out->ends[1], TCSANOW, &settings), 0);
}

[[noreturn]] void Child(const std::vector<std::string>& arguments,
                        const RunOptions& options, int in, int out, int err) {
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
#if !defined(__SANITIZE_ADDRESS__)  // its shadow takes all addresses
  if (options.memory_limit > 0) {
    const rlimit limit = {static_cast<rlim_t>(options.memory_limit),
                          static_cast<rlim_t>(options.memory_limit)};
    setrlimit(RLIMIT_AS, &limit);
  }
#endif
  // Threads that wait asleep: tests share their machine with other work, and
  // spinning would make each step as slow as the scheduler's turns.
  setenv("OMP_WAIT_POLICY", "passive", 0);
  for (const std::string& entry : options.environment) {
    const size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
  }
  ExecuteWeft(arguments, options.ranks);
}

}  // namespace

void ExecuteWeft(const std::vector<std::string>& arguments, int ranks) {
  const std::string count = std::to_string(ranks);
  std::vector<const char*> argv = {"weft"};
  if (ranks > 1) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    // Its sockets have short paths.
    setenv("TMPDIR", "/tmp", 1);
    argv = {"mpirun", "--oversubscribe", "-n", count.c_str(), "cli/weft"};
  }
  for (const std::string& argument : arguments)
    argv.push_back(argument.c_str());
  argv.push_back(nullptr);
  execvp(ranks > 1 ? "mpirun" : "cli/weft",
         const_cast<char* const*>(argv.data()));
  _exit(127);
}

RunResult Weft(const std::vector<std::string>& arguments,
               const RunOptions& options) {
  signal(SIGPIPE, SIG_IGN);
  Pipe in, out, err;
  int file = -1;
  if (!options.output_file.empty()) {
    file = open(options.output_file.c_str(),
                O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    EXPECT_GE(file, 0) << options.output_file;
  }
  if (options.terminal) MakeTerminal(&out);
  // Not an empty pipe, which would be an input.
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, SIG_DFL);
    Child(arguments, options, options.input.empty() ? nothing : in.ends[0],
          file >= 0 ? file : out.ends[1], err.ends[1]);
  }
  if (file >= 0) close(file);
  close(nothing);
  in.CloseRead();
  out.CloseWrite();
  err.CloseWrite();

  RunResult result;
  size_t sent = 0;
  bool interrupted = false;
  if (options.input.empty()) in.CloseWrite();
  while (out.ends[0] >= 0 || err.ends[0] >= 0) {
    pollfd fds[] = {{in.ends[1], POLLOUT, 0},
                    {out.ends[0], POLLIN, 0},
                    {err.ends[0], POLLIN, 0}};
    if (poll(fds, 3, options.interrupt_when ? 1 : -1) < 0) break;
    if (!interrupted && options.interrupt_when && options.interrupt_when()) {
      kill(child, options.interrupt_signal);
      interrupted = true;
    }
    if (fds[0].revents != 0) {
      const ssize_t n = write(in.ends[1], options.input.data() + sent,
                              options.input.size() - sent);
      sent += std::max<ssize_t>(n, 0);
      if (n <= 0 || sent == options.input.size()) in.CloseWrite();
    }
    const auto take = [](Pipe& pipe, std::string* text) {
      char buffer[65536];
      const ssize_t n = read(pipe.ends[0], buffer, sizeof(buffer));
      if (n <= 0) {
        pipe.CloseRead();
      } else {
        text->append(buffer, n);
      }
    };
    if (fds[1].revents != 0) take(out, &result.out);
    if (fds[2].revents != 0) take(err, &result.err);
    if (options.interrupt && !interrupted && !result.out.empty()) {
      kill(child, SIGINT);
      interrupted = true;
    }
    if (options.close_output_after >= 0 &&
        static_cast<int64_t>(result.out.size()) >= options.close_output_after) {
      out.CloseRead();
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

std::string WeftOut(const std::vector<std::string>& arguments,
                    const RunOptions& options) {
  const RunResult result = Weft(arguments, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.signal, 0);
  return result.out;
}

nlohmann::json WeftJson(const std::vector<std::string>& arguments,
                        const RunOptions& options) {
  const std::string out = WeftOut(arguments, options);
  nlohmann::json json = nlohmann::json::parse(out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << out;
  return json;
}

void ExpectError(const RunResult& result, int exit_code) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err.rfind("weft: ", 0), 0u) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
      << result.err;
  EXPECT_EQ(result.err.back(), '\n');
}

std::string TemporaryPath(const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  return std::string(folder != nullptr ? folder : "/tmp") + "/" + name;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void WriteTextFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string SmallModel(const std::string& name) {
  return "tests/data/malformed/" + name;
}

}  // namespace weft
