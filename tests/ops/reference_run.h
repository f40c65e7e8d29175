// Runs a graph with the ops' reference functions. A step has as many tokens and
// rows as the graph's bounds say; each state has one sequence, in slot 0, whose
// pages lie in reverse order.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/text_format.h"
#include "gtest/gtest.h"
#include "ops/op_table.h"
#include "ops/storage.h"

namespace weft {

class ReferenceRun {
 public:
  // Lines of graph text; T, R and S are what `bounds` says.
  ReferenceRun(absl::string_view lines, Bounds bounds)
      : ReferenceRun(Parse(absl::StrCat("graph test tokens<=", bounds.tokens,
                                        " rows<=", bounds.rows, " context<=",
                                        bounds.context, "\n", lines))
                         .value()) {}

  // A graph that is not legal fails the test. Weights that have bytes, or know
  // how to make them, are filled.
  explicit ReferenceRun(Graph graph) : graph_(std::move(graph)) {
    EXPECT_EQ(VerifyGraph(graph_).message(), "");
    buffers_.resize(graph_.value_count());
    states_.resize(graph_.value_count());
    for (ValueId id = 0; id < graph_.value_count(); ++id) {
      const Value& value = graph_.value(id);
      buffers_[id].resize(StorageBytes(value.type, graph_.bounds));
      operands_.push_back(
          MatrixOperand(value.type, graph_.bounds, buffers_[id].data()));
      if (!value.data.bytes.empty()) {
        EXPECT_EQ(value.data.bytes.size(), buffers_[id].size()) << value.name;
        std::memcpy(buffers_[id].data(), value.data.bytes.data(),
                    buffers_[id].size());
      } else if (value.data.make) {
        value.data.make(buffers_[id].data());
      }
      if (value.kind != ValueKind::kState) continue;
      const int64_t pages =
          (graph_.bounds.context + kPageTokens - 1) / kPageTokens;
      page_table_.resize(pages);
      for (int64_t p = 0; p < pages; ++p) page_table_[p] = pages - 1 - p;
      states_[id] = {buffers_[id].data(), KvPageBytes(value.type),
                     page_table_.data(), pages};
      operands_[id].state = &states_[id];
    }
  }

  // Fills an input or a weight; as many numbers as it has.
  template <typename T>
  ReferenceRun& Set(const std::string& name, const std::vector<T>& numbers) {
    std::vector<uint8_t>& buffer = buffers_[graph_.FindValue(name)];
    EXPECT_EQ(buffer.size(), numbers.size() * sizeof(T)) << name;
    std::memcpy(buffer.data(), numbers.data(), buffer.size());
    return *this;
  }

  // The graph's output of this name, as floats.
  std::vector<float> Run(const std::string& output) {
    std::map<std::string, std::vector<float>> outputs = Run();
    EXPECT_EQ(outputs.count(output), 1u) << "no output " << output;
    return outputs[output];
  }

  // All outputs but states.
  std::map<std::string, std::vector<float>> Run() {
    for (NodeId id : graph_.order()) RunNode(graph_.node(id));
    std::map<std::string, std::vector<float>> outputs;
    for (const auto& [name, value] : graph_.outputs()) {
      const Operand& y = operands_[value];
      if (y.state != nullptr) continue;
      std::vector<float>& floats = outputs[name];
      floats.resize(y.rows * y.columns);
      for (int64_t row = 0; row < y.rows; ++row) {
        std::memcpy(&floats[row * y.columns],
                    static_cast<uint8_t*>(y.data) + row * y.row_bytes,
                    y.columns * sizeof(float));
      }
    }
    return outputs;
  }

  // What the states hold, by name.
  std::map<std::string, std::vector<uint8_t>> States() const {
    std::map<std::string, std::vector<uint8_t>> states;
    for (ValueId id = 0; id < graph_.value_count(); ++id) {
      if (graph_.value(id).kind == ValueKind::kState) {
        states[graph_.value(id).name] = buffers_[id];
      }
    }
    return states;
  }

 private:
  void RunNode(const Node& node) {
    const OpDef& op = OpOf(node);
    const ValueId first = node.inputs[0];
    if (op.writes_state) {
      operands_[node.outputs[0]].state = operands_[first].state;
    }
    if (op.view) {
      Operand& view = operands_[node.outputs[0]];
      view.data = static_cast<uint8_t*>(operands_[first].data) +
                  node.attributes.Int("begin") * sizeof(float);
      view.row_bytes = operands_[first].row_bytes;
      return;
    }
    std::vector<Operand> inputs, outputs;
    for (ValueId id : node.inputs) inputs.push_back(operands_[id]);
    for (ValueId id : node.outputs) outputs.push_back(operands_[id]);
    op.reference({graph_, node, inputs.data(), outputs.data(), graph_.bounds});
  }

  Graph graph_;
  std::vector<std::vector<uint8_t>> buffers_;
  std::vector<Operand> operands_;
  std::vector<KvState> states_;
  std::vector<int32_t> page_table_;
};

}  // namespace weft
