// Lays weights out, once and for all.
//
//   %w = concat_rows($q, $k, $v)
//   %p = pack_weight(%w) layout="panel16"
//     ->
//   $blk.0.attn_qkv = weight {panel16}
//
// The new weight knows how to make its bytes from its sources
// (WeightData::make); they are made when the plan is run or saved, so looking
// at a plan costs nothing.
#include <memory>

#include "base/mapped_file.h"
#include "ops/ops.h"
#include "ops/storage.h"
#include "ops/weight_source.h"
#include "passes/pass.h"

namespace weft {
namespace {

bool IsWeightOp(const Node* node) {
  return node != nullptr &&
         (node->Is(kPackWeightOp) || node->Is(kConcatRowsOp) ||
          node->Is(kInterleaveRowsOp) || node->Is(kSliceRowsOp) ||
          node->Is(kTransposeRowsOp));
}

// The sources of a weight made by these ops; false when they are not constant.
bool Collect(const Graph& graph, ValueId value, WeightSource* source,
             std::vector<WeightData>* parts) {
  if (graph.IsWeight(value)) {
    const Value& weight = graph.value(value);
    // A weight without bytes (of a parsed graph, or made itself) cannot be a
    // source.
    if (weight.data.bytes.empty()) return false;
    source->Add(weight.type, weight.data.bytes.data());
    parts->push_back(weight.data);
    return true;
  }
  const Node* producer = graph.Producer(value);
  if (!IsWeightOp(producer)) return false;
  if (producer->Is(kSliceRowsOp) || producer->Is(kTransposeRowsOp)) {
    const ValueId whole = producer->inputs[0];
    if (!graph.IsWeight(whole)) return false;
    const Value& weight = graph.value(whole);
    if (weight.data.bytes.empty()) return false;
    const auto slice = producer->attributes.As<SliceRowsAttributes>();
    const uint8_t* data = weight.data.bytes.data();
    if (producer->Is(kSliceRowsOp)) {
      source->AddSlice(weight.type, data, slice.parts, slice.begin, slice.size);
    } else {
      source->SetTransposed(weight.type, data, slice.parts, slice.begin,
                            slice.size);
    }
    parts->push_back(weight.data);
    return true;
  }
  for (ValueId input : producer->inputs) {
    // A source interleaves or transposes all of its rows or none.
    if (!producer->Is(kPackWeightOp) &&
        (graph.ProducerOf(input, kInterleaveRowsOp) != kNone ||
         graph.ProducerOf(input, kTransposeRowsOp) != kNone)) {
      return false;
    }
    if (!Collect(graph, input, source, parts)) return false;
  }
  if (producer->Is(kInterleaveRowsOp)) source->Interleave();
  return true;
}

}  // namespace

absl::Status PackWeights(Graph& graph, const PassOptions&) {
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    const Node node = graph.node(id);
    if (!IsWeightOp(&node)) continue;
    const ValueId result = node.outputs[0];
    // Only the last of a chain: what it is made of is read through it.
    const NodeId user = graph.OnlyUser(result);
    if (user != kNone && IsWeightOp(&graph.node(user))) continue;
    auto source = std::make_shared<WeightSource>();
    std::vector<WeightData> parts;
    if (!Collect(graph, result, source.get(), &parts)) continue;
    const ValueType type = graph.value(result).type;
    WeightData data;
    data.made_bytes = StorageBytes(type, graph.bounds);
    data.make = [source, parts, type](uint8_t* out) {
      source->Pack(type, out);
      // What was read will not be read again: the file need not stay in memory
      // beside the copy.
      for (const WeightData& part : parts) {
        if (part.mapped) ReleasePages(part.bytes);
      }
    };
    // A weight that is only laid out anew keeps its name, unless its old form
    // is still read.
    std::string name = node.name.empty() ? "weight" : node.name;
    const ValueId old = graph.FindValue(name);
    if (old != kNone) {
      if (graph.OnlyUser(old) == id) {
        graph.value(old).type = type;
        graph.value(old).data = std::move(data);
        graph.ReplaceUses(result, old);
        graph.Erase(id);
        continue;
      }
      name += "." + (type.layout.empty() ? "rows" : type.layout);
    }
    const ValueId packed =
        graph.AddWeight(graph.FreeName(name), type, std::move(data));
    graph.ReplaceUses(result, packed);
    graph.Erase(id);
  }
  graph.EraseDead();
  return absl::OkStatus();
}

}  // namespace weft
