#include "ops/kernels/cpu.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

constexpr Isa kAll[] = {Isa::kRef,       Isa::kAvx2,       Isa::kAvx2Vnni,
                        Isa::kAvx512,    Isa::kAvx512Vnni, Isa::kAvx512Bf16,
                        Isa::kAvx512Amx, Isa::kNeon,       Isa::kNeonDot,
                        Isa::kNeonI8mm};

TEST(Cpu, NamesComeBack) {
  for (Isa isa : kAll) EXPECT_EQ(isa, IsaFromName(Name(isa)));
  for (const char* name : {"", "AVX2", "avx", "sse4", "avx512vnni "}) {
    EXPECT_FALSE(IsaFromName(name).has_value()) << name;
  }
}

TEST(Cpu, CapsAreCumulativeWithinAnArchitecture) {
  EXPECT_TRUE(Includes(Isa::kAvx512Bf16, Isa::kAvx2));
  EXPECT_TRUE(Includes(Isa::kAvx512Vnni, Isa::kAvx512Vnni));
  EXPECT_TRUE(Includes(Isa::kAvx512Amx, Isa::kAvx512Bf16));
  EXPECT_FALSE(Includes(Isa::kAvx512Bf16, Isa::kAvx512Amx));
  EXPECT_FALSE(Includes(Isa::kAvx512Amx, Isa::kNeon));
  EXPECT_FALSE(Includes(Isa::kAvx512, Isa::kAvx512Vnni));
  EXPECT_TRUE(Includes(Isa::kNeonDot, Isa::kNeon));
  EXPECT_TRUE(Includes(Isa::kNeonI8mm, Isa::kNeonDot));
  EXPECT_FALSE(Includes(Isa::kNeon, Isa::kNeonDot));
  EXPECT_FALSE(Includes(Isa::kNeonDot, Isa::kNeonI8mm));
  EXPECT_FALSE(Includes(Isa::kNeonDot, Isa::kAvx2));
  EXPECT_FALSE(Includes(Isa::kAvx512Bf16, Isa::kNeon));
  for (Isa isa : kAll) {
    EXPECT_TRUE(Includes(isa, Isa::kRef)) << Name(isa);
    EXPECT_TRUE(Includes(isa, isa)) << Name(isa);
    EXPECT_EQ(isa == Isa::kRef, Includes(Isa::kRef, isa)) << Name(isa);
  }
}

TEST(Cpu, AvxVnniIsNoPartOfAvx512) {
  EXPECT_TRUE(Includes(Isa::kAvx2Vnni, Isa::kAvx2));
  EXPECT_FALSE(Includes(Isa::kAvx2, Isa::kAvx2Vnni));
  for (Isa isa :
       {Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAvx512Amx}) {
    EXPECT_FALSE(Includes(isa, Isa::kAvx2Vnni)) << Name(isa);
    EXPECT_FALSE(Includes(Isa::kAvx2Vnni, isa)) << Name(isa);
  }
  EXPECT_TRUE(RunsHere(DetectIsa()));
  EXPECT_TRUE(RunsHere(Isa::kRef));
}

TEST(Cpu, DetectsWhatTheArchitectureCanHave) {
  const Isa isa = DetectIsa();
#if defined(__x86_64__)
  EXPECT_FALSE(Includes(isa, Isa::kNeon)) << Name(isa);
  EXPECT_EQ(IsaNamesHere(),
            "ref, avx2, avx2vnni, avx512, avx512vnni, avx512bf16 or avx512amx");
#elif defined(__aarch64__)
  EXPECT_TRUE(Includes(isa, Isa::kNeon)) << Name(isa);
  EXPECT_EQ(IsaNamesHere(), "ref, neon, neondot or neoni8mm");
#endif
}

}  // namespace
}  // namespace weft
