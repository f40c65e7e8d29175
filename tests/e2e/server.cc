#include "tests/e2e/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/e2e/weft.h"

namespace weft {

Server::Server(std::vector<std::string> arguments, int ranks) {
  static std::atomic<int> count{0};
  log_path_ = TemporaryPath(absl::StrCat("serve-", ++count, ".log"));
  int out[2];
  EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  const int log = open(log_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  child_ = fork();
  if (child_ == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    setenv("OMP_WAIT_POLICY", "passive", 0);
    arguments.insert(arguments.begin(), {"serve", "--port", "0"});
    ExecuteWeft(arguments, ranks);
  }
  close(log);
  close(out[1]);
  std::string line;
  char c;
  while (read(out[0], &c, 1) == 1 && c != '\n') line += c;
  close(out[0]);
  const size_t colon = line.rfind(':');
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(line.substr(colon + 1), &port_)) {
    ADD_FAILURE() << "no address: " << line << "\n" << Log();
  }
}

Server::~Server() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  Wait();
}

httplib::Client Server::Client() const {
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(300);
  return client;
}

int Server::Wait() {
  int status = 0;
  waitpid(child_, &status, 0);
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string Server::Log() const { return ReadFile(log_path_); }

namespace {

Answer ToAnswer(const httplib::Result& result) {
  Answer answer;
  if (!result) {
    ADD_FAILURE() << "no answer: " << httplib::to_string(result.error());
    return answer;
  }
  answer.status = result->status;
  answer.text = result->body;
  answer.json = nlohmann::json::parse(result->body, nullptr, false);
  return answer;
}

}  // namespace

Answer Post(const Server& server, const std::string& path,
            const std::string& body) {
  return ToAnswer(server.Client().Post(path, body, "application/json"));
}

Answer Get(const Server& server, const std::string& path) {
  return ToAnswer(server.Client().Get(path));
}

std::vector<nlohmann::json> Events(const std::string& stream, bool* done) {
  std::vector<nlohmann::json> events;
  if (done != nullptr) *done = false;
  for (absl::string_view event :
       absl::StrSplit(stream, "\n\n", absl::SkipEmpty())) {
    if (absl::StartsWith(event, ": ")) continue;  // still here
    if (absl::ConsumePrefix(&event, "event: ")) {
      event.remove_prefix(event.find('\n') + 1);
    }
    EXPECT_TRUE(absl::ConsumePrefix(&event, "data: ")) << event;
    if (event == "[DONE]") {
      if (done != nullptr) *done = true;
      continue;
    }
    events.push_back(nlohmann::json::parse(std::string(event), nullptr, false));
    EXPECT_FALSE(events.back().is_discarded()) << event;
  }
  return events;
}

double MetricOf(const Server& server, const std::string& name) {
  const Answer answer = Get(server, "/metrics");
  for (absl::string_view line : absl::StrSplit(answer.text, '\n')) {
    double value = 0;
    if (absl::ConsumePrefix(&line, name + " ") &&
        absl::SimpleAtod(line, &value)) {
      return value;
    }
  }
  return -1;
}

}  // namespace weft
