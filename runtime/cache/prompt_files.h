// What of prompts is kept in files: pages of keys and values, and of models
// with states by sequence those behind some of the pages (page_store.h), all in
// one folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/cache/page_store.h"

namespace weft {

// Not thread-safe: for one scheduler.
class PromptFiles {
 public:
  struct Options {
    std::string folder;    // is made if it is not there
    int64_t limit = 0;     // bytes of all files
    std::string identity;  // of the plan: PageStoreOptions
    int64_t page_bytes = 0;
    int64_t slot_bytes = 0;  // of the states of a sequence; 0: there are none
    std::function<void(const std::string& line)> log;
  };

  // Memory for what is on its way to or from files.
  static int64_t Bytes(int64_t page_bytes, int64_t slot_bytes);

  // Of the least that is of any use: a page, and the states behind it.
  static int64_t FileBytes(int64_t page_bytes, int64_t slot_bytes);

  // Errors: as PageFolder::Open.
  static absl::StatusOr<std::unique_ptr<PromptFiles>> Open(
      const Options& options);

  PageStore& pages() { return *pages_; }
  // Null: of models without.
  PageStore* states() { return states_.get(); }

  // Bytes of all files, and how many were read, written and found damaged.
  struct Stats {
    int64_t bytes = 0;
    int64_t read = 0, written = 0, damaged = 0;
  };
  Stats GetStats() const;

 private:
  PromptFiles() = default;

  std::shared_ptr<PageFolder> folder_;
  std::unique_ptr<PageStore> pages_, states_;
};

}  // namespace weft
