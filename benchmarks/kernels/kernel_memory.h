// A kernel ready to run on the operands of its case, as the executor would call
// it, again and again on copies of them.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/kernels/kernel_operands.h"
#include "ops/kernels/kernel_table.h"
#include "runtime/machine/arena.h"
#include "runtime/machine/thread_pool.h"

namespace weft {

class KernelMemory {
 public:
  // Weights and states that the node reads exist as often as makes up
  // `streamed_bytes`, and runs take one copy after the other: then they come
  // from memory, as in a model. `threads` must outlive the result. Errors: no
  // memory.
  static absl::StatusOr<std::unique_ptr<KernelMemory>> Create(
      const KernelCase& kernel_case, int64_t streamed_bytes,
      ThreadPool* threads);

  // Once, on the next copy.
  void Run();

  const Graph& graph() const { return operands_->graph(); }
  const Node& node() const { return operands_->node(); }

 private:
  KernelMemory(const KernelCase& kernel_case, ThreadPool* threads);

  absl::Status Copy(int64_t streamed_bytes);
  void UseCopy(int64_t copy);

  const KernelEntry* row_;
  ThreadPool* threads_;
  std::unique_ptr<KernelOperands> operands_;
  Arena scratch_, thread_scratch_;

  // What runs go through: the operands that are copied, and where each is in a
  // copy.
  struct Streamed {
    size_t operand;
    int64_t offset, bytes;
    KvState state;
  };
  std::vector<Streamed> streamed_;
  Arena copies_;
  int64_t copy_bytes_ = 0, copy_count_ = 1, next_copy_ = 0;

  std::unique_ptr<Kernel> kernel_;
  std::vector<Operand> inputs_, outputs_;
};

}  // namespace weft
