// The kernels there are, best first for each op, and the choice among them.
//
// An entry of the table says which op it computes, on which instruction set,
// and refuses, with a reason, nodes that it cannot compute. The first entry
// that does not refuse is taken. Adding a kernel: an entry in its family's
// list.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/registration.h"
#include "graph/graph.h"
#include "ops/kernels/kernel.h"
#include "ops/kernels/kernel_options.h"

namespace weft {

// One node of a verified graph, as entries look at it.
struct NodeView {
  const Graph& graph;
  const Node& node;
  KernelOptions options;
  // While layouts are chosen: the layout that the weight would have.
  const char* assumed_layout = nullptr;

  const Value& input(int i) const { return graph.value(node.inputs[i]); }
  const Value& output(int i) const { return graph.value(node.outputs[i]); }
  // The layout of operand i, the assumed one if it is a weight being laid out.
  std::string WeightLayout(int i) const {
    return assumed_layout != nullptr ? assumed_layout : input(i).type.layout;
  }
};

// A kernel made ready for one node: attributes read, primitives created. Run is
// const and called from several threads at once.
//
// A step runs phases one after the other, all threads meeting in between. A
// phase is cut over its work items, at any boundary; results do not depend on
// the cut.
class Kernel {
 public:
  virtual ~Kernel() = default;

  virtual int phases() const { return 1; }
  virtual int64_t Items(const KernelCall& call, int phase) const = 0;
  virtual void Run(const KernelCall& call, int phase, int64_t begin,
                   int64_t end) const = 0;
};

class KernelEntry {
 public:
  virtual ~KernelEntry() = default;

  // <op>_<weight type>_<tile>_<isa>
  const std::string& name() const { return name_; }
  const std::string& op() const { return op_; }
  Isa isa() const { return isa_; }
  // The layout of the weight that it reads; empty for row after row.
  const std::string& weight_layout() const { return weight_layout_; }
  // Entries of one summation order give the same bits. One weight's kernels
  // must have one order for all token counts.
  const std::string& summation() const { return summation_; }

  // Whether nodes of this op are its business at all.
  virtual bool Computes(const Node& node) const { return op_ == node.op->name; }
  // Why the options rule it out although it could compute the node, or empty.
  // Matters for choosing only: a plan that has it may run it.
  virtual std::string NotAskedFor(const KernelOptions&) const { return ""; }
  // Why it cannot compute the node, or empty. Does not look at the options.
  virtual std::string Refuses(const NodeView& view) const = 0;
  // Requires that it does not refuse.
  virtual std::unique_ptr<Kernel> Create(const NodeView& view) const = 0;
  // How far its results may lie from the reference function's, relative to the
  // root mean square of their row.
  virtual double tolerance() const { return 1e-4; }
  // Memory that all threads share during the node, within the graph's bounds.
  virtual int64_t ScratchBytes(const NodeView&) const { return 0; }
  // Whether it reads each expert's matrix where KernelCall::experts says.
  virtual bool takes_experts_apart() const { return false; }
  // Memory for each thread.
  virtual int64_t ThreadScratchBytes(const NodeView&) const { return 0; }

 protected:
  KernelEntry(std::string name, std::string op, Isa isa,
              std::string weight_layout = "", std::string summation = "")
      : name_(std::move(name)),
        op_(std::move(op)),
        isa_(isa),
        weight_layout_(std::move(weight_layout)),
        summation_(std::move(summation)) {}

 private:
  std::string name_, op_;
  Isa isa_;
  std::string weight_layout_, summation_;
};

using KernelEntries = std::vector<std::unique_ptr<KernelEntry>>;

// Every entry, in order of preference. Thread-safe; valid until the next
// registration of an op or a kernel.
const KernelEntries& AllKernels();

// Adds a kernel for an op of the table, before all others of that op. Errors: a
// name that is taken, an op that there is not (register it first) or that is a
// view, an unknown weight layout, no summation order.
absl::StatusOr<Registration> RegisterKernel(std::unique_ptr<KernelEntry> entry);

// Null when there is none of this name.
const KernelEntry* FindKernel(absl::string_view name);

// Why the entry is not to be taken, or empty: the cap, the options, its
// refusal.
std::string WhyNot(const KernelEntry& entry, const NodeView& view);

struct KernelChoice {
  const KernelEntry* entry = nullptr;
  // Entries of the op that stand before the chosen one, and why not.
  std::vector<std::pair<const KernelEntry*, std::string>> refused;
};

enum class KernelPreference {
  kBest,      // the first that does not refuse
  kPlainest,  // the last of the same summation order: what runs when
              // choose-kernels is switched off
};

// Always finds one: every op has a reference entry. Under a cap above `ref`,
// reference entries are taken only where no other kernel accepts.
KernelChoice ChooseKernel(const NodeView& view, KernelPreference preference =
                                                    KernelPreference::kBest);

}  // namespace weft
