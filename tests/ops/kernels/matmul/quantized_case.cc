#include "tests/ops/kernels/matmul/quantized_case.h"

#include <cmath>
#include <cstring>

#include "ops/formats/formats.h"
#include "ops/kernels/matmul/pack.h"
#include "ops/kernels/quantized_rows.h"

namespace weft {
namespace {

using DecodeFunction = void (*)(const uint8_t*, int64_t, Decoded32*);

template <class Block>
void Decode(const uint8_t* row, int64_t b, Decoded32* out) {
  DecodeBlock(reinterpret_cast<const Block*>(row), b, out);
}

template <class Block>
void SetSecondHalf(Block*, uint16_t) {}
void SetSecondHalf(BlockQ4_1* block, uint16_t half) { block->m = half; }
void SetSecondHalf(BlockQ5_1* block, uint16_t half) { block->m = half; }
void SetSecondHalf(BlockQ2_K* block, uint16_t half) { block->dmin = half; }
void SetSecondHalf(BlockQ4_K* block, uint16_t half) { block->dmin = half; }
void SetSecondHalf(BlockQ5_K* block, uint16_t half) { block->dmin = half; }

template <class Block>
void SetFirstHalf(Block* block, uint16_t half) {
  block->d = half;
}
void SetFirstHalf(BlockMXFP4* block, uint16_t half) {
  block->e = static_cast<uint8_t>(120 + half % 4);
}

void SetFirstHalf(BlockNVFP4* block, uint16_t half) {
  for (int i = 0; i < 4; ++i) {
    block->scales[i] = static_cast<uint8_t>(half >> (3 * i) & 31);
  }
}
void SetFirstHalf(BlockIQ1_M* block, uint16_t half) {
  for (int i = 0; i < 4; ++i) {
    block->scales[i] = static_cast<uint16_t>((block->scales[i] & 0x0fff) |
                                             (half >> (4 * i)) << 12);
  }
}

template <class Block>
void SetHalves(uint8_t* p, uint16_t d, uint16_t second) {
  Block block;
  std::memcpy(&block, p, sizeof(block));
  SetFirstHalf(&block, d);
  SetSecondHalf(&block, second);
  std::memcpy(p, &block, sizeof(block));
}

struct TypeFunctions {
  DType type;
  DecodeFunction decode;
  void (*set_halves)(uint8_t*, uint16_t, uint16_t);
  int scales_per_32;
  bool has_min;
};

template <class Block>
constexpr TypeFunctions FunctionsFor(DType type) {
  return {type, Decode<Block>, SetHalves<Block>,
          BlockFormat<Block>::kScalesPer32, BlockFormat<Block>::kHasMin};
}

constexpr TypeFunctions kTypes[] = {
#define WEFT_ROW(TYPE, ...) FunctionsFor<Block##TYPE>(DType::k##TYPE),
    WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_ROW)
#undef WEFT_ROW
};

const TypeFunctions& Of(DType type) {
  for (const TypeFunctions& row : kTypes) {
    if (row.type == type) return row;
  }
  return kTypes[0];
}

void SetRandomHalves(DType type, std::mt19937& random,
                     std::vector<uint8_t>* bytes) {
  std::uniform_real_distribution<float> scale(-0x1p-6f, 0x1p-6f);
  const size_t block_bytes = static_cast<size_t>(Info(type).block_bytes);
  for (size_t i = 0; i < bytes->size(); i += block_bytes) {
    Of(type).set_halves(bytes->data() + i, F32ToF16(scale(random)),
                        F32ToF16(scale(random)));
  }
}

AlignedBytes PackLanes(DType type, int64_t panels, int64_t depth,
                       const uint8_t* (*row_of)(const void*, int64_t, int),
                       const void* context) {
  AlignedBytes packed(panels * PackedPanelBytes(type, depth));
  for (int64_t p = 0; p < panels; ++p) {
    const uint8_t* rows[16];
    for (int lane = 0; lane < 16; ++lane) rows[lane] = row_of(context, p, lane);
    PackPanel(type, rows, depth,
              packed.data() + p * PackedPanelBytes(type, depth));
  }
  return packed;
}

}  // namespace

AlignedBytes::AlignedBytes(int64_t bytes)
    : storage_(static_cast<size_t>(bytes) + 64) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(storage_.data());
  data_ = storage_.data() + (64 - at % 64) % 64;
}

std::vector<DType> QuantizedTypes() {
  std::vector<DType> types;
  for (const TypeFunctions& row : kTypes) types.push_back(row.type);
  return types;
}

std::vector<uint8_t> RandomWeight(DType type, int64_t rows, int64_t depth,
                                  std::mt19937& random) {
  std::vector<uint8_t> bytes(static_cast<size_t>(rows * RowBytes(type, depth)));
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    const uint32_t word = static_cast<uint32_t>(random());
    std::memcpy(&bytes[i], &word, sizeof(word));
  }
  SetRandomHalves(type, random, &bytes);
  return bytes;
}

std::vector<uint8_t> FilledWeight(DType type, int64_t rows, int64_t depth,
                                  uint8_t fill, std::mt19937& random) {
  std::vector<uint8_t> bytes(static_cast<size_t>(rows * RowBytes(type, depth)),
                             fill);
  SetRandomHalves(type, random, &bytes);
  return bytes;
}

std::vector<float> RandomFloats(int64_t rows, int64_t depth,
                                std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(rows * depth));
  for (float& value : x) value = normal(random);
  const size_t blocks = x.size() / 32;
  const size_t zero = random() % blocks, large = random() % blocks;
  for (size_t i = 0; i < 32; ++i) x[32 * large + i] *= 1e4f;
  for (size_t i = 0; i < 32; ++i) x[32 * zero + i] = 0.0f;
  return x;
}

AlignedBytes QuantizeRows(const std::vector<float>& x, int64_t rows,
                          int64_t depth) {
  AlignedBytes quantized(rows * depth / 32 * kQuantizedRowsBlockBytes);
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t b = 0; b < depth / 32; ++b) {
      const float* from = x.data() + m * depth + 32 * b;
      QuantizeBlock(Load(from), Load(from + 16),
                    QuantizedBlockAt(quantized.data(), rows, depth, m, b));
    }
  }
  return quantized;
}

AlignedBytes PackRows(DType type, const std::vector<uint8_t>& weight,
                      int64_t rows, int64_t depth) {
  struct Context {
    const uint8_t* weight;
    int64_t rows, row_bytes;
  } context = {weight.data(), rows, RowBytes(type, depth)};
  return PackLanes(
      type, (rows + 15) / 16, depth,
      [](const void* p, int64_t panel, int lane) -> const uint8_t* {
        const Context& c = *static_cast<const Context*>(p);
        const int64_t row = 16 * panel + lane;
        return row < c.rows ? c.weight + row * c.row_bytes : nullptr;
      },
      &context);
}

AlignedBytes PackGateUp(DType type, const std::vector<uint8_t>& gate,
                        const std::vector<uint8_t>& up, int64_t rows,
                        int64_t depth) {
  struct Context {
    const uint8_t* weight[2];
    int64_t rows, row_bytes;
  } context = {{gate.data(), up.data()}, rows, RowBytes(type, depth)};
  return PackLanes(
      type, 2 * ((rows + 15) / 16), depth,
      [](const void* p, int64_t panel, int lane) -> const uint8_t* {
        const Context& c = *static_cast<const Context*>(p);
        const int64_t row = 16 * (panel / 2) + lane;
        return row < c.rows ? c.weight[panel % 2] + row * c.row_bytes : nullptr;
      },
      &context);
}

std::vector<float> ReferenceSums(DType type, const std::vector<uint8_t>& weight,
                                 int64_t weight_rows,
                                 const std::vector<float>& x, int64_t rows,
                                 int64_t depth) {
  const TypeFunctions& functions = Of(type);
  AlignedBytes quantized = QuantizeRows(x, rows, depth);
  std::vector<float> sums(static_cast<size_t>(rows * weight_rows));
  for (int64_t n = 0; n < weight_rows; ++n) {
    for (int64_t b = 0; b < depth / 32; ++b) {
      Decoded32 w;
      functions.decode(weight.data() + n * RowBytes(type, depth), b, &w);
      for (int64_t m = 0; m < rows; ++m) {
        const QuantizedBlock xb =
            QuantizedBlockAt(quantized.data(), rows, depth, m, b);
        float& sum = sums[static_cast<size_t>(m * weight_rows + n)];
        int32_t dot[2] = {0, 0};
        for (int i = 0; i < 32; ++i) dot[i / 16] += w.q[i] * xb.q[i];
        const float xs = *xb.scale;
        if (functions.scales_per_32 == 1) {
          sum = std::fma(static_cast<float>(dot[0] + dot[1]), w.scale[0] * xs,
                         sum);
          if (functions.has_min) sum = std::fma(*xb.scaled_sum, -w.min[0], sum);
        } else {
          const int32_t half_sum[2] = {*xb.sum_low, *xb.sum_high};
          for (int h = 0; h < 2; ++h) {
            sum = std::fma(static_cast<float>(dot[h]), w.scale[h] * xs, sum);
            if (functions.has_min) {
              sum = std::fma(xs * static_cast<float>(half_sum[h]), -w.min[h],
                             sum);
            }
          }
        }
      }
    }
  }
  return sums;
}

ExactSum ExactDot(DType type, const std::vector<uint8_t>& weight, int64_t n,
                  const std::vector<float>& x, int64_t m, int64_t depth) {
  const std::vector<float> row(x.begin() + m * depth,
                               x.begin() + (m + 1) * depth);
  AlignedBytes quantized = QuantizeRows(row, 1, depth);
  ExactSum sum = {0.0, 0.0};
  for (int64_t b = 0; b < depth / 32; ++b) {
    Decoded32 w;
    Of(type).decode(weight.data() + n * RowBytes(type, depth), b, &w);
    const QuantizedBlock xb =
        QuantizedBlockAt(quantized.data(), 1, depth, 0, b);
    for (int i = 0; i < 32; ++i) {
      const double a = static_cast<double>(w.scale[i / 16]) * w.q[i];
      const double c = static_cast<double>(*xb.scale) * xb.q[i];
      sum.value += (a - w.min[i / 16]) * c;
      sum.magnitude += (std::fabs(a) + std::fabs(w.min[i / 16])) * std::fabs(c);
    }
  }
  return sum;
}

float ReferenceGate(GateActivation activation, float gate, float up) {
  const F32x16 active = activation == GateActivation::kSilu
                            ? Silu(Splat(gate))
                            : GeluTanh(Splat(gate));
  return (active * Splat(up))[0];
}

std::vector<MatmulKernel> RunnableKernels() {
  std::vector<MatmulKernel> kernels;
  for (const MatmulKernel& kernel : QuantizedMatmulKernels()) {
    if (RunsHere(kernel.isa)) kernels.push_back(kernel);
  }
  return kernels;
}

}  // namespace weft
