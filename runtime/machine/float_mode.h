// The processor's float control word, per thread.
//
// All computing runs in one mode: round to nearest, no traps, subnormal numbers
// taken and given as zero. Subnormals make some CPUs many times slower, and the
// result must not depend on what mode the calling program happens to be in.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace weft {

#if defined(__x86_64__)
// MXCSR (Intel SDM volume 1, section 10.2.3): all exceptions masked (0x1f80),
// flush to zero (bit 15), denormals are zero (bit 6).
constexpr uint64_t kComputeFloatMode = 0x1f80 | 1u << 15 | 1u << 6;

inline uint64_t FloatMode() { return _mm_getcsr(); }
inline void SetFloatMode(uint64_t mode) {
  _mm_setcsr(static_cast<unsigned>(mode));
}
#elif defined(__aarch64__)
// FPCR (Arm ARM, C5.2.8): FZ (bit 24) flushes inputs and results.
constexpr uint64_t kComputeFloatMode = uint64_t{1} << 24;

inline uint64_t FloatMode() {
  uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
inline void SetFloatMode(uint64_t mode) {
  asm volatile("msr fpcr, %0" : : "r"(mode) : "memory");
}
#else
constexpr uint64_t kComputeFloatMode = 0;
inline uint64_t FloatMode() { return 0; }
inline void SetFloatMode(uint64_t) {}
#endif

// Sets the mode of the current thread and puts the old one back.
class ScopedComputeFloatMode {
 public:
  ScopedComputeFloatMode() : saved_(FloatMode()) {
    SetFloatMode(kComputeFloatMode);
  }
  ~ScopedComputeFloatMode() { SetFloatMode(saved_); }
  ScopedComputeFloatMode(const ScopedComputeFloatMode&) = delete;
  ScopedComputeFloatMode& operator=(const ScopedComputeFloatMode&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace weft
