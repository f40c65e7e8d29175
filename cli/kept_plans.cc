#include "cli/kept_plans.h"

#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/output.h"
#include "runtime/api/engine.h"
#include "runtime/api/kept_plan.h"
#include "runtime/hub/model_store.h"
#include "runtime/machine/cpus.h"
#include "runtime/machine/memory.h"
#include "runtime/machine/thread_pool.h"
#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

// Set before threads use the engine.
std::string g_plan_in_use;

// True if it was made.
absl::StatusOr<bool> Make(const std::string& model, const std::string& path,
                          const EngineOptions& options,
                          const CommonFlags& common) {
  WEFT_ASSIGN_OR_RETURN(const Plan plan, LoadPlan(model, options.model));
  // One that would not fit into memory is refused when it is loaded: then it
  // need not be written before.
  if (!options.force && Engine::PeakBytes(plan, options) > AvailableMemory()) {
    return false;
  }
  const int threads = options.threads > 0 ? options.threads : DefaultThreads();
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadPool> pool,
                        ThreadPool::Create(threads, options.affinity));
  const Progress progress =
      options.progress
          ? MakeProgress(common, "packing weights for this and later starts")
          : nullptr;
  WEFT_RETURN_IF_ERROR(KeepPlan(plan, path, *pool, progress).status());
  return true;
}

}  // namespace

std::string KeptPlanOf(const std::string& model, const EngineOptions& options,
                       const CommonFlags& common) {
  // A plan holds its adapters, and files of adapters look alike from outside.
  if (!options.model.graph.adapters.empty()) return "";
  const absl::StatusOr<ModelStore> store = ModelStore::FromEnvironment();
  if (!store.ok() || !store->Holds(model)) return "";
  const absl::StatusOr<std::string> key = KeptPlanKey(model, options.model);
  if (!key.ok()) return "";  // loading the model will say why
  const std::string path = PlanPathOf(model, *key);
  absl::Status kept = LoadKeptPlan(path).status();
  // Its pages are about to be read anyway; experts that stay in the file are
  // compared one by one, by who reads them.
  if (kept.ok() && options.memory_budget == 0) kept = CheckPlanFile(path);
  if (!kept.ok()) {
    if (!absl::IsNotFound(kept)) {
      PrintWarnings(common,
                    {absl::StrCat(kept.message(), ": it is made anew")});
    }
    // Those for other options, too: there is room for one.
    for (const std::string& plan : PlansOf(model)) unlink(plan.c_str());
    const absl::StatusOr<bool> made = Make(model, path, options, common);
    if (!made.ok()) {
      PrintWarnings(common,
                    {absl::StrCat("no plan is kept for the next start: ",
                                  made.status().message())});
    }
    if (!made.ok() || !*made) return "";
  }
  g_plan_in_use = path;
  return path;
}

void DropDamagedPlan(const absl::Status& why) {
  if (g_plan_in_use.empty() || !absl::IsDataLoss(why)) return;
  if (unlink(g_plan_in_use.c_str()) == 0) {
    PrintNotice("the plan that was kept is removed: start again");
  }
}

}  // namespace weft
