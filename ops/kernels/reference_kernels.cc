#include "ops/kernels/reference_kernels.h"

#include "absl/strings/str_cat.h"
#include "ops/op_table.h"

namespace weft {
namespace {

class ReferenceKernel : public Kernel {
 public:
  explicit ReferenceKernel(const NodeView& view)
      : graph_(view.graph), node_(view.node), op_(OpOf(view.node)) {}

  int64_t Items(const KernelCall&, int) const override { return 1; }

  void Run(const KernelCall& call, int, int64_t, int64_t) const override {
    op_.reference({graph_, node_, call.inputs, call.outputs, graph_.bounds});
  }

 private:
  const Graph& graph_;
  const Node& node_;
  const OpDef& op_;
};

class ReferenceRow : public KernelEntry {
 public:
  explicit ReferenceRow(const OpDef& op)
      : KernelEntry(absl::StrCat(op.name, "_ref"), op.name, Isa::kRef, "",
                    "float64") {}

  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<ReferenceKernel>(view);
  }
};

}  // namespace

std::unique_ptr<KernelEntry> ReferenceRowFor(const OpDef& op) {
  return std::make_unique<ReferenceRow>(op);
}

}  // namespace weft
