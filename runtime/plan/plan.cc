#include "runtime/plan/plan.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/direct_file.h"
#include "base/status.h"
#include "graph/next_token_block.h"
#include "ops/heads.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/reference.h"
#include "ops/storage.h"
#include "runtime/cache/prefix_cache.h"
#include "runtime/plan/large_tables.h"
#include "runtime/plan/slot_updates.h"
#include "runtime/speculation/hidden_rows.h"
#include "runtime/speculation/token_index.h"

namespace weft {
namespace {

// Measured (benchmarks/NOTES.md): the resident pages of the program and its
// libraries, the allocator's slack and the threads' stacks.
constexpr int64_t kProgramBytes = int64_t{12} << 20;
// Of a bucket: node, results, attributes, the executor's operands and kernel.
constexpr int64_t kBytesPerNode = 1200;
// Of a token: a string in the plan's vocabulary, in the tokeniser's and in its
// family's table (two of them allocated apart), score and type twice, a slot of
// a hash table at its mean load, and what sorting and growing took.
constexpr int64_t kBytesPerToken = 230;
// Of a token where tokens are chosen: a logit as it was biased, another as it
// was penalized, a count, and a candidate.
constexpr int64_t kSamplingBytesPerToken = 28;
// Of a merge: a string while the tokeniser is made, and a slot.
constexpr int64_t kBytesPerMerge = 110;

int64_t TokenizerBytes(const Vocabulary& vocabulary) {
  // The texts: as the file has them, and in the copies where they are too long
  // to lie in the string itself.
  return 2 * static_cast<int64_t>(vocabulary.ByteSizeLong()) +
         kBytesPerToken * vocabulary.tokens_size() +
         kBytesPerMerge * vocabulary.merges_size();
}

}  // namespace

int64_t AlignedBytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

std::vector<float> ModelInfo::AdapterScales(int64_t rows) const {
  std::vector<float> scales;
  for (int64_t row = 0; row < rows; ++row) {
    for (const AdapterInfo& adapter : adapters) scales.push_back(adapter.scale);
  }
  return scales;
}

int64_t ExpertGroup::SlotBytes() const {
  int64_t bytes = 0;
  for (const Weight& weight : weights) {
    bytes += DirectFile::RoomFor(weight.expert_bytes);
  }
  return bytes;
}

bool Plan::Streams(const std::string& weight) const {
  for (const ExpertGroup& group : streamed) {
    for (const ExpertGroup::Weight& one : group.weights) {
      if (one.name == weight) return true;
    }
  }
  return false;
}

const Graph& Plan::BucketFor(int64_t tokens) const {
  for (const Graph& graph : buckets) {
    if (graph.bounds.tokens >= tokens) return graph;
  }
  return buckets.back();
}

std::vector<const Graph*> Plan::AllGraphs() const {
  std::vector<const Graph*> graphs;
  for (const Graph& graph : buckets) graphs.push_back(&graph);
  for (const Graph& graph : next_token_buckets) graphs.push_back(&graph);
  return graphs;
}

std::vector<Graph*> Plan::AllGraphs() {
  std::vector<Graph*> graphs;
  for (Graph& graph : buckets) graphs.push_back(&graph);
  for (Graph& graph : next_token_buckets) graphs.push_back(&graph);
  return graphs;
}

Plan NextTokenPlan(const Plan& plan) {
  Plan block;
  block.model.architecture = plan.model.architecture;
  block.model.embedding_length = plan.model.embedding_length;
  block.model.vocabulary_size = plan.model.vocabulary_size;
  block.options = plan.options;
  block.buckets = plan.next_token_buckets;
  block.weight_checksums = plan.weight_checksums;
  return block;
}

std::vector<StateBytes> StatesOf(const Plan& plan) {
  std::vector<StateBytes> states = StatesOf(plan.buckets.back());
  if (plan.next_token_buckets.empty()) return states;
  for (const StateBytes& state : StatesOf(plan.next_token_buckets.back())) {
    states.push_back(state);
  }
  return states;
}

std::vector<StateBytes> StatesOf(const Graph& graph) {
  std::vector<StateBytes> states;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.value(id).kind != ValueKind::kState) continue;
    const ValueType& type = graph.value(id).type;
    if (IsSlotState(type)) {
      states.emplace_back(AlignedBytes(StorageBytes(type, graph.bounds)), true);
    } else {
      states.emplace_back(AlignedBytes(KvPageBytes(type)));
    }
  }
  return states;
}

absl::Status Plan::CheckFiles() const {
  for (const auto& file : files) {
    absl::Status status = file->CheckUnchanged();
    if (status.ok()) continue;
    // Which does not go with experts that are streamed.
    if (!streamed.empty()) return status;
    return absl::FailedPreconditionError(
        absl::StrCat(status.message(), ", or with --copy-model"));
  }
  return absl::OkStatus();
}

namespace {

// By bucket, of which one runs at a time.
void AddIntermediates(const std::vector<Graph>& buckets, int64_t* arena,
                      int64_t* thread_scratch) {
  int64_t largest = 0;
  for (const Graph& graph : buckets) {
    largest = std::max(largest, graph.arena.bytes);
    for (NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      const KernelEntry* entry = FindKernel(node.kernel);
      if (entry == nullptr) continue;
      *thread_scratch =
          std::max(*thread_scratch,
                   AlignedBytes(entry->ThreadScratchBytes({graph, node, {}})));
    }
  }
  *arena += largest;
}

// What the executor of the block, and who guesses by it, hold.
void AddNextTokenMemory(const Plan& plan, int64_t slots, int64_t guess_rows,
                        PlanMemory* memory) {
  const int64_t d = plan.model.embedding_length;
  // The model's rows of a step, also where a plan's block is not wanted.
  for (const auto& [name, id] : plan.buckets.back().outputs()) {
    if (name == kHiddenRows) {
      memory->next_token_block += 4 * plan.max_tokens() * d;
    }
  }
  if (plan.next_token_buckets.empty()) return;
  AddIntermediates(plan.next_token_buckets, &memory->next_token_block,
                   &memory->next_token_scratch);
  // The rows before those; what one row gives, and zeros; and the text with
  // what is guessed.
  memory->next_token_block +=
      4 * (plan.max_tokens() * d + 2 * d + plan.model.vocabulary_size) +
      int64_t{sizeof(int32_t)} * (plan.context() + guess_rows + 1) +
      HiddenRows::BytesFor(slots, guess_rows + HiddenRows::kBehind, d);
}

}  // namespace

PlanMemory MemoryOf(const Plan& plan, int slots, int64_t logit_rows,
                    int64_t kv_pages, int32_t checkpoints, int32_t rewind_rows,
                    int64_t guess_rows) {
  PlanMemory memory;
  const Graph& last = plan.buckets.back();
  std::set<std::string> counted;
  const auto add_weights = [&](const Graph& graph) {
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      const Value& value = graph.value(id);
      if (value.kind != ValueKind::kWeight || StaysInFile(graph, id) ||
          plan.Streams(value.name) || !counted.insert(value.name).second) {
        continue;
      }
      memory.weights += AlignedBytes(StorageBytes(value.type, graph.bounds));
      ValueType plain = value.type;
      plain.layout.clear();
      memory.source_weights += StorageBytes(plain, graph.bounds);
    }
  };
  add_weights(last);
  if (!plan.next_token_buckets.empty()) {
    add_weights(plan.next_token_buckets.back());
  }
  for (const ExpertGroup& group : plan.streamed) {
    memory.experts += group.slots * group.SlotBytes();
  }
  AddIntermediates(plan.buckets, &memory.arena, &memory.thread_scratch);
  AddNextTokenMemory(plan, slots, guess_rows, &memory);
  const int64_t places =
      int64_t{slots} * (rewind_rows > 0 ? 2 : 1) + checkpoints;
  memory.history = HistoryBytes(SlotUpdates(last), slots, rewind_rows);
  int64_t page = 0;
  for (const StateBytes& state : StatesOf(plan)) {
    if (state.by_sequence) {
      memory.slot += state.bytes;
      memory.slots += StatePartBytes(state.bytes, places);
    } else {
      page += state.bytes;
    }
  }
  memory.kv_per_token = page / kPageTokens;
  int64_t page_of_heads = page;
  const auto add_heads = [&](const Graph& graph) {
    for (NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      const int64_t bytes = PageBytesOfHeads(graph, node);
      if (bytes == 0) continue;
      page_of_heads += bytes - KvPageBytes(graph.value(node.inputs[1]).type);
    }
  };
  add_heads(last);
  if (!plan.next_token_buckets.empty()) {
    add_heads(plan.next_token_buckets.back());
  }
  memory.kv_per_token_of_heads = page_of_heads / kPageTokens;
  memory.sequences = slots;
  memory.choosing = kSamplingBytesPerToken * plan.model.vocabulary_size;
  if (kv_pages == 0) {
    kv_pages = (plan.context() + kPageTokens - 1) / kPageTokens * slots;
  }
  memory.kv = page * kv_pages;
  // Prompt and text, and the prompt as it was asked.
  memory.batching = 2 * int64_t{sizeof(int32_t)} * slots * plan.context() +
                    PrefixCache::BytesFor(kv_pages);
  // The tokens that a checkpoint stands behind.
  if (memory.slot > 0) {
    memory.batching += int64_t{sizeof(int32_t)} * checkpoints * plan.context();
  }
  memory.logits = (logit_rows + guess_rows) * plan.model.output_columns() * 4;
  // Of texts with one token that has not run.
  if (guess_rows > 0) {
    memory.guessing = slots * TokenIndex::BytesFor(plan.context() + 1);
  }
  memory.tokenizer = TokenizerBytes(plan.vocabulary);
  memory.program = kProgramBytes;
  for (const Graph* graph : plan.AllGraphs()) {
    memory.program +=
        static_cast<int64_t>(graph->order().size()) * kBytesPerNode;
  }
  return memory;
}

}  // namespace weft
