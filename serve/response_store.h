// Answers of /v1/responses that a later request may go on from, in memory.
//
// Bounded: the longest unused ones go first. Each is for the client that asked
// for it alone. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "nlohmann/json.hpp"

namespace weft {

class ResponseStore {
 public:
  static constexpr size_t kMost = 1024;
  static constexpr int64_t kMostBytes = 64 << 20;

  struct Entry {
    uint64_t client = 0;
    // The conversation so far as text of a list of messages, the answer
    // included; and the answer as it was sent.
    std::string messages, answer;
    std::vector<std::string> items;  // ids of what was put out
    std::string input;  // what was put in, as text of a list of items
  };

  void Put(const std::string& id, Entry entry);
  // Nothing: there is none of this client's.
  absl::optional<Entry> Find(const std::string& id, uint64_t client);
  // The same by the id of an item that it put out.
  absl::optional<Entry> FindItem(const std::string& item, uint64_t client);
  bool Remove(const std::string& id, uint64_t client);

 private:
  struct Kept {
    Entry entry;
    std::list<std::string>::iterator age;
  };
  static int64_t Bytes(const Entry& entry) {
    return static_cast<int64_t>(entry.messages.size() + entry.answer.size() +
                                entry.input.size());
  }
  void Erase(std::map<std::string, Kept>::iterator it)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::map<std::string, Kept> entries_ ABSL_GUARDED_BY(mutex_);
  // By item, the id of its answer.
  std::map<std::string, std::string> items_ ABSL_GUARDED_BY(mutex_);
  std::list<std::string> ages_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
