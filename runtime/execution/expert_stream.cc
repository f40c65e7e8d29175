#include "runtime/execution/expert_stream.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/plan/streamed_experts.h"
#include "xxhash.h"

namespace weft {

ExpertStream::ExpertStream(const Plan& plan, DirectFile file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {
  int64_t most = 0;
  size_t matrices = 0;
  for (const ExpertGroup& group : plan.streamed) {
    const int slots = static_cast<int>(group.slots);
    groups_.push_back({ExpertSlots(static_cast<int>(group.experts), slots),
                       {},
                       group.SlotBytes(),
                       nullptr,
                       std::vector<bool>(slots, false)});
    int64_t room = 0;
    for (const ExpertGroup::Weight& weight : group.weights) {
      groups_.back().weights.push_back(static_cast<int>(weights_.size()));
      weights_.push_back({weight.name, static_cast<int>(groups_.size()) - 1,
                          weight.expert_bytes, 0, room,
                          &plan.expert_checksums.at(weight.name),
                          std::vector<State>(slots, State::kEmpty)});
      room += DirectFile::RoomFor(weight.expert_bytes);
    }
    matrices += group.weights.size() * slots;
    most = std::max(most, group.experts);
  }
  reads_.resize(matrices);
  now_.reserve(most);
  next_.reserve(most);
  missing_.reserve(most);
  seen_.resize(most, false);
  table_.resize(most, nullptr);
}

absl::StatusOr<std::unique_ptr<ExpertStream>> ExpertStream::Create(
    const Plan& plan, bool huge_pages) {
  const MappedFile& mapped = *plan.streamed_file;
  WEFT_RETURN_IF_ERROR(CheckStreams(plan, mapped.path()));
  WEFT_ASSIGN_OR_RETURN(
      DirectFile file,
      DirectFile::Open(mapped.DescriptorPath(), mapped.path()));
  std::unique_ptr<ExpertStream> stream(
      new ExpertStream(plan, std::move(file), mapped.path()));
  const Graph& graph = plan.buckets.front();
  for (Weight& weight : stream->weights_) {
    const ValueId id = graph.FindValue(weight.name);
    weight.offset = graph.value(id).data.bytes.data() - mapped.bytes().data();
  }
  int64_t bytes = 0;
  for (const ExpertGroup& group : plan.streamed) {
    bytes += group.slots * group.SlotBytes();
  }
  WEFT_ASSIGN_OR_RETURN(stream->memory_,
                        Arena::Create(bytes, "experts", huge_pages));
  uint8_t* memory = stream->memory_.data();
  for (Group& group : stream->groups_) {
    group.memory = memory;
    memory += group.slots.slots() * group.slot_bytes;
  }
  try {
    for (int i = 0; i < kReaders; ++i) {
      stream->threads_.emplace_back([s = stream.get()] { s->Work(); });
    }
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start threads: the system gives no more: to read "
                     "experts of ",
                     mapped.path(), " by ", kReaders));
  }
  return stream;
}

ExpertStream::~ExpertStream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  asked_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

int ExpertStream::Find(absl::string_view name) const {
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

ExpertStream::Stats ExpertStream::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

// --- The threads that read.

absl::Status ExpertStream::Load(const Read& read) const {
  const Weight& weight = weights_[read.weight];
  const int64_t offset = OffsetOf(weight, read.expert);
  uint8_t* const room = RoomOf(weight, read.slot);
  WEFT_RETURN_IF_ERROR(file_.Read(offset, weight.bytes, room));
  const uint64_t checksum = XXH3_64bits(room + DirectFile::InRoom(offset),
                                        static_cast<size_t>(weight.bytes));
  if (checksum == (*weight.checksums)[read.expert]) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "plan file is damaged: ", path_, ": weight ", weight.name, ": expert ",
      read.expert, " has the wrong checksum: compile it again"));
}

void ExpertStream::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    asked_.wait(lock, [this] { return stop_ || count_ > 0; });
    if (stop_) return;
    const Read read = reads_[first_];
    first_ = (first_ + 1) % reads_.size();
    --count_;
    lock.unlock();
    const absl::Status status = Load(read);
    lock.lock();
    weights_[read.weight].states[read.slot] =
        status.ok() ? State::kThere : State::kEmpty;
    stats_.bytes += weights_[read.weight].bytes;
    if (!status.ok()) error_ = status;
    done_.notify_all();
  }
}

void ExpertStream::Ask(const Read& read) {
  weights_[read.weight].states[read.slot] = State::kReading;
  reads_[(first_ + count_++) % reads_.size()] = read;
  asked_.notify_one();
}

// --- The thread that runs the node.

absl::Status ExpertStream::Run(
    int weight, absl::Span<const int32_t> ids, int64_t tokens,
    absl::FunctionRef<void(const uint8_t* const* experts)> run) {
  Group& group = groups_[weights_[weight].group];
  if (group.weights.front() == weight) group.slots.Count(ids, tokens);
  now_.clear();
  next_.clear();
  missing_.clear();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const int32_t expert : ids) {
      if (seen_[expert]) continue;
      seen_[expert] = true;
      const int slot = group.slots.SlotOf(expert);
      const State state =
          slot < 0 ? State::kEmpty : weights_[weight].states[slot];
      // Not to be given to another before its turn.
      if (state != State::kEmpty) group.in_use[slot] = true;
      (state == State::kThere     ? now_
       : state == State::kReading ? next_
                                  : missing_)
          .push_back(expert);
    }
    stats_.chosen += now_.size() + next_.size() + missing_.size();
    stats_.found += now_.size() + next_.size();
  }
  fits_ = static_cast<int>(now_.size() + next_.size() + missing_.size()) <=
          group.slots.slots();
  for (const int32_t expert : ids) seen_[expert] = false;
  if (const size_t turn = TurnSize(group); !fits_ && now_.size() > turn) {
    // Those that will make room first.
    std::nth_element(now_.begin(), now_.begin() + turn, now_.end(),
                     [&](int a, int b) { return group.slots.Less(a, b); });
    next_.insert(next_.end(), now_.begin() + turn, now_.end());
    now_.resize(turn);
  }
  const absl::Status status = RunTurns(weight, run);
  std::fill(group.in_use.begin(), group.in_use.end(), false);
  return status;
}

absl::Status ExpertStream::RunTurns(
    int weight, absl::FunctionRef<void(const uint8_t* const* experts)> run) {
  const Weight& w = weights_[weight];
  Group& group = groups_[w.group];
  while (true) {
    AskForNext(weight);
    if (!now_.empty()) {
      for (const int expert : now_) {
        table_[expert] = RoomOf(w, group.slots.SlotOf(expert)) +
                         DirectFile::InRoom(OffsetOf(w, expert));
      }
      run(table_.data());
      for (const int expert : now_) {
        table_[expert] = nullptr;
        group.in_use[group.slots.SlotOf(expert)] = false;
      }
      now_.clear();
    }
    if (next_.empty() && missing_.empty()) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(WaitForNext(weight));
    now_.swap(next_);
  }
}

// Where not all fit: enough for the readers, and few beside the slots, of which
// those of two turns lose what they have.
size_t ExpertStream::TurnSize(const Group& group) {
  return std::clamp(group.slots.slots() / 4, 1, kReaders);
}

// Asks for what is missing, as far as there are slots that may go; where not
// all fit, for one turn, so that others are multiplied meanwhile.
void ExpertStream::AskForNext(int weight) {
  Group& group = groups_[weights_[weight].group];
  const size_t most = fits_ ? missing_.size() : TurnSize(group);
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t asked_before = next_.size();
  const auto may_go = [&](int slot) {
    if (group.in_use[slot]) return false;
    for (const int other : group.weights) {
      if (weights_[other].states[slot] == State::kReading) return false;
    }
    return true;
  };
  while (!missing_.empty() && next_.size() < asked_before + most) {
    const int expert = missing_.back();
    int slot = group.slots.SlotOf(expert);
    if (slot < 0) {
      slot = group.slots.Take(expert, may_go);
      if (slot < 0) break;
      for (const int other : group.weights) {
        weights_[other].states[slot] = State::kEmpty;
      }
    }
    group.in_use[slot] = true;
    Ask({weight, expert, slot});
    missing_.pop_back();
    next_.push_back(expert);
  }
  if (!fits_) return;
  // The block's other products choose the same.
  for (const int other : group.weights) {
    for (size_t i = asked_before; i < next_.size(); ++i) {
      const int slot = group.slots.SlotOf(next_[i]);
      if (weights_[other].states[slot] == State::kEmpty) {
        Ask({other, next_[i], slot});
      }
    }
  }
}

// Until what comes next is there; where nothing does, since slots that were
// asked for before an error are still read to, until none is.
absl::Status ExpertStream::WaitForNext(int weight) {
  const Group& group = groups_[weights_[weight].group];
  std::unique_lock<std::mutex> lock(mutex_);
  const auto ready = [&](int w, int slot) {
    return weights_[w].states[slot] != State::kReading;
  };
  done_.wait(lock, [&] {
    if (!next_.empty()) {
      return std::all_of(next_.begin(), next_.end(), [&](int expert) {
        return ready(weight, group.slots.SlotOf(expert));
      });
    }
    return std::all_of(group.weights.begin(), group.weights.end(), [&](int w) {
      for (int slot = 0; slot < group.slots.slots(); ++slot) {
        if (!ready(w, slot)) return false;
      }
      return true;
    });
  });
  for (const int expert : next_) {
    if (weights_[weight].states[group.slots.SlotOf(expert)] == State::kEmpty) {
      return error_;
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
