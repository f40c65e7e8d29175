// An attention of one's own: a sliding window with a bias that grows with the
// distance (ALiBi; Press et al. 2022, arXiv:2108.12409), for every model.
//
//   %6 = attention(%q, %k, %v, %positions, %sequence)
//     ->
//   %6 = windowed_attention(%q, %k, %v, %positions, %sequence) slope=1.0
//        window=256
//
// Three registrations, none in weft's own files: an op (what it computes, in
// double precision), a kernel (how it is computed fast) and a pass (where it
// stands). examples/my_weft.cc is weft with it.
#include "examples/custom_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "ops/kernels/half.h"
#include "ops/kernels/kernel_table.h"
#include "ops/kernels/kv_layout.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/storage.h"
#include "passes/pipeline.h"

namespace examples {
namespace {

using namespace weft;

// --- The op: operands and result as `attention`, one attribute more.

struct WindowedAttributes {
  int64_t heads = 0;
  double scale = 1;
  int64_t window = 1;
  double slope = 0;
  static absl::Span<const AttributeSchema> Schema();
};
constexpr AttributeSchema kAttributes[] = {
    Field<&WindowedAttributes::heads>("heads", "of the query").From(1, 1 << 16),
    Field<&WindowedAttributes::scale>("scale", "of scores").Above(0),
    Field<&WindowedAttributes::window>("window", "positions that a row sees")
        .From(1, int64_t{1} << 30),
    Field<&WindowedAttributes::slope>("slope", "of the first head").AtLeast(0)};
absl::Span<const AttributeSchema> WindowedAttributes::Schema() {
  return kAttributes;
}

// Of sizes everything is as in `attention`: its rule says so.
absl::StatusOr<std::vector<ValueType>> Infer(const Graph& graph,
                                             const Node& node) {
  const auto own = node.attributes.As<WindowedAttributes>();
  AttentionAttributes plain;
  plain.heads = own.heads;
  plain.scale = own.scale;
  Node attention = node;
  attention.Become(kAttentionOp, plain);
  return ResultTypes(graph, attention);
}

// The slopes of the paper: 2^-8/n, 2^-16/n, ... for n heads.
double Slope(const Node& node, int64_t head) {
  const double heads =
      static_cast<double>(node.attributes.As<WindowedAttributes>().heads);
  return node.attributes.As<WindowedAttributes>().slope *
         std::exp2(-8.0 * static_cast<double>(head + 1) / heads);
}

void Reference(const ReferenceCall& call) {
  const ValueType& keys = call.input_type(1);
  const ValueType& values = call.input_type(2);
  const auto attributes = call.attributes<WindowedAttributes>();
  const int64_t heads = attributes.heads, window = attributes.window;
  const int64_t group = heads / keys.shape[1].value;
  const int64_t key_dim = keys.shape[2].value;
  const int64_t value_dim = values.shape[2].value;
  for (int64_t t = 0; t < call.outputs[0].rows; ++t) {
    const std::vector<double> q = ReadRow(call, 0, t);
    const int64_t position = Integers(call, 3)[t];
    const int32_t slot = Integers(call, 4)[t];
    const int64_t first = std::max<int64_t>(0, position - window + 1);
    std::vector<double> out(heads * value_dim);
    for (int64_t head = 0; head < heads; ++head) {
      std::vector<double> scores;
      for (int64_t s = first; s <= position; ++s) {
        double sum = 0;
        for (int64_t d = 0; d < key_dim; ++d) {
          sum += q[head * key_dim + d] *
                 ReadKv(keys, *call.inputs[1].state, slot, s, head / group, d);
        }
        scores.push_back(sum * attributes.scale -
                         Slope(call.node, head) *
                             static_cast<double>(position - s));
      }
      const double largest = *std::max_element(scores.begin(), scores.end());
      double total = 0;
      for (double& x : scores) total += x = std::exp(x - largest);
      for (int64_t s = first; s <= position; ++s) {
        for (int64_t d = 0; d < value_dim; ++d) {
          out[head * value_dim + d] +=
              scores[s - first] / total *
              ReadKv(values, *call.inputs[2].state, slot, s, head / group, d);
        }
      }
    }
    WriteRow(call, 0, t, out);
  }
}

// Numbers of the heaviest node: every row sees its whole window.
int64_t Operations(const Graph& graph, const Node& node, const Bounds& bounds) {
  const int64_t seen =
      std::min(node.attributes.As<WindowedAttributes>().window, bounds.context);
  return 4 * OperandType(graph, node, 0).shape.Elements(bounds) * seen;
}

// What the integers are: weft checks their range wherever the graph runs.
constexpr OperandSchema kOperands[] = {
    RowsOperand("q"), StateOperand("keys", "keys"),
    StateOperand("values", "values"),
    IndexOperand("positions", IndexKind::kPosition, 0),
    IndexOperand("sequence", IndexKind::kSequence, 0)};

constexpr OpDef WindowedAttentionRecord() {
  OpDef op;
  op.name = "windowed_attention";
  op.meaning = "attention within a window, scores lower with distance";
  op.operands = kOperands;
  op.attributes = kAttributes;
  op.made_of = "attention";
  op.infer = Infer;
  op.reference = Reference;
  op.operations = Operations;
  return op;
}

constexpr OpDef kOp = WindowedAttentionRecord();

// --- The kernel: f16 and f32 pages, one row of one head at a time.

WindowedAttributes AttributesOf(const NodeView& view) {
  return view.node.attributes.As<WindowedAttributes>();
}

float Load(const uint8_t* at, int64_t i, KvType type) {
  if (type == KvType::kF32) return reinterpret_cast<const float*>(at)[i];
  return F16ToF32(reinterpret_cast<const uint16_t*>(at)[i]);
}

class AttentionKernel : public Kernel {
 public:
  explicit AttentionKernel(const NodeView& view)
      : heads_(AttributesOf(view).heads),
        window_(AttributesOf(view).window),
        group_(heads_ / view.input(1).type.shape[1].value),
        key_dim_(view.input(1).type.shape[2].value),
        value_dim_(view.input(2).type.shape[2].value),
        scale_(static_cast<float>(AttributesOf(view).scale)),
        type_(KvTypeOf(view.input(1).type.dtype)) {
    for (int64_t head = 0; head < heads_; ++head) {
      slopes_.push_back(static_cast<float>(Slope(view.node, head)));
    }
  }

  int64_t Items(const KernelCall& call, int) const override {
    return call.outputs[0].rows * heads_;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    for (int64_t item = begin; item < end; ++item) {
      RunHead(call, item / heads_, item % heads_);
    }
  }

 private:
  // The order of every sum follows from the position alone: the same bits
  // however a prompt is cut and on any number of threads.
  void RunHead(const KernelCall& call, int64_t row, int64_t head) const {
    const auto at = [row](const Operand& operand) {
      return reinterpret_cast<float*>(static_cast<uint8_t*>(operand.data) +
                                      row * operand.row_bytes);
    };
    const float* q = at(call.inputs[0]) + head * key_dim_;
    float* y = at(call.outputs[0]) + head * value_dim_;
    const int64_t position = static_cast<int32_t*>(call.inputs[3].data)[row];
    const int32_t slot = static_cast<int32_t*>(call.inputs[4].data)[row];
    const int64_t first = std::max<int64_t>(0, position - window_ + 1);
    // By position from the first page on.
    float* scores = reinterpret_cast<float*>(call.thread_scratch);
    const int64_t first_page = first / kPageTokens * kPageTokens;

    float largest = -INFINITY;
    for (int64_t page = first_page; page <= position; page += kPageTokens) {
      const uint8_t* keys = KvPage(*call.inputs[1].state, slot, page) +
                            head / group_ * KvHeadBytes(type_, key_dim_);
      float* page_scores = scores + (page - first_page);
      std::fill(page_scores, page_scores + kPageTokens, 0.0f);
      for (int64_t d = 0; d < key_dim_; ++d) {
        for (int64_t s = 0; s < kPageTokens; ++s) {
          page_scores[s] += q[d] * Load(keys, d * kPageTokens + s, type_);
        }
      }
      for (int64_t s = std::max(first, page);
           s <= std::min(position, page + kPageTokens - 1); ++s) {
        float& score = scores[s - first_page];
        score =
            score * scale_ - slopes_[head] * static_cast<float>(position - s);
        largest = std::max(largest, score);
      }
    }
    float total = 0;
    std::fill(y, y + value_dim_, 0.0f);
    for (int64_t s = first; s <= position; ++s) {
      const uint8_t* values = KvPage(*call.inputs[2].state, slot, s) +
                              head / group_ * KvHeadBytes(type_, value_dim_);
      const float weight = std::exp(scores[s - first_page] - largest);
      total += weight;
      const int64_t place = s % kPageTokens * value_dim_;
      for (int64_t d = 0; d < value_dim_; ++d) {
        y[d] += weight * Load(values, place + d, type_);
      }
    }
    for (int64_t d = 0; d < value_dim_; ++d) y[d] /= total;
  }

  const int64_t heads_, window_, group_, key_dim_, value_dim_;
  const float scale_;
  const KvType type_;
  std::vector<float> slopes_;
};

class AttentionRow : public KernelEntry {
 public:
  AttentionRow()
      : KernelEntry("windowed_attention_any_1_ref", "windowed_attention",
                    Isa::kRef, /*weight_layout=*/"",
                    /*summation=*/"positions") {}

  // Then the reference function serves, slowly.
  std::string Refuses(const NodeView& view) const override {
    const DType type = view.input(1).type.dtype;
    return type == DType::kF16 || type == DType::kF32
               ? ""
               : "reads pages of f16 and f32";
  }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<AttentionKernel>(view);
  }
  int64_t ThreadScratchBytes(const NodeView& view) const override {
    const int64_t seen =
        std::min(AttributesOf(view).window, view.graph.bounds.context);
    // Whole pages, and one more at each end.
    return (seen / kPageTokens + 2) * kPageTokens *
           static_cast<int64_t>(sizeof(float));
  }
};

// --- The pass. A pass is a plain function: its options stand here.

WindowedAttention chosen;

absl::Status UseWindowedAttention(Graph& graph, const PassOptions&) {
  for (NodeId id : graph.order()) {
    Node& node = graph.node(id);
    if (node.Is(kAttentionScoresOp)) {
      return absl::FailedPreconditionError(
          node.name + ": attention in parts: leave fuse-attention on");
    }
    if (!node.Is(kAttentionOp)) continue;
    const auto attention = node.attributes.As<AttentionAttributes>();
    node.Become(kOp, WindowedAttributes{attention.heads, attention.scale,
                                        chosen.window, chosen.slope});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Registration>> RegisterWindowedAttention(
    const WindowedAttention& options) {
  if (options.window < 1 || !std::isfinite(options.slope) ||
      options.slope < 0) {
    return absl::InvalidArgumentError(
        "windowed attention: want a window from 1 and a slope from 0");
  }
  chosen = options;
  std::vector<Registration> all;
  absl::StatusOr<Registration> op = RegisterOp(&kOp);
  if (!op.ok()) return op.status();
  all.push_back(*std::move(op));
  absl::StatusOr<Registration> kernel =
      RegisterKernel(std::make_unique<AttentionRow>());
  if (!kernel.ok()) return kernel.status();
  all.push_back(*std::move(kernel));
  absl::StatusOr<Registration> pass = RegisterPass(
      // It changes what the model computes, and is meant to.
      {"use-windowed-attention", UseWindowedAttention, /*per_bucket=*/false,
       /*tolerance=*/std::numeric_limits<double>::infinity()},
      "fuse-attention");
  if (!pass.ok()) return pass.status();
  all.push_back(*std::move(pass));
  return all;
}

}  // namespace examples
