// Where a plan's time goes: seconds of every node of every step, with the bytes
// and operations that its op states (ops/op.h).
//
// An observer of the executor: without one, a step pays for nothing but a test
// of a pointer per node; with one, for two readings of the clock, and two more
// for each range of a node's work where threads are watched.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ops/op_table.h"
#include "runtime/execution/executor.h"
#include "runtime/machine/limits.h"

namespace weft {

// One node in one step. Times are seconds since the profile began.
struct NodeTime {
  NodeId node;
  double start;
  double seconds;
};

// One range of a node's work on one thread.
struct RangeTime {
  const Graph* graph;
  NodeId node;
  double start;
  double seconds;
};

// One step.
struct StepTime {
  std::string phase;  // "prefill", "decode"
  const Graph* graph = nullptr;
  Bounds bounds;  // tokens, rows of logits, positions that are looked back
  double start = 0;
  double seconds = 0;
  std::vector<NodeTime> nodes;
};

class Profiler : public NodeObserver {
 public:
  // With `threads`, as many as the executor has, what each does is kept too.
  explicit Profiler(int threads = 0)
      : began_(std::chrono::steady_clock::now()), lanes_(threads) {}

  // Around each step. `positions`: how far its tokens look back, on average.
  void BeginStep(std::string phase, const Graph& graph, const Bounds& bounds);
  void EndStep();

  void Before(const Graph& graph, NodeId node, const KernelCall& call) override;
  void After(const Graph& graph, NodeId node, const KernelCall& call) override;
  void BeginRange(int thread) override;
  void EndRange(int thread) override;

  // Valid as long as the plan.
  const std::vector<StepTime>& steps() const { return steps_; }
  // Threads that are watched, and what one did, in order of time.
  int threads() const { return static_cast<int>(lanes_.size()); }
  const std::vector<RangeTime>& ranges(int thread) const {
    return lanes_[thread].ranges;
  }

 private:
  // On cache lines of its own: threads write at the same time.
  struct alignas(64) Lane {
    std::vector<RangeTime> ranges;
  };

  double Now() const;

  const std::chrono::steady_clock::time_point began_;
  std::vector<StepTime> steps_;
  std::vector<Lane> lanes_;
};

// The arithmetic whose peak bounds a node.
enum class Arithmetic : uint8_t { kInt8, kTileInt8, kBF16, kF32 };
// "int8", "tile int8", "bf16", "f32".
const char* Name(Arithmetic arithmetic);
Arithmetic ArithmeticOf(const Graph& graph, const Node& node);
double PeakOf(Arithmetic arithmetic, const Limits& limits);

// What nodes have in common, added up.
struct ProfileRow {
  std::string name;    // op, node or block
  std::string kernel;  // empty where rows join several
  int64_t count = 0;   // nodes times steps
  double seconds = 0;
  int64_t bytes = 0;
  int64_t operations = 0;
  // Seconds that a machine at its limits would need: by bytes for memory, by
  // operations for arithmetic; the sum over nodes of each.
  double memory_seconds = 0;
  double arithmetic_seconds = 0;
};

// How steps of a phase are grouped.
enum class ProfileBy : uint8_t { kOp, kNode, kBlock };

// Rows of a phase, the longest first; blocks in their order, and what stands in
// none under its op.
std::vector<ProfileRow> Summarize(const std::vector<StepTime>& steps,
                                  const std::string& phase, ProfileBy by,
                                  const Limits& limits);

}  // namespace weft
