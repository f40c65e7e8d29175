// What is compiled, saved, inspected and run: for each token-count bucket a
// scheduled graph whose nodes have kernels and whose values have places, and
// the weights that all of them share.
//
// A Plan that the compiler or the loader of plan files returns has been
// verified: the executor and the kernels rely on it. Weights are shared between
// copies of a plan. Thread-safe for readers.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/mapped_file.h"
#include "graph/graph.h"
#include "ops/kernels/kernel_options.h"
#include "ops/kv_types.h"
#include "ops/pooling.h"
#include "passes/buffer_planner.h"
#include "passes/pass.h"
#include "passes/pass_record.h"
#include "runtime/cache/kv_cache.h"
#include "text/vocabulary.pb.h"

namespace weft {

// What the user may choose when a model is compiled.
struct CompileOptions {
  Isa isa = Isa::kRef;  // the cap
  F16Compute f16_compute = F16Compute::kF32;
  std::set<std::string> disabled_passes;
  PlanStrategy planner = PlanStrategy::kSearch;
  // Of one rank of several that run the model together.
  ShardOptions shard;
  // Largest steps that get a graph of their own, ascending. Steps of more
  // tokens than the last are cut.
  std::vector<int64_t> buckets = {1, 2, 8, 32, 64, 256, 512};
};

struct TensorInfo {
  std::string name;
  DType type = DType::kF32;
  std::vector<int64_t> shape;  // as the model file has it: row length first
  int64_t bytes = 0;
  int64_t offset = 0;
};

// An adapter that a plan has beside its weights (ops/lora.h).
struct AdapterInfo {
  std::string path;  // the file that it came from; for people
  int64_t rank = 0;  // the largest
  float scale = 1;   // where nobody asks for another
};

// What people want to know about the model a plan was made from.
struct ModelInfo {
  std::string architecture;
  std::string name;
  int64_t parameters = 0;
  int64_t context_length = 0;  // as the model allows
  int64_t embedding_length = 0;
  int64_t vocabulary_size = 0;
  int64_t file_bytes = 0;
  // Takes all tokens of a text at once, and generates nothing.
  bool encoder = false;
  // What steps give, and of vectors: what is made of them.
  ModelOutput gives = ModelOutput::kLogits;
  Pooling pooling = Pooling::kNone;
  // Numbers of an embedding, or scores; 0 where tokens have what steps give.
  int64_t text_columns = 0;
  // Of scores, where the model names them.
  std::vector<std::string> labels;
  std::vector<TensorInfo> tensors;
  // To be shown: the loader's description of what it read, one number each or
  // one per block.
  std::vector<std::pair<std::string, std::vector<double>>> hyper_parameters;
  // What the model's authors suggest (SuggestedFields of sampler.h), by the key
  // of the model file.
  std::map<std::string, double> suggested_sampling;
  // By their numbers: the columns of the input of scales.
  std::vector<AdapterInfo> adapters;
  // Of all adapters, where nobody asks for others, for so many rows of a step.
  std::vector<float> AdapterScales(int64_t rows = 1) const;

  // What a step gives: the output's name, and its numbers per row.
  const char* output() const { return NameOf(gives); }
  int64_t output_columns() const {
    if (IsOfText(gives)) return text_columns;
    return gives == ModelOutput::kHidden ? embedding_length : vocabulary_size;
  }
  bool generates() const { return gives == ModelOutput::kLogits; }
  // The one of `tokens` tokens whose row is asked for, where one says all: a
  // text's as a whole, or the last token's of those before it; else -1.
  int64_t RowOfText(int64_t tokens) const {
    if (!IsOfText(gives) && pooling != Pooling::kFirst &&
        pooling != Pooling::kLast) {
      return -1;
    }
    return pooling == Pooling::kFirst ? 0 : tokens - 1;
  }
};

// The products with experts of one block (ops/experts.h), whose matrices are
// read from the plan file as they are needed (streamed_experts.h).
struct ExpertGroup {
  struct Weight {
    std::string name;
    int64_t expert_bytes = 0;  // of one expert's matrix
  };
  std::vector<Weight> weights;  // in the order in which a step reads them
  int64_t experts = 0;
  int64_t used = 0;  // by one token
  // How many experts there is memory for at a time.
  int64_t slots = 0;
  // Memory for all matrices of one expert.
  int64_t SlotBytes() const;
};

// The model file that a plan was compiled from, and what the loader of that
// file was asked for.
struct ModelReference {
  std::string path;
  int64_t bytes = 0;
  uint64_t header_xxh3 = 0;   // of what stands before the tensor data
  uint64_t tensors_xxh3 = 0;  // of all tensor data, in the file's order
  KvTypes kv_type;
  int64_t context = 0;
  bool next_token_block = false;
};

struct Plan {
  ModelInfo model;
  Vocabulary vocabulary;
  CompileOptions options;
  std::vector<Graph> buckets;  // bounds.tokens ascending
  // Of the model's next-token block (graph/next_token_block.h), for the same
  // numbers of tokens and the same context; none where it was not asked for.
  // Weights of one name are one, whoever reads them, and so is the page table;
  // its states stand in the cache behind the model's.
  std::vector<Graph> next_token_buckets;
  // Of the passes that ran once, then of those that ran for the last bucket.
  std::vector<PassRecord> passes;
  int nodes_before = 0;  // in the graph that the loader wrote
  // By name, of weights that lie in a plan file: compared when they are first
  // used (weight_checksum.h).
  std::map<std::string, uint64_t> weight_checksums;
  // Likewise, of weights with experts: one for each expert's matrix.
  std::map<std::string, std::vector<uint64_t>> expert_checksums;
  // Weights of which only some experts are in memory at a time; none unless
  // that was asked for (StreamWithin).
  std::vector<ExpertGroup> streamed;
  bool Streams(const std::string& weight) const;
  // Its path is the file's name alone (so that a plan's bytes do not depend on
  // where it was made), or empty for the embedded model; tensors_xxh3 is 0
  // until SaveModelPlan.
  std::optional<ModelReference> source;
  // Of what all parts of a plan for several ranks were made from: the model's
  // header, samples of each of its tensors (model.cc), and all of its adapters.
  // 0: not known.
  uint64_t parts_xxh3 = 0;

  // What weights lie in, as long as any do. A file that somebody writes to
  // changes them: whoever takes a request asks CheckFiles first.
  std::vector<std::shared_ptr<const MappedFile>> files;
  // What streamed weights lie in, once all others were made (MakeWeights). It
  // is among `files` only if others lie in it, too: each expert is compared
  // with its checksum when it is read, whatever happened to the file.
  std::shared_ptr<const MappedFile> streamed_file;
  absl::Status CheckFiles() const;

  int64_t max_tokens() const { return buckets.back().bounds.tokens; }
  int64_t context() const { return buckets.back().bounds.context; }
  // The smallest bucket that takes this many tokens. Requires tokens <=
  // max_tokens().
  const Graph& BucketFor(int64_t tokens) const;

  // What may be read of all graphs alike.
  std::vector<const Graph*> AllGraphs() const;
  std::vector<Graph*> AllGraphs();
};

// The block's graphs as a plan for an executor of their own, sharing weights.
// Requires that there are any.
Plan NextTokenPlan(const Plan& plan);

// Memory of a plan in bytes, known before anything is loaded. The sum is the
// resident size of a process that has filled its context: pages count when they
// are touched, so a short text takes less of kv and arena.
struct PlanMemory {
  int64_t weights = 0;         // in the layouts that kernels read
  int64_t source_weights = 0;  // the same weights as the model file stores them
  // Of Plan::streamed: for the experts that are in memory at a time. Their
  // weights are not among those above.
  int64_t experts = 0;
  int64_t arena = 0;           // of the largest bucket: one serves all
  int64_t thread_scratch = 0;  // for one thread
  int64_t kv_per_token = 0;    // of one sequence
  // The same if each head had its own keys and values: more where attention
  // reads latent rows (ops/heads.h).
  int64_t kv_per_token_of_heads = 0;
  int64_t kv = 0;    // of all pages
  int64_t slot = 0;  // states by sequence, of one
  // Of all sequences, their checkpoints and marks (engine.h).
  int64_t slots = 0;
  int64_t history = 0;   // rows that sequences can go back, and their results
  int64_t logits = 0;    // rows that a step may ask for
  int64_t guessing = 0;  // what is known of texts to guess how they go on
  // Of the next-token block: intermediates and logits, and the rows that it
  // reads and hands on; and scratch of one thread. Its weights, keys and values
  // are among the others.
  int64_t next_token_block = 0;
  int64_t next_token_scratch = 0;
  // What a scheduler keeps: the sequences' tokens, which pages hold what; and
  // for each token that is chosen beside others, what it is chosen in.
  int64_t batching = 0;
  int64_t choosing = 0;
  int64_t sequences = 1;
  int64_t tokenizer = 0;  // and the vocabulary: an estimate
  int64_t program = 0;    // code, libraries, graphs: an estimate
  int64_t peak(int threads) const {
    return weights + experts + arena +
           (thread_scratch + next_token_scratch) * threads + kv + slots +
           history + logits + guessing + next_token_block + batching +
           choosing * std::min<int64_t>(threads, sequences) + tokenizer +
           program;
  }
};

// `kv_pages`: of kPageTokens positions, for all sequences together; 0: whole
// contexts for all of them. The queue of a scheduler (scheduler.h) is not
// counted: 4 bytes for each token of a prompt or text that waits. `guess_rows`:
// EngineOptions::guess_rows; logits of these come on top.
PlanMemory MemoryOf(const Plan& plan, int slots, int64_t logit_rows,
                    int64_t kv_pages = 0, int32_t checkpoints = 0,
                    int32_t rewind_rows = 0, int64_t guess_rows = 0);

// Rounded up to 64 bytes, as weights, pages and scratch memory are laid out.
int64_t AlignedBytes(int64_t bytes);

// What each state takes, in the order of the graph's states.
std::vector<StateBytes> StatesOf(const Graph& graph);
// Of the model, then of its next-token block.
std::vector<StateBytes> StatesOf(const Plan& plan);

}  // namespace weft
