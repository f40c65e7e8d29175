#include "tests/passes/random_graph.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/standard_inputs.h"
#include "ops/build.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "tests/passes/elementwise_ops.h"

namespace weft {
namespace {

constexpr int64_t kContext = 80;  // more than one page of the KV cache

class Maker {
 public:
  Maker(uint32_t seed, bool more_outputs)
      : seed_(seed),
        random_(seed),
        more_outputs_(more_outputs),
        build_(&graph_) {}

  RandomModel Make() {
    graph_.name = absl::StrCat("random", seed_);
    graph_.bounds = {16, 16, kContext};
    vocabulary_ = 5 + Below(40);
    ids_ = AddInput(&graph_, StandardInput::kIds);
    positions_ = AddInput(&graph_, StandardInput::kPositions);
    sequence_ = AddInput(&graph_, StandardInput::kSequence);
    output_rows_ = AddInput(&graph_, StandardInput::kOutputRows);
    const int64_t all_widths[] = {32, 64, 96, 256, 48, 40, 33, 7, 128};
    for (int i = 0; i < 3; ++i) widths_.push_back(all_widths[Below(9)]);

    const ValueId table = Weight(vocabulary_, widths_[0]);
    Named();
    pool_.push_back(build_.Embed(ids_, table));
    const int parts = 2 + Below(7);
    for (int i = 0; i < parts; ++i) AddPart();
    Finish(table);

    // A generator that makes illegal graphs is broken.
    absl::Status status = build_.status();
    if (status.ok()) status = VerifyGraph(graph_);
    if (!status.ok()) {
      std::fprintf(stderr, "seed %u: %s\n", seed_, status.ToString().c_str());
      std::abort();
    }
    return {std::move(graph_), vocabulary_, quantized_, rewrites_};
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % n); }
  bool Chance(int percent) { return Below(100) < percent; }

  void Named() { build_.Name(absl::StrCat("node", ++names_)); }

  // Sometimes one that is used already.
  ValueId Weight(int64_t rows, int64_t columns, const DType* like = nullptr) {
    std::vector<DType> types = {DType::kF32, DType::kF16, DType::kBF16};
    if (columns % 32 == 0) {
      for (DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
                         DType::kQ5_1, DType::kIQ4_NL}) {
        types.push_back(type);
      }
    }
    if (columns % 256 == 0) {
      for (DType type : {DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
                         DType::kQ6_K, DType::kIQ4_XS}) {
        types.push_back(type);
      }
    }
    const DType dtype =
        like != nullptr ? *like : types[Below(static_cast<int>(types.size()))];
    const ValueType type = {dtype,
                            Shape{Dim::Number(rows), Dim::Number(columns)}, ""};
    if (Chance(8)) {
      for (ValueId id = 0; id < graph_.value_count(); ++id) {
        if (graph_.IsWeight(id) && graph_.value(id).type == type) return id;
      }
    }
    quantized_ |= Info(dtype).quantized;
    return AddWeight(type);
  }

  ValueId Vector(int64_t n) {
    return AddWeight({DType::kF32, Shape{Dim::Number(n)}, ""});
  }

  ValueId AddWeight(ValueType type) {
    const std::string name = absl::StrCat("w", graph_.value_count());
    return graph_.AddWeight(name, std::move(type), {});
  }

  int64_t Width(ValueId value) const {
    return graph_.value(value).type.shape[1].value;
  }
  int64_t AnyWidth() { return widths_[Below(3)]; }
  bool IsSlice(ValueId value) const {
    return graph_.ProducerOf(value, kSliceOp) != kNone;
  }

  // A value made before, more often a late one.
  ValueId Any() {
    const int n = static_cast<int>(pool_.size());
    return pool_[n - 1 - std::min(Below(n), Below(n))];
  }

  ValueId Keep(ValueId value) {
    pool_.push_back(value);
    return value;
  }

  ValueId Norm(ValueId x) {
    const ValueId weight = Vector(Width(x));
    const double eps = Chance(50) ? 1e-5 : 1e-6;
    Named();
    if (Chance(30)) {
      const ValueId bias = Chance(70) ? Vector(Width(x)) : kNone;
      return build_.LayerNorm(x, weight, bias, eps);
    }
    return build_.RmsNorm(x, weight, eps);
  }

  // Queries or keys, each head by itself.
  ValueId NormHeads(ValueId x, int64_t heads) {
    if (Chance(20)) return build_.RmsNorm(x, kNone, 1e-6, heads);
    const ValueId weight = Vector(Chance(50) ? Width(x) : Width(x) / heads);
    Named();
    return Chance(60) ? build_.RmsNorm(x, weight, 1e-6, heads)
                      : build_.LayerNorm(x, weight, kNone, 1e-6, heads);
  }

  ValueId MaybeNorm(ValueId x) { return Chance(70) ? Norm(x) : x; }

  ValueId Linear(ValueId x, int64_t outputs, const DType* like = nullptr) {
    const ValueId weight = Weight(outputs, Width(x), like);
    Named();
    const ValueId y = build_.Matmul(x, weight);
    if (!Chance(25)) return y;
    const ValueId bias = Vector(outputs);
    Named();
    return build_.Add(y, bias);
  }

  ValueId Residual(ValueId x) {
    ValueId y = Linear(MaybeNorm(x), Width(x));
    // The product may read a slice of what is added to it.
    if (Chance(20) && Width(x) > 8) {
      Named();
      y = Linear(build_.Slice(x, 3, Width(x) / 2), Width(x));
    }
    Named();
    return Chance(70) ? build_.Add(y, x) : build_.Add(x, y);
  }

  ValueId Gate(ValueId x) {
    x = MaybeNorm(x);
    const int64_t hidden = Chance(80) ? 16 * (1 + Below(6)) : AnyWidth();
    const ValueId weight = Weight(hidden, Width(x));
    const DType type = graph_.value(weight).type.dtype;
    Named();
    ValueId gate = build_.Matmul(x, weight);
    ValueId up;
    if (Chance(20)) {
      // Both by one product: a matrix twice as high, or its halves.
      const ValueId both = Linear(x, 2 * hidden, &type);
      const bool swapped = Chance(15);
      Named();
      gate = build_.Slice(both, swapped ? hidden : 0, hidden);
      Named();
      up = build_.Slice(both, swapped ? 0 : hidden, hidden);
    } else {
      up = Linear(x, hidden, Chance(85) ? &type : nullptr);
      if (Chance(5)) up = gate;
    }
    Named();
    const ValueId active =
        Chance(60) ? build_.Silu(gate)
                   : build_.Gelu(gate, Chance(90) ? GeluApproximation::kTanh
                                                  : GeluApproximation::kNone);
    Named();
    const ValueId joined =
        Chance(70) ? build_.Mul(active, up) : build_.Mul(up, active);
    if (Chance(10)) Keep(Chance(50) ? active : up);
    if (Chance(30)) return joined;
    return Linear(joined, AnyWidth());
  }

  // A mixture of experts, now and then with one for all beside them.
  ValueId Experts(ValueId x) {
    x = MaybeNorm(x);
    const int64_t experts = 1 + Below(6);
    const int64_t used =
        1 + Below(static_cast<int>(std::min<int64_t>(experts, 3)));
    const int64_t hidden = Chance(80) ? 16 * (1 + Below(6)) : AnyWidth();
    const int64_t outputs = AnyWidth();
    const ValueId scores = Linear(x, experts);
    Named();
    TopKAttributes choice;
    choice.k = used;
    choice.normalize = Chance(50);
    if (experts % 2 == 0 && used <= experts / 2 && Chance(30)) {
      choice.groups = 2;
      choice.group_best = 1 + Below(static_cast<int>(experts / 2));
    }
    Chosen chosen = build_.TopK(Chance(80) ? build_.Softmax(scores) : scores,
                                Chance(30) ? Vector(experts) : kNone, choice);
    if (Chance(20)) chosen.weights = build_.Softmax(chosen.weights);
    if (Chance(20)) {
      chosen.weights = build_.ExpertMul(chosen.weights, Vector(experts),
                                        chosen.ids, experts);
    }
    const bool biases = Chance(30);
    const auto product = [&](ValueId from, int64_t rows, int64_t columns,
                             const DType* like = nullptr) {
      const ValueId weight = Weight(experts * rows, columns, like);
      Named();
      return build_.ExpertMatmul(from, weight, chosen.ids, experts);
    };
    const auto biased = [&](ValueId y) {
      if (!biases) return y;
      const ValueId bias = Vector(experts * Width(y) / used);
      Named();
      return build_.ExpertAdd(y, bias, chosen.ids, experts);
    };
    ValueId gate, up;
    if (Chance(20)) {
      // Both in one weight, half of each expert's rows for each.
      const ValueId both = Weight(experts * 2 * hidden, Width(x));
      const auto half = [&](int64_t begin) {
        Named();
        const ValueId rows = build_.SliceRows(both, experts, begin, hidden);
        Named();
        return build_.ExpertMatmul(x, rows, chosen.ids, experts);
      };
      gate = biased(half(0));
      up = biased(half(hidden));
    } else {
      gate = product(x, hidden, Width(x));
      const DType type =
          graph_.value(graph_.Producer(gate)->inputs[1]).type.dtype;
      gate = biased(gate);
      up = biased(product(x, hidden, Width(x), Chance(85) ? &type : nullptr));
    }
    Named();
    const int activation = Below(4);
    const ValueId joined =
        activation == 0 ? build_.Node(kClampedGateOp, {gate, up},
                                      ClampedGateAttributes{0.5, 1.5})
        : activation == 1
            ? build_.Mul(build_.Gelu(gate, GeluApproximation::kTanh), up)
            : build_.Mul(build_.Silu(gate), up);
    const ValueId down = biased(product(joined, outputs, hidden));
    Named();
    ValueId y = build_.WeightedSum(down, chosen.weights);
    if (Chance(30)) {
      const ValueId share = build_.Sigmoid(Linear(x, 1));
      y = build_.Add(y, build_.WeightedSum(Linear(x, outputs), share));
    }
    return y;
  }

  ValueId Rope(ValueId x, int64_t head_dim) {
    if (head_dim % 2 != 0) return x;
    RopeOptions options;
    options.head_dim = head_dim;
    options.rope_dims = Chance(80) ? head_dim : 2 * (1 + Below(head_dim / 2));
    options.style = Chance(50) ? RopeStyle::kInterleaved : RopeStyle::kHalves;
    options.scale = Chance(80) ? 1.0 : 0.5;
    if (Chance(20)) options.factors = Vector(options.rope_dims / 2);
    if (Chance(20)) options.magnitude = 1.25;
    if (Chance(20)) {
      options.ramp_begin = Below(3);
      options.ramp_end = options.ramp_begin + 0.5 + Below(4);
    }
    Named();
    return build_.Rope(x, positions_, options);
  }

  ValueId State(const char* layout, DType type, int64_t heads, int64_t dim) {
    return graph_.AddState(
        absl::StrCat("state", graph_.value_count()),
        {type, Shape{Dim::Context(), Dim::Number(heads), Dim::Number(dim)},
         layout});
  }

  ValueId Attention(ValueId x) {
    const int64_t dims[] = {8, 16, 32, 64, 6};
    const int64_t key_dim = dims[Below(5)];
    const int64_t value_dim = Chance(85) ? key_dim : dims[Below(5)];
    const int64_t kv_heads = 1 + Below(2);
    const int64_t heads = kv_heads * (1 + Below(3));
    DType type = DType::kF16;
    if (Chance(50)) type = Chance(50) ? DType::kF32 : DType::kBF16;
    if (key_dim % 32 == 0 && value_dim % 32 == 0 && Chance(25)) {
      type = DType::kQ8_0;
    }
    const DType value_type =
        Chance(90) || value_dim % 32 != 0 || key_dim % 32 != 0 ? type
                                                               : DType::kF32;
    x = MaybeNorm(x);
    const DType weights = graph_.value(Weight(8, Width(x))).type.dtype;
    const DType* like = Chance(80) ? &weights : nullptr;
    ValueId q = Linear(x, heads * key_dim, like);
    ValueId k = Linear(x, kv_heads * key_dim, like);
    ValueId v = Linear(x, kv_heads * value_dim, Chance(70) ? like : nullptr);
    if (Chance(10)) Keep(Chance(50) ? k : v);
    if (Chance(15)) q = NormHeads(q, heads);
    if (Chance(15)) k = NormHeads(k, kv_heads);
    if (Chance(80)) q = Rope(q, key_dim);
    if (Chance(80)) k = Rope(k, key_dim);
    if (Chance(10)) v = Rope(v, value_dim);
    const ValueId key_state = State("keys", type, kv_heads, key_dim);
    const ValueId value_state =
        State("values", value_type, kv_heads, value_dim);
    Named();
    ValueId keys = build_.KvWrite(key_state, k, positions_, sequence_);
    Named();
    ValueId values = build_.KvWrite(value_state, v, positions_, sequence_);
    AttentionOptions options;
    options.heads = heads;
    options.scale = 1 / std::sqrt(static_cast<double>(key_dim));
    if (Chance(30)) options.window = 1 + Below(kContext);
    if (Chance(20)) options.softcap = 2;
    if (options.softcap == 0 && Chance(20)) options.alibi = 8;
    if (Chance(20)) options.chunk = 1 + Below(kContext);
    if (Chance(20)) {
      options.temperature = 0.3;
      options.temperature_period = 1 + Below(8);
    }
    Named();
    const ValueId scores =
        build_.AttentionScores(q, keys, positions_, sequence_, options,
                               Chance(20) ? positions_ : kNone);
    Named();
    const ValueId probabilities =
        build_.Softmax(scores, Chance(20) ? Vector(heads) : kNone);
    if (Chance(8)) {
      // Behind the scores, before the values are read.
      Named();
      const ValueId other = Linear(x, kv_heads * key_dim);
      Named();
      keys = build_.KvWrite(keys, other, positions_, sequence_);
      rewrites_ = true;
    }
    Named();
    const ValueId mixed =
        build_.AttentionValues(probabilities, values, positions_, sequence_);
    if (Chance(5)) {
      Named();
      values = build_.KvWrite(values, v, positions_, sequence_);
    }
    graph_.AddOutput(graph_.value(key_state).name, keys);
    graph_.AddOutput(graph_.value(value_state).name, values);
    return Linear(mixed, AnyWidth());
  }

  ValueId Elementwise(ValueId x) {
    // It has no kernel for a window.
    if (Chance(12) && !IsSlice(x)) {
      Named();
      return build_.Softmax(x);
    }
    const ElementwiseOp& made =
        elementwise_[Below(static_cast<int>(elementwise_.size()))];
    std::vector<ValueId> operands = {x};
    if (made.op->operands.size() > 1) {
      if (made.takes_vector && Chance(30)) {
        operands.push_back(Vector(Width(x)));
      } else {
        ValueId other = x;
        for (int i = 0; i < 8; ++i) {
          const ValueId value = Any();
          if (Width(value) == Width(x)) other = value;
        }
        // Products of products would grow beyond all bounds.
        if (made.op == &kAddOp) {
          operands.push_back(other);
        } else {
          operands = {Norm(x), Norm(other)};
        }
      }
    }
    const Attributes attributes = RandomAttributes(*made.op, &random_);
    Named();
    // Not every width may go with these attributes.
    return ResultTypes(graph_, Node(*made.op, operands, attributes)).ok()
               ? build_.Node(*made.op, operands, attributes)
               : build_.Silu(x);
  }

  // Once more what some node computes, under another name.
  void Repeat() {
    const Node node = graph_.node(graph_.order()[Below(graph_.order().size())]);
    if (OpOf(node).writes_state ||
        absl::StartsWith(node.op->name, "attention") ||
        node.outputs.size() > 1 ||
        graph_.value(node.outputs[0]).type.shape.rank() != 2) {
      return;
    }
    const ValueType type = graph_.value(node.outputs[0]).type;
    Keep(graph_
             .node(graph_.AddNode(Node(*node.op, node.inputs, node.attributes,
                                       absl::StrCat("node", ++names_)),
                                  {type}))
             .outputs[0]);
  }

  void AddPart() {
    const ValueId x = Any();
    const int part = Below(100);
    if (part < 20) {
      Keep(Residual(x));
    } else if (part < 34) {
      Keep(Gate(x));
    } else if (part < 40) {
      Keep(Experts(x));
    } else if (part < 57) {
      Keep(Attention(x));
    } else if (part < 65) {
      Keep(Linear(MaybeNorm(x), AnyWidth()));
    } else if (part < 85) {
      Keep(Elementwise(x));
    } else if (part < 92) {
      const int64_t begin = Below(static_cast<int>(Width(x)));
      Named();
      Keep(build_.Slice(x, begin,
                        1 + Below(static_cast<int>(Width(x) - begin))));
    } else {
      Repeat();
    }
  }

  void Finish(ValueId table) {
    ValueId x = MaybeNorm(Any());
    if (Chance(30)) {
      // Two lines of thought come together.
      const ValueId y = Linear(Norm(Any()), Width(x));
      Named();
      x = build_.Add(x, y);
    }
    Named();
    x = build_.TakeRows(x, output_rows_);
    if (Chance(30)) x = Residual(x);
    if (Chance(20)) x = Gate(x);
    x = Norm(x);
    ValueId logits;
    if (Width(x) == Width(table) && Chance(60)) {
      Named();
      logits = build_.Matmul(x, table);
    } else {
      const ValueId weight = Weight(vocabulary_, Width(x));
      Named();
      logits = build_.Matmul(x, weight);
    }
    graph_.AddOutput("logits", logits);
    if (!more_outputs_) return;
    for (int i = 0; i < 3; ++i) {
      const ValueId value = Any();
      // A slice has no memory of its own that could be the caller's, and what
      // is the caller's has no slices.
      bool sliced = IsSlice(value) || graph_.IsOutput(value);
      for (NodeId user : graph_.Users(value)) {
        sliced |= graph_.node(user).Is(kSliceOp);
      }
      if (!sliced) graph_.AddOutput(absl::StrCat("more", i), value);
    }
  }

  const uint32_t seed_;
  std::mt19937 random_;
  const bool more_outputs_;
  Graph graph_;
  GraphBuilder build_;
  int64_t vocabulary_ = 0;
  bool quantized_ = false, rewrites_ = false;
  ValueId ids_ = kNone, positions_ = kNone, sequence_ = kNone,
          output_rows_ = kNone;
  const std::vector<ElementwiseOp> elementwise_ = ElementwiseOps();
  std::vector<int64_t> widths_;
  std::vector<ValueId> pool_;  // f32[T, width]
  int names_ = 0;
};

}  // namespace

RandomModel MakeRandomModel(uint32_t seed, bool more_outputs) {
  return Maker(seed, more_outputs).Make();
}

}  // namespace weft
