// A vocabulary of three ops, enough to test graphs without ops/:
//   copy(x)          like x
//   pair(x)          two results like x
//   write(state, x)  a new version of the state
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/text_format.h"
#include "graph/verify.h"

namespace weft {

inline const OpSchema kCopy = [] {
  OpSchema op;
  op.name = "copy";
  return op;
}();
inline const OpSchema kPair = [] {
  OpSchema op;
  op.name = "pair";
  return op;
}();
inline const OpSchema kWrite = [] {
  OpSchema op;
  op.name = "write";
  op.writes_state = true;
  return op;
}();

inline const OpSchema* FindTestOp(absl::string_view name) {
  for (const OpSchema* op : {&kCopy, &kPair, &kWrite}) {
    if (name == op->name) return op;
  }
  return nullptr;
}

class TestRules : public OpRules {
 public:
  absl::StatusOr<std::vector<ValueType>> Infer(
      const Graph& graph, const Node& node) const override {
    if (node.Is(kWrite)) {
      // Like a rule that forgot to ask for operands: Verify must not trust it.
      if (node.inputs.empty()) return std::vector<ValueType>{};
      return std::vector<ValueType>{graph.value(node.inputs[0]).type};
    }
    if (node.inputs.empty() || (!node.Is(kCopy) && !node.Is(kPair))) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no op '", node.op->name, "'"));
    }
    return std::vector<ValueType>(node.Is(kPair) ? 2 : 1,
                                  graph.value(node.inputs[0]).type);
  }
};

// A header for up to 4 tokens and 64 positions, then these lines. Aborts the
// test when they cannot be read.
inline Graph TestGraph(absl::string_view lines) {
  return Parse(
             absl::StrCat("graph test tokens<=4 rows<=4 context<=64\n", lines),
             FindTestOp)
      .value();
}

inline std::string VerifyMessage(const Graph& graph) {
  return std::string(Verify(graph, TestRules()).message());
}

}  // namespace weft
