// The instruction sets that kernels are written for, and which of them this
// processor and its operating system offer.
//
// An Isa is a cumulative cap: kAvx512Vnni stands for AVX2, AVX-512 and VNNI
// together. They make no line: AVX-VNNI came after AVX-512 VNNI, to processors
// without AVX-512 and to some with. Thread-safe.
//
// On Linux a process has to ask for the tile registers of AMX before a thread
// uses them: whoever asks here first asks for it, once.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace weft {

enum class Isa {
  kRef,         // portable C++
  kAvx2,        // AVX2, FMA, F16C
  kAvx2Vnni,    // AVX2 and AVX-VNNI: int8 dot products of 256 bits
  kAvx512,      // AVX2 and AVX-512 F, BW, VL, DQ
  kAvx512Vnni,  // and int8 dot products
  kAvx512Bf16,  // and bfloat16 dot products
  kAvx512Amx,   // and AMX: int8 products of tiles
  kNeon,        // Advanced SIMD of AArch64
  kNeonDot,     // and int8 dot products (FEAT_DotProd)
  kNeonI8mm,    // and int8 products of 2x8 by 8x2 (FEAT_I8MM)
};

// The least with kernels of its own, and the highest, on the family of
// processors that this is compiled for.
#if defined(__x86_64__)
constexpr Isa kLeastIsa = Isa::kAvx2, kHighestIsa = Isa::kAvx512Amx;
#elif defined(__aarch64__)
constexpr Isa kLeastIsa = Isa::kNeon, kHighestIsa = Isa::kNeonI8mm;
#else
constexpr Isa kLeastIsa = Isa::kRef, kHighestIsa = Isa::kRef;
#endif

// Lower case, as in kernel names: ref avx2 avx2vnni avx512 avx512vnni
// avx512bf16 avx512amx neon neondot neoni8mm.
const char* Name(Isa isa);

// Case matters. Empty when unknown.
std::optional<Isa> IsaFromName(absl::string_view name);

// Those of this family, as in "ref, neon, neondot or neoni8mm".
std::string IsaNamesHere();

// The best that this machine runs.
Isa DetectIsa();

// Whether this machine runs what the cap stands for. Not all that run are
// included in the best.
bool RunsHere(Isa isa);
// The same of a machine whose best is given; of AVX-VNNI beside AVX-512 nothing
// is known unless it is this one.
bool RunsOn(Isa machine, Isa isa);

// Whether a kernel that needs `needed` may run under the cap `cap`.
bool Includes(Isa cap, Isa needed);

}  // namespace weft
