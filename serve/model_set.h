// The models that a server answers with, by name.
//
// Idea: a model is loaded when it is first asked for. What each takes at its
// peak is known from its plan before it is loaded, so the sum of those that are
// loaded stays within a budget. Where it would not, those go that nobody uses,
// the one that was asked for longest ago first. Where that is not enough, the
// oldest of the others is unloaded once the requests that use it have ended;
// who asks for it meanwhile waits until it is loaded again. Models are loaded
// one at a time, in the order in which they were asked for: so nobody waits for
// ever, and for a model that is loaded nobody waits at all.
//
// What is known of a model is known of its file as it was: one that was
// written to, replaced or removed is looked at anew when it is next asked for,
// and so is one that failed, after a while or as soon as its file is another.
//
// Thread-safe once it has its models.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "serve/served_model.h"

namespace weft {

class ModelSet {
 public:
  // A model that can be loaded.
  struct Source {
    std::string id;    // its name in the API
    std::string path;  // a .gguf or .weft file, or what the loader takes
    int64_t created = 0;
    int64_t file_bytes = 0;
    std::vector<std::string> aliases;

    // Whether this is its name or an alias; ":latest" may follow, as Ollama's
    // clients have it.
    bool Answers(absl::string_view name) const;
  };

  // Called by one thread at a time, but for `identity`.
  struct Loader {
    // Of its file as it lies there now: another text when it is another file,
    // or was written to. Quick: asked for with every request.
    std::function<std::string(const Source& source)> identity;
    // What it takes at its peak, in bytes, by its plan.
    std::function<absl::StatusOr<int64_t>(const Source& source)> bytes;
    std::function<absl::StatusOr<ServedModel>(const Source& source)> load;
  };

  enum class State : uint8_t { kUnloaded, kLoading, kReady, kFailed };

  struct Info {
    Source source;
    State state = State::kUnloaded;
    int64_t bytes = 0;  // at its peak; 0: not known yet
    std::string error;  // of kFailed
    // Of kReady.
    int64_t context = 0;  // the most tokens of a text
    std::string architecture;
    int64_t parameters = 0;
    absl::Status health;  // Engine::CheckFiles, Scheduler::Damage
  };

  // After a load that failed, how long its error stands before another try,
  // unless the file is another.
  static constexpr std::chrono::seconds kRetry{10};

  ~ModelSet();

  // One model, which stays and answers to every name.
  void SetOnly(ServedModel model);
  // Several; the first answers where no name is given. `budget`: bytes that
  // those which are loaded may take together.
  void SetSources(std::vector<Source> sources, Loader loader, int64_t budget);

  // Whether names matter.
  bool by_name() const { return loader_.load != nullptr; }
  int64_t budget() const { return budget_; }

  // The model of this name or alias, loaded if it was not; it stays as long as
  // the pointer is there, which must not outlive the set. Blocks; `gone` is
  // asked now and then whether nobody waits any more. Errors: kNotFound, no
  // such name; kCancelled; kUnavailable, the set was closed, or memory is too
  // small for it now; kInvalidArgument, the budget is: to try again is no use;
  // kInternal, it cannot be loaded.
  absl::StatusOr<std::shared_ptr<const ServedModel>> Get(
      absl::string_view name, const std::function<bool()>& gone);

  // Whether a model has this name or alias.
  bool Has(absl::string_view name) const;
  // The error for a name that none has.
  absl::Status Unknown(absl::string_view name) const;

  // In the order of the sources.
  std::vector<Info> List() const;
  // Of all models there were, unloaded ones too.
  SchedulerStats Stats() const;
  int64_t ready() const;
  int64_t loads() const;
  int64_t unloads() const;

  // Who waits for a model is told kUnavailable from now on, and running
  // requests end within `time` or are cancelled: how many were is the result.
  int64_t Drain(absl::Duration time);

 private:
  struct Member {
    Source source;
    State state = State::kUnloaded;
    std::string identity;  // of the file that what follows is of
    int64_t bytes = -1;    // not known yet
    // What a client has set outlives the loaded model.
    std::shared_ptr<DefaultAdapters> adapters;
    std::unique_ptr<const ServedModel> model;
    int64_t users = 0;
    int64_t asked = 0;     // by the count of `asked_`
    bool leaving = false;  // is to be unloaded when nobody uses it
    absl::Status error;
    std::chrono::steady_clock::time_point failed;
  };

  Member* Find(absl::string_view name) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const ServedModel> Use(Member* member)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Load(Member* member, const std::function<bool()>& gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MakeRoom(int64_t bytes, const std::function<bool()>& gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Unloads it once nobody uses it; does without as soon as `room` is true,
  // which may be null.
  absl::Status Leave(Member* member, const std::function<bool()>& gone,
                     const std::function<bool()>& room)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unload(Member* member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether requests can use it as it is.
  bool IsSound(const Member& member) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Of those that are loaded and in use or not, the one that was asked for
  // longest ago; null: none.
  Member* Oldest(bool in_use) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  int64_t LoadedBytes(bool in_use) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  Loader loader_;
  int64_t budget_ = 0;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::vector<std::unique_ptr<Member>> members_ ABSL_GUARDED_BY(mutex_);
  // Who waits for a load, by the count of `asked_`; the first may load.
  std::list<int64_t> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t loads_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t unloads_ ABSL_GUARDED_BY(mutex_) = 0;
  SchedulerStats unloaded_ ABSL_GUARDED_BY(mutex_);
};

absl::string_view Name(ModelSet::State state);

}  // namespace weft
