#include "ops/build.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/op_table.h"

namespace weft {

ValueId GraphBuilder::Add(const char* op, std::vector<ValueId> inputs,
                          Attributes attributes) {
  // An operand that could not be made has its error told elsewhere.
  if (!status_.ok() || std::count(inputs.begin(), inputs.end(), kNone) > 0) {
    return kNone;
  }
  Node node;
  node.op = op;
  node.inputs = inputs;
  node.attributes = attributes;
  absl::StatusOr<std::vector<ValueType>> types =
      FindOp(op)->infer(graph_, node);
  if (!types.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(
        "cannot build the graph: ", name_, ": ", types.status().message()));
    return kNone;
  }
  const NodeId id = graph_.AddNode(op, std::move(inputs), *std::move(types),
                                   std::move(attributes), name_);
  return graph_.node(id).outputs[0];
}

ValueId GraphBuilder::Embed(ValueId ids, ValueId table) {
  return Add("embed", {ids, table});
}

ValueId GraphBuilder::RmsNorm(ValueId x, ValueId weight, double eps,
                              int64_t heads) {
  Attributes attributes;
  attributes.Set("eps", eps);
  if (heads != 1) attributes.Set("heads", heads);
  return Add("rms_norm", {x, weight}, std::move(attributes));
}

ValueId GraphBuilder::LayerNorm(ValueId x, ValueId weight, ValueId bias,
                                double eps, int64_t heads) {
  Attributes attributes;
  attributes.Set("eps", eps);
  if (heads != 1) attributes.Set("heads", heads);
  std::vector<ValueId> inputs = {x, weight};
  if (bias != kNone) inputs.push_back(bias);
  return Add("layer_norm", std::move(inputs), std::move(attributes));
}

ValueId GraphBuilder::Matmul(ValueId x, ValueId weight) {
  return Add("matmul", {x, weight});
}

ValueId GraphBuilder::ConcatRows(std::vector<ValueId> weights) {
  return Add("concat_rows", std::move(weights));
}

ValueId GraphBuilder::Add(ValueId a, ValueId b) { return Add("add", {a, b}); }

ValueId GraphBuilder::Mul(ValueId a, ValueId b) { return Add("mul", {a, b}); }

ValueId GraphBuilder::Scale(ValueId x, double factor) {
  Attributes attributes;
  attributes.Set("factor", factor);
  return Add("scale", {x}, std::move(attributes));
}

ValueId GraphBuilder::Softcap(ValueId x, double cap) {
  Attributes attributes;
  attributes.Set("cap", cap);
  return Add("softcap", {x}, std::move(attributes));
}

ValueId GraphBuilder::Silu(ValueId x) { return Add("silu", {x}); }

ValueId GraphBuilder::Gelu(ValueId x, const char* approximation) {
  Attributes attributes;
  attributes.Set("approximation", std::string(approximation));
  return Add("gelu", {x}, std::move(attributes));
}

ValueId GraphBuilder::Rope(ValueId x, ValueId positions,
                           const RopeOptions& options) {
  Attributes attributes;
  attributes.Set("head_dim", options.head_dim);
  attributes.Set("rope_dims", options.rope_dims);
  attributes.Set("base", options.base);
  attributes.Set("scale", options.scale);
  attributes.Set("style", std::string(options.style));
  if (options.magnitude != 1) attributes.Set("magnitude", options.magnitude);
  if (options.ramp_end > 0) {
    attributes.Set("ramp_begin", options.ramp_begin);
    attributes.Set("ramp_end", options.ramp_end);
  }
  std::vector<ValueId> inputs = {x, positions};
  if (options.factors != kNone) inputs.push_back(options.factors);
  return Add("rope", std::move(inputs), std::move(attributes));
}

ValueId GraphBuilder::KvWrite(ValueId state, ValueId x, ValueId positions,
                              ValueId sequence) {
  return Add("kv_write", {state, x, positions, sequence});
}

ValueId GraphBuilder::AttentionScores(ValueId q, ValueId keys,
                                      ValueId positions, ValueId sequence,
                                      const AttentionOptions& options) {
  Attributes attributes;
  attributes.Set("heads", options.heads);
  attributes.Set("scale", options.scale);
  if (options.window > 0) attributes.Set("window", options.window);
  if (options.softcap > 0) attributes.Set("softcap", options.softcap);
  return Add("attention_scores", {q, keys, positions, sequence},
             std::move(attributes));
}

ValueId GraphBuilder::Softmax(ValueId x) { return Add("softmax", {x}); }

ValueId GraphBuilder::AttentionValues(ValueId weights, ValueId values,
                                      ValueId positions, ValueId sequence) {
  return Add("attention_values", {weights, values, positions, sequence});
}

ValueId GraphBuilder::TakeRows(ValueId x, ValueId rows) {
  return Add("take_rows", {x, rows});
}

ValueId GraphBuilder::Slice(ValueId x, int64_t begin, int64_t size) {
  Attributes attributes;
  attributes.Set("begin", begin);
  attributes.Set("size", size);
  return Add("slice", {x}, std::move(attributes));
}

ValueId GraphBuilder::Sigmoid(ValueId x) { return Add("sigmoid", {x}); }

Chosen GraphBuilder::TopK(ValueId x, int64_t k, bool normalize) {
  Attributes attributes;
  attributes.Set("k", k);
  attributes.Set("normalize", static_cast<int64_t>(normalize));
  const ValueId ids = Add("top_k", {x}, std::move(attributes));
  if (ids == kNone) return {};
  return {ids, graph_.Producer(ids)->outputs[1]};
}

ValueId GraphBuilder::ExpertMatmul(ValueId x, ValueId weight, ValueId ids,
                                   int64_t experts) {
  Attributes attributes;
  attributes.Set("experts", experts);
  return Add("expert_matmul", {x, weight, ids}, std::move(attributes));
}

ValueId GraphBuilder::WeightedSum(ValueId x, ValueId weights) {
  return Add("weighted_sum", {x, weights});
}

}  // namespace weft
