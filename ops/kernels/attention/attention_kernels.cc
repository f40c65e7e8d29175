#include "ops/kernels/attention/attention_kernels.h"

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

// A node of the family. Node classes say what the operands are.
class AttentionNode : public Kernel {
 public:
  int64_t Items(const KernelCall& call, int) const override {
    return AttentionItems(call.outputs[0].rows, sizes_.heads, sizes_.kv_heads);
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    AttentionArgs args = sizes_;
    args.rows = call.outputs[0].rows;
    SetOperands(call, &args);
    run_(args, begin, end, call.thread_scratch);
  }

 protected:
  AttentionNode(const AttentionArgs& sizes, const AttentionKernel& kernel)
      : sizes_(sizes), run_(kernel.run) {}

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

 private:
  const AttentionArgs sizes_;
  const AttentionFunction run_;
};

class FusedNode : public AttentionNode {
 public:
  FusedNode(const NodeView& view, const AttentionKernel& kernel)
      : AttentionNode(SizesOf(view), kernel),
        operands_(view.node.inputs.size()) {}

  static AttentionArgs SizesOf(const NodeView& view) {
    AttentionArgs args = ScoresSizesOf(view);
    SetValues(view.input(2).type,
              view.node.attributes.As<AttentionAttributes>(), &args);
    return args;
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
  const size_t operands_;
};

class ScoresNode : public AttentionNode {
 public:
  ScoresNode(const NodeView& view, const AttentionKernel& kernel)
      : AttentionNode(SizesOf(view), kernel),
        has_own_positions_(view.node.inputs.size() > 4) {}

  static AttentionArgs SizesOf(const NodeView& view) {
    return ScoresSizesOf(view);
  }

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
constexpr Exactness kExact = {"pages in order", 1e-4};
// Queries and weights are rounded to bfloat16, as the cache is.
constexpr Exactness kPairs = {"pages in order, bfloat16 pairs", 0.1};

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
  int64_t ThreadScratchBytes(const NodeView& view) const override {
    const AttentionArgs sizes = Node::SizesOf(view);
    return AttentionScratchBytes(sizes.heads, sizes.kv_heads, sizes.key_dim,
                                 sizes.value_dim);
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
