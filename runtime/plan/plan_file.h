// Plan files: a plan on disk, ready to run where it lies.
//
//   bytes 0   "weftplan"
//         8   u32 format version
//        12   u32 zero
//        16   u64 bytes of the header
//        24   u64 start of the weights, a multiple of 4 KiB (2 MiB from 32 MiB
//             of weights on)
//        32   u64 bytes of the weights
//        40   u64 xxh3 of the header, with that of bytes 0 to 39 as its seed
//        48   the header: PlanProto (plan.proto)
//             zeros
//             the weights in the layouts that kernels read, each at a multiple
//             of 64 bytes from the start; the file ends with them
//
// All numbers are little-endian. Weights are used where the file is mapped: not
// copied, not packed again, shared by all processes that run the plan. The same
// plan gives the same bytes.
//
// A plan file is untrusted. Lengths, offsets and the checksum of the header are
// checked when it is loaded, then the plan itself (verify_plan.h). The
// checksums of weights are not: any bytes are numbers, and reading them all
// would cost more than the rest of a start. The executor compares each when the
// weight is first read (weight_checksum.h), CheckPlanFile all of them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/mapped_file.h"
#include "runtime/machine/thread_pool.h"
#include "runtime/plan/compile.h"
#include "runtime/plan/plan.h"

namespace weft {

constexpr uint32_t kPlanFormatVersion = 3;

// With a reference, `plan` has model, vocabulary and options, but no graphs: it
// cannot run and was not verified.
struct PlanFile {
  Plan plan;
  // Its path is relative to the plan file.
  std::optional<ModelReference> reference;
};

// Whether the file begins as a plan file does. False when it cannot be read.
bool IsPlanFile(const std::string& path);

// Writes the plan with its weights. Those that are only described are made
// straight into the file, by all threads. The file appears when it is complete.
// Errors: no space, no permission; a weight without bytes.
absl::Status SavePlan(const Plan& plan, const std::string& path,
                      ThreadPool& threads, const Progress& progress = nullptr);

// Writes the plan's options and the model file's identity instead.
absl::Status SaveReference(const Plan& plan, const ModelReference& reference,
                           const std::string& path);

// Maps and verifies a plan file. Errors name the file and what is wrong: not a
// plan, another format version, cut off, damaged, for another CPU, or not
// sound. kFailedPrecondition: the file is whole, but for another CPU or for
// another version of what lays weights out.
absl::StatusOr<PlanFile> LoadPlanFile(const std::string& path);
absl::StatusOr<PlanFile> LoadPlanFile(std::shared_ptr<const MappedFile> file,
                                      Isa machine = DetectIsa());

// What the file says about itself: options, vocabulary and source, no graphs.
// Enough to compile the plan again where it cannot run.
absl::StatusOr<PlanFile> LoadPlanOptions(const std::string& path);

// The same, and compares the checksum of every weight. Errors name the first
// that differs.
absl::Status CheckPlanFile(const std::string& path);

}  // namespace weft
