// Adapters beside the products whose weights have some.
//
//   $q.lora_a.0, $q.lora_b.0, $q.lora_a.2, $q.lora_b.2
//   %scales = input adapter_scales f32[T,3]
//   %4 = matmul(%3, $q)
//     ->
//   %a = concat_rows($q.lora_a.0, $q.lora_a.2)
//   %b = concat_rows($q.lora_b.0, $q.lora_b.2)
//   %5 = matmul(%3, $q)
//   %4 = lora_add(%5, %3, %a, %b, %scales) ranks="8,0,16"
//
// It runs before all that rewrite products, so that these and their operands
// are what the loader wrote: later passes round the operand for the product,
// but not for the adapter, and join products whose results go through adapters.
// A product for the wanted rows alone (of logits) gets those rows of the
// scales. One with some rows of a weight (slice_rows) gets those columns of
// each B. A row whose scales are all 0 keeps its bits.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/standard_inputs.h"
#include "ops/lora.h"
#include "ops/ops.h"
#include "passes/insert_before.h"
#include "passes/pass.h"

namespace weft {
namespace {

// What is attached to one weight; empty: nothing.
struct Attached {
  std::vector<ValueId> a, b;
  std::vector<int64_t> ranks;  // of all adapters
};

using Names = std::map<std::string, ValueId>;

ValueId Find(const Names& names, const std::string& name) {
  const auto it = names.find(name);
  return it == names.end() ? kNone : it->second;
}

Attached AttachedTo(const Graph& graph, const Names& names,
                    const std::string& weight, int64_t adapters) {
  Attached attached;
  for (int64_t i = 0; i < adapters; ++i) {
    const ValueId a = Find(names, LoraAName(weight, i));
    const ValueId b = Find(names, LoraBName(weight, i));
    const bool has = a != kNone && b != kNone;
    attached.ranks.push_back(has ? graph.value(a).type.shape[0].value : 0);
    if (!has) continue;
    attached.a.push_back(a);
    attached.b.push_back(b);
  }
  return attached;
}

ValueId Joined(Graph& graph, NodeId before, const std::vector<ValueId>& parts,
               const std::string& name) {
  if (parts.size() == 1) return parts[0];
  return InsertBefore(graph, before, Node(kConcatRowsOp, parts, {}, name));
}

// The columns of b that stand for those rows of the weight, as a weight of its
// own. Adapters are small and in memory already: so are these.
ValueId ColumnsOf(Graph& graph, ValueId b, const SliceRowsAttributes& rows) {
  const Value whole = graph.value(b);
  const int64_t ranks = whole.type.shape[0].value;
  const int64_t columns = whole.type.shape[1].value;
  const int64_t part = columns / rows.parts;
  WeightData data;
  if (!whole.data.bytes.empty()) {
    auto bytes = std::make_shared<std::vector<uint8_t>>();
    for (int64_t i = 0; i < ranks * rows.parts; ++i) {
      const auto begin =
          whole.data.bytes.begin() + (i * part + rows.begin) * sizeof(float);
      bytes->insert(bytes->end(), begin, begin + rows.size * sizeof(float));
    }
    data.bytes = *bytes;
    data.owner = bytes;
  }
  return graph.AddWeight(
      graph.FreeName(whole.name + ".columns"),
      {DType::kF32,
       Shape{Dim::Number(ranks), Dim::Number(rows.parts * rows.size)}, ""},
      std::move(data));
}

}  // namespace

absl::Status AddAdapters(Graph& graph, const PassOptions&) {
  const ValueId scales =
      graph.FindValue(Info(StandardInput::kAdapterScales).name);
  const ValueId output_rows =
      graph.FindValue(Info(StandardInput::kOutputRows).name);
  if (scales == kNone) return absl::OkStatus();
  const int64_t adapters = graph.value(scales).type.shape[1].value;
  const std::vector<NodeId> order = graph.order();
  std::vector<bool> read(graph.value_count());
  for (NodeId id : order) {
    for (ValueId input : graph.node(id).inputs) read[input] = true;
  }
  Names names;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    // Where somebody reads them, the pass has been here before.
    if (graph.IsWeight(id) && !read[id]) {
      names.emplace(graph.value(id).name, id);
    }
  }
  for (NodeId id : order) {
    const Node product = graph.node(id);
    if (!product.Is(kMatmulOp)) continue;
    const NodeId slice = graph.ProducerOf(product.inputs[1], kSliceRowsOp);
    const ValueId matrix =
        slice != kNone ? graph.node(slice).inputs[0] : product.inputs[1];
    if (!graph.IsWeight(matrix)) continue;
    const std::string weight = graph.value(matrix).name;
    Attached attached = AttachedTo(graph, names, weight, adapters);
    if (attached.a.empty()) continue;
    if (slice != kNone) {
      const auto rows = graph.node(slice).attributes.As<SliceRowsAttributes>();
      for (ValueId& b : attached.b) b = ColumnsOf(graph, b, rows);
    }
    ValueId own_scales = scales;
    if (graph.value(product.outputs[0]).type.shape[0] == Dim::Rows()) {
      own_scales = InsertBefore(
          graph, id,
          Node(kTakeRowsOp, {scales, output_rows}, {}, "adapter_scales"));
    }
    const ValueId a =
        Joined(graph, id, attached.a, absl::StrCat(weight, ".lora_a"));
    const ValueId b =
        Joined(graph, id, attached.b, absl::StrCat(weight, ".lora_b"));
    const ValueId y = InsertBefore(
        graph, id,
        Node(kMatmulOp, product.inputs, product.attributes, product.name));
    Node& sum = graph.node(id);
    sum.inputs = {y, product.inputs[0], a, b, own_scales};
    sum.Become(kLoraAddOp, LoraAddAttributes{LoraRanksText(attached.ranks)});
    if (!product.name.empty()) sum.name = product.name + ".lora";
  }
  return absl::OkStatus();
}

}  // namespace weft
