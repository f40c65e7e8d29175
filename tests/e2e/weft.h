// Runs the binary, as a user's shell would.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace weft {

struct RunResult {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  std::string out, err;
};

struct RunOptions {
  std::string input;  // standard input
  // Added to the environment, "NAME=value".
  std::vector<std::string> environment;
  // Of address space; 0: no limit.
  int64_t memory_limit = 0;
  // Standard output goes to this file instead of RunResult::out.
  std::string output_file;
  // Standard output is a terminal (one that leaves line ends alone).
  bool terminal = false;
  // Closes the pipe of standard output after this many bytes; -1: never.
  int64_t close_output_after = -1;
  // Sends SIGINT after the first byte of standard output.
  bool interrupt = false;
  // Above 1: by as many processes, with mpirun.
  int ranks = 1;
  // Sends `interrupt_signal` as soon as this says so; asked every millisecond.
  std::function<bool()> interrupt_when = nullptr;
  int interrupt_signal = SIGINT;
};

RunResult Weft(const std::vector<std::string>& arguments,
               const RunOptions& options = {});

// Becomes the binary; with `ranks` above 1, mpirun that starts so many of it,
// more than there are processors, by root too, as in a container.
[[noreturn]] void ExecuteWeft(const std::vector<std::string>& arguments,
                              int ranks);

// The same, and a test failure unless it ends with 0.
std::string WeftOut(const std::vector<std::string>& arguments,
                    const RunOptions& options = {});
nlohmann::json WeftJson(const std::vector<std::string>& arguments,
                        const RunOptions& options = {});

// A test failure unless the command failed as the contract says: this exit
// code, nothing on standard output, one line "weft: ..." on standard error.
void ExpectError(const RunResult& result, int exit_code);

// In the test's own folder.
std::string TemporaryPath(const std::string& name);
std::string ReadFile(const std::string& path);
void WriteTextFile(const std::string& path, const std::string& content);

// "tests/data/malformed/NAME".
std::string SmallModel(const std::string& name);

}  // namespace weft
