// oneDNN's matmul of bfloat16 as a tile: some rows of x times 64 rows of a
// weight, in the layout and summation order of the own kernels (bf16_isa.h).
//
// oneDNN is called by each thread for its own share of the outputs, not once
// with threads of its own: sums then cannot depend on the number of threads,
// the results are finished while they are in the cache, and the executor need
// not know.
//
// What was measured with oneDNN 2.6.3 on AVX-512 with BF16 (one thread):
//   - BF16 weights in bf16_layout.h (its BA16a64b2a) times BF16 rows: 500-540
//     Gflop/s from 16 rows up for depths from 512 to 14336, of 540 possible;
//     110-160 for one row, which is why one row takes the own kernel. A call
//     costs 0.3 us.
//   - Its brgemm kernels sum in exactly the order of bf16_isa.h for every depth
//     from 32 to 14336 and number of rows tried.
//   - A run-time number of rows, or rows with gaps, falls back to other kernels
//     (gemm:jit, ref:any). Hence one primitive per number of rows, in powers of
//     two, and matrices without gaps.
//   - F32 weights: 160-209 Gflop/s, the own kernel 213-241. So it is not asked.
//
// oneDNN is not taken where it would not run brgemm or where its bits, tried on
// this machine, are not those of the own kernel. Thread-safe: primitives and
// what is bound to them belong to the calling thread.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Rows of w per call.
constexpr int kOneDnnWeightRows = 64;
// Rows of x per call: powers of two between these.
constexpr int64_t kOneDnnLeastRows = 16;
constexpr int64_t kOneDnnMostRows = 256;

// As in "2.6.3".
std::string OneDnnVersion();

// The largest number of rows of a call that is at most `rows`; 0 if none is.
int64_t OneDnnRows(int64_t rows);

// Why oneDNN is not to be taken for weights of this depth, before padding;
// empty if it is. The first call for a depth runs some matmuls (about 10 ms).
std::string WhyNotOneDnn(int64_t depth);

// Bytes of `scratch` below; 0 where oneDNN is not taken.
int64_t OneDnnScratchBytes(int64_t depth);

// sums[rows][64] = x times w^T, for `rows` of OneDnnRows, rows of x without
// gaps: bfloat16 of the padded depth. False, with nothing promised about sums,
// when oneDNN fails (no memory). Allocates: some small objects on every call,
// primitives on a thread's first.
bool OneDnnMultiply(int64_t depth, int64_t rows, const void* x,
                    const uint8_t* w, float* sums, uint8_t* scratch);

// Whether the calling thread is inside oneDNN: what is allocated then is its
// doing. For tests that count allocations.
bool InsideOneDnn();

}  // namespace weft
