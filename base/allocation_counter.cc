// In a file of its own, so that the compiler cannot see new and delete together
// and warn that they end in malloc and free.
#include "base/allocation_counter.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> allocations{0};
std::atomic<int64_t> apart{0};
std::atomic<bool (*)()> counts_apart{nullptr};

void Count() {
  bool (*const inside)() = counts_apart.load(std::memory_order_relaxed);
  (inside != nullptr && inside() ? apart : allocations)
      .fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

void* operator new(size_t size) {
  Count();
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  Count();
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace weft {

int64_t AllocationCount() { return allocations; }
int64_t AllocationsApart() { return apart; }
void CountApartWhile(bool (*inside)()) { counts_apart = inside; }

}  // namespace weft
