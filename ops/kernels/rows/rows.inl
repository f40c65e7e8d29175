// The row kernels, written once; each rows_<isa>.cc includes this and defines
// its lists. Everything is in an unnamed namespace: see vector.h.
#pragma once

#include "ops/kernels/rows/elementwise.inl"
#include "ops/kernels/rows/kv_write.inl"
#include "ops/kernels/rows/lora.inl"
#include "ops/kernels/rows/norm.inl"
#include "ops/kernels/rows/rope.inl"
#include "ops/kernels/rows/rows.h"

namespace weft {
namespace {

constexpr RowKernels kRowKernels = {
    .norm = ListOf(kNormKernels),
    .quantize = ListOf(kQuantizeKernels),
    .binary = ListOf(kBinaryKernels),
    .unary = ListOf(kUnaryKernels),
    .gelu = ListOf(kGeluKernels),
    .softmax = ListOf(kSoftmaxKernels),
    .weighted_sum = ListOf(kWeightedSumKernels),
    .take_rows = ListOf(kTakeRowsKernels),
    .rope = ListOf(kRopeKernels),
    .kv_write = ListOf(kKvWriteKernels),
    .rope_kv_write = ListOf(kRopeKvWriteKernels),
    .lora = ListOf(kLoraKernels),
};

}  // namespace
}  // namespace weft
