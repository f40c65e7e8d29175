#include "ops/kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "ops/kernels/cpu.h"
#include "tests/ops/kernels/kv_pages.h"
#include "tests/ops/kernels/rows/row_kernels_here.h"

namespace weft {
namespace {

struct Shape {
  KvType type;
  int64_t heads, kv_heads, key_dim, value_dim;
};

const Shape kShapes[] = {
    {KvType::kF32, 4, 2, 64, 64},    {KvType::kF16, 8, 1, 64, 64},
    {KvType::kBF16, 3, 3, 80, 80},   {KvType::kQ8_0, 6, 2, 64, 96},
    {KvType::kF16, 2, 2, 20, 20},    {KvType::kF32, 7, 1, 8, 24},
    {KvType::kBF16, 5, 1, 24, 8},    {KvType::kF16, 2, 1, 256, 128},
    {KvType::kQ8_0, 1, 1, 32, 256},  {KvType::kF16, 70, 1, 16, 16},
    {KvType::kF16, 14, 2, 128, 128}, {KvType::kF32, 1, 1, 1, 1},
};

std::vector<const AttentionKernels*> KernelsHere() {
  std::vector<const AttentionKernels*> tables;
#if defined(__x86_64__)
  const Isa isa = DetectIsa();
  if (Includes(isa, Isa::kAvx2)) tables.push_back(&kAttentionKernelsAvx2);
  if (Includes(isa, Isa::kAvx512)) tables.push_back(&kAttentionKernelsAvx512);
#elif defined(__aarch64__)
  tables.push_back(&kAttentionKernelsNeon);
#endif
  return tables;
}

// Scratch that a kernel must not leave: canaries stand behind it.
class Scratch {
 public:
  explicit Scratch(const Shape& s)
      : size_(static_cast<size_t>(AttentionScratchBytes(
            s.heads, s.kv_heads, s.key_dim, s.value_dim))),
        bytes_(size_ + 192, 0xff) {}
  uint8_t* data() {
    return bytes_.data() +
           (64 - reinterpret_cast<uintptr_t>(bytes_.data()) % 64) % 64;
  }
  bool Intact() {
    return std::all_of(data() + size_, data() + size_ + 64,
                       [](uint8_t b) { return b == 0xff; });
  }

 private:
  size_t size_;
  std::vector<uint8_t> bytes_;
};

// A cache with `lengths[s]` positions of sequence s, and queries at some.
struct Problem {
  Problem(const Shape& s, const std::vector<int32_t>& lengths,
          std::vector<int32_t> at_positions, std::vector<int32_t> of_sequence,
          std::mt19937& random, float scale_of_queries = 1.0f)
      : shape(s),
        keys(s.type, true, s.kv_heads, s.key_dim,
             static_cast<int64_t>(lengths.size()), 4),
        values(s.type, false, s.kv_heads, s.value_dim,
               static_cast<int64_t>(lengths.size()), 4),
        positions(std::move(at_positions)),
        sequence(std::move(of_sequence)),
        q(rows(), s.heads * s.key_dim, random, 5, scale_of_queries),
        scale(1.0f / std::sqrt(static_cast<float>(s.key_dim))) {
    for (size_t i = 0; i < lengths.size(); ++i) {
      const int64_t n = lengths[i];
      RandomMatrix k(n, s.kv_heads * s.key_dim, random);
      RandomMatrix v(n, s.kv_heads * s.value_dim, random);
      std::vector<int32_t> at(static_cast<size_t>(n));
      std::iota(at.begin(), at.end(), 0);
      const std::vector<int32_t> of(static_cast<size_t>(n),
                                    static_cast<int32_t>(i));
      const RowKernels& write = *RowKernelsHere().front();
      write.kv_write({In(k), s.kv_heads, s.key_dim, s.type, true, &keys.state(),
                      at.data(), of.data()},
                     0, n);
      write.kv_write({In(v), s.kv_heads, s.value_dim, s.type, false,
                      &values.state(), at.data(), of.data()},
                     0, n);
    }
  }

  int64_t rows() const { return static_cast<int64_t>(positions.size()); }

  AttentionArgs Args(RandomMatrix& y, std::vector<float>* scores,
                     int64_t columns) {
    return {q.data(),
            q.row_bytes(),
            rows(),
            shape.heads,
            shape.kv_heads,
            shape.key_dim,
            shape.value_dim,
            shape.type,
            &keys.state(),
            &values.state(),
            positions.data(),
            sequence.data(),
            scale,
            y.data(),
            y.row_bytes(),
            scores == nullptr ? nullptr : scores->data(),
            columns};
  }

  int64_t Items() const {
    return AttentionItems(rows(), shape.heads, shape.kv_heads);
  }

  RandomMatrix Output() {
    std::mt19937 random(1);
    return RandomMatrix(rows(), shape.heads * shape.value_dim, random, 3);
  }

  RandomMatrix Fused(const AttentionKernels& kernels) {
    RandomMatrix y = Output();
    Scratch scratch(shape);
    kernels.attention(Args(y, nullptr, 0), 0, Items(), scratch.data());
    EXPECT_TRUE(scratch.Intact());
    return y;
  }

  double Score(int64_t row, int64_t head, int64_t position) {
    double sum = 0;
    for (int64_t d = 0; d < shape.key_dim; ++d) {
      sum += double{q.at(row, head * shape.key_dim + d)} *
             keys.Get(sequence[static_cast<size_t>(row)], position,
                      head / (shape.heads / shape.kv_heads), d);
    }
    return sum * scale;
  }

  void ExpectNearReference(RandomMatrix& y) {
    for (int64_t r = 0; r < rows(); ++r) {
      const int64_t n = positions[static_cast<size_t>(r)] + 1;
      for (int64_t h = 0; h < shape.heads; ++h) {
        std::vector<double> p(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i)
          p[static_cast<size_t>(i)] = Score(r, h, i);
        const double largest = *std::max_element(p.begin(), p.end());
        double sum = 0;
        for (double& e : p) sum += e = std::exp(e - largest);
        for (int64_t d = 0; d < shape.value_dim; ++d) {
          double want = 0, size = 0;
          for (int64_t i = 0; i < n; ++i) {
            const double term =
                p[static_cast<size_t>(i)] / sum *
                values.Get(sequence[static_cast<size_t>(r)], i,
                           h / (shape.heads / shape.kv_heads), d);
            want += term;
            size += std::fabs(term);
          }
          ASSERT_NEAR(y.at(r, h * shape.value_dim + d), want, 4e-6 * size);
        }
      }
    }
    EXPECT_TRUE(y.PaddingUntouched());
  }

  Shape shape;
  KvPages keys, values;
  std::vector<int32_t> positions, sequence;
  RandomMatrix q;
  float scale;
};

std::unique_ptr<Problem> Mixed(const Shape& shape, std::mt19937& random) {
  return std::make_unique<Problem>(
      shape, std::vector<int32_t>{200, 66, 1},
      std::vector<int32_t>{62, 63, 64, 65, 199, 0, 5, 0, 65, 128, 127},
      std::vector<int32_t>{0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 0}, random);
}

TEST(Attention, IsNearDoublePrecision) {
  std::mt19937 random(1);
  for (const Shape& shape : kShapes) {
    for (const AttentionKernels* kernels : KernelsHere()) {
      std::unique_ptr<Problem> problem = Mixed(shape, random);
      RandomMatrix y = problem->Fused(*kernels);
      problem->ExpectNearReference(y);
    }
  }
}

TEST(Attention, SurvivesScoresOfHundreds) {
  std::mt19937 random(2);
  for (const AttentionKernels* kernels : KernelsHere()) {
    Problem problem({KvType::kF32, 2, 1, 64, 32}, {150}, {149, 10}, {0, 0},
                    random, 300.0f);
    RandomMatrix y = problem.Fused(*kernels);
    for (int64_t i = 0; i < 64; ++i) EXPECT_TRUE(std::isfinite(y.at(0, i)));
  }
}

TEST(Attention, GivesTheSameBitsOnEveryInstructionSetAndForEverySplit) {
  if (KernelsHere().empty()) GTEST_SKIP();
  std::mt19937 random(3);
  for (const Shape& shape : kShapes) {
    std::unique_ptr<Problem> problem = Mixed(shape, random);
    const RandomMatrix first = problem->Fused(*KernelsHere().front());
    for (const AttentionKernels* kernels : KernelsHere()) {
      RandomMatrix y = problem->Output();
      Scratch scratch(shape);
      for (int64_t i = problem->Items(); i-- > 0;) {
        kernels->attention(problem->Args(y, nullptr, 0), i, i + 1,
                           scratch.data());
      }
      EXPECT_TRUE(y.SameBits(first));
    }
  }
}

TEST(Attention, GivesARowTheSameBitsAloneAndAmongOthers) {
  std::mt19937 random(4);
  for (const Shape& shape : kShapes) {
    for (const AttentionKernels* kernels : KernelsHere()) {
      std::vector<int32_t> positions(140);
      std::iota(positions.begin(), positions.end(), 10);
      Problem problem(shape, {150}, positions, std::vector<int32_t>(140, 0),
                      random);
      RandomMatrix together = problem.Fused(*kernels);
      Scratch scratch(shape);
      for (const int64_t row : {0, 53, 54, 100, 139}) {
        RandomMatrix alone = problem.Output();
        AttentionArgs args = problem.Args(alone, nullptr, 0);
        args.q = &problem.q.at(row, 0);
        args.y = &alone.at(row, 0);
        args.positions += row;
        args.sequence += row;
        args.rows = 1;
        kernels->attention(args, 0,
                           AttentionItems(1, shape.heads, shape.kv_heads),
                           scratch.data());
        EXPECT_EQ(0, std::memcmp(&alone.at(row, 0), &together.at(row, 0),
                                 static_cast<size_t>(shape.heads *
                                                     shape.value_dim * 4)));
      }
    }
  }
}

TEST(Attention, NeverReadsWhatARowMayNotSee) {
  std::mt19937 random(5);
  for (const AttentionKernels* kernels : KernelsHere()) {
    // Position 70 is an infinity: rows before it must not notice.
    Problem problem({KvType::kF32, 2, 1, 32, 32}, {71}, {66, 67, 68, 69, 70},
                    {0, 0, 0, 0, 0}, random);
    RandomMatrix bad(1, 32, random);
    for (int64_t i = 0; i < 32; ++i) bad.at(0, i) = INFINITY;
    const int32_t position = 70, sequence = 0;
    for (const bool keys : {true, false}) {
      RowKernelsHere().front()->kv_write(
          {In(bad), 1, 32, KvType::kF32, keys,
           keys ? &problem.keys.state() : &problem.values.state(), &position,
           &sequence},
          0, 1);
    }
    RandomMatrix y = problem.Fused(*kernels);
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t i = 0; i < 64; ++i) {
        EXPECT_TRUE(std::isfinite(y.at(r, i)));
      }
    }
    EXPECT_FALSE(std::isfinite(y.at(4, 0)));
  }
}

TEST(AttentionPrimitives, AgreeWithTheFusedKernel) {
  std::mt19937 random(6);
  for (const Shape& shape : kShapes) {
    for (const int64_t columns : {200, 256}) {
      std::vector<float> first;
      for (const AttentionKernels* kernels : KernelsHere()) {
        std::mt19937 same(7);
        std::unique_ptr<Problem> problem = Mixed(shape, same);
        RandomMatrix y = problem->Output();
        std::vector<float> scores(
            static_cast<size_t>(problem->rows() * shape.heads * columns), NAN);
        Scratch scratch(shape);
        const AttentionArgs args = problem->Args(y, &scores, columns);
        const int64_t items = problem->Items();
        kernels->scores(args, items / 2, items, scratch.data());
        kernels->scores(args, 0, items / 2, scratch.data());
        for (int64_t r = 0; r < problem->rows(); ++r) {
          for (int64_t h = 0; h < shape.heads; ++h) {
            for (int64_t i = 0; i < columns; ++i) {
              const float got = scores[static_cast<size_t>(
                  (r * shape.heads + h) * columns + i)];
              if (i > problem->positions[static_cast<size_t>(r)]) {
                ASSERT_EQ(got, -INFINITY);
              } else {
                ASSERT_NEAR(got, problem->Score(r, h, i), 2e-5);
              }
            }
          }
        }
        const UnaryArgs softmax = {{scores.data(), columns * 4},
                                   columns,
                                   {scores.data(), columns * 4}};
        RowKernelsHere().front()->softmax(softmax, 0,
                                          problem->rows() * shape.heads);
        kernels->values(args, items / 2, items, scratch.data());
        kernels->values(args, 0, items / 2, scratch.data());
        EXPECT_TRUE(scratch.Intact());
        problem->ExpectNearReference(y);
        std::vector<float> bits(y.data(), y.data() + shape.heads);
        if (first.empty()) first = bits;
        EXPECT_EQ(first, bits);
      }
    }
  }
}

}  // namespace
}  // namespace weft
