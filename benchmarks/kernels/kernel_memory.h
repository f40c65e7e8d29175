// The operands of one case in memory, and its kernel ready to run on them, as
// the executor would call it.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/kernels/kernel_cases.h"
#include "runtime/arena.h"
#include "runtime/thread_pool.h"

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

  const Graph& graph() const { return graph_; }
  const Node& node() const { return graph_.node(graph_.order().back()); }

 private:
  KernelMemory(const KernelCase& kernel_case, ThreadPool* threads);

  absl::Status Fill(int64_t streamed_bytes);
  void FillValue(const Value& value, uint8_t* data) const;
  void UseCopy(int64_t copy);

  const Graph graph_;
  const KernelRow* row_;
  ThreadPool* threads_;
  std::vector<Operand> values_;  // by id
  std::vector<KvState> states_;  // by id
  std::vector<int32_t> page_table_;
  std::vector<Arena> memory_;
  Arena scratch_, thread_scratch_;

  // What runs go through: the copies, and where each operand is in one.
  struct Streamed {
    ValueId value;
    int64_t offset;
  };
  std::vector<Streamed> streamed_;
  Arena copies_;
  int64_t copy_bytes_ = 0, copy_count_ = 1, next_copy_ = 0;

  std::unique_ptr<Kernel> kernel_;
  std::vector<Operand> inputs_, outputs_;
};

}  // namespace weft
