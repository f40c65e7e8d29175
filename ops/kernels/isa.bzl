"""Compiler flags of each instruction set: the only place that names them."""

_AVX2 = ["-mavx2", "-mfma", "-mf16c"]
_AVX512 = _AVX2 + [
    "-mavx512f",
    "-mavx512bw",
    "-mavx512vl",
    "-mavx512dq",
    "-mprefer-vector-width=512",
]

_X86_64 = {
    "avx2": _AVX2,
    "avx2vnni": _AVX2 + ["-mavxvnni"],
    "avx512": _AVX512,
    "avx512vnni": _AVX512 + ["-mavx512vnni"],
    # Not a level of ops/kernels/cpu.h: whoever takes these asks the processor.
    "avx512vbmi": _AVX512 + ["-mavx512vnni", "-mavx512vbmi", "-mgfni"],
    "avx512bf16": _AVX512 + ["-mavx512vnni", "-mavx512bf16"],
    "avx512amx": _AVX512 + ["-mavx512vnni", "-mavx512bf16", "-mamx-tile", "-mamx-int8"],
}

# Scheduled before registers are given out, loads are moved up until the sums of
# the tiles no longer fit.
_NEON = ["-fno-schedule-insns"]

_AARCH64 = {
    "neon": _NEON + ["-march=armv8-a"],
    "neondot": _NEON + ["-march=armv8.2-a+dotprod"],
    "neoni8mm": _NEON + ["-march=armv8.2-a+dotprod+i8mm"],
}

# Vectors wider than the baseline's registers stay inside one file, so their
# calling convention does not matter; and GCC 12 takes its own
# _mm512_undefined_ps for an uninitialised variable.
_COMMON = ["-O3", "-Wno-psabi", "-Wno-maybe-uninitialized", "-Wno-uninitialized"]

def isa_copts(isa):
    """copts of a library for one instruction set.

    On another family of processors the library is compiled without them, and its
    files are empty there.
    """
    return _COMMON + select({
        "//ops/kernels:x86_64": _X86_64.get(isa, []),
        "//ops/kernels:aarch64": _AARCH64.get(isa, []),
        "//conditions:default": [],
    })
