// Adapters beside a product.
//
// A product with a row of a is summed in 16 lanes (column i in lane i % 16) and
// reduced by the fixed tree; an element of the result adds up an adapter's
// ranks in order, then the adapters in order. So what a row gets of an adapter
// is the same whatever other adapters there are.
#pragma once

#include "ops/kernels/rows/row_access.inl"

namespace weft {
namespace {

void LoraDown(const LoraArgs& args, int64_t begin, int64_t end) {
  for (int64_t item = begin; item < end; ++item) {
    const int64_t row = item / args.rank, r = item % args.rank;
    if (RowOf(args.scales, row)[args.adapter_of[r]] == 0.0f) continue;
    const float* x = RowOf(args.x, row);
    const float* a = args.a + r * args.inputs;
    F32x16 sum = {};
    ForColumns(args.inputs, [&](int64_t i, int lanes) WEFT_LAMBDA {
      sum = MultiplyAdd(LoadLanes(x + i, lanes), LoadLanes(a + i, lanes), sum);
    });
    args.products[item] = ReduceSum(sum);
  }
}

void LoraUp(const LoraArgs& args, int64_t begin, int64_t end) {
  const int64_t blocks = (args.outputs + kLoraColumns - 1) / kLoraColumns;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t row = item / blocks;
    const int64_t first = item % blocks * kLoraColumns;
    const int64_t left = args.outputs - first;
    const int64_t columns = left < kLoraColumns ? left : kLoraColumns;
    const float* scales = RowOf(args.scales, row);
    const float* products = args.products + row * args.rank;
    float* sum = RowOf(args.sum, row) + first;
    const float* y = RowOf(args.y, row) + first;
    if (y != sum) memcpy(sum, y, static_cast<size_t>(columns) * sizeof(float));
    int64_t r = 0;
    while (r < args.rank) {
      const int64_t own = r;
      const int32_t adapter = args.adapter_of[r];
      while (r < args.rank && args.adapter_of[r] == adapter) ++r;
      const float scale = scales[adapter];
      if (scale == 0.0f) continue;
      ForColumns(columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
        F32x16 added = {};
        const float* b = args.b + own * args.outputs + first + i;
        for (int64_t k = own; k < r; ++k, b += args.outputs) {
          added = MultiplyAdd(Splat(products[k]), LoadLanes(b, lanes), added);
        }
        const F32x16 all =
            MultiplyAdd(Splat(scale), added, LoadLanes(sum + i, lanes));
        StoreLanes(sum + i, all, lanes);
      });
    }
  }
}

constexpr LoraKernel kLoraKernels[] = {{"lora_add", LoraDown, LoraUp}};

}  // namespace
}  // namespace weft
