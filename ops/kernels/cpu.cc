// The compiler's own detection reads CPUID and XCR0 (state that the operating
// system saves); Linux gives the state of AMX's tiles only to processes that
// asked for it (Documentation/arch/x86/xstate.rst); on AArch64 the kernel's
// auxiliary vector says.

#include "ops/kernels/cpu.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace weft {
namespace {

struct IsaName {
  Isa isa;
  const char* name;
};

constexpr IsaName kNames[] = {
    {Isa::kRef, "ref"},
    {Isa::kAvx2, "avx2"},
    {Isa::kAvx2Vnni, "avx2vnni"},
    {Isa::kAvx512, "avx512"},
    {Isa::kAvx512Vnni, "avx512vnni"},
    {Isa::kAvx512Bf16, "avx512bf16"},
    {Isa::kAvx512Amx, "avx512amx"},
    {Isa::kNeon, "neon"},
    {Isa::kNeonDot, "neondot"},
    {Isa::kNeonI8mm, "neoni8mm"},
};

bool IsNeon(Isa isa) { return isa >= Isa::kNeon; }

#if defined(__x86_64__)
bool AskForTiles() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool HasTiles() {
  static const bool has = __builtin_cpu_supports("amx-tile") &&
                          __builtin_cpu_supports("amx-int8") && AskForTiles();
  return has;
}
#endif

}  // namespace

const char* Name(Isa isa) {
  for (const IsaName& row : kNames) {
    if (row.isa == isa) return row.name;
  }
  return "unknown";
}

std::optional<Isa> IsaFromName(absl::string_view name) {
  for (const IsaName& row : kNames) {
    if (name == row.name) return row.isa;
  }
  return std::nullopt;
}

std::string IsaNamesHere() {
  std::string names;
  for (const IsaName& row : kNames) {
    // AVX-VNNI is beside the line of the others.
    const bool here =
        Includes(kHighestIsa, row.isa) ||
        (row.isa == Isa::kAvx2Vnni && Includes(kHighestIsa, Isa::kAvx2));
    if (!here) continue;
    if (!names.empty()) names += row.isa == kHighestIsa ? " or " : ", ";
    names += row.name;
  }
  return names;
}

Isa DetectIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c")) {
    return Isa::kRef;
  }
  if (!__builtin_cpu_supports("avx512f") ||
      !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq")) {
    return __builtin_cpu_supports("avxvnni") ? Isa::kAvx2Vnni : Isa::kAvx2;
  }
  if (!__builtin_cpu_supports("avx512vnni")) return Isa::kAvx512;
  if (!__builtin_cpu_supports("avx512bf16")) return Isa::kAvx512Vnni;
  return HasTiles() ? Isa::kAvx512Amx : Isa::kAvx512Bf16;
#elif defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) == 0) return Isa::kNeon;
  return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0 ? Isa::kNeonI8mm
                                                   : Isa::kNeonDot;
#else
  return Isa::kRef;
#endif
}

bool RunsHere(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2Vnni) {
    return Includes(DetectIsa(), Isa::kAvx2) &&
           __builtin_cpu_supports("avxvnni");
  }
#endif
  return Includes(DetectIsa(), isa);
}

bool RunsOn(Isa machine, Isa isa) {
  return Includes(machine, isa) || (machine == DetectIsa() && RunsHere(isa));
}

bool Includes(Isa cap, Isa needed) {
  if (needed == Isa::kRef) return true;
  if (needed == Isa::kAvx2Vnni) return cap == Isa::kAvx2Vnni;
  return IsNeon(cap) == IsNeon(needed) && needed <= cap;
}

}  // namespace weft
