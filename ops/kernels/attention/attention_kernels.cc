#include "ops/kernels/attention/attention_kernels.h"

#include "absl/strings/str_cat.h"
#include "ops/kernels/attention/attention.h"
#include "ops/storage.h"

namespace weft {
namespace {

using RunFunction = void (*)(const AttentionArgs&, int64_t, int64_t, uint8_t*);

const AttentionKernels* KernelsFor(Isa isa) {
#if defined(__x86_64__)
  if (Includes(isa, Isa::kAvx512)) return &kAttentionKernelsAvx512;
  if (Includes(isa, Isa::kAvx2)) return &kAttentionKernelsAvx2;
#elif defined(__aarch64__)
  if (Includes(isa, Isa::kNeon)) return &kAttentionKernelsNeon;
#endif
  (void)isa;
  return nullptr;
}

// Sizes of one node, read once from its operands and attributes.
AttentionArgs SizesOf(const NodeView& view) {
  AttentionArgs args = {};
  const ValueType& state = view.input(1).type;
  args.kv_heads = state.shape[1].value;
  args.type = KvTypeOf(state.dtype);
  args.key_dim = args.value_dim = state.shape[2].value;
  if (view.node.op == "attention_values") {
    args.heads = view.input(0).type.shape[1].value;
  } else {
    args.heads = view.node.attributes.Int("heads");
    args.scale = static_cast<float>(view.node.attributes.Float("scale"));
    args.window = view.node.attributes.Int("window");
    args.softcap = static_cast<float>(view.node.attributes.Float("softcap"));
  }
  if (view.node.op == "attention") {
    args.value_dim = view.input(2).type.shape[2].value;
  }
  return args;
}

class AttentionNode : public Kernel {
 public:
  AttentionNode(const NodeView& view, RunFunction run)
      : sizes_(SizesOf(view)),
        fused_(view.node.op == "attention"),
        scores_(view.node.op == "attention_scores"),
        run_(run) {}

  int64_t Items(const KernelCall& call, int) const override {
    return AttentionItems(call.outputs[0].rows, sizes_.heads, sizes_.kv_heads);
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    AttentionArgs args = sizes_;
    const Operand& y = call.outputs[0];
    args.rows = y.rows;
    // Behind the states stand positions and sequence.
    const Operand* rest = call.inputs + (fused_ ? 3 : 2);
    args.positions = static_cast<const int32_t*>(rest[0].data);
    args.sequence = static_cast<const int32_t*>(rest[1].data);
    if (fused_ || scores_) {
      args.q = static_cast<const float*>(call.inputs[0].data);
      args.q_row_bytes = call.inputs[0].row_bytes;
      args.keys = call.inputs[1].state;
    }
    if (fused_) args.values = call.inputs[2].state;
    if (scores_) {
      args.scores = static_cast<float*>(y.data);
      args.score_columns = y.columns / args.heads;
    } else {
      args.y = static_cast<float*>(y.data);
      args.y_row_bytes = y.row_bytes;
    }
    if (!fused_ && !scores_) {
      args.values = call.inputs[1].state;
      args.scores = static_cast<float*>(call.inputs[0].data);
      args.score_columns = call.inputs[0].columns / args.heads;
    }
    run_(args, begin, end, call.thread_scratch);
  }

 private:
  const AttentionArgs sizes_;
  const bool fused_, scores_;
  const RunFunction run_;
};

class AttentionRow : public KernelRow {
 public:
  AttentionRow(const char* op, Isa isa, RunFunction run,
               const char* type = "any", const char* order = "pages in order")
      : KernelRow(absl::StrCat(op, "_", type, "_64_", Name(isa)), op, isa, "",
                  order),
        run_(run) {}

  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<AttentionNode>(view, run_);
  }
  int64_t ThreadScratchBytes(const NodeView& view) const override {
    const AttentionArgs sizes = SizesOf(view);
    return AttentionScratchBytes(sizes.heads, sizes.kv_heads, sizes.key_dim,
                                 sizes.value_dim);
  }

 private:
  RunFunction run_;
};

#if defined(__x86_64__)
// Rounds queries and weights to bfloat16, as the cache is.
class Bf16PairsRow : public AttentionRow {
 public:
  Bf16PairsRow()
      : AttentionRow("attention", Isa::kAvx512Bf16, AttentionBf16Pairs, "bf16",
                     "pages in order, bfloat16 pairs") {}

  std::string Refuses(const NodeView& view) const override {
    return view.input(1).type.dtype == DType::kBF16 ? ""
                                                    : "reads a cache of bf16";
  }
  double tolerance() const override { return 0.1; }
};
#endif

}  // namespace

void AddAttentionKernels(KernelRows* rows) {
#if defined(__x86_64__)
  rows->push_back(std::make_unique<Bf16PairsRow>());
#endif
  for (Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kNeon}) {
    const AttentionKernels* kernels = KernelsFor(isa);
    if (kernels == nullptr) continue;
    rows->push_back(
        std::make_unique<AttentionRow>("attention", isa, kernels->attention));
    rows->push_back(std::make_unique<AttentionRow>("attention_scores", isa,
                                                   kernels->scores));
    rows->push_back(std::make_unique<AttentionRow>("attention_values", isa,
                                                   kernels->values));
  }
}

}  // namespace weft
