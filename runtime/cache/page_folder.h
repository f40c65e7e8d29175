// The files of a folder of cached prompts (page_store.h): which there are, when
// each was used last, and which go where all together would be more than a
// limit. Several processes may share a folder; of what others write meanwhile
// nothing is known.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace weft {

class PageFolder {
 public:
  // How the names of its files end; others are left alone.
  static constexpr char kEnding[] = ".page";

  // Makes the folder if it is not there, for its owner alone, and looks through
  // it. `limit`: bytes of all files. Errors: it cannot be made, read or
  // written.
  static absl::StatusOr<std::shared_ptr<PageFolder>> Open(
      const std::string& folder, int64_t limit);

  std::string PathOf(const std::string& name) const;
  int64_t limit() const { return limit_; }

  // By what is known without looking.
  bool Has(const std::string& name) const;
  // A file was read or written; `used` in nanoseconds since 1970. Removes those
  // that were not used for the longest time while there are too many bytes.
  void Note(const std::string& name, int64_t bytes, int64_t used);
  // Removes a file; false if there was none.
  bool Remove(const std::string& name);
  int64_t bytes() const;

 private:
  struct File {
    int64_t bytes;
    int64_t used;
  };

  PageFolder(std::string folder, int64_t limit)
      : folder_(std::move(folder)), limit_(limit) {}
  void Forget(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const int64_t limit_;
  mutable absl::Mutex mutex_;
  std::map<std::string, File> files_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<int64_t, std::string>> by_use_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
