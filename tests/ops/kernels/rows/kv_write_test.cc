#include <gtest/gtest.h>

#include <cmath>

#include "ops/kernels/half.h"
#include "tests/ops/kernels/kv_pages.h"
#include "tests/ops/kernels/rows/row_kernels_here.h"

namespace weft {
namespace {

constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16,
                             KvType::kQ8_0};

const std::vector<int32_t> kPositions = {0, 63, 64, 191, 3, 130};
const std::vector<int32_t> kSequence = {0, 0, 1, 1, 1, 0};

TEST(KvWrite, PutsEveryElementWhereTheLayoutSays) {
  std::mt19937 random(1);
  for (const int64_t head_dim : {7, 8, 20, 64, 96}) {
    for (const KvType type : kTypes) {
      if (type == KvType::kQ8_0 && head_dim % 32 != 0) continue;
      for (const bool keys : {true, false}) {
        for (const RowKernels* kernels : RowKernelsHere()) {
          const int64_t heads = 3;
          RandomMatrix x(6, heads * head_dim, random);
          KvPages pages(type, keys, heads, head_dim, 2, 3);
          Find(kernels->kv_write, type)(
              {In(x), heads, head_dim, keys, &pages.state(), kPositions.data(),
               kSequence.data()},
              0, 6);
          for (int64_t r = 0; r < 6; ++r) {
            for (int64_t h = 0; h < heads; ++h) {
              double largest = 0;
              for (int64_t i = 0; i < head_dim; ++i) {
                const float v = x.at(r, h * head_dim + i);
                largest = std::max<double>(largest, std::fabs(v));
              }
              for (int64_t i = 0; i < head_dim; ++i) {
                const float v = x.at(r, h * head_dim + i);
                const double got =
                    pages.Get(kSequence[static_cast<size_t>(r)],
                              kPositions[static_cast<size_t>(r)], h, i);
                switch (type) {
                  case KvType::kF32:
                    ASSERT_EQ(got, v);
                    break;
                  case KvType::kF16:
                    ASSERT_EQ(got, F16ToF32(F32ToF16(v)));
                    break;
                  case KvType::kBF16:
                    ASSERT_EQ(got, BF16ToF32(F32ToBF16(v)));
                    break;
                  case KvType::kQ8_0:
                    ASSERT_NEAR(got, v, largest / 127 * 0.57);
                    break;
                }
              }
            }
          }
          // Only the rows' own elements were written.
          size_t untouched = 0;
          for (const uint8_t byte : pages.bytes()) untouched += byte == 0xff;
          const size_t written =
              static_cast<size_t>(6 * heads * KvHeadBytes(type, head_dim) / 64);
          EXPECT_GE(untouched, pages.bytes().size() - written);
        }
      }
    }
  }
}

TEST(KvWrite, ConvertsExtremesAsTheFormatsDefine) {
  std::mt19937 random(2);
  const float values[] = {NAN,       INFINITY, -INFINITY, 65504,
                          65519.99f, 65520,    1e-8f,     6e-8f,
                          -0.0f,     1e-40f,   3.4e38f,   1.00048828125f};
  for (const KvType type : {KvType::kF16, KvType::kBF16}) {
    for (const RowKernels* kernels : RowKernelsHere()) {
      RandomMatrix x(1, 12, random);
      for (int i = 0; i < 12; ++i) x.at(0, i) = values[i];
      KvPages pages(type, false, 1, 12, 2, 3);
      Find(kernels->kv_write, type)({In(x), 1, 12, false, &pages.state(),
                                     kPositions.data(), kSequence.data()},
                                    0, 1);
      for (int i = 0; i < 12; ++i) {
        const double got = pages.Get(0, 0, 0, i);
        const double want = type == KvType::kF16
                                ? F16ToF32(F32ToF16(values[i]))
                                : BF16ToF32(F32ToBF16(values[i]));
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(got));
        } else {
          EXPECT_EQ(got, want) << values[i];
        }
      }
    }
  }
}

TEST(KvWrite, Q8KeepsZerosTinyValuesAndNan) {
  std::mt19937 random(3);
  for (const RowKernels* kernels : RowKernelsHere()) {
    RandomMatrix x(1, 128, random);
    for (int i = 0; i < 32; ++i) {
      x.at(0, i) = 0.0f;
      // The scale is a subnormal F16: quotients beyond 127 must not wrap.
      x.at(0, 32 + i) = i % 2 == 0 ? 1.1e-5f : -1.1e-5f;
      x.at(0, 64 + i) = 1e-30f;
    }
    x.at(0, 100) = NAN;
    KvPages pages(KvType::kQ8_0, true, 1, 128, 2, 3);
    Find(kernels->kv_write, KvType::kQ8_0)(
        {In(x), 1, 128, true, &pages.state(), kPositions.data(),
         kSequence.data()},
        0, 1);
    for (int i = 0; i < 128; ++i) {
      const double got = pages.Get(0, 0, 0, i);
      if (i < 32 || (i >= 64 && i < 96)) {
        EXPECT_EQ(got, 0.0);
      } else if (i < 64) {
        EXPECT_NEAR(got, x.at(0, i), 4e-6);
      } else {
        EXPECT_TRUE(std::isnan(got));
      }
    }
  }
}

TEST(RopeKvWrite, HasTheBitsOfRopeThenKvWriteOnEveryInstructionSet) {
  std::mt19937 random(4);
  for (const KvType type : kTypes) {
    const int64_t heads = 2, head_dim = 64;
    RandomMatrix x(6, heads * head_dim, random);
    std::vector<uint8_t> first;
    for (const RowKernels* kernels : RowKernelsHere()) {
      RandomMatrix y(6, heads * head_dim, random);
      const RopeArgs rope = {
          In(x), heads,   head_dim,          48,    true, 1e4,
          1.0,   nullptr, kPositions.data(), Out(y)};
      KvPages apart(type, true, heads, head_dim, 2, 3);
      KvPages fused(type, true, heads, head_dim, 2, 3);
      const KvWriteArgs write = {In(y),           heads,
                                 head_dim,        true,
                                 &apart.state(),  kPositions.data(),
                                 kSequence.data()};
      Find(kernels->rope, "rope")(rope, 0, 6);
      Find(kernels->kv_write, type)(write, 0, 6);
      RopeKvWriteArgs both = {rope, write};
      both.write.state = &fused.state();
      Find(kernels->rope_kv_write, type)(both, 2, 6);
      Find(kernels->rope_kv_write, type)(both, 0, 2);
      EXPECT_EQ(apart.bytes(), fused.bytes());
      if (first.empty()) first = fused.bytes();
      EXPECT_EQ(first, fused.bytes());
    }
  }
}

}  // namespace
}  // namespace weft
