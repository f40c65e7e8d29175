// Runs a plan's scheduled steps.
//
// Everything is prepared when the executor is made: the arena, each thread's
// scratch, a kernel object and an operand table per node. Run fills in how many
// rows there are and calls the kernels in order; it allocates nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/execution/state_history.h"
#include "runtime/machine/arena.h"
#include "runtime/machine/thread_pool.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/weight_checksum.h"

namespace weft {

class Communicator;  // runtime/ranks/communicator.h
class ExpertStream;  // runtime/execution/expert_stream.h
class Kernel;        // ops/kernels/kernel_table.h
class StepLeader;    // runtime/execution/rank_steps.h

// One step: rows of tokens, of one sequence or of several mixed. All spans but
// `output_rows` have one entry per token.
struct Batch {
  absl::Span<const int32_t> ids;
  absl::Span<const int32_t> positions;
  absl::Span<const int32_t> slots;  // of the KV cache, one for each sequence
  // Rows whose logits are wanted, at least one.
  absl::Span<const int32_t> output_rows;
  // [output_rows][vocabulary], the caller's. Of an encoder, whose sequences
  // must be whole in a step: [output_rows][embedding].
  float* logits;
  // Of plans with adapters: [ids][adapters], finite, how much of each a row
  // has. Empty: nothing of any.
  absl::Span<const float> adapter_scales = {};
};

// What a graph takes or gives: an input, or an output that is no state.
struct Port {
  std::string name;
  ValueType type;
};

// One step of any graph. Nothing is checked: T and R are at most the plan's
// bounds (R may be 0: then what no state and no row of T depends on is left
// out), memory is as large as the ports' types with these T and R say
// (GraphRunner and Batch see to it), and nothing overlaps.
struct Step {
  int64_t tokens;
  int64_t rows;
  absl::Span<const void* const> inputs;  // as Executor::inputs() has them
  absl::Span<void* const> outputs;       // likewise
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
  // Around each range of the node's work, on the thread that does it: between
  // Before and After, for several threads at once.
  virtual void BeginRange(int /*thread*/) {}
  virtual void EndRange(int /*thread*/) {}
};

class Executor {
 public:
  // `plan`, `threads` and `cache` must outlive the executor; weights must have
  // been made. The cache has a state for each of the plan's, from number
  // `first_state` on; it may be null when there is none. `rewind_rows`: for
  // Truncate; above 0 the cache has marks. `communicator`: of the ranks that
  // run the plan with this one; `experts`: of the plan's streamed experts; null
  // where there are none. Both must outlive the executor, too. Errors: no
  // memory; an output that no node makes; more rows to go back than the plan
  // takes in a step; a plan of one rank of several without a communicator of as
  // many.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      std::shared_ptr<const Plan> plan, ThreadPool* threads, KvCache* cache,
      bool huge_pages = false, int32_t rewind_rows = 0, int first_state = 0,
      Communicator* communicator = nullptr, ExpertStream* experts = nullptr);
  ~Executor();

  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }

  // One step of a language model (VerifyModelPlan).
  // Requires pages for the positions of every row (KvCache::Reserve), and rows
  // of one sequence in ascending position. Where there are states by sequence,
  // these rows follow one another, position by position, from 0 or from where
  // the slot's states are (KvCache::position). Errors: more tokens than the
  // plan takes, ids, positions, slots or rows out of range, rows that do not
  // follow on, scales that are too few or not finite; then nothing has run. The
  // first step that reads a weight compares its checksum, if the plan has one:
  // an error then ends the step in its middle, and every later one that reads
  // the weight. So does an error of reading experts, which the next step may be
  // without. Not thread-safe.
  absl::Status Run(const Batch& batch);

  // Of plans with a next-token block: what the last such step made of each of
  // its tokens, [tokens][embedding]. Valid until the next.
  absl::Span<const float> hidden_rows() const { return hidden_rows_; }

  // For tokens that are only tried: from now on Truncate takes the states by
  // sequence of this slot back to what they are now, or were since, as long as
  // no more than `rewind_rows` rows run. Nothing without such states or rows.
  void Mark(int32_t slot);

  // The slot has run `tokens` tokens, as if those behind had never been: its
  // next row is at this position. Always where there are no states by sequence,
  // and for 0; else see Mark. Whole pages behind are given back; what the last
  // one holds behind is not read, and will be written again, so whoever shares
  // pages must not have shared that. Error, and no change: states that cannot
  // go back so far.
  absl::Status Truncate(int32_t slot, int64_t tokens);
  // Whether the states can.
  bool CanTruncate(int32_t slot, int64_t tokens) const;

  // One step of any graph. Errors: a weight's checksum, as above. Not
  // thread-safe.
  absl::Status Run(const Step& step);

  // Told of each step of a language model before it runs; null: nobody. It must
  // outlive all steps. Mark and Truncate are told to the cache's observer.
  void LeadBy(StepLeader* leader) { leader_ = leader; }

  // Nodes of all steps from now on; null: none. For profiles and checks.
  void Observe(NodeObserver* observer) { observer_ = observer; }

  int64_t arena_bytes() const { return arena_.bytes(); }

 private:
  struct Bucket;

  Executor(std::shared_ptr<const Plan> plan, ThreadPool* threads,
           KvCache* cache, int first_state, ExpertStream* experts);
  absl::Status CollectPorts(const Graph& graph);
  void NameBatchInputs();
  absl::Status CheckRank(const Graph& graph) const;
  absl::Status Prepare(const Graph& graph, Bucket* bucket);
  Bucket& BucketFor(int64_t rows) const;
  void RunKernel(const Kernel& kernel, const KernelCall& call,
                 NodeObserver* observer);
  absl::Status RunStreamed(const Kernel& kernel, KernelCall call, int weight);
  void RunUpdates(int32_t slot, int64_t rows);
  absl::Status Check(const Batch& batch) const;
  // Of the states by sequence: that rows follow on, and how far they came.
  absl::Status CheckRuns(const Batch& batch) const;
  void SetPositions(const Batch& batch, bool ran);
  void FindLastPositions(const Batch& batch);

  std::shared_ptr<const Plan> plan_;
  ThreadPool* threads_;
  KvCache* cache_;
  const int first_state_;
  Communicator* communicator_ = nullptr;
  StepLeader* leader_ = nullptr;
  std::vector<int64_t> gathered_bytes_;  // of each rank, in a node
  ExpertStream* const experts_;
  Arena arena_;
  Arena scratch_;
  int64_t thread_scratch_bytes_ = 0;
  std::vector<std::unique_ptr<Bucket>> buckets_;
  NodeObserver* observer_ = nullptr;
  std::vector<Port> inputs_, outputs_;
  // Which of a batch's spans each input is; empty: not a language model.
  std::vector<int> batch_inputs_;
  std::vector<const void*> batch_data_;  // reused by every step
  // Of a batch: its logits, and the rows of its tokens, which lie here.
  std::vector<void*> batch_results_;
  int hidden_output_ = -1;
  Arena hidden_memory_;
  absl::Span<const float> hidden_rows_;
  // For encoders, likewise.
  std::vector<int32_t> last_positions_, last_of_slot_;
  // For plans with adapters: of steps that ask for none.
  std::vector<float> no_adapters_;
  WeightGuard guard_;
  StateHistory history_;
  std::vector<Operand> update_operands_;  // of a node that runs again
};

}  // namespace weft
