// A program: values and the nodes that compute them, in single static
// assignment form.
//
// Values and nodes are named by ids, indices that stay valid for the life of
// the graph (erased ones are never reused). Nodes stand in one list whose order
// is an order of execution: an operand is made before it is used.
//
// Copying a graph copies the program; the bytes of weights are shared. Not
// thread-safe for writers; const access from several threads is fine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/attributes.h"
#include "graph/dtype.h"
#include "graph/op_schema.h"
#include "graph/shape.h"

namespace weft {

using ValueId = int32_t;
using NodeId = int32_t;
constexpr int32_t kNone = -1;

enum class ValueKind : uint8_t {
  kInput,      // given anew in every step
  kWeight,     // constant
  kState,      // lives from step to step; kv_write makes new versions
  kTemporary,  // made by a node
};

// The bytes of a weight and what keeps them alive; or, for a weight that a pass
// made of others, how many there will be and how to make them (what it reads is
// kept alive by the function).
struct WeightData {
  absl::Span<const uint8_t> bytes;
  std::shared_ptr<const void> owner;
  // The bytes lie in a mapped file: once copied, their pages may be given back.
  bool mapped = false;
  int64_t made_bytes = 0;
  std::function<void(uint8_t* out)> make = nullptr;
};

// Type of a value: what a node's rule computes.
struct ValueType {
  DType dtype = DType::kF32;
  Shape shape;
  // How the elements lie in memory when it is not row after row: "panel16" for
  // a packed weight, "keys" or "values" for a KV state; else empty.
  std::string layout;

  bool operator==(const ValueType& other) const {
    return dtype == other.dtype && shape == other.shape &&
           layout == other.layout;
  }
  std::string ToString() const;  // "f32[T,2048]", "q4_0[64,64]{panel16}"
};

struct Value {
  ValueKind kind = ValueKind::kTemporary;
  ValueType type;
  // Of an input, weight or state; empty for temporaries.
  std::string name;
  NodeId producer = kNone;  // temporaries only
  WeightData data;          // weights only; empty in a graph that was parsed
  // Place in the arena, set by plan-buffers; -1 before. Views and in-place
  // results have the place of what they share.
  int64_t offset = -1;
};

// What plan-buffers found, in bytes; -1 before. The lower bound is the largest
// set of buffers alive at once, buffers that share memory counted once.
struct ArenaPlan {
  int64_t bytes = -1;
  int64_t lower_bound = -1;
  int64_t sum_of_intermediates = -1;
};

struct Node {
  Node() = default;
  // Attributes that are not given are all absent.
  explicit Node(const OpSchema& op, std::vector<ValueId> inputs = {},
                Attributes attributes = {}, std::string name = "")
      : inputs(std::move(inputs)), name(std::move(name)) {
    Become(op, std::move(attributes));
  }

  bool Is(const OpSchema& schema) const { return op == &schema; }
  // Of another op from now on; operands, results and name stay.
  void Become(const OpSchema& schema, Attributes values = {}) {
    op = &schema;
    attributes = values.schema().empty() ? Attributes(schema.attributes)
                                         : std::move(values);
  }

  // Never null in a graph.
  const OpSchema* op = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  // Where in the model it stands, e.g. "blk.0.attn_q"; for people, not for
  // code.
  std::string name;
  // The kernel that runs it, set by choose-kernels
  // (ops/kernels/kernel_table.h); empty before.
  std::string kernel;
  bool erased = false;
  // Shared scratch memory in the arena, set by plan-buffers.
  int64_t scratch_offset = -1;
  // Keeps `op` where nobody else does (MakeUnknownOp).
  std::shared_ptr<const OpSchema> unknown_op;
};

class Graph {
 public:
  std::string name;
  Bounds bounds;  // the largest step that the graph is planned for
  ArenaPlan arena;

  // --- Building.
  ValueId AddInput(std::string name, ValueType type);
  ValueId AddState(std::string name, ValueType type);
  ValueId AddWeight(std::string name, ValueType type, WeightData data);

  // Adds a node at the end, or before `before`. Results get the given types.
  // Requires an op, and no results so far.
  NodeId AddNode(Node node, std::vector<ValueType> results,
                 NodeId before = kNone);
  void AddOutput(std::string name, ValueId value);

  // --- Reading. Ids must be valid.
  const Value& value(ValueId id) const { return values_[id]; }
  Value& value(ValueId id) { return values_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  Node& node(NodeId id) { return nodes_[id]; }
  int32_t value_count() const { return static_cast<int32_t>(values_.size()); }
  int32_t node_count() const { return static_cast<int32_t>(nodes_.size()); }
  // Nodes in order of execution, none erased.
  const std::vector<NodeId>& order() const { return order_; }
  const std::vector<std::pair<std::string, ValueId>>& outputs() const {
    return outputs_;
  }
  // kNone when there is none.
  ValueId FindValue(absl::string_view name) const;
  // `name`, with a number behind it if a value has it already.
  std::string FreeName(const std::string& name) const;

  // --- Questions that passes ask.
  // The node that makes a value, or null.
  const Node* Producer(ValueId id) const;
  // The producer if it is of this op, else kNone.
  NodeId ProducerOf(ValueId id, const OpSchema& op) const;
  std::vector<NodeId> Users(ValueId id) const;
  // The one node that reads the value, and nothing else does (it is no graph
  // output); else kNone.
  NodeId OnlyUser(ValueId id) const;
  bool IsOutput(ValueId id) const;
  bool IsWeight(ValueId id) const {
    return values_[id].kind == ValueKind::kWeight;
  }

  // --- Rewriting.
  // All readers (and graph outputs) of `from` read `to` instead.
  void ReplaceUses(ValueId from, ValueId to);
  void Erase(NodeId id);
  // Removes nodes whose results nothing reads, until none is left. Returns how
  // many. State versions are graph outputs, so writes stay.
  int EraseDead();
  void SetOrder(std::vector<NodeId> order) { order_ = std::move(order); }
  void SetOutput(int index, ValueId value) { outputs_[index].second = value; }
  void RemoveOutput(absl::string_view name);
  // Drops erased nodes and unused values, and renumbers: what is saved.
  Graph Compact() const;

 private:
  ValueId AddValue(Value value);

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<NodeId> order_;
  std::vector<std::pair<std::string, ValueId>> outputs_;
};

// Attributes that are not absent and, as "kernel", the node's kernel, in order
// of name: what texts, files and pages show.
void ForEachAttribute(
    const Node& node,
    const std::function<void(absl::string_view name,
                             const AttributeValue& value)>& call);

// The inverse, for text and files: a node of this op with these attributes, no
// operands yet. Errors: those of Attributes::Set, a kernel that is no text.
absl::StatusOr<Node> MakeNode(
    absl::string_view op,
    absl::Span<const std::pair<std::string, AttributeValue>> attributes,
    OpLookup find);

// Bytes of a value within these bounds. Quantised rows and block types
// included; packed layouts are asked of the op that made them.
int64_t ValueBytes(const ValueType& type, const Bounds& bounds);

}  // namespace weft
