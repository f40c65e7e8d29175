// Rates of the kernels that are not quantised: attention, dense matmul, rows.
// One thread; rates are per second of CPU time, see matmul_bench.cc.
//
//   float_bench --benchmark_filter='peak|attention'
//
// attention: 32 heads, 4 KV heads, 64 dims; T tokens that end at context C.
// dense: N 2048, K 2048; one row reads weights of 128 MiB, so from DRAM. Rows
// for the BF16 kernels are rounded beforehand.
// rows: 512 rows of 2048 columns; bytes are those read and written.

#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "ops/kernels/attention/attention.h"
#include "ops/kernels/matmul/dense_matmul.h"
#include "ops/kernels/matmul/onednn_matmul.h"
#include "ops/kernels/matmul/pack_dense.h"
#include "ops/kernels/peak.h"
#include "ops/kernels/rows/rows.h"

namespace weft {
namespace {

using benchmark::Counter;

struct Bytes {
  explicit Bytes(int64_t size)
      : data(static_cast<uint8_t*>(
            std::aligned_alloc(64, static_cast<size_t>(size + 64) / 64 * 64))) {
    memset(data, 1, static_cast<size_t>(size));
  }
  ~Bytes() { std::free(data); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  uint8_t* data;
};

void SetRates(benchmark::State& state, double operations, double bytes) {
  const double runs = static_cast<double>(state.iterations());
  state.counters["flops"] = Counter(operations * runs, Counter::kIsRate);
  state.counters["bytes"] = Counter(bytes * runs, Counter::kIsRate);
}

void Attention(benchmark::State& state, const AttentionKernels* kernels,
               KvType type, int64_t tokens, int64_t context) {
  constexpr int64_t kHeads = 32, kKvHeads = 4, kDim = 64;
  const int64_t pages = (context + kPageTokens - 1) / kPageTokens;
  const int64_t page_bytes = kKvHeads * KvHeadBytes(type, kDim);
  Bytes keys(pages * page_bytes), values(pages * page_bytes);
  std::vector<int32_t> table(static_cast<size_t>(pages));
  std::iota(table.begin(), table.end(), 0);
  const KvState k = {keys.data, page_bytes, table.data(), pages};
  const KvState v = {values.data, page_bytes, table.data(), pages};
  std::vector<float> q(static_cast<size_t>(tokens * kHeads * kDim), 0.01f);
  std::vector<float> y(q.size());
  std::vector<int32_t> positions(static_cast<size_t>(tokens));
  std::iota(positions.begin(), positions.end(),
            static_cast<int32_t>(context - tokens));
  const std::vector<int32_t> sequence(positions.size(), 0);
  const AttentionArgs args = {q.data(),
                              kHeads * kDim * 4,
                              tokens,
                              kHeads,
                              kKvHeads,
                              kDim,
                              kDim,
                              type,
                              &k,
                              &v,
                              positions.data(),
                              sequence.data(),
                              0.125f,
                              y.data(),
                              kHeads * kDim * 4,
                              nullptr,
                              0};
  Bytes scratch(AttentionScratchBytes(kHeads, kKvHeads, kDim, kDim));
  for (auto _ : state) {
    kernels->attention(args, 0, AttentionItems(tokens, kHeads, kKvHeads),
                       scratch.data);
  }
  double operations = 0;
  for (const int32_t p : positions) operations += 4.0 * kHeads * kDim * (p + 1);
  SetRates(state, operations, 2.0 * static_cast<double>(pages * page_bytes));
}

void Dense(benchmark::State& state, const MatmulKernel& kernel, int64_t rows) {
  constexpr int64_t kDepth = 2048, kOutputs = 2048;
  // Also the bytes of the layout for bfloat16: both are without gaps here.
  const int64_t weight_bytes =
      kOutputs / 16 * DensePanelBytes(kernel.weight, kDepth);
  const int64_t copies = rows == 1 ? (int64_t{128} << 20) / weight_bytes : 1;
  Bytes weight(copies * weight_bytes);
  std::vector<float> x(static_cast<size_t>(rows * kDepth), 0.01f);
  std::vector<float> y(static_cast<size_t>(rows * kOutputs));
  Bytes scratch(kernel.thread_scratch_bytes(kDepth));
  MatmulArgs args = {};
  args.x = x.data();
  args.x_row_bytes = kDepth * 4;
  args.rows = rows;
  args.depth = kDepth;
  args.weight_rows = kOutputs;
  args.epilogue = MatmulEpilogue::kStore;
  args.y = y.data();
  args.y_row_bytes = kOutputs * 4;
  for (auto _ : state) {
    for (int64_t c = 0; c < copies; ++c) {
      args.weight = weight.data + c * weight_bytes;
      kernel.run(args, 0, kOutputs / 16, scratch.data);
    }
  }
  SetRates(state, 2.0 * static_cast<double>(copies * rows * kDepth * kOutputs),
           static_cast<double>(copies * weight_bytes));
}

constexpr int64_t kRows = 512, kColumns = 2048;

struct RowsCase {
  const char* name;
  double bytes_per_value;
  void (*run)(const RowKernels&, float* a, float* b, uint8_t* other);
};

ConstRows In(const float* p) { return {p, kColumns * 4}; }
MutableRows Out(float* p) { return {p, kColumns * 4}; }

RopeArgs Rope(float* x, float* y, const int32_t* positions) {
  return {In(x), 32,  64,      64,        RopeStyle::kInterleaved,
          1e4,   1.0, nullptr, positions, Out(y)};
}

const RowsCase kRowsCases[] = {
    {"rms_norm", 8,
     [](const RowKernels& k, float* a, float* b, uint8_t*) {
       k.rms_norm({In(a), kColumns, a, nullptr, 1e-5f, Out(b), nullptr, kRows},
                  0, kRows);
     }},
    {"rms_norm_quantize", 5.5,
     [](const RowKernels& k, float* a, float*, uint8_t* other) {
       k.rms_norm_quantize(
           {In(a), kColumns, a, nullptr, 1e-5f, {}, other, kRows}, 0, kRows);
     }},
    {"quantize_rows", 5.5,
     [](const RowKernels& k, float* a, float*, uint8_t* other) {
       k.quantize_rows({In(a), kColumns, kRows, other}, 0, kRows);
     }},
    {"add", 12,
     [](const RowKernels& k, float* a, float* b, uint8_t*) {
       k.add({In(a), In(b), kColumns, Out(b)}, 0, kRows);
     }},
    {"silu_gate", 12,
     [](const RowKernels& k, float* a, float* b, uint8_t*) {
       k.silu_gate({In(a), In(a), kColumns, Out(b)}, 0, kRows);
     }},
    {"gelu", 8,
     [](const RowKernels& k, float* a, float* b, uint8_t*) {
       k.gelu({In(a), kColumns, Out(b)}, 0, kRows);
     }},
    {"softmax", 8,
     [](const RowKernels& k, float* a, float* b, uint8_t*) {
       k.softmax({In(a), kColumns, Out(b)}, 0, kRows);
     }},
    {"rope", 8,
     [](const RowKernels& k, float* a, float* b, uint8_t* other) {
       k.rope(Rope(a, b, reinterpret_cast<int32_t*>(other)), 0, kRows);
     }},
    {"rope_kv_write", 6,
     [](const RowKernels& k, float* a, float* b, uint8_t* other) {
       int32_t* positions = reinterpret_cast<int32_t*>(other);
       const std::vector<int32_t> sequence(kRows, 0);
       std::vector<int32_t> table(kRows / kPageTokens);
       std::iota(table.begin(), table.end(), 0);
       const int64_t page_bytes = 32 * KvHeadBytes(KvType::kF16, 64);
       const KvState state = {reinterpret_cast<uint8_t*>(b), page_bytes,
                              table.data(), kRows / kPageTokens};
       k.rope_kv_write({Rope(a, nullptr, positions),
                        {{},
                         32,
                         64,
                         KvType::kF16,
                         true,
                         &state,
                         positions,
                         sequence.data()}},
                       0, kRows);
     }},
};

void RunRows(benchmark::State& state, const RowKernels* kernels,
             const RowsCase& c) {
  std::vector<float> a(kRows * kColumns), b(kRows * kColumns, 0.5f);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 97) * 0.02f - 1.0f;
  }
  // Positions for RoPE, or room for quantised rows.
  Bytes other(kRows * kColumns * 2);
  std::iota(reinterpret_cast<int32_t*>(other.data),
            reinterpret_cast<int32_t*>(other.data) + kRows, 0);
  for (auto _ : state) c.run(*kernels, a.data(), b.data(), other.data);
  SetRates(state, 0, c.bytes_per_value * kRows * kColumns);
}

void PeakMultiplyAdds(benchmark::State& state) {
  constexpr int64_t kCount = 1 << 20;
  int64_t operations = 0;
  for (auto _ : state) operations = SpinF32(DetectIsa(), kCount);
  SetRates(state, static_cast<double>(operations), 0);
}

void PeakRead(benchmark::State& state) {
  constexpr int64_t kBytes = int64_t{128} << 20;
  Bytes bytes(kBytes);
  for (auto _ : state) {
    benchmark::DoNotOptimize(ReadOnce(bytes.data, kBytes));
  }
  SetRates(state, 0, kBytes);
}

struct Isas {
  const char* name;
  Isa isa;
  const AttentionKernels* attention;
  const RowKernels* rows;
};

void RegisterAll() {
  benchmark::RegisterBenchmark("peak_f32", PeakMultiplyAdds);
  benchmark::RegisterBenchmark("peak_read", PeakRead);
  const Isas isas[] = {
      {"avx512", Isa::kAvx512, &kAttentionKernelsAvx512, &kRowKernelsAvx512},
      {"avx2", Isa::kAvx2, &kAttentionKernelsAvx2, &kRowKernelsAvx2}};
  const char* const types[] = {"f32", "f16", "bf16", "q8_0"};
  for (const Isas& i : isas) {
    if (!Includes(DetectIsa(), i.isa)) continue;
    for (int type = 0; type < 4; ++type) {
      for (const std::pair<int64_t, int64_t>& size :
           {std::pair<int64_t, int64_t>{512, 512}, {512, 4096}, {1, 4096}}) {
        const std::string name = std::string("attention_") + types[type] + "_" +
                                 i.name + "/T:" + std::to_string(size.first) +
                                 "/C:" + std::to_string(size.second);
        benchmark::RegisterBenchmark(
            name.c_str(), [i, type, size](benchmark::State& state) {
              Attention(state, i.attention, static_cast<KvType>(type),
                        size.first, size.second);
            });
      }
    }
    for (const RowsCase& c : kRowsCases) {
      benchmark::RegisterBenchmark(
          (std::string(c.name) + "_" + i.name).c_str(),
          [i, &c](benchmark::State& state) { RunRows(state, i.rows, c); });
    }
  }
  for (const auto& table : {DenseMatmulKernels(), OneDnnF32MatmulKernels(),
                            OneDnnBf16MatmulKernels(), Bf16MatmulKernels()}) {
    for (const MatmulKernel& kernel : table) {
      if (!Includes(DetectIsa(), kernel.isa)) continue;
      for (const int64_t rows : {1, 8, 256, 512}) {
        benchmark::RegisterBenchmark(
            (std::string(kernel.name) + "/M:" + std::to_string(rows)).c_str(),
            [&kernel, rows](benchmark::State& state) {
              Dense(state, kernel, rows);
            });
      }
    }
  }
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  weft::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
