#include "runtime/cache/kv_cache.h"

#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// Parts begin on pages of the system, so that states do not share one.
constexpr int64_t kPartAlignment = 4096;

// Entries of the page table: 4 GiB of it, far above any use.
constexpr int64_t kMaxTableEntries = int64_t{1} << 30;

absl::Status ShapeError(absl::string_view field, int64_t value,
                        absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(
      "impossible KV cache: ", field, ": ", value, ", must be ", allowed));
}

// Bytes of a state's part. REQUIRES: the product is known to fit.
int64_t PartBytes(int64_t page_bytes, int64_t pages) {
  return (page_bytes * pages + kPartAlignment - 1) / kPartAlignment *
         kPartAlignment;
}

}  // namespace

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
  constexpr int64_t kMaxBytes = int64_t{1} << 56;
  int64_t total = 0;
  for (const int64_t page_bytes : shape.page_bytes) {
    if (page_bytes <= 0 || page_bytes % 64 != 0) {
      return ShapeError("bytes per page", page_bytes,
                        "a positive multiple of 64");
    }
    if (page_bytes > kMaxBytes / shape.pages ||
        PartBytes(page_bytes, shape.pages) > kMaxBytes - total) {
      return ShapeError("bytes per page", page_bytes,
                        absl::StrCat("such that ", shape.pages,
                                     " pages of all states fit into 2^56"));
    }
    total += PartBytes(page_bytes, shape.pages);
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
      was_used_(shape.pages, false) {
  uint8_t* part = memory_.data();
  for (const int64_t page_bytes : shape.page_bytes) {
    states_.push_back(
        {part, page_bytes, pool_.table(), shape.pages_per_sequence});
    part += PartBytes(page_bytes, shape.pages);
  }
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
        std::memset(state.pages + page * state.page_bytes, 0, state.page_bytes);
      }
    }
    was_used_[page] = true;
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
  if (own == page) return absl::OkStatus();
  for (const KvState& state : states_) {
    std::memcpy(state.pages + own * state.page_bytes,
                state.pages + page * state.page_bytes, state.page_bytes);
  }
  return absl::OkStatus();
}

}  // namespace weft
