// Rates of every kernel of the table, by its name there, as shares of what
// bounds it: the machine's limits, measured in the same run on the same
// threads.
//
//   kernel_bench --benchmark_filter='q4_0|attention' --rows 1,256 --threads 2
//
// Sizes are TinyLlama's (kernel_cases.h); attention looks back on 2048
// positions. Up to 16 rows, weights and states lie in 256 MiB, so that they
// come from memory; activations stay in caches, as in a model. Bytes and
// operations are those that the op states (NodeCost). The share is of the limit
// that would take longer: reads (whose share passes 100% where activations,
// which count as read, are in caches) or arithmetic of the kernel's own
// instruction set. Reference kernels are slow: one case of each, with the
// fewest rows.

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmark/benchmark.h"
#include "benchmarks/kernels/kernel_cases.h"
#include "benchmarks/kernels/kernel_memory.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "runtime/execution/profile.h"
#include "runtime/machine/cpus.h"
#include "runtime/machine/limits.h"

namespace weft {
namespace {

constexpr int64_t kStreamedBytes = int64_t{256} << 20;
constexpr int64_t kStreamedRows = 16;

struct Machine {
  std::unique_ptr<ThreadPool> threads;
  Limits best;
  std::map<Isa, Limits> of_isa;

  const Limits& LimitsOf(Isa isa) {
    const auto it = of_isa.find(isa);
    if (it != of_isa.end()) return it->second;
    Limits& limits = of_isa[isa];
    limits = MeasureLimits(*threads, isa).value_or(Limits{});
    limits.read_bytes_per_second = best.read_bytes_per_second;
    return limits;
  }
};

// One case at a time: the library calls a benchmark several times in a row.
KernelMemory* MemoryOf(const KernelCase& kernel_case, ThreadPool* threads,
                       std::string* error) {
  static std::unique_ptr<KernelMemory> memory;
  static const KernelCase* owner = nullptr;
  if (owner != &kernel_case) {
    memory.reset();
    owner = nullptr;
    absl::StatusOr<std::unique_ptr<KernelMemory>> made = KernelMemory::Create(
        kernel_case, kernel_case.tokens <= kStreamedRows ? kStreamedBytes : 0,
        threads);
    if (!made.ok()) {
      *error = std::string(made.status().message());
      return nullptr;
    }
    memory = *std::move(made);
    owner = &kernel_case;
  }
  return memory.get();
}

void Measure(benchmark::State& state, const KernelCase& kernel_case,
             Machine* machine) {
  std::string error;
  KernelMemory* memory = MemoryOf(kernel_case, machine->threads.get(), &error);
  if (memory == nullptr) {
    state.SkipWithError(error.c_str());
    return;
  }
  const Graph& graph = memory->graph();
  const Limits& limits = machine->LimitsOf(kernel_case.entry->isa());
  const auto start = std::chrono::steady_clock::now();
  {
    const ThreadPool::Scope scope(machine->threads.get());
    for (auto _ : state) memory->Run();
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count() /
      static_cast<double>(state.iterations());
  // Rows look back on themselves and all before them.
  const Bounds step = {graph.bounds.tokens, graph.bounds.rows,
                       graph.bounds.context - graph.bounds.tokens / 2};
  const Cost cost = NodeCost(graph, memory->node(), step);
  const Arithmetic arithmetic = ArithmeticOf(graph, memory->node());
  const double peak = PeakOf(arithmetic, limits);
  const double reading = cost.bytes / limits.read_bytes_per_second;
  const double computing = peak > 0 ? cost.operations / peak : 0;
  // Not the library's rates, whose unit would be printed twice.
  state.counters["GB/s"] = 1e-9 * cost.bytes / seconds;
  state.counters["Gop/s"] = 1e-9 * cost.operations / seconds;
  state.counters["share%"] = 100 * std::max(reading, computing) / seconds;
  state.SetLabel(
      absl::StrCat("of ", reading >= computing ? "reads" : Name(arithmetic)));
}

void RegisterAll(const std::vector<int64_t>& rows, Machine* machine,
                 std::vector<std::unique_ptr<KernelCase>>* cases) {
  for (const auto& entry : AllKernels()) {
    if (!RunsHere(entry->isa())) continue;
    const size_t before = cases->size();
    std::string why;
    for (const int64_t tokens : rows) {
      const bool slow = entry->name() == entry->op() + "_ref";
      for (KernelCase& found : CasesOf(*entry, tokens, CaseSizes(), &why)) {
        if (slow && cases->size() > before) break;
        cases->push_back(std::make_unique<KernelCase>(std::move(found)));
        const KernelCase& added = *cases->back();
        benchmark::RegisterBenchmark(
            absl::StrCat(added.name, "/rows:", tokens).c_str(),
            [&added, machine](benchmark::State& state) {
              Measure(state, added, machine);
            })
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
    if (cases->size() == before) {
      std::cerr << entry->name() << ": not measured: " << why << "\n";
    }
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Rates of every kernel, as shares of the machine's limits");
  std::vector<int64_t> rows = {1, 8, 256};
  int threads = DefaultThreads();
  app.add_option("--rows", rows, "row counts, as in 1,256")->delimiter(',');
  app.add_option("--threads", threads, "threads")->capture_default_str();
  app.allow_extras();
  app.footer("Other options are Google Benchmark's (--benchmark_...).");
  CLI11_PARSE(app, argc, argv);
  const int64_t most = CaseSizes().context;
  for (const int64_t count : rows) {
    if (count < 1 || count > most) {
      std::cerr << "kernel_bench: --rows: want numbers from 1 to " << most
                << "\n";
      return 2;
    }
  }

  // The library's defaults, then what the user says.
  std::vector<std::string> words = {argv[0], "--benchmark_min_time=0.1",
                                    "--benchmark_counters_tabular=true"};
  for (const std::string& extra : app.remaining()) words.push_back(extra);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;

  Machine machine;
  absl::StatusOr<std::unique_ptr<ThreadPool>> pool =
      ThreadPool::Create(threads);
  if (!pool.ok()) {
    std::cerr << "kernel_bench: " << pool.status().message() << "\n";
    return 1;
  }
  machine.threads = *std::move(pool);
  absl::StatusOr<Limits> limits = MeasureLimits(*machine.threads, DetectIsa());
  if (!limits.ok()) {
    std::cerr << "kernel_bench: " << limits.status().message() << "\n";
    return 1;
  }
  machine.best = *limits;
  machine.of_isa[DetectIsa()] = *limits;
  const auto context = [](const char* name, double rate, const char* unit) {
    benchmark::AddCustomContext(name,
                                absl::StrFormat("%.0f %s", rate * 1e-9, unit));
  };
  benchmark::AddCustomContext("threads", absl::StrCat(threads));
  context("int8", limits->int8_ops, "Gop/s");
  context("tile int8", limits->tile_int8_ops, "Gop/s");
  context("bf16", limits->bf16_flops, "Gflop/s");
  context("f32", limits->f32_flops, "Gflop/s");
  context("reads", limits->read_bytes_per_second, "GB/s");

  std::vector<std::unique_ptr<KernelCase>> cases;
  RegisterAll(rows, &machine, &cases);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
