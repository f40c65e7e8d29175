#include "tests/passes/run_poisoned.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/storage.h"
#include "passes/lifetimes.h"

namespace weft {
namespace {

// All bytes set: NaN as f32, f16 and bf16, also as a scale of a block.
constexpr int kPoison = 0xff;

class AlignedBytes {
 public:
  explicit AlignedBytes(int64_t n) : bytes_(n + 128, kPoison) {}
  uint8_t* data() {
    const uintptr_t p = reinterpret_cast<uintptr_t>(bytes_.data());
    return bytes_.data() + (64 - p % 64) % 64;
  }

 private:
  std::vector<uint8_t> bytes_;
};

// Bytes that become free when a step is done: by step, offset and size.
using Deaths = std::multimap<int32_t, std::pair<int64_t, int64_t>>;

Deaths DeathsOf(const Graph& graph) {
  const Lifetimes lifetimes = LifetimesOf(graph);
  std::vector<Lifetime> buffers = lifetimes.records;
  std::vector<size_t> owner(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    owner[i] = buffers[i].share < 0 ? i : owner[buffers[i].share];
    Lifetime& buffer = buffers[owner[i]];
    buffer.last = std::max(buffer.last, lifetimes.records[i].last);
    buffer.bytes = std::max(buffer.bytes, lifetimes.records[i].bytes);
  }
  Deaths deaths;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (owner[i] != i) continue;
    const int64_t offset = lifetimes.values[i] != kNone
                               ? graph.value(lifetimes.values[i]).offset
                               : graph.node(lifetimes.nodes[i]).scratch_offset;
    deaths.emplace(buffers[i].last, std::make_pair(offset, buffers[i].bytes));
  }
  return deaths;
}

class Runner {
 public:
  Runner(const Graph& graph, Isa isa, const Batch& batch, const KvCache& cache)
      : graph_(graph),
        isa_(isa),
        batch_(batch),
        cache_(cache),
        step_{static_cast<int64_t>(batch.ids.size()),
              static_cast<int64_t>(batch.output_rows.size()),
              graph.bounds.context},
        arena_(graph.arena.bytes),
        state_of_(graph.value_count(), -1) {}

  std::map<std::string, std::vector<uint8_t>> Run() {
    int states = 0;
    for (ValueId id = 0; id < graph_.value_count(); ++id) {
      if (graph_.value(id).kind == ValueKind::kState) state_of_[id] = states++;
    }
    for (const auto& [name, id] : graph_.outputs()) {
      outputs_.emplace(
          id, AlignedBytes(StorageBytes(graph_.value(id).type, graph_.bounds)));
    }
    const Deaths deaths = DeathsOf(graph_);
    for (size_t at = 0; at < graph_.order().size(); ++at) {
      RunNode(graph_.node(graph_.order()[at]));
      const auto [begin, end] = deaths.equal_range(static_cast<int32_t>(at));
      for (auto it = begin; it != end; ++it) {
        std::memset(arena_.data() + it->second.first, kPoison,
                    it->second.second);
      }
    }
    std::map<std::string, std::vector<uint8_t>> results;
    for (const auto& [name, id] : graph_.outputs()) {
      if (state_of_[id] >= 0) continue;
      const uint8_t* data = outputs_.at(id).data();
      results[name].assign(data,
                           data + StorageBytes(graph_.value(id).type, step_));
    }
    return results;
  }

 private:
  Operand OperandOf(ValueId id) {
    const Value& value = graph_.value(id);
    const ViewOf view = RootOf(graph_, id);
    const Value& root = graph_.value(view.root);
    // Columns are those of the bounds (S is always the whole context).
    Operand operand = MatrixOperand(value.type, graph_.bounds, nullptr);
    const Dim& dim = value.type.shape[0];
    if (root.kind == ValueKind::kInput) {
      operand.rows = 1;
    } else if (dim == Dim::Tokens()) {
      operand.rows = step_.tokens;
    } else if (dim == Dim::Rows()) {
      operand.rows = step_.rows;
    }
    if (state_of_[id] >= 0) {
      operand.state = &cache_.states()[state_of_[id]];
    } else if (root.kind == ValueKind::kInput) {
      const absl::Span<const int32_t> numbers =
          root.name == "ids"         ? batch_.ids
          : root.name == "positions" ? batch_.positions
          : root.name == "sequence"  ? batch_.slots
                                     : batch_.output_rows;
      operand.data = const_cast<int32_t*>(numbers.data());
    } else if (root.kind == ValueKind::kWeight) {
      operand.data = const_cast<uint8_t*>(root.data.bytes.data());
    } else if (graph_.IsOutput(view.root)) {
      operand.data = outputs_.at(view.root).data() + view.byte_offset;
    } else {
      operand.data = arena_.data() + value.offset;
    }
    if (view.root != id) {
      operand.row_bytes =
          MatrixOperand(root.type, graph_.bounds, nullptr).row_bytes;
    }
    return operand;
  }

  void RunNode(const Node& node) {
    const OpDef& op = OpOf(node);
    if (op.view) return;
    if (op.writes_state) state_of_[node.outputs[0]] = state_of_[node.inputs[0]];
    std::vector<Operand> operands;
    for (ValueId id : node.inputs) operands.push_back(OperandOf(id));
    for (ValueId id : node.outputs) operands.push_back(OperandOf(id));
    const NodeView view = {graph_, node, {isa_}};
    const KernelEntry* row = FindKernel(node.kernel);
    const std::unique_ptr<Kernel> kernel = row->Create(view);
    KernelCall call = {};
    call.inputs = operands.data();
    call.outputs = operands.data() + node.inputs.size();
    if (node.scratch_offset >= 0) {
      call.scratch = arena_.data() + node.scratch_offset;
    }
    for (int phase = 0; phase < kernel->phases(); ++phase) {
      const int64_t items = kernel->Items(call, phase);
      const int64_t middle = items / 2;
      for (auto [begin, end] : {std::make_pair(middle, items),
                                std::make_pair(int64_t{0}, middle)}) {
        if (begin == end) continue;
        AlignedBytes thread_scratch(row->ThreadScratchBytes(view));
        call.thread_scratch = thread_scratch.data();
        kernel->Run(call, phase, begin, end);
      }
    }
  }

  const Graph& graph_;
  const Isa isa_;
  const Batch& batch_;
  const KvCache& cache_;
  const Bounds step_;
  AlignedBytes arena_;
  std::map<ValueId, AlignedBytes> outputs_;
  std::vector<int> state_of_;
};

}  // namespace

std::map<std::string, std::vector<uint8_t>> RunPoisoned(const Graph& graph,
                                                        Isa isa,
                                                        const Batch& batch,
                                                        const KvCache& cache) {
  return Runner(graph, isa, batch, cache).Run();
}

void PoisonPages(const KvCache& cache, const Graph& graph) {
  const std::vector<StateBytes> states = StatesOf(graph);
  for (size_t i = 0; i < cache.states().size(); ++i) {
    std::memset(
        cache.states()[i].pages, kPoison,
        states[i].bytes * (states[i].by_sequence ? cache.pool().slots()
                                                 : cache.pool().pages()));
  }
}

}  // namespace weft
