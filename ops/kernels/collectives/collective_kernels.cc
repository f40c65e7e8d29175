// all_gather: puts what all ranks have given side by side.
//
// What a rank gave lies behind what those before it gave in scratch memory, as
// it lay in its operand: row after row, or in tiles of rounded rows, of which a
// block is as long as the tile has rows.
#include "ops/kernels/collectives/collective_kernels.h"

#include <cstring>
#include <vector>

#include "ops/collectives.h"
#include "ops/kernels/quantized_rows.h"
#include "ops/ops.h"

namespace weft {
namespace {

class AllGatherNode : public Kernel {
 public:
  explicit AllGatherNode(const NodeView& view)
      : rounded_(view.input(0).type.dtype == DType::kQ8Rows),
        rank_(view.node.attributes.As<AllGatherAttributes>().rank),
        parts_(view.node.attributes.As<AllGatherAttributes>().parts),
        row_bytes_(view.node.attributes.As<AllGatherAttributes>().ranks) {
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      row_bytes_[rank] = GatheredRowBytes(view.graph, view.node, rank);
      all_bytes_ += row_bytes_[rank];
    }
  }

  // Rows that lie together: one, or a tile's.
  int64_t Items(const KernelCall& call, int) const override {
    const int64_t rows = call.outputs[0].rows;
    return rounded_ ? (rows + kQuantizedRowsTile - 1) / kQuantizedRowsTile
                    : rows;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    const int64_t rows = call.outputs[0].rows;
    const int64_t tile = rounded_ ? kQuantizedRowsTile : 1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item * tile;
      const int64_t height =
          rounded_ ? QuantizedTileRows(first, rows) : int64_t{1};
      uint8_t* to =
          static_cast<uint8_t*>(call.outputs[0].data) + first * all_bytes_;
      for (int64_t part = 0; part < parts_; ++part) {
        const uint8_t* given = call.scratch;
        for (int64_t rank = 0; rank < ranks(); ++rank) {
          const int64_t bytes = row_bytes_[rank];
          const int64_t size = bytes / parts_ * height;
          const auto* from =
              rank == rank_ ? static_cast<const uint8_t*>(call.inputs[0].data)
                            : given;
          std::memcpy(to, from + first * bytes + part * size, size);
          to += size;
          given += rows * bytes;
        }
      }
    }
  }

 private:
  int64_t ranks() const { return static_cast<int64_t>(row_bytes_.size()); }

  const bool rounded_;
  const int64_t rank_;  // its own part lies in the operand
  const int64_t parts_;
  std::vector<int64_t> row_bytes_;  // of each rank
  int64_t all_bytes_ = 0;
};

class AllGatherEntry : public KernelEntry {
 public:
  AllGatherEntry()
      : KernelEntry("all_gather_any_row", "all_gather", Isa::kRef, "",
                    "exact") {}

  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<AllGatherNode>(view);
  }
  int64_t ScratchBytes(const NodeView& view) const override {
    return ValueBytes(view.output(0).type, view.graph.bounds);
  }
};

}  // namespace

void AddCollectiveKernels(KernelEntries* entries) {
  entries->push_back(std::make_unique<AllGatherEntry>());
}

}  // namespace weft
