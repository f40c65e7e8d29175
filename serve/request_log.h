// Requests that generate, written down so that they can be run again: one line
// of JSON each, when its answer has ended.
//
//   {"time", "route", "model", "file", "capacity",
//    "request": {"prompts": [[ids], ..], "seed", and the other fields of a
//                completion by their names in the API},
//    "answers": [{"tokens": [ids], "text", "finish"}, ..],
//    "complete", "usage", "seconds"}
//
// The seed is there even where the server drew it, so a line says all that the
// answer depends on beside the model and the context. `file` is the model's,
// and empty for the embedded one. `complete` is false where the client left or
// something failed: the tokens are those until then.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "runtime/generation/request.h"
#include "serve/generate.h"

namespace weft {

// A file that lines are added to. Thread-safe.
class RequestLog {
 public:
  // Made for its owner alone, since people's texts are in it. `warn` is told
  // once when a line cannot be written.
  static absl::StatusOr<std::unique_ptr<RequestLog>> Open(
      const std::string& path,
      std::function<void(const std::string& line)> warn);
  ~RequestLog();

  void Write(const nlohmann::ordered_json& line);

 private:
  RequestLog(int file, std::string path,
             std::function<void(const std::string& line)> warn)
      : file_(file), path_(std::move(path)), warn_(std::move(warn)) {}

  const int file_;
  const std::string path_;
  const std::function<void(const std::string& line)> warn_;
  absl::Mutex mutex_;
  bool warned_ ABSL_GUARDED_BY(mutex_) = false;
};

// One request while it is answered; writes its line when it goes.
class LoggedRequest {
 public:
  LoggedRequest(const ServedModel& model, std::string route, Job job);
  ~LoggedRequest();

  void Add(int64_t choice, const Event& event);

 private:
  struct Answer {
    std::vector<int32_t> tokens;
    std::string text, finish;
  };

  RequestLog* log_;
  const std::string route_, model_, file_;
  const int64_t capacity_;
  const Job job_;
  const absl::Time begun_ = absl::Now();
  std::vector<Answer> answers_;
  Usage usage_;
};

// The "request" of a line, and the job that it was. Errors name the field.
nlohmann::ordered_json JobJson(const Job& job);
absl::StatusOr<Job> ReadJob(const nlohmann::ordered_json& request,
                            const RequestLimits& limits);

}  // namespace weft
