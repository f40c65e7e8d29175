// KV cache states for tests: scattered pages full of NaN, and a reader that
// follows the layouts of KvState (kernel.h) apart from the kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "ops/kernels/half.h"
#include "ops/kernels/kv_layout.h"

namespace weft {

class KvPages {
 public:
  // Unwritten bytes are 0xff: NaN in every type (the scales, for kQ8_0).
  KvPages(KvType type, bool keys, int64_t heads, int64_t head_dim,
          int64_t sequences, int64_t pages_per_sequence)
      : type_(type),
        keys_(keys),
        head_dim_(head_dim),
        table_(static_cast<size_t>(sequences * pages_per_sequence)),
        bytes_(table_.size() *
                   static_cast<size_t>(heads * KvHeadBytes(type, head_dim)),
               0xff) {
    std::iota(table_.begin(), table_.end(), 0);
    std::shuffle(table_.begin(), table_.end(), std::mt19937(99));
    state_ = {bytes_.data(), heads * KvHeadBytes(type, head_dim), table_.data(),
              pages_per_sequence};
  }
  KvPages(const KvPages&) = delete;
  KvPages& operator=(const KvPages&) = delete;

  const KvState& state() const { return state_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  int64_t head_dim() const { return head_dim_; }

  double Get(int64_t sequence, int64_t position, int64_t head,
             int64_t dim) const {
    const int32_t page = table_[static_cast<size_t>(
        sequence * state_.pages_per_sequence + position / 64)];
    const uint8_t* p = bytes_.data() + page * state_.page_bytes +
                       head * KvHeadBytes(type_, head_dim_);
    const int64_t index = type_ == KvType::kBF16
                              ? PairIndex(position % 64, dim)
                              : Index(head_dim_, position % 64, dim);
    float f;
    uint16_t h;
    switch (type_) {
      case KvType::kF32:
        std::memcpy(&f, p + index * 4, 4);
        return f;
      case KvType::kF16:
        std::memcpy(&h, p + index * 2, 2);
        return F16ToF32(h);
      case KvType::kBF16:
        std::memcpy(&h, p + index * 2, 2);
        return BF16ToF32(h);
      case KvType::kQ8_0:
        std::memcpy(&h,
                    p + head_dim_ * 64 +
                        2 * Index(head_dim_ / 32, position % 64, dim / 32),
                    2);
        return F16ToF32(h) * static_cast<int8_t>(p[index]);
    }
    return 0;
  }

 private:
  int64_t Index(int64_t columns, int64_t place, int64_t column) const {
    return keys_ ? column * 64 + place : place * columns + column;
  }

  int64_t PairIndex(int64_t place, int64_t column) const {
    return keys_ ? (column / 2 * 64 + place) * 2 + column % 2
                 : (place / 2 * head_dim_ + column) * 2 + place % 2;
  }

  KvType type_;
  bool keys_;
  int64_t head_dim_;
  std::vector<int32_t> table_;
  std::vector<uint8_t> bytes_;
  KvState state_;
};

}  // namespace weft
