// In which type the KV cache holds the keys and values of each block.
//
//   "f16"                  of every block
//   "q8_0,0-1=f16,21=f32"  q8_0, but blocks 0 and 1 in f16 and block 21 in f32
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace weft {

class KvTypes {
 public:
  // Requires f32, f16, bf16 or q8_0. Not explicit: one type is the common case.
  KvTypes(DType all = DType::kF16) : all_(all) {}

  // The notation above: types in either case, each block at most once, numbers
  // from 0 to 4095. Without a type for all it is f16. Errors name the part
  // that cannot be read.
  static absl::StatusOr<KvTypes> Parse(absl::string_view text);

  // Of the states of a graph, whose blocks are told by names (blk.3.keys).
  static KvTypes Of(const Graph& graph);

  DType OfBlock(int64_t block) const;
  // The last block that is named, or -1.
  int64_t last_block() const;
  // Parse's inverse.
  std::string ToString() const;

  friend bool operator==(const KvTypes& a, const KvTypes& b) {
    return a.ToString() == b.ToString();
  }

 private:
  struct Range {
    int64_t first, last;
    DType type;
  };

  DType all_;
  std::vector<Range> ranges_;  // ascending, apart
};

}  // namespace weft
