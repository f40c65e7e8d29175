// Runs a plan's scheduled steps.
//
// Everything is prepared when the executor is made: the arena, each thread's
// scratch, a kernel object and an operand table per node. Run fills in how many
// rows there are and calls the kernels in order; it allocates nothing.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/arena.h"
#include "runtime/kv_cache.h"
#include "runtime/plan.h"
#include "runtime/thread_pool.h"

namespace weft {

// One step: rows of tokens, of one sequence or of several mixed. All spans but
// `output_rows` have one entry per token.
struct Batch {
  absl::Span<const int32_t> ids;
  absl::Span<const int32_t> positions;
  absl::Span<const int32_t> sequences;  // slots of the KV cache
  // Rows whose logits are wanted, at least one.
  absl::Span<const int32_t> output_rows;
  // [output_rows][vocabulary], the caller's.
  float* logits;
};

// Told about every node of a step, before its kernel runs and after, on the
// thread that runs the step. Views run no kernel and are not told of.
class NodeObserver {
 public:
  virtual ~NodeObserver() = default;
  // `call` has the operands that the kernel gets; valid during the call.
  virtual void Before(const Graph& graph, NodeId node,
                      const KernelCall& call) = 0;
  virtual void After(const Graph& graph, NodeId node,
                     const KernelCall& call) = 0;
};

class Executor {
 public:
  // `plan`, `threads` and `cache` must outlive the executor; weights must have
  // been made. The cache has a state for each of the plan's. Errors: no memory.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      std::shared_ptr<const Plan> plan, ThreadPool* threads, KvCache* cache,
      bool huge_pages = false);
  ~Executor();

  // Requires pages for the positions of every row (KvCache::Reserve), and rows
  // of one sequence in ascending position. Errors: more tokens than the plan
  // takes, ids, positions, slots or rows out of range; then nothing has run.
  // Not thread-safe.
  absl::Status Run(const Batch& batch);

  // Nodes of all steps from now on; null: none. For profiles and checks.
  void Observe(NodeObserver* observer) { observer_ = observer; }

  int64_t arena_bytes() const { return arena_.bytes(); }

 private:
  struct Bucket;

  Executor(std::shared_ptr<const Plan> plan, ThreadPool* threads,
           KvCache* cache);
  absl::Status Prepare(const Graph& graph, Bucket* bucket);
  absl::Status Check(const Batch& batch) const;

  std::shared_ptr<const Plan> plan_;
  ThreadPool* threads_;
  KvCache* cache_;
  Arena arena_;
  Arena scratch_;
  int64_t thread_scratch_bytes_ = 0;
  std::vector<std::unique_ptr<Bucket>> buckets_;
  NodeObserver* observer_ = nullptr;
  // Run's own copies of a batch's integers: operands point here.
  std::vector<int32_t> ids_, positions_, sequences_, output_rows_;
};

}  // namespace weft
