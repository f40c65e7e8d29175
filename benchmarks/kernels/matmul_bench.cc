// Rates of every quantised matmul kernel, one and two threads, beside the
// machine's own limits measured in the same run. Rates are per core and second
// of CPU time, so other work on the machine disturbs them little (through
// caches and memory only).
//
//   matmul_bench --benchmark_filter='peak|q4_0'
//
// prefill: 256 rows, K 2048, N 5632. decode: 1 to 32 rows, weights of 256 MiB
// so that they come from DRAM. Gop/s counts 2 * M * N * K; GB/s the packed
// weight's bytes.

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "benchmark/benchmark.h"
#include "ops/kernels/matmul/pack.h"
#include "ops/kernels/peak.h"
#include "tests/ops/kernels/matmul/quantized_case.h"

namespace weft {
namespace {

struct Problem {
  Problem(const MatmulKernel& kernel, int64_t rows, int64_t n, int64_t depth)
      : weight_bytes(0), weight(0), x(0), y(rows * n * 4), n(n) {
    std::mt19937 random(1);
    const bool packed = std::string(kernel.layout) == "panel16";
    // One panel, repeated: its content does not matter to the time.
    const auto rows16 = RandomWeight(kernel.weight, 16, depth, random);
    AlignedBytes panel = PackRows(kernel.weight, rows16, 16, depth);
    const int64_t panel_bytes = packed ? PackedPanelBytes(kernel.weight, depth)
                                       : static_cast<int64_t>(rows16.size());
    weight_bytes = n / 16 * panel_bytes;
    weight = AlignedBytes(weight_bytes);
    for (int64_t p = 0; p < n / 16; ++p) {
      memcpy(weight.data() + p * panel_bytes,
             packed ? panel.data() : rows16.data(), panel_bytes);
    }
    x = QuantizeRows(RandomFloats(rows, depth, random), rows, depth);
  }
  int64_t weight_bytes;
  AlignedBytes weight, x, y;
  int64_t n;
};

// One problem is kept at a time: threads of a benchmark share it.
std::shared_ptr<Problem> ProblemFor(const MatmulKernel& kernel, int64_t rows,
                                    int64_t depth, int64_t weight_bytes) {
  static std::mutex mutex;
  static std::string current;
  static std::shared_ptr<Problem> problem;
  std::lock_guard<std::mutex> lock(mutex);
  const std::string key = std::string(kernel.name) + "/" +
                          std::to_string(rows) + "/" +
                          std::to_string(weight_bytes);
  if (key != current) {
    current = key;
    problem.reset();
    int64_t n = 5632;
    if (weight_bytes > 0) {
      n = weight_bytes / RowBytes(kernel.weight, depth) / 64 * 64;
    }
    problem = std::make_shared<Problem>(kernel, rows, n, depth);
  }
  return problem;
}

void RunMatmul(benchmark::State& state, const MatmulKernel& kernel,
               int64_t rows, int64_t weight_bytes) {
  const int64_t depth = 2048;
  const auto problem = ProblemFor(kernel, rows, depth, weight_bytes);
  AlignedBytes scratch(kernel.thread_scratch_bytes(depth));
  MatmulArgs args = {};
  args.x = problem->x.data();
  args.rows = rows;
  args.depth = depth;
  args.weight = problem->weight.data();
  args.weight_rows = problem->n;
  args.y = problem->y.floats();
  args.y_row_bytes = problem->n * 4;
  const int64_t panels = problem->n / 16;
  const int64_t share = panels / state.threads() / 4 * 4;
  const int64_t begin = share * state.thread_index();
  const int64_t end =
      state.thread_index() + 1 == state.threads() ? panels : begin + share;
  for (auto _ : state) kernel.run(args, begin, end, scratch.data());
  const double part =
      static_cast<double>(end - begin) / static_cast<double>(panels);
  const double runs = static_cast<double>(state.iterations());
  state.counters["Gop/s/core"] = benchmark::Counter(
      2e-9 * static_cast<double>(rows * problem->n * depth) * part * runs,
      benchmark::Counter::kIsRate);
  state.counters["GB/s/core"] = benchmark::Counter(
      1e-9 * static_cast<double>(problem->weight_bytes) * part * runs,
      benchmark::Counter::kIsRate);
}

void PeakDotProducts(benchmark::State& state) {
  const int64_t count = 12000000;
  int64_t operations = 0;
  for (auto _ : state) {
    operations += SpinInt8(DetectIsa(), count);
  }
  state.counters["Gop/s/core"] = benchmark::Counter(
      1e-9 * static_cast<double>(operations), benchmark::Counter::kIsRate);
}

void PeakBandwidth(benchmark::State& state) {
  static const int64_t bytes = int64_t{512} << 20;
  static AlignedBytes* data = new AlignedBytes(bytes);
  const int64_t share = bytes / state.threads();
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        ReadOnce(data->data() + share * state.thread_index(), share));
  }
  state.counters["GB/s/core"] =
      benchmark::Counter(1e-9 * static_cast<double>(share * state.iterations()),
                         benchmark::Counter::kIsRate);
}

void Register() {
  for (int threads : {1, 2}) {
    benchmark::RegisterBenchmark("peak_int8", PeakDotProducts)
        ->Threads(threads);
    benchmark::RegisterBenchmark("peak_read", PeakBandwidth)->Threads(threads);
  }
  for (const MatmulKernel& kernel : RunnableKernels()) {
    for (int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 256}) {
      if (rows > kernel.max_rows) continue;
      const int64_t bytes = rows <= 48 ? int64_t{256} << 20 : 0;
      const std::string name = std::string(kernel.name) +
                               (bytes > 0 ? "/decode:" : "/prefill:") +
                               std::to_string(rows);
      for (int threads : {1, 2}) {
        benchmark::RegisterBenchmark(
            name.c_str(),
            [kernel, rows, bytes](benchmark::State& state) {
              RunMatmul(state, kernel, rows, bytes);
            })
            ->Threads(threads)
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  weft::Register();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
