// Builds graphs of ops by their records, with result types by the ops' own
// rules.
//
// The first error sticks (status()); after it every call returns a value that
// must not be used, so a builder reads like the model and is checked once at
// the end. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph.h"
#include "ops/ops.h"

namespace weft {

struct RopeOptions : RopeAttributes {
  ValueId factors = kNone;  // f32[rope_dims / 2], divides frequencies
};

using AttentionOptions = AttentionAttributes;

// The results of top_k.
struct Chosen {
  ValueId ids = kNone;
  ValueId weights = kNone;
};

// The results of an op with a state by sequence: the state's new version, which
// must be an output of the graph, and rows.
struct Stepped {
  ValueId state = kNone;
  ValueId rows = kNone;
};

// What rows belong to.
struct RowsOf {
  ValueId positions = kNone;
  ValueId sequence = kNone;
};

class GraphBuilder {
 public:
  // `graph` must outlive the builder.
  explicit GraphBuilder(Graph* graph) : graph_(*graph) {}

  Graph& graph() { return graph_; }
  const absl::Status& status() const { return status_; }

  // The name given to the nodes that follow; goes into dumps.
  void Name(std::string name) { name_ = std::move(name); }

  // A node of any op, by its record; the first result. What the methods below
  // do, for the ops that models often have.
  ValueId Node(const OpDef& op, std::vector<ValueId> inputs,
               Attributes attributes = {});

  ValueId Embed(ValueId ids, ValueId table);
  // Of each of `heads` equal parts of a row by itself. The weight of RmsNorm
  // and the bias may be kNone.
  ValueId RmsNorm(ValueId x, ValueId weight, double eps, int64_t heads = 1);
  ValueId LayerNorm(ValueId x, ValueId weight, ValueId bias, double eps,
                    int64_t heads = 1);
  ValueId Matmul(ValueId x, ValueId weight);
  ValueId Add(ValueId a, ValueId b);
  ValueId Mul(ValueId a, ValueId b);
  ValueId Scale(ValueId x, double factor);
  ValueId Softcap(ValueId x, double cap);  // cap * tanh(x / cap)
  ValueId Silu(ValueId x);
  ValueId Gelu(ValueId x, GeluApproximation approximation);
  // Of weights: one below the other.
  ValueId ConcatRows(std::vector<ValueId> weights);
  ValueId Rope(ValueId x, ValueId positions, const RopeOptions& options);
  ValueId KvWrite(ValueId state, ValueId x, ValueId positions,
                  ValueId sequence);
  ValueId AttentionScores(ValueId q, ValueId keys, ValueId positions,
                          ValueId sequence, const AttentionOptions& options,
                          ValueId own_positions = kNone);
  // `sinks` (a number more for each head, gone from the result) may be kNone.
  ValueId Softmax(ValueId x, ValueId sinks = kNone);
  // `value_dim` of keys that are values too; 0: all of each.
  ValueId AttentionValues(ValueId probabilities, ValueId values,
                          ValueId positions, ValueId sequence,
                          int64_t value_dim = 0);
  // Each of `heads` equal parts of a row times its own matrix, which stand one
  // below the other in `weight`.
  ValueId HeadMatmul(ValueId x, ValueId weight, int64_t heads);
  // Each head of a, then of b.
  ValueId ConcatHeads(ValueId a, ValueId b, int64_t heads = 1);
  ValueId TakeRows(ValueId x, ValueId rows);
  ValueId MeanRows(ValueId x, ValueId sequence, ValueId rows);
  ValueId Slice(ValueId x, int64_t begin, int64_t size);
  ValueId Sigmoid(ValueId x);
  ValueId Softplus(ValueId x);
  ValueId Relu(ValueId x);
  // Each of `heads` equal parts of a row.
  ValueId L2Norm(ValueId x, double eps, int64_t heads = 1);
  // See recurrent.cc. `bias` may be kNone.
  Stepped ShortConv(ValueId window, ValueId x, ValueId taps, ValueId bias,
                    const RowsOf& rows);
  Stepped DeltaRule(ValueId matrices, ValueId q, ValueId k, ValueId v,
                    ValueId decay, ValueId beta, const RowsOf& rows,
                    const DeltaRuleAttributes& attributes);
  Stepped SelectiveScan(ValueId matrices, ValueId x, ValueId b, ValueId c,
                        ValueId dt, ValueId a, ValueId d, const RowsOf& rows);
  // Of a weight: rows begin .. begin + size - 1 of each of its equal parts.
  ValueId SliceRows(ValueId weight, int64_t parts, int64_t begin, int64_t size);
  // The same rows, each part transposed.
  ValueId TransposeRows(ValueId weight, int64_t parts, int64_t begin,
                        int64_t size);
  // See experts.h; `bias` may be kNone.
  Chosen TopK(ValueId x, ValueId bias, const TopKAttributes& options);
  ValueId ExpertAdd(ValueId x, ValueId bias, ValueId ids, int64_t experts);
  ValueId ExpertMul(ValueId x, ValueId weight, ValueId ids, int64_t experts);
  ValueId ExpertMatmul(ValueId x, ValueId weight, ValueId ids, int64_t experts);
  ValueId WeightedSum(ValueId x, ValueId weights);

 private:
  Stepped Step(const OpDef& op, std::vector<ValueId> inputs,
               Attributes attributes = {});

  Graph& graph_;
  absl::Status status_;
  std::string name_;
};

}  // namespace weft
