// The loop that both tokeniser families share: join neighbouring symbols, best
// pair first, the leftmost among equals, until no pair may be joined.
//
// Idea: symbols are a linked list in one array; a heap holds (rank, left
// symbol) in one integer. An entry is stale when its left symbol's pair has
// another rank by now, and is dropped when it comes up. n symbols cost O(n log
// n) whatever they are, and nothing recurses.
//
// Limit: fewer than 2^31 symbols.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace weft {

// A pair that may be joined: lower ranks first. `id` is the product's.
struct Merge {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t rank = kNone;
  int32_t id = -1;
};

// A stretch of the text, bytes [begin, begin + size). A symbol that was joined
// to the one on its left has size 0.
struct MergeSymbol {
  uint32_t begin;
  uint32_t size;
  int32_t id;  // what the stretch is to the family; -1 is unknown
  int32_t previous = -1;
  int32_t next = -1;
  Merge with_next = {};
};

// Buffers that a caller keeps from piece to piece.
struct MergeWork {
  std::vector<MergeSymbol> symbols;
  std::vector<uint64_t> heap;

  void Clear() { symbols.clear(); }
  void Append(uint32_t begin, uint32_t size, int32_t id) {
    symbols.push_back({begin, size, id});
  }
};

// Joins `work.symbols`; those of size 0 are to be skipped afterwards.
// `find(left, right)` returns the Merge of two neighbouring symbols. Ends early
// when `stopped()`, which is asked for each of them and each merge.
template <typename Find, typename Stopped>
void MergeSymbols(MergeWork& work, const Find& find, const Stopped& stopped) {
  std::vector<MergeSymbol>& symbols = work.symbols;
  std::vector<uint64_t>& heap = work.heap;
  const int32_t count = static_cast<int32_t>(symbols.size());
  heap.clear();

  // Looks up the pair that begins at `left` and adds it to the heap's vector.
  const auto offer = [&](int32_t left) {
    MergeSymbol& symbol = symbols[left];
    symbol.with_next =
        symbol.next < 0 ? Merge{} : find(symbol, symbols[symbol.next]);
    if (symbol.with_next.rank == Merge::kNone) return false;
    heap.push_back(static_cast<uint64_t>(symbol.with_next.rank) << 32 |
                   static_cast<uint32_t>(left));
    return true;
  };
  const auto push = [&](int32_t left) {
    if (offer(left)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };

  for (int32_t i = 0; i < count; ++i) {
    symbols[i].previous = i - 1;
    symbols[i].next = i + 1 < count ? i + 1 : -1;
  }
  for (int32_t i = 0; i < count; ++i) {
    if (stopped()) return;
    offer(i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());

  while (!heap.empty() && !stopped()) {
    const uint64_t best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const int32_t left_index = static_cast<int32_t>(best & UINT32_MAX);
    MergeSymbol& left = symbols[left_index];
    if (left.with_next.rank != best >> 32) continue;
    MergeSymbol& right = symbols[left.next];
    left.id = left.with_next.id;
    left.size += right.size;
    left.next = right.next;
    if (left.next >= 0) symbols[left.next].previous = left_index;
    right.size = 0;
    right.with_next = {};
    push(left_index);
    if (left.previous >= 0) push(left.previous);
  }
}

}  // namespace weft
