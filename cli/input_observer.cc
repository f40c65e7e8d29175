#include "cli/input_observer.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/listing.h"
#include "ops/experts.h"
#include "ops/kernels/kernel.h"
#include "ops/ops.h"

namespace weft {
namespace {

constexpr char kOutput[] = "output";

// A weight of the file that a product's matrix is made of.
struct Source {
  std::string name;
  bool transposed = false;
};

void FindSources(const Graph& graph, ValueId value, bool transposed,
                 std::vector<Source>* sources) {
  if (graph.IsWeight(value)) {
    sources->push_back({graph.value(value).name, transposed});
    return;
  }
  const Node* producer = graph.Producer(value);
  if (producer == nullptr) return;
  for (ValueId input : producer->inputs) {
    FindSources(graph, input, transposed || producer->Is(kTransposeRowsOp),
                sources);
  }
}

// The node that makes what attention keeps of a token, before it is joined with
// what is turned by positions, where the queries that it is compared with are
// made by `product`; kNone where there is no such attention.
NodeId FindKept(const Graph& graph, const Node& product) {
  for (NodeId joined : graph.Users(product.outputs[0])) {
    if (!graph.node(joined).Is(kConcatHeadsOp)) continue;
    for (NodeId scores : graph.Users(graph.node(joined).outputs[0])) {
      if (!graph.node(scores).Is(kAttentionScoresOp)) continue;
      const Node* write = graph.Producer(graph.node(scores).inputs[1]);
      if (write == nullptr || !write->Is(kKvWriteOp)) continue;
      const Node* row = graph.Producer(write->inputs[1]);
      if (row == nullptr || !row->Is(kConcatHeadsOp)) continue;
      return graph.value(row->inputs[0]).producer;
    }
  }
  return kNone;
}

const float* RowOf(const Operand& x, int64_t row) {
  return reinterpret_cast<const float*>(static_cast<const uint8_t*>(x.data) +
                                        row * x.row_bytes);
}

void AddRow(const float* x, int64_t matrix, int64_t columns,
            InputSquares* squares) {
  double* sums = squares->sums.data() + matrix * columns;
  for (int64_t i = 0; i < columns; ++i) sums[i] += double{x[i]} * x[i];
  squares->counts[static_cast<size_t>(matrix)] += 1.0;
}

void AddExperts(const ExpertParts& parts, const KernelCall& call,
                int64_t columns, InputSquares* squares) {
  const Operand& x = call.inputs[0];
  const Operand& ids = call.inputs[2];
  for (int64_t m = 0; m < x.rows; ++m) {
    const int32_t* chosen = reinterpret_cast<const int32_t*>(
        static_cast<const uint8_t*>(ids.data) + m * ids.row_bytes);
    for (int64_t j = 0; j < parts.used; ++j) {
      const float* row = RowOf(x, m) + (parts.shared ? 0 : j * columns);
      AddRow(row, chosen[j], columns, squares);
    }
  }
}

}  // namespace

InputPoints FindInputPoints(const Graph& plain, bool process_output) {
  struct Product {
    NodeId node;
    Source source;
  };
  std::vector<Product> products;
  std::set<std::string> turned;  // tensors of which a part is transposed
  for (NodeId id : plain.order()) {
    const Node& node = plain.node(id);
    if (!IsProduct(node)) continue;
    std::vector<Source> sources;
    FindSources(plain, node.inputs[1], false, &sources);
    for (const Source& source : sources) {
      const bool wanted = absl::StartsWith(source.name, "blk.") ||
                          (process_output && source.name == kOutput);
      if (!wanted) continue;
      products.push_back({id, source});
      if (source.transposed) turned.insert(source.name);
    }
  }
  InputPoints points;
  std::set<std::pair<std::string, ValueId>> known;
  for (const auto& [id, source] : products) {
    const Node& node = plain.node(id);
    InputPoint point;
    point.tensor = source.name + ".weight";
    ValueId input = node.inputs[0];
    NodeId where = id;
    if (turned.count(source.name) > 0) {
      if (!source.transposed) continue;
      where = FindKept(plain, node);
      if (where == kNone) continue;
      input = plain.node(where).outputs[0];
      point.of_result = true;
    }
    if (!known.insert({source.name, input}).second) continue;
    point.columns = plain.value(input).type.shape[1].value;
    if (!point.of_result && IsExpertMatmul(node)) {
      const ExpertParts parts = ExpertPartsOf(plain, node);
      point.matrices = parts.experts;
      if (!parts.shared) point.columns /= parts.used;
    }
    points[LabelOf(plain.node(where))].push_back(std::move(point));
  }
  return points;
}

void AddEntries(const InputPoints& points, ImportanceMatrix* matrix) {
  for (const auto& [node, of_node] : points) {
    for (const InputPoint& point : of_node) {
      InputSquares& squares = matrix->tensors[point.tensor];
      squares.sums.resize(static_cast<size_t>(point.matrices * point.columns));
      squares.counts.resize(static_cast<size_t>(point.matrices));
    }
  }
}

absl::Status CheckEntries(const InputPoints& points,
                          const ImportanceMatrix& matrix) {
  ImportanceMatrix wanted;
  AddEntries(points, &wanted);
  for (const auto& [name, squares] : wanted.tensors) {
    const auto found = matrix.tensors.find(name);
    if (found == matrix.tensors.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has no entry for tensor ", name));
    }
    if (found->second.sums.size() != squares.sums.size() ||
        found->second.counts.size() != squares.counts.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it has ", found->second.sums.size(), " columns and ",
          found->second.counts.size(), " matrices for tensor ", name,
          ", the model ", squares.sums.size(), " and ", squares.counts.size()));
    }
  }
  for (const auto& [name, squares] : matrix.tensors) {
    if (wanted.tensors.count(name) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has an entry for tensor ", name,
                       ", which the model does not multiply"));
    }
  }
  return absl::OkStatus();
}

void InputObserver::Before(const Graph& graph, NodeId id,
                           const KernelCall& call) {
  Look(graph, id, call, /*of_result=*/false);
}

void InputObserver::After(const Graph& graph, NodeId id,
                          const KernelCall& call) {
  Look(graph, id, call, /*of_result=*/true);
}

void InputObserver::Look(const Graph& graph, NodeId id, const KernelCall& call,
                         bool of_result) {
  const Node& node = graph.node(id);
  const auto found = points_.find(LabelOf(node));
  if (found == points_.end()) return;
  for (const InputPoint& point : found->second) {
    if (point.of_result != of_result) continue;
    // Other nodes may have the product's name: what it is made of.
    if (!of_result && !IsProduct(node)) continue;
    const ValueId value = of_result ? node.outputs[0] : node.inputs[0];
    if (graph.value(value).type.dtype != DType::kF32) continue;
    const Operand& rows = of_result ? call.outputs[0] : call.inputs[0];
    InputSquares& squares = matrix_.tensors[point.tensor];
    seen_.insert(point.tensor);
    if (!of_result && IsExpertMatmul(node)) {
      AddExperts(ExpertPartsOf(graph, node), call, point.columns, &squares);
      continue;
    }
    for (int64_t m = 0; m < rows.rows; ++m) {
      AddRow(RowOf(rows, m), 0, point.columns, &squares);
    }
  }
}

std::vector<std::string> InputObserver::Unseen() const {
  std::vector<std::string> unseen;
  for (const auto& [node, of_node] : points_) {
    for (const InputPoint& point : of_node) {
      if (seen_.count(point.tensor) == 0) unseen.push_back(point.tensor);
    }
  }
  return unseen;
}

}  // namespace weft
