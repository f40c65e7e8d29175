// Problems for attention kernels: caches of some sequences with scattered
// pages, queries at some of their positions, and the result in double
// precision.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "ops/kernels/attention/attention.h"
#include "tests/ops/kernels/kv_pages.h"
#include "tests/ops/kernels/rows/row_kernels_here.h"

namespace weft {

// What attention may have beyond plain attention; 0: it has not.
struct AttentionVariant {
  int64_t window;
  float softcap;
  double temperature;
  int64_t temperature_period = 1;
  int64_t temperature_offset = 0;
  int64_t chunk = 0;
  bool sinks = false;
};
constexpr AttentionVariant kAttentionVariants[] = {{0, 0, 0},
                                                   {1, 0, 0},
                                                   {7, 0, 0},
                                                   {64, 3.0f, 0},
                                                   {70, 0, 0},
                                                   {0, 0.5f, 0},
                                                   {0, 0, 0.3, 16},
                                                   {64, 3.0f, 0.1, 30, 1},
                                                   {0, 0, 0, 1, 0, 50},
                                                   {40, 0, 0, 1, 0, 64},
                                                   {9, 0, 0, 1, 0, 0, true},
                                                   {0, 2.0f, 0, 1, 0, 0, true}};

struct AttentionShape {
  KvType type;
  int64_t heads, kv_heads, key_dim, value_dim;
};

// Scratch that a kernel must not leave: canaries stand behind it.
class Scratch {
 public:
  Scratch(const AttentionShape& s, int64_t context)
      : size_(static_cast<size_t>(AttentionScratchBytes(
            s.heads, s.kv_heads, s.key_dim, s.value_dim, context))),
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
  Problem(const AttentionShape& s, const std::vector<int32_t>& lengths,
          std::vector<int32_t> at_positions, std::vector<int32_t> of_sequence,
          std::mt19937& random, float scale_of_queries = 1.0f)
      : shape(s),
        context(
            std::max(256, *std::max_element(lengths.begin(), lengths.end()))),
        keys(s.type, true, s.kv_heads, s.key_dim,
             static_cast<int64_t>(lengths.size()), (context + 63) / 64),
        values(s.type, false, s.kv_heads, s.value_dim,
               static_cast<int64_t>(lengths.size()), (context + 63) / 64),
        positions(std::move(at_positions)),
        sequence(std::move(of_sequence)),
        q(rows(), s.heads * s.key_dim, random, 5, scale_of_queries),
        scale(1.0f / std::sqrt(static_cast<float>(s.key_dim))) {
    for (int64_t h = 0; h < s.heads; ++h) {
      sinks.push_back(static_cast<float>(random() % 1000) / 100 - 5);
    }
    for (size_t i = 0; i < lengths.size(); ++i) {
      const int64_t n = lengths[i];
      RandomMatrix k(n, s.kv_heads * s.key_dim, random);
      RandomMatrix v(n, s.kv_heads * s.value_dim, random);
      std::vector<int32_t> at(static_cast<size_t>(n));
      std::iota(at.begin(), at.end(), 0);
      const std::vector<int32_t> of(static_cast<size_t>(n),
                                    static_cast<int32_t>(i));
      const auto write = Find(RowKernelsHere().front()->kv_write, s.type);
      write({In(k), s.kv_heads, s.key_dim, true, &keys.state(), at.data(),
             of.data()},
            0, n);
      write({In(v), s.kv_heads, s.value_dim, false, &values.state(), at.data(),
             of.data()},
            0, n);
    }
  }

  int64_t rows() const { return static_cast<int64_t>(positions.size()); }

  AttentionArgs Args(RandomMatrix& y, std::vector<float>* scores,
                     int64_t columns) {
    AttentionArgs args{};
    args.q = q.data();
    args.q_row_bytes = q.row_bytes();
    args.rows = rows();
    args.heads = shape.heads;
    args.kv_heads = shape.kv_heads;
    args.key_dim = shape.key_dim;
    args.value_dim = shape.value_dim;
    args.keys = &keys.state();
    args.values = &values.state();
    args.positions = positions.data();
    args.slots = sequence.data();
    args.scale = scale;
    args.y = y.data();
    args.y_row_bytes = y.row_bytes();
    args.scores = scores == nullptr ? nullptr : scores->data();
    args.score_columns = columns;
    args.window = variant.window;
    args.softcap = variant.softcap;
    args.temperature = variant.temperature;
    args.temperature_period = variant.temperature_period;
    args.temperature_offset = variant.temperature_offset;
    args.chunk = variant.chunk;
    args.sinks = variant.sinks ? sinks.data() : nullptr;
    return args;
  }

  int64_t Items() const {
    return AttentionItems(rows(), shape.heads, shape.kv_heads);
  }

  RandomMatrix Output() {
    std::mt19937 random(1);
    return RandomMatrix(rows(), shape.heads * shape.value_dim, random, 3);
  }

  RandomMatrix Run(AttentionFunction attention) {
    RandomMatrix y = Output();
    Scratch scratch(shape, context);
    attention(Args(y, nullptr, 0), 0, Items(), scratch.data());
    EXPECT_TRUE(scratch.Intact());
    return y;
  }

  // Item by item, the last first.
  RandomMatrix RunBackwards(AttentionFunction attention) {
    RandomMatrix y = Output();
    Scratch scratch(shape, context);
    for (int64_t i = Items(); i-- > 0;) {
      attention(Args(y, nullptr, 0), i, i + 1, scratch.data());
    }
    return y;
  }

  // Pieces are items, the last first; nobody has cleared their memory.
  RandomMatrix RunInPieces(const AttentionKernel& kernel) {
    RandomMatrix y = Output();
    Scratch scratch(shape, context);
    AttentionArgs args = Args(y, nullptr, 0);
    const AttentionRange seen = AttentionPiecesSeen(args);
    args.first_piece = seen.begin;
    args.pieces = seen.end - seen.begin;
    std::vector<float> partial(
        static_cast<size_t>(rows() * shape.heads * args.pieces *
                            AttentionPartialFloats(shape.value_dim)),
        NAN);
    args.partial = partial.data();
    for (int64_t i = Items() * args.pieces; i-- > 0;) {
      kernel.run(args, i, i + 1, scratch.data());
    }
    for (int64_t i = rows() * shape.heads; i-- > 0;) {
      kernel.combine(args, i, i + 1, scratch.data());
    }
    EXPECT_TRUE(scratch.Intact());
    return y;
  }

  // Whether the row, alone in a call, has the bits that it has in `together`.
  bool SameAlone(AttentionFunction attention, int64_t row,
                 RandomMatrix& together) {
    RandomMatrix alone = Output();
    Scratch scratch(shape, context);
    AttentionArgs args = Args(alone, nullptr, 0);
    args.q = &q.at(row, 0);
    args.y = &alone.at(row, 0);
    args.positions += row;
    args.slots += row;
    args.rows = 1;
    attention(args, 0, AttentionItems(1, shape.heads, shape.kv_heads),
              scratch.data());
    return std::memcmp(
               &alone.at(row, 0), &together.at(row, 0),
               static_cast<size_t>(shape.heads * shape.value_dim * 4)) == 0;
  }

  // Overwrites all heads of one position of sequence 0.
  void WriteEverywhere(int32_t position, float value) {
    std::mt19937 random(1);
    const int32_t sequence_0 = 0;
    for (const bool is_key : {true, false}) {
      const int64_t dim = is_key ? shape.key_dim : shape.value_dim;
      RandomMatrix x(1, shape.kv_heads * dim, random);
      for (int64_t i = 0; i < shape.kv_heads * dim; ++i) x.at(0, i) = value;
      Find(RowKernelsHere().front()->kv_write, shape.type)(
          {In(x), shape.kv_heads, dim, is_key,
           is_key ? &keys.state() : &values.state(), &position, &sequence_0},
          0, 1);
    }
  }

  double Temperature(int64_t row) const {
    const int64_t periods =
        (positions[static_cast<size_t>(row)] + variant.temperature_offset) /
        variant.temperature_period;
    return 1 + variant.temperature * std::log(1.0 + periods);
  }

  double Score(int64_t row, int64_t head, int64_t position) {
    double sum = 0;
    for (int64_t d = 0; d < shape.key_dim; ++d) {
      sum += double{q.at(row, head * shape.key_dim + d)} *
             keys.Get(sequence[static_cast<size_t>(row)], position,
                      head / (shape.heads / shape.kv_heads), d);
    }
    sum *= scale * Temperature(row);
    const float cap = variant.softcap;
    return cap > 0 ? cap * std::tanh(sum / cap) : sum;
  }

  // The most that the terms of a score of this row come to, in size.
  double LargestScore(int64_t row, int64_t head) {
    double largest = 0;
    for (int64_t i = First(row); i <= positions[static_cast<size_t>(row)];
         ++i) {
      double sum = 0;
      for (int64_t d = 0; d < shape.key_dim; ++d) {
        sum += std::fabs(double{q.at(row, head * shape.key_dim + d)} *
                         keys.Get(sequence[static_cast<size_t>(row)], i,
                                  head / (shape.heads / shape.kv_heads), d));
      }
      largest = std::max(largest, sum);
    }
    return largest * scale * Temperature(row);
  }

  // The first position that a row sees.
  int64_t First(int64_t row) const {
    const int64_t position = positions[static_cast<size_t>(row)];
    int64_t first = variant.window > 0
                        ? std::max<int64_t>(0, position + 1 - variant.window)
                        : 0;
    if (variant.chunk > 0) {
      first = std::max(first, position / variant.chunk * variant.chunk);
    }
    return first;
  }

  // Within `share` of the sum of the terms' sizes, and within what weights may
  // come to if each score is off by `units` roundings of the row's largest:
  // where a float rounds scores by more than nothing, near ties go either way.
  void ExpectNearReference(RandomMatrix& y, double share = 4e-6,
                           double units = 0) {
    for (int64_t r = 0; r < rows(); ++r) {
      const int64_t n = positions[static_cast<size_t>(r)] + 1;
      for (int64_t h = 0; h < shape.heads; ++h) {
        std::vector<double> scores(static_cast<size_t>(n), -INFINITY);
        for (int64_t i = First(r); i < n; ++i) {
          scores[static_cast<size_t>(i)] = Score(r, h, i);
        }
        const double sink = variant.sinks ? sinks[h] : -INFINITY;
        const double largest =
            std::max(sink, *std::max_element(scores.begin(), scores.end()));
        double sum = std::exp(sink - largest);
        for (double score : scores) sum += std::exp(score - largest);
        const double off =
            units == 0 ? 0 : units * std::ldexp(LargestScore(r, h), -24);
        // The softmax of `score` if all others are moved by so much.
        const auto weight = [&](double score, double moved) {
          const double others = std::max(sum - std::exp(score - largest), 0.0);
          return 1 / (1 + std::exp(std::log(others) + largest - score + moved));
        };
        std::vector<double> weights, doubts;
        for (double score : scores) {
          const double own = std::exp(score - largest) / sum;
          weights.push_back(own);
          doubts.push_back(units == 0 || score == -INFINITY
                               ? 0
                               : std::max(weight(score, -2 * off) - own,
                                          own - weight(score, 2 * off)));
        }
        for (int64_t d = 0; d < shape.value_dim; ++d) {
          double want = 0, within = 1e-35;  // weights below it are 0
          for (int64_t i = 0; i < n; ++i) {
            const double value =
                values.Get(sequence[static_cast<size_t>(r)], i,
                           h / (shape.heads / shape.kv_heads), d);
            const double weight = weights[static_cast<size_t>(i)];
            want += weight * value;
            within += (share * weight + doubts[static_cast<size_t>(i)]) *
                      std::fabs(value);
          }
          ASSERT_NEAR(y.at(r, h * shape.value_dim + d), want, within);
        }
      }
    }
    EXPECT_TRUE(y.PaddingUntouched());
  }

  AttentionShape shape;
  int64_t context;
  KvPages keys, values;
  std::vector<int32_t> positions, sequence;
  RandomMatrix q;
  float scale;
  std::vector<float> sinks;
  AttentionVariant variant = {0, 0, 0};
};

inline std::unique_ptr<Problem> Mixed(const AttentionShape& shape,
                                      std::mt19937& random,
                                      float scale_of_queries = 1.0f) {
  return std::make_unique<Problem>(
      shape, std::vector<int32_t>{200, 66, 1},
      std::vector<int32_t>{62, 63, 64, 65, 199, 0, 5, 0, 65, 128, 127},
      std::vector<int32_t>{0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 0}, random,
      scale_of_queries);
}

// Queries so large that a float rounds their scores by whole units, up to near
// the largest float.
constexpr float kLargeQueries[] = {3e5f, 1e10f, 1e35f};
// Roundings of the largest that a score is off by: those of sums of many terms
// mostly cancel.
constexpr double kScoreUnits = 2;

}  // namespace weft
