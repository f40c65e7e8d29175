#include "ops/kernels/matmul/bf16_matmul.h"

#include <algorithm>

#include "ops/kernels/matmul/bf16_isa.h"
#include "ops/kernels/matmul/bf16_layout.h"
#include "ops/kernels/matmul/onednn_tile.h"

namespace weft {

#if defined(__x86_64__)

namespace {

constexpr int kGroupPanels = kOneDnnWeightRows / kPanelRows;
constexpr int64_t kSumsBytes = kOneDnnMostRows * kOneDnnWeightRows * 4;

// One group of 64 rows of w after the other; for each, tiles of oneDNN's as
// long as there are rows, the rest by the own kernel.
void RunOneDnn(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
               uint8_t* thread_scratch) {
  const Bf16Kernels& own = kBf16KernelsAvx512Bf16;
  const int64_t x_row_bytes = Bf16PaddedDepth(args.depth) * 2;
  float* sums = reinterpret_cast<float*>(thread_scratch);
  for (int64_t p = panel_begin; p < panel_end; p += kGroupPanels) {
    const int panels =
        static_cast<int>(std::min<int64_t>(kGroupPanels, panel_end - p));
    const uint8_t* w =
        args.weight + p / kGroupPanels * Bf16GroupBytes(args.depth);
    int64_t row = 0;
    for (;;) {
      const int64_t rows = OneDnnRows(args.rows - row);
      if (rows == 0 || !OneDnnMultiply(args.depth, rows,
                                       static_cast<const uint8_t*>(args.x) +
                                           row * x_row_bytes,
                                       w, sums, thread_scratch + kSumsBytes)) {
        break;
      }
      own.finish(args, p, panels, row, static_cast<int>(rows), sums);
      row += rows;
    }
    if (row < args.rows) own.group(args, p, panels, row, args.rows);
  }
}

int64_t RowScratch(int64_t depth) { return (depth * 4 + 63) / 64 * 64; }

// The sums of a call, then oneDNN's own.
int64_t OneDnnScratch(int64_t depth) {
  return std::max(kSumsBytes + (OneDnnScratchBytes(depth) + 63) / 64 * 64,
                  RowScratch(depth));
}

#define WEFT_KERNEL(WEIGHT, ...) \
  {.weight = DType::WEIGHT,      \
   .tile = "bf16x64",            \
   .isa = Isa::kAvx512Bf16,      \
   __VA_ARGS__,                  \
   .group_panels = kGroupPanels},

}  // namespace

// clang-format off
absl::Span<const MatmulKernel> OneDnnBf16MatmulKernels() {
  static const MatmulKernel kTable[] = {
  WEFT_KERNEL(kF16, .library = "onednn", .layout = kBf16LayoutName, .min_rows = kOneDnnLeastRows, .run = RunOneDnn, .thread_scratch = OneDnnScratch)
  WEFT_KERNEL(kBF16, .library = "onednn", .layout = kBf16LayoutName, .min_rows = kOneDnnLeastRows, .run = RunOneDnn, .thread_scratch = OneDnnScratch)
  };
  return kTable;
}

absl::Span<const MatmulKernel> Bf16MatmulKernels() {
  static const MatmulKernel kTable[] = {
  WEFT_KERNEL(kF16, .layout = kBf16LayoutName, .run = kBf16KernelsAvx512Bf16.multiply, .thread_scratch = RowScratch)
  WEFT_KERNEL(kBF16, .layout = kBf16LayoutName, .run = kBf16KernelsAvx512Bf16.multiply, .thread_scratch = RowScratch)
  };
  return kTable;
}
// clang-format on

#undef WEFT_KERNEL

void RoundRowToBf16(const float* x, int64_t depth, uint16_t* out) {
  kBf16KernelsAvx512Bf16.round_row(x, depth, out);
}

#else

absl::Span<const MatmulKernel> OneDnnBf16MatmulKernels() { return {}; }
absl::Span<const MatmulKernel> Bf16MatmulKernels() { return {}; }
void RoundRowToBf16(const float*, int64_t, uint16_t*) {}

#endif  // __x86_64__

}  // namespace weft
