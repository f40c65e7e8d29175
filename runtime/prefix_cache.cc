#include "runtime/prefix_cache.h"

#include <algorithm>

#include "ops/kernels/kernel.h"
#include "xxhash.h"

namespace weft {
namespace {

size_t BucketCount(int64_t pages) {
  size_t count = 1;
  while (count < static_cast<size_t>(pages)) count *= 2;
  return count;
}

}  // namespace

PrefixCache::PrefixCache(KvCache* cache)
    : cache_(cache),
      entries_(cache->pool().pages()),
      tokens_(int64_t{cache->pool().pages()} * kPageTokens),
      buckets_(BucketCount(cache->pool().pages()), -1) {}

int64_t PrefixCache::BytesFor(int64_t pages) {
  return pages * static_cast<int64_t>(sizeof(Entry) +
                                      kPageTokens * sizeof(int32_t)) +
         static_cast<int64_t>(BucketCount(pages) * sizeof(int32_t));
}

uint32_t PrefixCache::BucketOf(uint64_t scope, uint64_t parent,
                               absl::Span<const int32_t> tokens) const {
  const uint64_t seed = XXH3_64bits_withSeed(&parent, sizeof(parent), scope);
  return static_cast<uint32_t>(
      XXH3_64bits_withSeed(tokens.data(), tokens.size() * sizeof(int32_t),
                           seed) &
      (buckets_.size() - 1));
}

int32_t PrefixCache::FindPage(uint64_t scope, uint64_t parent,
                              absl::Span<const int32_t> tokens,
                              uint32_t bucket) const {
  int32_t page = buckets_[bucket];
  while (page >= 0) {
    const Entry& entry = entries_[page];
    if (entry.scope == scope && entry.parent == parent &&
        std::equal(tokens.begin(), tokens.end(),
                   tokens_.begin() + int64_t{page} * kPageTokens)) {
      break;
    }
    page = entry.next_in_bucket;
  }
  return page;
}

PrefixCache::Prefix PrefixCache::Find(uint64_t scope,
                                      absl::Span<const int32_t> tokens) const {
  Prefix prefix;
  uint64_t parent = 0;
  for (size_t end = kPageTokens; end < tokens.size(); end += kPageTokens) {
    const auto part = tokens.subspan(end - kPageTokens, kPageTokens);
    const int32_t page =
        FindPage(scope, parent, part, BucketOf(scope, parent, part));
    if (page < 0) break;
    ++prefix.pages;
    prefix.idle += cache_->pool().holders(page) == 0;
    parent = entries_[page].number;
  }
  return prefix;
}

absl::StatusOr<int64_t> PrefixCache::Attach(int32_t slot, uint64_t scope,
                                            absl::Span<const int32_t> tokens) {
  const int64_t held = cache_->pool().held_pages(slot);
  uint64_t parent =
      held > 0 ? entries_[cache_->pool().page(slot, held - 1)].number : 0;
  int64_t found = 0;
  for (size_t end = (held + 1) * kPageTokens; end < tokens.size();
       end += kPageTokens) {
    const auto part = tokens.subspan(end - kPageTokens, kPageTokens);
    const int32_t page =
        FindPage(scope, parent, part, BucketOf(scope, parent, part));
    if (page < 0) break;
    if (absl::Status s = cache_->Share(slot, page); !s.ok()) return s;
    found += kPageTokens;
    parent = entries_[page].number;
  }
  return found;
}

absl::Status PrefixCache::Add(int32_t slot, uint64_t scope,
                              absl::Span<const int32_t> tokens) {
  const int64_t index = static_cast<int64_t>(tokens.size()) / kPageTokens - 1;
  const int32_t page = cache_->pool().page(slot, index);
  uint64_t parent = 0;
  if (index > 0) {
    parent = entries_[cache_->pool().page(slot, index - 1)].number;
    if (parent == 0) {
      return absl::InternalError("a page was added before the one before it");
    }
  }
  const auto part = tokens.last(kPageTokens);
  const uint32_t bucket = BucketOf(scope, parent, part);
  if (const int32_t same = FindPage(scope, parent, part, bucket); same >= 0) {
    return cache_->Replace(slot, index, same);
  }
  Entry& entry = entries_[page];
  entry.number = next_number_++;
  entry.parent = parent;
  entry.scope = scope;
  entry.bucket = bucket;
  entry.next_in_bucket = buckets_[bucket];
  buckets_[bucket] = page;
  std::copy(part.begin(), part.end(),
            tokens_.begin() + int64_t{page} * kPageTokens);
  MakeNewest(page);
  cache_->Keep(page);
  return absl::OkStatus();
}

absl::Status PrefixCache::Release(int32_t slot) {
  for (int64_t i = cache_->pool().held_pages(slot) - 1; i >= 0; --i) {
    const int32_t page = cache_->pool().page(slot, i);
    if (entries_[page].number != 0) {
      Unlink(page);
      MakeNewest(page);
    }
    absl::Status s = cache_->Truncate(slot, i * kPageTokens);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

void PrefixCache::MakeFree(int64_t pages) {
  // A page that is held is in use, so among the newest; when it is let go, it
  // finds its place again.
  int32_t looked_at = 0;
  while (cache_->pool().free_pages() < pages && oldest_ >= 0 &&
         looked_at++ < cache_->pool().pages()) {
    const int32_t page = oldest_;
    if (cache_->pool().holders(page) > 0) {
      Unlink(page);
      MakeNewest(page);
    } else {
      Remove(page);
    }
  }
}

void PrefixCache::Forget(uint64_t scope) {
  int32_t page = oldest_;
  while (page >= 0) {
    const int32_t newer = entries_[page].newer;
    if (entries_[page].scope == scope && cache_->pool().holders(page) == 0) {
      Remove(page);
    }
    page = newer;
  }
}

void PrefixCache::Remove(int32_t page) {
  Entry& entry = entries_[page];
  int32_t* place = &buckets_[entry.bucket];
  while (*place != page) place = &entries_[*place].next_in_bucket;
  *place = entry.next_in_bucket;
  Unlink(page);
  entry = Entry();
  cache_->Drop(page);
}

void PrefixCache::Unlink(int32_t page) {
  const Entry& entry = entries_[page];
  (entry.older >= 0 ? entries_[entry.older].newer : oldest_) = entry.newer;
  (entry.newer >= 0 ? entries_[entry.newer].older : newest_) = entry.older;
}

void PrefixCache::MakeNewest(int32_t page) {
  Entry& entry = entries_[page];
  entry.older = newest_;
  entry.newer = -1;
  (newest_ >= 0 ? entries_[newest_].newer : oldest_) = page;
  newest_ = page;
}

}  // namespace weft
