// The row kernels, written once; each rows_<isa>.cc includes this and defines
// its table. Everything is in an unnamed namespace: see vector.h.
#pragma once

#include "ops/kernels/rows/elementwise.inl"
#include "ops/kernels/rows/kv_write.inl"
#include "ops/kernels/rows/norm.inl"
#include "ops/kernels/rows/rope.inl"
#include "ops/kernels/rows/rows.h"

namespace weft {
namespace {

constexpr RowKernels kRowKernels = {
    RmsNorm,      RmsNormQuantize,
    LayerNorm,    LayerNormQuantize,
    QuantizeRows, Add,
    Mul,          SiluGate,
    GeluGate,     SiluRows,
    GeluRows,     GeluTanhRows,
    Scale,        Softcap,
    Softmax,      SigmoidRows,
    WeightedSum,  TakeRows,
    Rope,         KvWrite,
    RopeKvWrite,
};

}  // namespace
}  // namespace weft
