#include "ops/kernels/matmul/onednn_matmul.h"

#include <algorithm>

#include "ops/kernels/matmul/bf16_isa.h"
#include "ops/kernels/matmul/bf16_layout.h"
#include "ops/kernels/matmul/dense_isa.h"
#include "ops/kernels/matmul/matmul_onednn.h"

namespace weft {

#if defined(__x86_64__)

namespace {

constexpr int kGroupPanels = kOneDnnWeightRows / kPanelRows;
constexpr int64_t kSumsBytes = kOneDnnMostRows * kOneDnnWeightRows * 4;

// Thread scratch: the sums of a call, then oneDNN's own.
int64_t ScratchBytes(DType type, int64_t depth) {
  return kSumsBytes + (OneDnnScratchBytes(type, depth) + 63) / 64 * 64;
}

// One group of 64 rows of w after the other; for each, tiles of oneDNN's as
// long as there are rows, the rest by the own kernel.
void RunOneDnn(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
               uint8_t* thread_scratch, DType type, int64_t x_row_bytes,
               int64_t group_bytes, PanelGroupFunction own) {
  float* sums = reinterpret_cast<float*>(thread_scratch);
  for (int64_t p = panel_begin; p < panel_end; p += kGroupPanels) {
    const int panels =
        static_cast<int>(std::min<int64_t>(kGroupPanels, panel_end - p));
    const uint8_t* w = args.weight + p / kGroupPanels * group_bytes;
    // Panels of F32 weights are stored only as far as there are rows.
    const bool whole = panels == kGroupPanels || type != DType::kF32;
    int64_t row = 0;
    while (whole) {
      const int64_t rows = OneDnnRows(args.rows - row);
      if (rows == 0 || !OneDnnMultiply(type, args.depth, rows,
                                       static_cast<const uint8_t*>(args.x) +
                                           row * x_row_bytes,
                                       w, sums, thread_scratch + kSumsBytes)) {
        break;
      }
      kDenseKernelsAvx512.finish(args, p, panels, row, static_cast<int>(rows),
                                 sums);
      row += rows;
    }
    if (row < args.rows) own(args, p, panels, row, args.rows);
  }
}

void RunF32(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
            uint8_t* thread_scratch) {
  const int64_t row_bytes = args.depth * 4;
  if (args.x_row_bytes != row_bytes) {
    // Rows with gaps (a slice of a wider matrix) are not for oneDNN.
    kDenseKernelsAvx512.panel_f32(args, panel_begin, panel_end, thread_scratch);
    return;
  }
  RunOneDnn(args, panel_begin, panel_end, thread_scratch, DType::kF32,
            row_bytes, kOneDnnWeightRows * row_bytes,
            kDenseKernelsAvx512.panel_group_f32);
}

void RunBf16(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
             uint8_t* thread_scratch) {
  RunOneDnn(args, panel_begin, panel_end, thread_scratch, DType::kBF16,
            Bf16PaddedDepth(args.depth) * 2, Bf16GroupBytes(args.depth),
            kBf16KernelsAvx512Bf16.group);
}

void RunOwnBf16(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
                uint8_t* thread_scratch) {
  kBf16KernelsAvx512Bf16.multiply(args, panel_begin, panel_end, thread_scratch);
}

int64_t F32Scratch(int64_t depth) { return ScratchBytes(DType::kF32, depth); }
int64_t RowScratch(int64_t depth) { return (depth * 4 + 63) / 64 * 64; }
int64_t Bf16Scratch(int64_t depth) {
  return std::max(ScratchBytes(DType::kBF16, depth), RowScratch(depth));
}

constexpr MatmulKernel kF32[] = {
    {"matmul_f32_256x64_onednn", DType::kF32, "panel16", Isa::kAvx512, 64,
     kAnyRows, RunF32, F32Scratch, kGroupPanels},
};

constexpr MatmulKernel OneDnnBf16(const char* name, DType type) {
  return {
      name,     type,    kBf16LayoutName, Isa::kAvx512Bf16, kOneDnnLeastRows,
      kAnyRows, RunBf16, Bf16Scratch,     kGroupPanels};
}
constexpr MatmulKernel OwnBf16(const char* name, DType type) {
  return {name,     type,       kBf16LayoutName, Isa::kAvx512Bf16, 1,
          kAnyRows, RunOwnBf16, RowScratch,      kGroupPanels};
}

constexpr MatmulKernel kOneDnnBf16[] = {
    OneDnnBf16("matmul_f16_bf16x64_onednn", DType::kF16),
    OneDnnBf16("matmul_bf16_bf16x64_onednn", DType::kBF16),
};
constexpr MatmulKernel kOwnBf16[] = {
    OwnBf16("matmul_f16_bf16x64_avx512bf16", DType::kF16),
    OwnBf16("matmul_bf16_bf16x64_avx512bf16", DType::kBF16),
};

}  // namespace

absl::Span<const MatmulKernel> OneDnnF32MatmulKernels() { return kF32; }
absl::Span<const MatmulKernel> OneDnnBf16MatmulKernels() { return kOneDnnBf16; }
absl::Span<const MatmulKernel> Bf16MatmulKernels() { return kOwnBf16; }

void RoundRowToBf16(const float* x, int64_t depth, uint16_t* out) {
  kBf16KernelsAvx512Bf16.round_row(x, depth, out);
}

#else

absl::Span<const MatmulKernel> OneDnnF32MatmulKernels() { return {}; }
absl::Span<const MatmulKernel> OneDnnBf16MatmulKernels() { return {}; }
absl::Span<const MatmulKernel> Bf16MatmulKernels() { return {}; }
void RoundRowToBf16(const float*, int64_t, uint16_t*) {}

#endif  // __x86_64__

}  // namespace weft
