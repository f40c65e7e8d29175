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

class TestRules : public OpRules {
 public:
  absl::StatusOr<std::vector<ValueType>> Infer(
      const Graph& graph, const Node& node) const override {
    if (node.op == "write") {
      // Like a rule that forgot to ask for operands: Verify must not trust it.
      if (node.inputs.empty()) return std::vector<ValueType>{};
      return std::vector<ValueType>{graph.value(node.inputs[0]).type};
    }
    if (node.inputs.empty() || (node.op != "copy" && node.op != "pair")) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no op '", node.op, "'"));
    }
    return std::vector<ValueType>(node.op == "pair" ? 2 : 1,
                                  graph.value(node.inputs[0]).type);
  }

  bool WritesState(const Node& node) const override {
    return node.op == "write";
  }
};

// A header for up to 4 tokens and 64 positions, then these lines. Aborts the
// test when they cannot be read.
inline Graph TestGraph(absl::string_view lines) {
  return Parse(
             absl::StrCat("graph test tokens<=4 rows<=4 context<=64\n", lines))
      .value();
}

inline std::string VerifyMessage(const Graph& graph) {
  return std::string(Verify(graph, TestRules()).message());
}

}  // namespace weft
