#include "runtime/check/check_passes.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "graph/listing.h"
#include "ops/dequantize.h"
#include "passes/pipeline.h"

namespace weft {
namespace {

double ToleranceOf(const std::string& pass, F16Compute f16_compute) {
  for (const PassEntry& entry : Pipeline()) {
    if (pass != entry.name) continue;
    return f16_compute == F16Compute::kBF16
               ? std::max(entry.tolerance, entry.bf16_tolerance)
               : entry.tolerance;
  }
  return 0;
}

std::string NameOf(const Graph& graph, ValueId value) {
  const Node* node = graph.Producer(value);
  if (node == nullptr) return graph.value(value).name;
  return LabelOf(*node);
}

std::string Describe(const Difference& difference) {
  return absl::StrFormat("row %d column %d is %.9g, was %.9g", difference.row,
                         difference.column, difference.found, difference.want);
}

// Where a weight of a plain graph holds what is no number; empty: nowhere. Of
// vectors an infinity may be meant.
std::string BrokenNumber(const ValueType& type, const Content& content) {
  const int64_t columns = type.shape[type.shape.rank() - 1].value;
  const int64_t row_bytes = RowBytes(type.dtype, columns);
  const bool is_matrix = type.shape.rank() > 1;
  const absl::Span<const uint8_t> bytes = content.bytes();
  std::vector<float> numbers(static_cast<size_t>(columns));
  for (int64_t row = 0;
       (row + 1) * row_bytes <= static_cast<int64_t>(bytes.size()); ++row) {
    DequantizeRow(type.dtype, bytes.data() + row * row_bytes, numbers.data(),
                  columns);
    for (int64_t column = 0; column < columns; ++column) {
      const float number = numbers[static_cast<size_t>(column)];
      if (is_matrix ? std::isfinite(number) : !std::isnan(number)) continue;
      return absl::StrFormat("row %d column %d is %g", row, column, number);
    }
  }
  return "";
}

// No pass is at fault where weights are no numbers: whatever is computed of
// them is none either, and NaNs of two ways to compute it differ.
absl::Status CheckWeights(const Graph& graph, ReferenceEvaluator* evaluator) {
  std::string first;
  int64_t broken = 0;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& weight = graph.value(id);
    if (weight.kind != ValueKind::kWeight || !weight.type.layout.empty() ||
        weight.type.dtype == DType::kI32 || weight.type.shape.rank() == 0) {
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(const ContentPointer content,
                          evaluator->Weight(weight));
    const std::string fault = BrokenNumber(weight.type, *content);
    if (fault.empty()) continue;
    if (first.empty()) first = absl::StrCat(weight.name, ": ", fault);
    ++broken;
  }
  if (broken == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "weights are no numbers: ", first,
      broken > 1 ? absl::StrCat(" (and ", broken - 1, " other weights)") : "",
      ": get or make the model again"));
}

}  // namespace

void PassChecker::Look(const std::string& pass, int64_t bucket,
                       const Graph& graph) {
  if (status_.ok()) status_ = Check(pass, bucket, graph);
}

const PassCheck* PassChecker::Guilty() const {
  const auto it =
      std::find_if(checks_.begin(), checks_.end(),
                   [](const PassCheck& c) { return !c.fault.empty(); });
  return it == checks_.end() ? nullptr : &*it;
}

absl::Status PassChecker::Keep(Graph graph) {
  before_ = std::move(graph);
  WEFT_ASSIGN_OR_RETURN(Contents run,
                        evaluator_.Run(before_, inputs_, step_, Contents()));
  contents_ = std::move(run);
  return absl::OkStatus();
}

absl::Status PassChecker::Check(const std::string& pass, int64_t bucket,
                                const Graph& graph) {
  evaluator_.NextRun();
  if (bucket == 0) {
    // A pass may have made another weight under the same name.
    evaluator_.ForgetWeights();
  } else if (bucket != bucket_) {
    // Each bucket begins with the shared graph, its values numbered anew.
    if (bucket_ == 0) shared_ = before_.Compact();
    WEFT_RETURN_IF_ERROR(Keep(shared_));
  }
  bucket_ = bucket;
  if (pass.empty()) {
    if (bucket == 0) {
      WEFT_RETURN_IF_ERROR(CheckWeights(graph, &evaluator_));
    }
    return Keep(graph);
  }

  PassCheck check;
  check.pass = pass;
  check.bucket = bucket;
  check.tolerance = ToleranceOf(pass, f16_compute_);
  // Values keep their ids through a pass.
  const ValueId both = std::min(graph.value_count(), before_.value_count());
  Contents given(graph.value_count());
  for (ValueId id = 0; id < both; ++id) {
    if (graph.value(id).kind == ValueKind::kTemporary &&
        graph.value(id).type == before_.value(id).type) {
      given[id] = contents_[id];
    }
  }
  WEFT_ASSIGN_OR_RETURN(Contents run,
                        evaluator_.Run(graph, inputs_, step_, given));
  const auto compare = [&](ValueId found, ValueId want) {
    const ValueType& type = graph.value(found).type;
    const Difference difference =
        Compare(type, step_, *run[found], *contents_[want]);
    if (difference.relative > check.worst) {
      check.worst = difference.relative;
      check.node = NameOf(graph, found);
    }
    const bool same = check.tolerance == 0
                          ? *run[found] == *contents_[want]
                          : difference.relative <= check.tolerance;
    if (same || !check.fault.empty()) return;
    check.node = NameOf(graph, found);
    check.worst = difference.relative;
    check.fault =
        absl::StrCat("result of node ", check.node, ": ", Describe(difference));
  };
  for (NodeId n : graph.order()) {
    for (ValueId id : graph.node(n).outputs) {
      if (id < both && given[id] != nullptr) compare(id, id);
    }
  }
  if (graph.outputs().size() != before_.outputs().size()) {
    check.fault = "the graph has other outputs";
  }
  for (size_t i = 0; i < graph.outputs().size() && check.fault.empty(); ++i) {
    const auto& [name, found] = graph.outputs()[i];
    const auto& [old_name, want] = before_.outputs()[i];
    if (name != old_name ||
        !(graph.value(found).type == before_.value(want).type)) {
      check.fault = absl::StrCat("output ", old_name, " is no more");
    } else {
      compare(found, want);
    }
  }
  checks_.push_back(std::move(check));
  return Keep(graph);
}

}  // namespace weft
