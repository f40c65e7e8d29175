// What the products of a model see, for its importance matrix: the squares of
// the inputs of each tensor of the file, by the tensor's name.
//
// Graphs have other weights than files: a part of a tensor's rows for each of
// several products (queries and gates; halves of experts), or a tensor whose
// rows were turned into columns. So which product belongs to which tensor is
// read from the graph as the loader writes it down, where both still stand, and
// products are known again by their names.
//
//   attn_q ─rows 0..─▶ matmul attn_q        both see one x, which counts once
//          └rows n..─▶ matmul attn_q_gate
//
// What meets the turned half of attn_kv_b are queries, not what that tensor's
// columns are for; these are the latent rows that attention keeps. So its entry
// is of the value that is kept, as where products are not turned around
// (llama.cpp's imatrix has the same).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph.h"
#include "loaders/importance_matrix.h"
#include "runtime/execution/executor.h"

namespace weft {

// What is to be added where a node runs.
struct InputPoint {
  std::string tensor;
  bool of_result = false;  // the node's result is the input of the tensor
  int64_t matrices = 1;    // of experts
  int64_t columns = 0;
};

// By the names of nodes.
using InputPoints = std::map<std::string, std::vector<InputPoint>>;

// Of a plain graph (BuildGraph): the products with tensors of blocks, and with
// the output matrix if that is asked for.
InputPoints FindInputPoints(const Graph& plain, bool process_output);

// An entry for each tensor that points name, all zeros.
void AddEntries(const InputPoints& points, ImportanceMatrix* matrix);

// An error if the matrix has other entries than the points name.
absl::Status CheckEntries(const InputPoints& points,
                          const ImportanceMatrix& matrix);

// Adds up squares. The matrix has entries for all points (AddEntries).
class InputObserver : public NodeObserver {
 public:
  InputObserver(InputPoints points, ImportanceMatrix* matrix)
      : points_(std::move(points)), matrix_(*matrix) {}

  void Before(const Graph& graph, NodeId id, const KernelCall& call) override;
  void After(const Graph& graph, NodeId id, const KernelCall& call) override;

  // Tensors of points whose node was never seen to run.
  std::vector<std::string> Unseen() const;

 private:
  void Look(const Graph& graph, NodeId id, const KernelCall& call,
            bool of_result);

  const InputPoints points_;
  ImportanceMatrix& matrix_;
  std::set<std::string> seen_;  // tensors
};

}  // namespace weft
