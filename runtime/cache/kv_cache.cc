#include "runtime/cache/kv_cache.h"

#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft {
namespace {

constexpr int64_t kPartAlignment = 4096;

// Entries of the page table: 4 GiB of it, far above any use.
constexpr int64_t kMaxTableEntries = int64_t{1} << 30;
constexpr int32_t kMaxCheckpoints = 1 << 20;

absl::Status ShapeError(absl::string_view field, int64_t value,
                        absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(
      "impossible KV cache: ", field, ": ", value, ", must be ", allowed));
}

// Places of a state.
int64_t CountOf(const KvCacheShape& shape, const StateBytes& state) {
  if (!state.by_sequence) return shape.pages;
  return int64_t{shape.slots} * (shape.marks ? 2 : 1) + shape.checkpoints;
}

}  // namespace

int64_t StatePartBytes(int64_t bytes, int64_t count) {
  return (bytes * count + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

absl::StatusOr<int64_t> KvCacheBytes(const KvCacheShape& shape) {
  if (shape.pages <= 0 || shape.pages > std::numeric_limits<int32_t>::max()) {
    return ShapeError("pages", shape.pages, "above 0 and below 2^31");
  }
  if (shape.slots <= 0) {
    return ShapeError("slots", shape.slots, "above 0");
  }
  if (shape.pages_per_sequence <= 0 ||
      shape.pages_per_sequence > kMaxTableEntries / shape.slots) {
    return ShapeError("pages per sequence", shape.pages_per_sequence,
                      absl::StrCat("above 0 and at most 2^30 over all ",
                                   shape.slots, " slots"));
  }
  if (shape.checkpoints < 0 || shape.checkpoints > kMaxCheckpoints) {
    return ShapeError("checkpoints", shape.checkpoints,
                      absl::StrCat("from 0 to ", kMaxCheckpoints));
  }
  constexpr int64_t kMaxBytes = int64_t{1} << 56;
  int64_t total = 0;
  for (const StateBytes& state : shape.states) {
    const int64_t bytes = state.bytes;
    const int64_t count = CountOf(shape, state);
    const char* field =
        state.by_sequence ? "bytes per sequence" : "bytes per page";
    if (bytes <= 0 || bytes % 64 != 0) {
      return ShapeError(field, bytes, "a positive multiple of 64");
    }
    if (bytes > kMaxBytes / count ||
        StatePartBytes(bytes, count) > kMaxBytes - total) {
      return ShapeError(field, bytes,
                        absl::StrCat("such that ", count,
                                     state.by_sequence ? " slots" : " pages",
                                     " of all states fit into 2^56"));
    }
    total += StatePartBytes(bytes, count);
  }
  return total;
}

absl::StatusOr<std::unique_ptr<KvCache>> KvCache::Create(
    const KvCacheShape& shape, bool huge_pages) {
  const auto bytes = KvCacheBytes(shape);
  if (!bytes.ok()) return bytes.status();
  auto memory = Arena::Create(*bytes, "KV cache", huge_pages);
  if (!memory.ok()) return memory.status();
  return std::unique_ptr<KvCache>(new KvCache(shape, *std::move(memory)));
}

KvCache::KvCache(const KvCacheShape& shape, Arena memory)
    : memory_(std::move(memory)),
      pool_(static_cast<int32_t>(shape.pages), shape.slots,
            shape.pages_per_sequence),
      was_used_(shape.pages, false),
      checkpoints_(shape.checkpoints),
      positions_(shape.slots + shape.checkpoints, -1),
      marks_(shape.slots, -1) {
  uint8_t* part = memory_.data();
  for (const StateBytes& state : shape.states) {
    if (state.by_sequence) {
      states_.push_back({part, state.bytes, nullptr, 0});
      slot_bytes_ += state.bytes;
    } else {
      states_.push_back(
          {part, state.bytes, pool_.table(), shape.pages_per_sequence});
      page_bytes_ += state.bytes;
    }
    part += StatePartBytes(state.bytes, CountOf(shape, state));
  }
}

void KvCache::CopySlot(int32_t from, int32_t to) {
  for (const KvState& state : states_) {
    if (state.page_table != nullptr) continue;
    std::memcpy(state.pages + to * state.page_bytes,
                state.pages + from * state.page_bytes, state.page_bytes);
  }
}

void KvCache::Save(int32_t slot, int32_t checkpoint) {
  const int32_t place = pool_.slots() + checkpoint;
  CopySlot(slot, place);
  positions_[place] = positions_[slot];
  Tell({CacheChange::kSave, slot, checkpoint});
}

void KvCache::Restore(int32_t checkpoint, int32_t slot) {
  const int32_t place = pool_.slots() + checkpoint;
  CopySlot(place, slot);
  positions_[slot] = positions_[place];
  marks_[slot] = -1;
  Tell({CacheChange::kRestore, slot, checkpoint});
}

void KvCache::CopyFromMark(int32_t slot) { CopySlot(mark_place(slot), slot); }

absl::Status KvCache::Release(int32_t slot) {
  WEFT_RETURN_IF_ERROR(pool_.Release(slot));
  positions_[slot] = marks_[slot] = -1;
  Tell({CacheChange::kRelease, slot});
  return absl::OkStatus();
}

absl::Status KvCache::Truncate(int32_t slot, int64_t tokens) {
  WEFT_RETURN_IF_ERROR(pool_.Truncate(slot, tokens));
  Tell({CacheChange::kTruncate, slot, tokens});
  return absl::OkStatus();
}

absl::Status KvCache::Share(int32_t slot, int32_t page) {
  WEFT_RETURN_IF_ERROR(pool_.Share(slot, page));
  Tell({CacheChange::kShare, slot, page});
  return absl::OkStatus();
}

absl::Status KvCache::Replace(int32_t slot, int64_t index, int32_t page) {
  WEFT_RETURN_IF_ERROR(pool_.Replace(slot, index, page));
  Tell({CacheChange::kReplace, slot, page, index});
  return absl::OkStatus();
}

void KvCache::Keep(int32_t page) {
  pool_.Keep(page);
  Tell({CacheChange::kKeep, 0, page});
}

void KvCache::Drop(int32_t page) {
  pool_.Drop(page);
  Tell({CacheChange::kDrop, 0, page});
}

absl::Status KvCache::Apply(const CacheChange& change) {
  const auto number = static_cast<int32_t>(change.number);
  switch (change.kind) {
    case CacheChange::kReserve:
      return Reserve(change.slot, change.number);
    case CacheChange::kReserveCopy:
      return ReserveCopy(change.slot, number);
    case CacheChange::kTruncate:
      return Truncate(change.slot, change.number);
    case CacheChange::kRelease:
      return Release(change.slot);
    case CacheChange::kShare:
      return Share(change.slot, number);
    case CacheChange::kReplace:
      return Replace(change.slot, change.index, number);
    case CacheChange::kKeep:
      Keep(number);
      return absl::OkStatus();
    case CacheChange::kDrop:
      Drop(number);
      return absl::OkStatus();
    case CacheChange::kSave:
      Save(change.slot, number);
      return absl::OkStatus();
    case CacheChange::kRestore:
      Restore(number, change.slot);
      return absl::OkStatus();
    case CacheChange::kMark:
    case CacheChange::kTruncateStates:
      break;
  }
  return absl::InternalError(
      absl::StrCat("no change of a cache: ", change.kind));
}

absl::Status KvCache::Reserve(int32_t slot, int64_t tokens) {
  const bool is_slot = slot >= 0 && slot < pool_.slots();
  const int64_t held = is_slot ? pool_.held_pages(slot) : 0;
  absl::Status reserved = pool_.Reserve(slot, tokens);
  if (!reserved.ok()) return reserved;
  for (int64_t index = held; index < pool_.held_pages(slot); ++index) {
    const int32_t page = pool_.page(slot, index);
    if (was_used_[page]) {
      for (const KvState& state : states_) {
        if (state.page_table == nullptr) continue;
        std::memset(state.pages + page * state.page_bytes, 0, state.page_bytes);
      }
    }
    was_used_[page] = true;
  }
  if (pool_.held_pages(slot) > held) {
    Tell({CacheChange::kReserve, slot, tokens});
  }
  return absl::OkStatus();
}

absl::Status KvCache::ReserveCopy(int32_t slot, int32_t page) {
  const bool is_slot = slot >= 0 && slot < pool_.slots();
  const int64_t held = is_slot ? pool_.held_pages(slot) : 0;
  absl::Status reserved = pool_.Reserve(slot, (held + 1) * kPageTokens);
  if (!reserved.ok()) return reserved;
  const int32_t own = pool_.page(slot, held);
  was_used_[own] = true;
  Tell({CacheChange::kReserveCopy, slot, page});
  if (own == page) return absl::OkStatus();
  for (const KvState& state : states_) {
    if (state.page_table == nullptr) continue;
    std::memcpy(state.pages + own * state.page_bytes,
                state.pages + page * state.page_bytes, state.page_bytes);
  }
  return absl::OkStatus();
}

void KvCache::ReadPage(int32_t page, uint8_t* bytes) const {
  for (const KvState& state : states_) {
    if (state.page_table == nullptr) continue;
    std::memcpy(bytes, state.pages + page * state.page_bytes, state.page_bytes);
    bytes += state.page_bytes;
  }
}

void KvCache::WritePage(int32_t page, const uint8_t* bytes) {
  for (const KvState& state : states_) {
    if (state.page_table == nullptr) continue;
    std::memcpy(state.pages + page * state.page_bytes, bytes, state.page_bytes);
    bytes += state.page_bytes;
  }
}

void KvCache::ReadSlot(int32_t slot, uint8_t* bytes) const {
  for (const KvState& state : states_) {
    if (state.page_table != nullptr) continue;
    std::memcpy(bytes, state.pages + slot * state.page_bytes, state.page_bytes);
    bytes += state.page_bytes;
  }
}

void KvCache::WriteSlot(int32_t slot, const uint8_t* bytes, int64_t position) {
  for (const KvState& state : states_) {
    if (state.page_table != nullptr) continue;
    std::memcpy(state.pages + slot * state.page_bytes, bytes, state.page_bytes);
    bytes += state.page_bytes;
  }
  positions_[slot] = position;
  marks_[slot] = -1;
}

}  // namespace weft
