#include "runtime/cache/prefix_cache.h"

#include <algorithm>

#include "base/status.h"
#include "ops/kernels/kernel.h"
#include "xxhash.h"

namespace weft {
namespace {

size_t BucketCount(int64_t pages) {
  size_t count = 1;
  while (count < static_cast<size_t>(pages)) count *= 2;
  return count;
}

// How many tokens both begin with.
int64_t Common(absl::Span<const int32_t> a, absl::Span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
         a.begin();
}

}  // namespace

PrefixCache::PrefixCache(KvCache* cache)
    : cache_(cache),
      entries_(cache->pool().pages()),
      tokens_(int64_t{cache->pool().pages()} * kPageTokens),
      whole_buckets_(BucketCount(cache->pool().pages()), -1),
      first_buckets_(whole_buckets_) {}

int64_t PrefixCache::BytesFor(int64_t pages) {
  return pages * static_cast<int64_t>(sizeof(Entry) +
                                      kPageTokens * sizeof(int32_t)) +
         static_cast<int64_t>(2 * BucketCount(pages) * sizeof(int32_t));
}

uint32_t PrefixCache::BucketOf(uint64_t scope, uint64_t parent,
                               absl::Span<const int32_t> tokens) const {
  const uint64_t seed = XXH3_64bits_withSeed(&parent, sizeof(parent), scope);
  return static_cast<uint32_t>(
      XXH3_64bits_withSeed(tokens.data(), tokens.size() * sizeof(int32_t),
                           seed) &
      (whole_buckets_.size() - 1));
}

absl::Span<const int32_t> PrefixCache::TokensOf(int32_t page) const {
  return absl::MakeConstSpan(tokens_).subspan(int64_t{page} * kPageTokens,
                                              entries_[page].size);
}

int32_t PrefixCache::FindWhole(uint64_t scope, uint64_t parent,
                               absl::Span<const int32_t> tokens,
                               uint32_t bucket) const {
  int32_t page = whole_buckets_[bucket];
  while (page >= 0) {
    const Entry& entry = entries_[page];
    if (entry.scope == scope && entry.parent == parent &&
        TokensOf(page) == tokens) {
      break;
    }
    page = entry.whole.after;
  }
  return page;
}

PrefixCache::Match PrefixCache::FindLongest(
    uint64_t scope, uint64_t parent, absl::Span<const int32_t> tokens) const {
  Match longest;
  int32_t page = first_buckets_[BucketOf(scope, parent, tokens.first(1))];
  for (int i = 0; page >= 0 && i < kMostLookedAt; ++i) {
    const Entry& entry = entries_[page];
    if (entry.scope == scope && entry.parent == parent) {
      const int64_t common = Common(tokens, TokensOf(page));
      if (common > longest.tokens) longest = {page, common};
    }
    page = entry.first.after;
  }
  return longest;
}

// Number of the entry before page `index` of a slot.
uint64_t PrefixCache::ParentOf(int32_t slot, int64_t index) const {
  return index > 0 ? entries_[cache_->pool().page(slot, index - 1)].number : 0;
}

int64_t PrefixCache::TokensThere(uint64_t scope,
                                 absl::Span<const int32_t> tokens) const {
  uint64_t parent = 0;
  const int64_t whole = Find(scope, tokens, &parent).pages * kPageTokens;
  const int64_t left = static_cast<int64_t>(tokens.size()) - 1 - whole;
  if (left < 1) return whole;
  return whole + FindLongest(scope, parent,
                             tokens.subspan(
                                 whole, std::min<int64_t>(left, kPageTokens)))
                     .tokens;
}

PrefixCache::Prefix PrefixCache::Find(uint64_t scope,
                                      absl::Span<const int32_t> tokens) const {
  uint64_t last = 0;
  return Find(scope, tokens, &last);
}

// `last`: number of the last page's entry; 0: none.
PrefixCache::Prefix PrefixCache::Find(uint64_t scope,
                                      absl::Span<const int32_t> tokens,
                                      uint64_t* last) const {
  Prefix prefix;
  uint64_t& parent = *last;
  for (size_t end = kPageTokens; end < tokens.size(); end += kPageTokens) {
    const auto part = tokens.subspan(end - kPageTokens, kPageTokens);
    const int32_t page =
        FindWhole(scope, parent, part, BucketOf(scope, parent, part));
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
  uint64_t parent = ParentOf(slot, held);
  int64_t found = 0;
  for (size_t end = (held + 1) * kPageTokens; end < tokens.size();
       end += kPageTokens) {
    const auto part = tokens.subspan(end - kPageTokens, kPageTokens);
    const int32_t page =
        FindWhole(scope, parent, part, BucketOf(scope, parent, part));
    if (page < 0) break;
    WEFT_RETURN_IF_ERROR(cache_->Share(slot, page));
    found += kPageTokens;
    parent = entries_[page].number;
  }
  return found;
}

absl::StatusOr<int64_t> PrefixCache::AttachCopy(
    int32_t slot, uint64_t scope, absl::Span<const int32_t> tokens) {
  const int64_t held = cache_->pool().held_pages(slot);
  const size_t begin = held * kPageTokens;
  if (tokens.size() < begin + 2) return 0;
  const size_t most = std::min<size_t>(kPageTokens, tokens.size() - 1 - begin);
  const Match match =
      FindLongest(scope, ParentOf(slot, held), tokens.subspan(begin, most));
  if (match.page < 0) return 0;
  // The last to be given up; if it is the only one that can be, it becomes the
  // slot's own, with what it holds.
  Use(match.page);
  MakeFree(1);
  if (cache_->pool().free_pages() == 0) return 0;
  WEFT_RETURN_IF_ERROR(cache_->ReserveCopy(slot, match.page));
  return match.tokens;
}

absl::Status PrefixCache::Add(int32_t slot, uint64_t scope,
                              absl::Span<const int32_t> tokens) {
  const int64_t index = PagesForTokens(static_cast<int64_t>(tokens.size())) - 1;
  const int32_t page = cache_->pool().page(slot, index);
  const uint64_t parent = ParentOf(slot, index);
  if (index > 0 && parent == 0) {
    return absl::InternalError("a page was added before the one before it");
  }
  const auto part = tokens.subspan(index * kPageTokens);
  Entry& entry = entries_[page];
  if (entry.size == kPageTokens) return absl::OkStatus();
  const bool full = part.size() == kPageTokens;
  uint32_t bucket = 0;
  if (full) {
    bucket = BucketOf(scope, parent, part);
    const int32_t same = FindWhole(scope, parent, part, bucket);
    if (same >= 0) {
      if (entry.number != 0) Remove(page);
      return cache_->Replace(slot, index, same);
    }
  }
  if (entry.number == 0) {
    entry.number = next_number_++;
    entry.parent = parent;
    entry.scope = scope;
    entry.first_bucket = BucketOf(scope, parent, part.first(1));
    PutFirst(&first_buckets_, entry.first_bucket, &Entry::first, page);
    MakeNewest(page);
    cache_->Keep(page);
  }
  std::copy(part.begin() + entry.size, part.end(),
            tokens_.begin() + int64_t{page} * kPageTokens + entry.size);
  entry.size = static_cast<int32_t>(part.size());
  if (full) {
    entry.whole_bucket = bucket;
    PutFirst(&whole_buckets_, bucket, &Entry::whole, page);
    GiveUpCovered(page);
  }
  return absl::OkStatus();
}

// Gives up idle pages of whose tokens this page holds all. Returns whether
// another holds all of this one's, which only a page that is not full may ask.
bool PrefixCache::GiveUpCovered(int32_t page) {
  const Entry& entry = entries_[page];
  int32_t other = first_buckets_[entry.first_bucket];
  for (int i = 0; other >= 0 && i < kMostLookedAt; ++i) {
    const int32_t after = entries_[other].first.after;
    if (other != page && entries_[other].scope == entry.scope &&
        entries_[other].parent == entry.parent) {
      const int64_t common = Common(TokensOf(page), TokensOf(other));
      if (common == entry.size) {
        Use(other);
        return true;
      }
      if (common == entries_[other].size &&
          cache_->pool().holders(other) == 0) {
        Remove(other);
      }
    }
    other = after;
  }
  return false;
}

absl::Status PrefixCache::Release(int32_t slot) {
  for (int64_t i = cache_->pool().held_pages(slot) - 1; i >= 0; --i) {
    const int32_t page = cache_->pool().page(slot, i);
    if (entries_[page].number != 0) {
      if (entries_[page].size < kPageTokens && GiveUpCovered(page)) {
        Remove(page);
      } else {
        Use(page);
      }
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
    const int32_t newer = entries_[page].age.after;
    if (entries_[page].scope == scope && cache_->pool().holders(page) == 0) {
      Remove(page);
    }
    page = newer;
  }
}

void PrefixCache::Remove(int32_t page) {
  Entry& entry = entries_[page];
  TakeOut(&first_buckets_, entry.first_bucket, &Entry::first, page);
  if (entry.size == kPageTokens) {
    TakeOut(&whole_buckets_, entry.whole_bucket, &Entry::whole, page);
  }
  Unlink(page);
  entry = Entry();
  cache_->Drop(page);
}

void PrefixCache::PutFirst(std::vector<int32_t>* buckets, uint32_t bucket,
                           Link Entry::*link, int32_t page) {
  int32_t& first = (*buckets)[bucket];
  entries_[page].*link = {-1, first};
  if (first >= 0) (entries_[first].*link).before = page;
  first = page;
}

void PrefixCache::TakeOut(std::vector<int32_t>* buckets, uint32_t bucket,
                          Link Entry::*link, int32_t page) {
  const Link own = entries_[page].*link;
  (own.before >= 0 ? (entries_[own.before].*link).after : (*buckets)[bucket]) =
      own.after;
  if (own.after >= 0) (entries_[own.after].*link).before = own.before;
}

void PrefixCache::Unlink(int32_t page) {
  const Link& age = entries_[page].age;
  (age.before >= 0 ? entries_[age.before].age.after : oldest_) = age.after;
  (age.after >= 0 ? entries_[age.after].age.before : newest_) = age.before;
}

void PrefixCache::MakeNewest(int32_t page) {
  entries_[page].age = {newest_, -1};
  (newest_ >= 0 ? entries_[newest_].age.after : oldest_) = page;
  newest_ = page;
}

// Puts a page in front of all others, in age and among those that begin alike.
void PrefixCache::Use(int32_t page) {
  Unlink(page);
  MakeNewest(page);
  TakeOut(&first_buckets_, entries_[page].first_bucket, &Entry::first, page);
  PutFirst(&first_buckets_, entries_[page].first_bucket, &Entry::first, page);
}

}  // namespace weft
