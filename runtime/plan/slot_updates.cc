#include "runtime/plan/slot_updates.h"

#include <algorithm>

#include "ops/op_table.h"
#include "ops/reference.h"
#include "ops/storage.h"

namespace weft {
namespace {

int64_t SumOf(const std::vector<TokenRows>& rows) {
  int64_t bytes = 0;
  for (const TokenRows& one : rows) bytes += one.bytes;
  return bytes;
}

// One row of a matrix, without distance to the next.
TokenRows RowOf(const Graph& graph, ValueId id, int index) {
  const ValueType& type = graph.value(id).type;
  return {index, MatrixOperand(type, graph.bounds, nullptr).row_bytes};
}

}  // namespace

int64_t SlotUpdate::operand_bytes() const { return SumOf(operands); }
int64_t SlotUpdate::result_bytes() const { return SumOf(results); }

std::vector<SlotUpdate> SlotUpdates(const Graph& graph) {
  std::vector<int> state_of(graph.value_count(), -1);
  int states = 0;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.value(id).kind == ValueKind::kState) state_of[id] = states++;
  }
  std::vector<SlotUpdate> updates;
  for (NodeId n : graph.order()) {
    const Node& node = graph.node(n);
    if (!OpOf(node).writes_state) continue;
    const int state = state_of[node.inputs[0]];
    state_of[node.outputs[0]] = state;
    if (!IsSlotState(graph.value(node.inputs[0]).type)) continue;
    SlotUpdate update;
    update.node = n;
    update.state = state;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const OperandSchema& operand =
          node.op->operands[std::min(i, node.op->operands.size() - 1)];
      const int index = static_cast<int>(i);
      if (operand.role == OperandRole::kRows) {
        update.operands.push_back(RowOf(graph, node.inputs[i], index));
      } else if (operand.index == IndexKind::kPosition) {
        update.positions = index;
      } else if (operand.index == IndexKind::kSequence) {
        update.sequence = index;
      }
    }
    for (size_t i = 1; i < node.outputs.size(); ++i) {
      update.results.push_back(
          RowOf(graph, node.outputs[i], static_cast<int>(i)));
    }
    updates.push_back(std::move(update));
  }
  return updates;
}

int64_t HistoryBytes(const std::vector<SlotUpdate>& updates, int64_t slots,
                     int64_t rows) {
  int64_t operands = 0, results = 0;
  for (const SlotUpdate& update : updates) {
    operands += update.operand_bytes();
    results = std::max(results, update.result_bytes());
  }
  return (operands * slots + results) * rows;
}

}  // namespace weft
