// Builds graphs: one method per primitive op, result types by the ops' own
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

namespace weft {

struct RopeOptions {
  int64_t head_dim = 0;
  int64_t rope_dims = 0;
  double base = 10000;
  double scale = 1;                   // of positions
  const char* style = "interleaved";  // or "halves"
  ValueId factors = kNone;            // f32[rope_dims / 2], divides frequencies
  double magnitude = 1;               // of sines and cosines
  // YaRN, where ramp_end is above 0: pairs up to ramp_begin are not scaled,
  // those from ramp_end on are, and in between less and less are not.
  double ramp_begin = 0;
  double ramp_end = 0;
};

struct AttentionOptions {
  int64_t heads = 0;
  double scale = 1;    // of scores
  int64_t window = 0;  // positions that a row sees, its own the last; 0: all
  double softcap = 0;  // scores become softcap * tanh(score / softcap); 0: not
};

// The results of top_k.
struct Chosen {
  ValueId ids = kNone;
  ValueId weights = kNone;
};

class GraphBuilder {
 public:
  // `graph` must outlive the builder.
  explicit GraphBuilder(Graph* graph) : graph_(*graph) {}

  Graph& graph() { return graph_; }
  const absl::Status& status() const { return status_; }

  // The name given to the nodes that follow; goes into dumps.
  void Name(std::string name) { name_ = std::move(name); }

  ValueId Embed(ValueId ids, ValueId table);
  // Of each of `heads` equal parts of a row by itself. `bias` may be kNone.
  ValueId RmsNorm(ValueId x, ValueId weight, double eps, int64_t heads = 1);
  ValueId LayerNorm(ValueId x, ValueId weight, ValueId bias, double eps,
                    int64_t heads = 1);
  ValueId Matmul(ValueId x, ValueId weight);
  ValueId Add(ValueId a, ValueId b);
  ValueId Mul(ValueId a, ValueId b);
  ValueId Scale(ValueId x, double factor);
  ValueId Softcap(ValueId x, double cap);  // cap * tanh(x / cap)
  ValueId Silu(ValueId x);
  ValueId Gelu(ValueId x, const char* approximation);  // "none", "tanh"
  // Of weights: one below the other.
  ValueId ConcatRows(std::vector<ValueId> weights);
  ValueId Rope(ValueId x, ValueId positions, const RopeOptions& options);
  ValueId KvWrite(ValueId state, ValueId x, ValueId positions,
                  ValueId sequence);
  ValueId AttentionScores(ValueId q, ValueId keys, ValueId positions,
                          ValueId sequence, const AttentionOptions& options);
  ValueId Softmax(ValueId x);
  ValueId AttentionValues(ValueId weights, ValueId values, ValueId positions,
                          ValueId sequence);
  ValueId TakeRows(ValueId x, ValueId rows);
  ValueId Slice(ValueId x, int64_t begin, int64_t size);
  ValueId Sigmoid(ValueId x);
  // See experts.h.
  Chosen TopK(ValueId x, int64_t k, bool normalize);
  ValueId ExpertMatmul(ValueId x, ValueId weight, ValueId ids, int64_t experts);
  ValueId WeightedSum(ValueId x, ValueId weights);

 private:
  // The first result.
  ValueId Add(const char* op, std::vector<ValueId> inputs,
              Attributes attributes = {});

  Graph& graph_;
  absl::Status status_;
  std::string name_;
};

}  // namespace weft
