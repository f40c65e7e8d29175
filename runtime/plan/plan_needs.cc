#include "runtime/plan/plan_needs.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "passes/pipeline.h"

namespace weft {
namespace {

// A file may name any number of things that are not there.
constexpr size_t kMostNamed = 8;

std::string List(std::vector<std::string> names) {
  if (names.size() > kMostNamed) {
    const size_t more = names.size() - kMostNamed;
    names.resize(kMostNamed);
    names.push_back(absl::StrCat(more, " more"));
  }
  return absl::StrJoin(names, ", ");
}

std::vector<std::string> Missing(const std::vector<std::string>& wanted,
                                 const std::vector<std::string>& found) {
  std::vector<std::string> missing;
  for (const std::string& name : wanted) {
    if (std::find(found.begin(), found.end(), name) == found.end()) {
      missing.push_back(name);
    }
  }
  return missing;
}

}  // namespace

absl::Status CheckPlanNeeds(const Plan& plan, const std::string& path) {
  std::set<std::string> missing;
  for (const Graph* graph : plan.AllGraphs()) {
    for (NodeId id : graph->order()) {
      const Node& node = graph->node(id);
      if (!node.op->known) {
        missing.insert(absl::StrCat("op ", node.op->name));
      }
      const std::string kernel = node.kernel;
      if (!kernel.empty() && FindKernel(kernel) == nullptr) {
        missing.insert(absl::StrCat("kernel ", kernel));
      }
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "plan needs what this program does not have: ", path, ": ",
      List({missing.begin(), missing.end()}),
      ": run it with the program that registers them, or compile it again"));
}

absl::Status CheckSamePasses(const Plan& plan, const std::string& path) {
  std::vector<std::string> then, now;
  for (const PassRecord& pass : plan.passes) then.push_back(pass.name);
  for (const PassEntry& pass : Pipeline()) {
    if (plan.options.disabled_passes.count(pass.name) == 0) {
      now.push_back(pass.name);
    }
  }
  if (then == now) return absl::OkStatus();
  std::vector<std::string> differences;
  const std::vector<std::string> gone = Missing(then, now);
  const std::vector<std::string> added = Missing(now, then);
  if (!gone.empty()) {
    differences.push_back(absl::StrCat("not here: ", List(gone)));
  }
  if (!added.empty()) {
    differences.push_back(absl::StrCat("not there: ", List(added)));
  }
  if (differences.empty()) differences.push_back("their order is another");
  return absl::FailedPreconditionError(absl::StrCat(
      "plan was compiled with other passes: ", path, ": ",
      absl::StrJoin(differences, "; "),
      ": run it with the program that compiled it, or compile it again"));
}

}  // namespace weft
