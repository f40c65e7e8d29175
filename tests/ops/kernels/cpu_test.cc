#include "ops/kernels/cpu.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

constexpr Isa kAll[] = {Isa::kRef,        Isa::kAvx2,       Isa::kAvx512,
                        Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kNeon,
                        Isa::kNeonDot};

TEST(Cpu, NamesComeBack) {
  for (Isa isa : kAll) EXPECT_EQ(isa, IsaFromName(Name(isa)));
  for (const char* name : {"", "AVX2", "avx", "sse4", "avx512vnni "}) {
    EXPECT_FALSE(IsaFromName(name).has_value()) << name;
  }
}

TEST(Cpu, CapsAreCumulativeWithinAnArchitecture) {
  EXPECT_TRUE(Includes(Isa::kAvx512Bf16, Isa::kAvx2));
  EXPECT_TRUE(Includes(Isa::kAvx512Vnni, Isa::kAvx512Vnni));
  EXPECT_FALSE(Includes(Isa::kAvx512, Isa::kAvx512Vnni));
  EXPECT_TRUE(Includes(Isa::kNeonDot, Isa::kNeon));
  EXPECT_FALSE(Includes(Isa::kNeon, Isa::kNeonDot));
  EXPECT_FALSE(Includes(Isa::kNeonDot, Isa::kAvx2));
  EXPECT_FALSE(Includes(Isa::kAvx512Bf16, Isa::kNeon));
  for (Isa isa : kAll) {
    EXPECT_TRUE(Includes(isa, Isa::kRef)) << Name(isa);
    EXPECT_TRUE(Includes(isa, isa)) << Name(isa);
    EXPECT_EQ(isa == Isa::kRef, Includes(Isa::kRef, isa)) << Name(isa);
  }
}

TEST(Cpu, DetectsWhatTheArchitectureCanHave) {
  const Isa isa = DetectIsa();
#if defined(__x86_64__)
  EXPECT_FALSE(Includes(isa, Isa::kNeon)) << Name(isa);
#elif defined(__aarch64__)
  EXPECT_TRUE(Includes(isa, Isa::kNeon)) << Name(isa);
#endif
}

}  // namespace
}  // namespace weft
