// ReferenceEvaluator for tests: graphs as text, numbers by name. A step has as
// many tokens and rows as the graph's bounds say.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/text_format.h"
#include "gtest/gtest.h"
#include "ops/op_table.h"
#include "ops/reference.h"
#include "ops/storage.h"
#include "runtime/check/reference_run.h"

namespace weft {

class ReferenceRun {
 public:
  // Lines of graph text; T, R and S are what `bounds` says.
  ReferenceRun(absl::string_view lines, Bounds bounds)
      : ReferenceRun(
            ParseGraph(absl::StrCat("graph test tokens<=", bounds.tokens,
                                    " rows<=", bounds.rows,
                                    " context<=", bounds.context, "\n", lines))
                .value()) {}

  // A graph that is not legal fails the test.
  explicit ReferenceRun(Graph graph)
      : graph_(std::move(graph)), given_(graph_.value_count()) {
    EXPECT_EQ(VerifyGraph(graph_).message(), "");
  }

  // Fills an input or a weight; as many numbers as it has.
  template <typename T>
  ReferenceRun& Set(const std::string& name, const std::vector<T>& numbers) {
    const ValueId id = graph_.FindValue(name);
    std::vector<uint8_t> bytes(numbers.size() * sizeof(T));
    EXPECT_EQ(StorageBytes(graph_.value(id).type, graph_.bounds), bytes.size())
        << name;
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    given_[id] = std::make_shared<Content>(std::move(bytes));
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
    absl::StatusOr<Contents> ran =
        ReferenceEvaluator().Run(graph_, {}, graph_.bounds, given_);
    EXPECT_TRUE(ran.ok()) << ran.status();
    if (!ran.ok()) return {};
    contents_ = *std::move(ran);
    std::map<std::string, std::vector<float>> outputs;
    for (const auto& [name, id] : graph_.outputs()) {
      if (IsStateType(graph_.value(id).type)) continue;
      const absl::Span<const uint8_t> bytes = contents_[id]->bytes();
      outputs[name].resize(bytes.size() / sizeof(float));
      std::memcpy(outputs[name].data(), bytes.data(), bytes.size());
    }
    return outputs;
  }

  // What the outputs that are states hold after Run, by the state's name.
  std::map<std::string, std::vector<uint8_t>> States() const {
    std::map<std::string, std::vector<uint8_t>> states;
    for (const auto& [name, id] : graph_.outputs()) {
      if (!IsStateType(graph_.value(id).type)) continue;
      // The last version of the chain.
      ValueId first = id;
      while (const Node* writer = graph_.Producer(first)) {
        first = writer->inputs[0];
      }
      const absl::Span<const uint8_t> bytes = contents_[id]->bytes();
      states[graph_.value(first).name].assign(bytes.begin(), bytes.end());
    }
    return states;
  }

 private:
  Graph graph_;
  Contents given_;     // inputs and weights
  Contents contents_;  // of the last run
};

}  // namespace weft
