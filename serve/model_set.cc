#include "serve/model_set.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

// How often those who wait look whether they still need to.
constexpr absl::Duration kLook = absl::Milliseconds(50);

absl::Status Closed() {
  return absl::UnavailableError("the server is shutting down");
}

}  // namespace

absl::string_view Name(ModelSet::State state) {
  switch (state) {
    case ModelSet::State::kUnloaded:
      return "unloaded";
    case ModelSet::State::kLoading:
      return "loading";
    case ModelSet::State::kReady:
      return "ready";
    case ModelSet::State::kFailed:
      return "failed";
  }
  return "";
}

ModelSet::~ModelSet() = default;

void ModelSet::SetOnly(ServedModel model) {
  const absl::MutexLock lock(&mutex_);
  auto member = std::make_unique<Member>();
  member->source.id = model.id;
  member->source.created = model.created;
  member->source.file_bytes = model.engine().plan().model.file_bytes;
  member->state = State::kReady;
  member->bytes = 0;
  member->model = std::make_unique<const ServedModel>(std::move(model));
  members_.push_back(std::move(member));
}

void ModelSet::SetSources(std::vector<Source> sources, Loader loader,
                          int64_t budget) {
  const absl::MutexLock lock(&mutex_);
  loader_ = std::move(loader);
  budget_ = budget;
  for (Source& source : sources) {
    auto member = std::make_unique<Member>();
    member->source = std::move(source);
    members_.push_back(std::move(member));
  }
}

bool ModelSet::Source::Answers(absl::string_view name) const {
  const auto is = [this](absl::string_view text) {
    return id == text ||
           std::find(aliases.begin(), aliases.end(), text) != aliases.end();
  };
  return is(name) || is(absl::StripSuffix(name, ":latest"));
}

namespace {

absl::Status HealthOf(const ServedModel& model) {
  WEFT_RETURN_IF_ERROR(model.engine().CheckFiles());
  return model.scheduler->Damage();
}

}  // namespace

bool ModelSet::IsSound(const Member& member) const {
  return !by_name() || (member.identity == loader_.identity(member.source) &&
                        HealthOf(*member.model).ok());
}

ModelSet::Member* ModelSet::Find(absl::string_view name) const {
  for (const auto& member : members_) {
    if (member->source.Answers(name)) return member.get();
  }
  return nullptr;
}

bool ModelSet::Has(absl::string_view name) const {
  const absl::MutexLock lock(&mutex_);
  return Find(name) != nullptr;
}

absl::Status ModelSet::Unknown(absl::string_view name) const {
  std::vector<std::string> names;
  for (const Info& info : List()) {
    names.push_back(info.source.id);
    names.insert(names.end(), info.source.aliases.begin(),
                 info.source.aliases.end());
  }
  return absl::NotFoundError(absl::StrCat("there is no model '", name,
                                          "' here, only ",
                                          absl::StrJoin(names, ", ")));
}

std::shared_ptr<const ServedModel> ModelSet::Use(Member* member) {
  ++member->users;
  member->asked = ++asked_;
  return {member->model.get(), [this, member](const ServedModel*) {
            const absl::MutexLock lock(&mutex_);
            if (--member->users == 0) changed_.SignalAll();
          }};
}

absl::StatusOr<std::shared_ptr<const ServedModel>> ModelSet::Get(
    absl::string_view name, const std::function<bool()>& gone) {
  const bool any = !by_name() || name.empty();
  if (!any && !Has(name)) return Unknown(name);
  const absl::MutexLock lock(&mutex_);
  Member* const member = any ? members_.front().get() : Find(name);
  const auto ready = [&] {
    return member->model && !member->leaving && IsSound(*member);
  };
  if (ready() && !closed_) return Use(member);
  const int64_t place = ++asked_;
  waiting_.push_back(place);
  absl::Status status;
  while (status.ok() && !ready()) {
    if (closed_) {
      status = Closed();
    } else if (gone()) {
      status = absl::CancelledError("the client has gone");
    } else if (waiting_.front() != place) {
      changed_.WaitWithTimeout(&mutex_, kLook);
    } else {
      status = Load(member, gone);
    }
  }
  waiting_.remove(place);
  changed_.SignalAll();
  WEFT_RETURN_IF_ERROR(status);
  return Use(member);
}

absl::Status ModelSet::Load(Member* member, const std::function<bool()>& gone) {
  const std::string identity = loader_.identity(member->source);
  const bool changed = identity != member->identity;
  if (!changed && member->state == State::kFailed &&
      Clock::now() - member->failed < kRetry) {
    return member->error;
  }
  // Not the fault of who asks.
  const auto fail = [member](const absl::Status& status) {
    member->state = State::kFailed;
    member->error = absl::Status(
        absl::IsResourceExhausted(status) ? absl::StatusCode::kUnavailable
                                          : absl::StatusCode::kInternal,
        absl::StrCat("the model ", member->source.id,
                     " cannot be loaded: ", status.message()));
    member->failed = Clock::now();
    return member->error;
  };
  // Only the first of those who wait gets here, so the member stays as it is
  // while the lock is given up.
  if (member->model) {
    const absl::Status health = HealthOf(*member->model);
    WEFT_RETURN_IF_ERROR(Leave(member, gone, nullptr));
    // To load the same file again at once is no use.
    if (!changed && !health.ok()) return fail(health);
  }
  if (changed) {
    member->identity = identity;
    member->bytes = -1;
    member->adapters = nullptr;
  }
  if (member->bytes < 0) {
    mutex_.Unlock();
    const absl::StatusOr<int64_t> bytes = loader_.bytes(member->source);
    mutex_.Lock();
    if (!bytes.ok()) return fail(bytes.status());
    member->bytes = *bytes;
  }
  WEFT_RETURN_IF_ERROR(MakeRoom(member->bytes, gone));
  member->state = State::kLoading;
  mutex_.Unlock();
  absl::StatusOr<ServedModel> model = loader_.load(member->source);
  mutex_.Lock();
  if (!model.ok()) return fail(model.status());
  if (member->adapters != nullptr) {
    model->adapters = member->adapters;
  } else {
    member->adapters = model->adapters;
  }
  member->model = std::make_unique<const ServedModel>(*std::move(model));
  member->state = State::kReady;
  ++loads_;
  return absl::OkStatus();
}

absl::Status ModelSet::MakeRoom(int64_t bytes,
                                const std::function<bool()>& gone) {
  if (bytes > budget_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model never fits here: it needs ", (bytes >> 20) + 1,
        " MiB, and all models may have ", budget_ >> 20,
        " MiB together: ask for another, or start the server with more "
        "--model-memory, or a smaller --context, --slots or --kv-tokens"));
  }
  const auto fits = [&](int64_t free) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return LoadedBytes(true) + LoadedBytes(false) - free + bytes <= budget_;
  };
  while (!fits(0)) {
    // When enough of them are at rest, nobody need wait.
    if (fits(LoadedBytes(false))) {
      Unload(Oldest(false));
      continue;
    }
    WEFT_RETURN_IF_ERROR(Leave(Oldest(true), gone, [&] {
      mutex_.AssertHeld();
      return fits(LoadedBytes(false));
    }));
  }
  return absl::OkStatus();
}

absl::Status ModelSet::Leave(Member* member, const std::function<bool()>& gone,
                             const std::function<bool()>& room) {
  member->leaving = true;
  while (member->users > 0 && !closed_ && !gone() && !(room && room())) {
    changed_.WaitWithTimeout(&mutex_, kLook);
  }
  member->leaving = false;
  if (closed_) return Closed();
  if (member->users == 0) {
    Unload(member);
    return absl::OkStatus();
  }
  if (room && room()) return absl::OkStatus();
  return absl::CancelledError("the client has gone");
}

void ModelSet::Unload(Member* member) {
  std::unique_ptr<const ServedModel> model = std::move(member->model);
  member->state = State::kUnloaded;
  ++unloads_;
  SchedulerStats stats = model->scheduler->GetStats();
  stats.ForgetNow();
  unloaded_.Add(stats);
  mutex_.Unlock();
  model.reset();
  mutex_.Lock();
}

ModelSet::Member* ModelSet::Oldest(bool in_use) const {
  Member* oldest = nullptr;
  for (const auto& member : members_) {
    if (member->model && (member->users > 0) == in_use &&
        (!oldest || member->asked < oldest->asked)) {
      oldest = member.get();
    }
  }
  return oldest;
}

int64_t ModelSet::LoadedBytes(bool in_use) const {
  int64_t bytes = 0;
  for (const auto& member : members_) {
    if (member->model && (member->users > 0) == in_use) bytes += member->bytes;
  }
  return bytes;
}

std::vector<ModelSet::Info> ModelSet::List() const {
  const absl::MutexLock lock(&mutex_);
  std::vector<Info> list;
  for (const auto& member : members_) {
    Info info;
    info.source = member->source;
    info.state = member->state;
    absl::Status error = member->error;
    info.bytes = std::max<int64_t>(member->bytes, 0);
    if (member->model) {
      const ModelInfo& model = member->model->engine().plan().model;
      info.context = member->model->capacity();
      info.architecture = model.architecture;
      info.parameters = model.parameters;
      info.health = HealthOf(*member->model);
      // Its requests fail; it is loaded again when it is next asked for.
      if (const absl::Status damage = member->model->scheduler->Damage();
          !damage.ok()) {
        info.state = State::kFailed;
        error = damage;
      }
    }
    if (info.state == State::kFailed) info.error = std::string(error.message());
    list.push_back(std::move(info));
  }
  return list;
}

SchedulerStats ModelSet::Stats() const {
  const absl::MutexLock lock(&mutex_);
  SchedulerStats all = unloaded_;
  for (const auto& member : members_) {
    if (member->model) all.Add(member->model->scheduler->GetStats());
  }
  return all;
}

int64_t ModelSet::ready() const {
  const absl::MutexLock lock(&mutex_);
  return std::count_if(
      members_.begin(), members_.end(),
      [](const auto& member) { return member->model != nullptr; });
}

int64_t ModelSet::loads() const {
  const absl::MutexLock lock(&mutex_);
  return loads_;
}

int64_t ModelSet::unloads() const {
  const absl::MutexLock lock(&mutex_);
  return unloads_;
}

int64_t ModelSet::Drain(absl::Duration time) {
  const Clock::time_point end = Clock::now() + absl::ToChronoNanoseconds(time);
  std::vector<std::shared_ptr<const ServedModel>> loaded;
  {
    const absl::MutexLock lock(&mutex_);
    closed_ = true;
    changed_.SignalAll();
    for (const auto& member : members_) {
      if (member->model) loaded.push_back(Use(member.get()));
    }
  }
  int64_t cancelled = 0;
  for (const auto& model : loaded) {
    const absl::Duration left = absl::FromChrono(end - Clock::now());
    cancelled += model->scheduler->Drain(std::max(left, absl::ZeroDuration()));
  }
  return cancelled;
}

}  // namespace weft
