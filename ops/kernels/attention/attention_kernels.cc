#include "ops/kernels/attention/attention_kernels.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/kernels/attention/attention.h"
#include "ops/ops.h"
#include "ops/storage.h"

namespace weft {
namespace {

// What all nodes have: the state's heads and how wide they are, and how many
// heads read them.
AttentionArgs SizesOf(const ValueType& state, int64_t heads) {
  AttentionArgs args = {};
  args.heads = heads;
  args.kv_heads = state.shape[1].value;
  args.key_dim = args.value_dim = state.shape[2].value;
  return args;
}

AttentionArgs ScoresSizesOf(const NodeView& view) {
  const auto attention = view.node.attributes.As<AttentionAttributes>();
  AttentionArgs args = SizesOf(view.input(1).type, attention.heads);
  args.scale = static_cast<float>(attention.scale);
  args.window = attention.window;
  args.softcap = static_cast<float>(attention.softcap);
  args.chunk = attention.chunk;
  args.alibi = attention.alibi;
  args.temperature = attention.temperature;
  args.temperature_period = attention.temperature_period;
  args.temperature_offset = attention.temperature_offset;
  return args;
}

template <class Attributes>
void SetValues(const ValueType& values, const Attributes& attributes,
               AttentionArgs* args) {
  args->value_dim = ValueDim(values, attributes.value_dim);
  args->values_are_keys = values.layout == "keys";
}

// Buckets of so many rows at most cut what rows see into pieces for several
// threads; more rows are work enough.
constexpr int64_t kMostCutRows = 8;
// As much as pieces may take; where they would need more, there is work enough.
constexpr int64_t kMostPartialBytes = int64_t{4} << 20;

// Memory of a node for the pieces of its rows.
int64_t PartialBytes(const NodeView& view, const AttentionArgs& sizes) {
  const Bounds& bounds = view.graph.bounds;
  int64_t pieces = AttentionPieces(bounds.context);
  if (bounds.tokens > kMostCutRows || pieces < 2) return 0;
  if (sizes.window > 0) {
    pieces = std::min(pieces, AttentionPieces(sizes.window) + 1);
  }
  const int64_t of_piece = bounds.tokens * sizes.heads *
                           AttentionPartialFloats(sizes.value_dim) *
                           int64_t{sizeof(float)};
  return std::min(pieces, kMostPartialBytes / of_piece) * of_piece;
}

// A node of the family. Node classes say what the operands are.
class AttentionNode : public Kernel {
 public:
  int64_t Items(const KernelCall& call, int) const override {
    return AttentionItems(call.outputs[0].rows, sizes_.heads, sizes_.kv_heads);
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    run_(ArgsOf(call), begin, end, call.thread_scratch);
  }

 protected:
  AttentionNode(const AttentionArgs& sizes, const AttentionKernel& kernel)
      : sizes_(sizes), run_(kernel.run) {}

  AttentionArgs ArgsOf(const KernelCall& call) const {
    AttentionArgs args = sizes_;
    args.rows = call.outputs[0].rows;
    SetOperands(call, &args);
    return args;
  }

  virtual void SetOperands(const KernelCall& call,
                           AttentionArgs* args) const = 0;

  static void SetQueries(const Operand& q, AttentionArgs* args) {
    args->q = static_cast<const float*>(q.data);
    args->q_row_bytes = q.row_bytes;
  }
  static void SetScores(const Operand& scores, AttentionArgs* args) {
    args->scores = static_cast<float*>(scores.data);
    args->score_columns = scores.columns / args->heads;
  }
  // `rows` are positions and sequence, as they stand behind the states.
  static void SetRows(const Operand* rows, AttentionArgs* args) {
    args->positions = static_cast<const int32_t*>(rows[0].data);
    args->slots = static_cast<const int32_t*>(rows[1].data);
  }
  static void SetResult(const Operand& y, AttentionArgs* args) {
    args->y = static_cast<float*>(y.data);
    args->y_row_bytes = y.row_bytes;
  }

  AttentionFunction run() const { return run_; }

 private:
  const AttentionArgs sizes_;
  const AttentionFunction run_;
};

class FusedNode : public AttentionNode {
 public:
  FusedNode(const NodeView& view, const AttentionKernel& kernel)
      : AttentionNode(SizesOf(view), kernel),
        operands_(view.node.inputs.size()),
        combine_(kernel.combine),
        partial_bytes_(ScratchBytes(view)) {}

  static AttentionArgs SizesOf(const NodeView& view) {
    AttentionArgs args = ScoresSizesOf(view);
    SetValues(view.input(2).type,
              view.node.attributes.As<AttentionAttributes>(), &args);
    return args;
  }

  static int64_t ScratchBytes(const NodeView& view) {
    return PartialBytes(view, SizesOf(view));
  }

  // Where rows are cut into pieces, these are put together last.
  int phases() const override { return partial_bytes_ > 0 ? 2 : 1; }

  int64_t Items(const KernelCall& call, int phase) const override {
    const AttentionArgs args = CutArgsOf(call);
    if (phase > 0) return args.pieces > 0 ? args.rows * args.heads : 0;
    return AttentionNode::Items(call, phase) *
           std::max<int64_t>(args.pieces, 1);
  }

  void Run(const KernelCall& call, int phase, int64_t begin,
           int64_t end) const override {
    (phase > 0 ? combine_ : run())(CutArgsOf(call), begin, end,
                                   call.thread_scratch);
  }

 protected:
  void SetOperands(const KernelCall& call, AttentionArgs* args) const override {
    SetQueries(call.inputs[0], args);
    args->keys = call.inputs[1].state;
    args->values = call.inputs[2].state;
    SetRows(call.inputs + 3, args);
    if (operands_ > 5) {
      args->own_positions = static_cast<const int32_t*>(call.inputs[5].data);
    }
    if (operands_ > 6) {
      args->sinks = static_cast<const float*>(call.inputs[6].data);
    }
    SetResult(call.outputs[0], args);
  }

 private:
  // With the pieces that are items, if there are several and room for them.
  AttentionArgs CutArgsOf(const KernelCall& call) const {
    AttentionArgs args = ArgsOf(call);
    if (partial_bytes_ == 0) return args;
    const AttentionRange seen = AttentionPiecesSeen(args);
    const int64_t pieces = seen.end - seen.begin;
    const int64_t bytes = args.rows * args.heads * pieces *
                          AttentionPartialFloats(args.value_dim) *
                          int64_t{sizeof(float)};
    if (pieces > 1 && bytes <= partial_bytes_) {
      args.first_piece = seen.begin;
      args.pieces = pieces;
      args.partial = reinterpret_cast<float*>(call.scratch);
    }
    return args;
  }

  const size_t operands_;
  const AttentionFunction combine_;
  const int64_t partial_bytes_;
};

class ScoresNode : public AttentionNode {
 public:
  ScoresNode(const NodeView& view, const AttentionKernel& kernel)
      : AttentionNode(SizesOf(view), kernel),
        has_own_positions_(view.node.inputs.size() > 4) {}

  static AttentionArgs SizesOf(const NodeView& view) {
    return ScoresSizesOf(view);
  }

  static int64_t ScratchBytes(const NodeView&) { return 0; }

 protected:
  void SetOperands(const KernelCall& call, AttentionArgs* args) const override {
    SetQueries(call.inputs[0], args);
    args->keys = call.inputs[1].state;
    SetRows(call.inputs + 2, args);
    if (has_own_positions_) {
      args->own_positions = static_cast<const int32_t*>(call.inputs[4].data);
    }
    SetScores(call.outputs[0], args);
  }

 private:
  const bool has_own_positions_;
};

class ValuesNode : public AttentionNode {
 public:
  ValuesNode(const NodeView& view, const AttentionKernel& kernel)
      : AttentionNode(SizesOf(view), kernel) {}

  static AttentionArgs SizesOf(const NodeView& view) {
    AttentionArgs args =
        weft::SizesOf(view.input(1).type, view.input(0).type.shape[1].value);
    SetValues(view.input(1).type, view.node.attributes.As<ValuesAttributes>(),
              &args);
    return args;
  }

  static int64_t ScratchBytes(const NodeView&) { return 0; }

 protected:
  void SetOperands(const KernelCall& call, AttentionArgs* args) const override {
    SetScores(call.inputs[0], args);
    args->values = call.inputs[1].state;
    SetRows(call.inputs + 2, args);
    SetResult(call.outputs[0], args);
  }
};

// How the kernels of one list add.
struct Exactness {
  const char* summation;
  double tolerance;
};
constexpr Exactness kExact = {"pieces of pages in order", 1e-4};
// Queries and weights are rounded to bfloat16, as the cache is.
constexpr Exactness kPairs = {"pieces of pages in order, bfloat16 pairs", 0.1};

// One line of the family's lists.
template <class Node>
class AttentionRow : public KernelEntry {
 public:
  AttentionRow(const AttentionKernel& kernel, Isa isa, Exactness exactness)
      : KernelEntry(
            absl::StrCat(kernel.op, "_", Info(DTypeOf(kernel.type)).name,
                         "_64_", Name(isa)),
            kernel.op, isa, "", exactness.summation),
        kernel_(kernel),
        tolerance_(exactness.tolerance) {}

  std::string Refuses(const NodeView& view) const override {
    const DType type = DTypeOf(kernel_.type);
    return view.input(1).type.dtype == type
               ? ""
               : absl::StrCat("reads a cache of ", Info(type).name);
  }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<Node>(view, kernel_);
  }
  double tolerance() const override { return tolerance_; }
  int64_t ScratchBytes(const NodeView& view) const override {
    return Node::ScratchBytes(view);
  }
  int64_t ThreadScratchBytes(const NodeView& view) const override {
    const AttentionArgs sizes = Node::SizesOf(view);
    return AttentionScratchBytes(sizes.heads, sizes.kv_heads, sizes.key_dim,
                                 sizes.value_dim, view.graph.bounds.context);
  }

 private:
  const AttentionKernel& kernel_;
  const double tolerance_;
};

template <class Node>
void AddLines(const KernelList<AttentionKernel>& lines, Isa isa,
              Exactness exactness, KernelEntries* rows) {
  for (const AttentionKernel& line : lines) {
    rows->push_back(std::make_unique<AttentionRow<Node>>(line, isa, exactness));
  }
}

void AddKernels(const AttentionKernels& kernels, Isa isa, Exactness exactness,
                KernelEntries* rows) {
  AddLines<FusedNode>(kernels.fused, isa, exactness, rows);
  AddLines<ScoresNode>(kernels.scores, isa, exactness, rows);
  AddLines<ValuesNode>(kernels.values, isa, exactness, rows);
}

}  // namespace

void AddAttentionKernels(KernelEntries* rows) {
#if defined(__x86_64__)
  AddKernels(kAttentionKernelsAvx512Bf16, Isa::kAvx512Bf16, kPairs, rows);
  AddKernels(kAttentionKernelsAvx512, Isa::kAvx512, kExact, rows);
  AddKernels(kAttentionKernelsAvx2, Isa::kAvx2, kExact, rows);
#elif defined(__aarch64__)
  AddKernels(kAttentionKernelsNeon, Isa::kNeon, kExact, rows);
#else
  (void)rows;
#endif
}

}  // namespace weft
