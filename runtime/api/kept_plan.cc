#include "runtime/api/kept_plan.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "ops/kernels/cpu.h"
#include "passes/buffer_planner.h"
#include "runtime/plan/plan_file.h"
#include "xxhash.h"

namespace weft {
namespace {

// That a file system should keep, beside the plan.
constexpr int64_t kSpareBytes = int64_t{256} << 20;

// What tells a file from what it was before.
absl::StatusOr<std::string> IdentityOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot read file: ", path, ": ", std::strerror(errno)));
  }
  return absl::StrCat(info.st_size, " ", info.st_mtim.tv_sec, ".",
                      info.st_mtim.tv_nsec);
}

}  // namespace

absl::StatusOr<std::string> KeptPlanKey(const std::string& model_path,
                                        const ModelOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const std::string model, IdentityOf(model_path));
  // Its passes and kernels, which may be another's tomorrow.
  const absl::StatusOr<std::string> program = IdentityOf("/proc/self/exe");
  const CompileOptions& compile = options.compile;
  const std::string text = absl::StrJoin(
      {model, program.ok() ? *program : std::string(),
       std::string(Name(compile.isa)),
       std::string(compile.f16_compute == F16Compute::kBF16 ? "bf16" : "f32"),
       absl::StrJoin(compile.disabled_passes, ","),
       std::string(Name(compile.planner)), absl::StrJoin(compile.buckets, ","),
       options.graph.kv_type.ToString(), absl::StrCat(options.graph.context),
       absl::StrCat(options.graph.tokens),
       absl::StrCat(
           options.graph.output ? static_cast<int>(*options.graph.output) : -1),
       absl::StrCat(options.graph.next_token_block), options.pre},
      "\n");
  return absl::StrCat(
      absl::Hex(XXH3_64bits(text.data(), text.size()), absl::kZeroPad16));
}

absl::StatusOr<Plan> LoadKeptPlan(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return absl::NotFoundError(path);
  WEFT_ASSIGN_OR_RETURN(PlanFile file, LoadPlanFile(path));
  if (file.reference) {
    return absl::FailedPreconditionError(
        absl::StrCat("plan has no weights: ", path));
  }
  return std::move(file.plan);
}

absl::StatusOr<Plan> KeepPlan(const Plan& plan, const std::string& path,
                              ThreadPool& threads, const Progress& progress) {
  const int64_t bytes = MemoryOf(plan, 1, 1).weights;
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::path(path).parent_path();
  const auto space = std::filesystem::space(folder, error);
  if (!error && static_cast<int64_t>(space.available) - kSpareBytes < bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "not enough space: ", folder.string(), ": the plan takes ",
        (bytes >> 20) + 1, " MiB, ", space.available >> 20, " MiB are free"));
  }
  WEFT_RETURN_IF_ERROR(SavePlan(plan, path, threads, progress));
  return LoadKeptPlan(path);
}

}  // namespace weft
