// The files of a folder of cached prompts (page_store.h): which there are, when
// each was used last, and which go where all together would be more than a
// limit.
//
// A folder has one object in a process, whoever opens it: stores of several
// models keep to one limit together. Other processes may share it. So the
// folder is looked through again while files are written, as often as takes a
// small part of the time: the limit holds for all of them together but for what
// others write within such a while, and what others wrote is found.
//
// Where nothing can be written (a full disk, a folder that has gone) old files
// make room, or the folder is made again; where that is of no use nothing is
// tried for a minute, then for two, and so on.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace weft {

class PageFolder {
 public:
  // How the names of its files end; others are left alone.
  static constexpr char kEnding[] = ".page";
  // After a file could not be written; twice as long after the next, up to
  // kLongestPause.
  static constexpr absl::Duration kPause = absl::Minutes(1);
  static constexpr absl::Duration kLongestPause = absl::Hours(1);

  // Makes the folder if it is not there, for its owner alone, looks through it
  // and removes what dead processes left half-written. `limit`: bytes of all
  // files, from now on for whoever has it open. Errors: it cannot be made, read
  // or written.
  static absl::StatusOr<std::shared_ptr<PageFolder>> Open(
      const std::string& folder, int64_t limit, absl::Duration pause = kPause);

  std::string PathOf(const std::string& name) const;
  int64_t limit() const;

  // By what is known without looking.
  bool Has(const std::string& name) const;
  // A file was read; `used` in nanoseconds since 1970.
  void Note(const std::string& name, int64_t bytes, int64_t used);
  // Whether a file is worth making: nothing has gone wrong lately.
  bool Writable() const;
  // Writes a file, and removes those that were not used for the longest time
  // while there are too many bytes. `news`: a line that is worth telling, once
  // when writing fails and once when it works again; else it is left as it is.
  bool Write(const std::string& name, absl::string_view content, int64_t used,
             std::string* news);
  // Removes a file; false if there was none.
  bool Remove(const std::string& name);
  int64_t bytes() const;

 private:
  struct File {
    int64_t bytes;
    int64_t used;
    int64_t noted;  // by the count of `noted_`
  };

  PageFolder(std::string folder, absl::Duration pause)
      : folder_(std::move(folder)), pause_(pause) {}
  absl::Status Make() const;
  // Finds what is in the folder.
  absl::Status Look();
  void LookNowAndThen();
  absl::Status TryToWrite(const std::string& path, absl::string_view content);
  void Add(const std::string& name, int64_t bytes, int64_t used)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the oldest until there are at most so many bytes.
  void Shrink(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const absl::Duration pause_;
  mutable absl::Mutex mutex_;
  int64_t limit_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, File> files_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<int64_t, std::string>> by_use_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t noted_ ABSL_GUARDED_BY(mutex_) = 0;
  bool looking_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time look_again_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // Since a file could not be written; zero: the last one could.
  absl::Duration paused_ ABSL_GUARDED_BY(mutex_);
  absl::Time paused_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace weft
