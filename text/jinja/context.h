// One run of a template: its allowance of work, its error, its namespaces.
//
// Errors are sticky: the first one stays, everything afterwards returns at once
// with an undefined value that nobody looks at. So functions that compute
// return plain values, and only loops and whoever needs a result ask failed().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "text/jinja/value.h"

namespace weft::jinja {

class Context {
 public:
  Context(int64_t work, absl::Time now) : work_left_(work), now_(now) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  bool failed() const { return !status_.ok(); }
  // "line N: <why>"; OK while all is well.
  const absl::Status& status() const { return status_; }

  // Notes an error at the current line. Returns undefined, for `return Fail()`.
  Value Fail(absl::string_view why);

  // Takes `work` units from the allowance; false if this run has failed, then
  // or before.
  bool Spend(int64_t work);
  // False and an error if a value is nested too deeply.
  bool CheckValueDepth(int depth);

  // The line being executed, for errors.
  void set_line(int line) { line_ = line; }
  int line() const { return line_; }

  absl::Time now() const { return now_; }

  Namespace* NewNamespace() {
    namespaces_.push_back(std::make_unique<Namespace>());
    return namespaces_.back().get();
  }

 private:
  int64_t work_left_;
  absl::Time now_;
  int line_ = 0;
  absl::Status status_;
  std::vector<std::unique_ptr<Namespace>> namespaces_;
};

}  // namespace weft::jinja
