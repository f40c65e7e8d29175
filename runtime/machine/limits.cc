#include "runtime/machine/limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "base/status.h"
#include "ops/kernels/peak.h"
#include "runtime/machine/arena.h"
#include "runtime/machine/memory.h"

namespace weft {
namespace {

constexpr int kRuns = 5;
// Instructions of one item: some tens of microseconds.
constexpr int64_t kCount = 1 << 17;
constexpr int64_t kItemsPerThread = 256;
constexpr int64_t kBlock = int64_t{1} << 20;

using Spin = int64_t (*)(Isa isa, int64_t count);

// `work` does one item and returns how much that was. The best rate per second.
template <typename Work>
double BestRate(ThreadPool& threads, int64_t items, const Work& work) {
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::atomic<int64_t> done{0};
    const auto start = std::chrono::steady_clock::now();
    threads.ParallelFor(items, [&](int64_t begin, int64_t end, int) {
      int64_t mine = 0;
      for (int64_t i = begin; i < end; ++i) mine += work(i);
      done += mine;
    });
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    best = std::max(best, done / std::max(seconds, 1e-9));
  }
  return best;
}

}  // namespace

absl::StatusOr<Limits> MeasureLimits(ThreadPool& threads, Isa isa) {
  const auto spin = [&](Spin function) {
    return BestRate(threads, threads.threads() * kItemsPerThread,
                    [&](int64_t) { return function(isa, kCount); });
  };
  Limits limits;
  limits.int8_ops = spin(SpinInt8);
  limits.tile_int8_ops = spin(SpinTileInt8);
  limits.bf16_flops = spin(SpinBf16);
  limits.f32_flops = spin(SpinF32);

  const int64_t blocks =
      std::clamp<int64_t>(AvailableMemory() / 4 / kBlock, 1, 256);
  WEFT_ASSIGN_OR_RETURN(Arena memory,
                        Arena::Create(blocks * kBlock, "measurement"));
  // Untouched pages are all one page of zeros.
  std::memset(memory.data(), 1, blocks * kBlock);
  std::atomic<uint64_t> sink{0};
  limits.read_bytes_per_second = BestRate(threads, blocks, [&](int64_t block) {
    sink ^= ReadOnce(memory.data() + block * kBlock, kBlock);
    return kBlock;
  });
  return limits;
}

}  // namespace weft
