// The architectures there are, and what a builder works with.
//
// An architecture is one file that writes the model down in primitive ops, as
// it would be taught, and one line in the table.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "loaders/gguf.h"
#include "loaders/lora_adapter.h"
#include "loaders/model_config.h"
#include "loaders/weights.h"
#include "ops/build.h"
#include "ops/kv_types.h"
#include "ops/pooling.h"

namespace weft {

struct GraphOptions {
  KvTypes kv_type;
  // Positions per sequence, 0: the model's, at most 4096.
  int64_t context = 0;
  // A model with fewer positions has those; else it is an error.
  bool context_at_most = false;
  // Rows in one step, at most.
  int64_t tokens = 512;
  // Also writes down the model's next-token block (LoadedGraph), and lets the
  // model's graph give the rows that the block reads. The file must have one.
  bool next_token_block = false;
  // What the graph gives; unset: what the model is for. Embeddings of models
  // that have nothing behind the pooling are hidden vectors, to be pooled by
  // who runs the graph (ops/pooling.h).
  std::optional<ModelOutput> output;
  // Of which a step may add any to each row.
  std::vector<AdapterChoice> adapters;
};

// Whether a product has something added to it.
enum class Bias { kOptional, kRequired };

// A model being written down: its numbers, its weights as graph values, and the
// graph's standard inputs. What it is given must outlive it; the graph has its
// bounds already.
class ModelBuilder : public GraphBuilder {
 public:
  ModelBuilder(TensorSource* tensors, const ModelConfig& config,
               const GraphOptions& options, Graph* graph);

  const ModelConfig& config;
  // What the graph is to give. Decoders write their logits whatever it is;
  // what makes logits notes the vectors that they are made of here.
  ModelOutput gives;
  ValueId hidden = kNone;  // f32[R, embedding_length]
  // Whether the rows of all tokens are given, too (NormedOutputRows).
  bool gives_hidden_rows = false;

  // Standard inputs.
  ValueId ids;          // i32[T]
  ValueId positions;    // i32[T]
  ValueId sequence;     // i32[T], a slot of the KV cache
  ValueId output_rows;  // i32[R], rows of T
  // i32[T], encoders only: the last position of the row's sequence in this
  // step. Attention up to there, in place of `positions`, looks both ways.
  ValueId last_positions = kNone;
  // f32[T, embedding_length], of next-token blocks only.
  ValueId previous_hidden = kNone;

  // The weight matrix `name`.weight with these rows and columns, as a model
  // file stores it.
  ValueId Matrix(const std::string& name, int64_t rows, int64_t columns);
  // kNone when the file does not have it.
  ValueId OptionalMatrix(const std::string& name, int64_t rows,
                         int64_t columns);
  // The matrices of all heads, one below the other, of the three-dimensional
  // tensor `name`.weight; where the file has it, or always.
  ValueId OptionalHeadMatrix(const std::string& name, int64_t heads,
                             int64_t rows, int64_t columns);
  ValueId HeadMatrix(const std::string& name, int64_t heads, int64_t rows,
                     int64_t columns);
  // The matrices of all experts, one below the other, of the three-dimensional
  // tensor `name`.weight; or, as files of 2023 have them, of a tensor for each:
  // "blk.0.ffn_up.3.weight" for the fourth of "blk.0.ffn_up_exps".
  ValueId ExpertMatrix(const std::string& name, int64_t experts, int64_t rows,
                       int64_t columns);
  // The numbers of a tensor of these dimensions (row length first), one behind
  // the other, by its full name; in f32 whatever the file has.
  ValueId Vector(const std::string& tensor, std::vector<int64_t> dims);
  // kNone when the file does not have it. Of a block's (`blk.N.*`) all blocks
  // must have theirs, or none.
  ValueId OptionalVector(const std::string& tensor, std::vector<int64_t> dims);
  // The same where blocks may differ in what they have.
  ValueId VectorIfThere(const std::string& tensor, std::vector<int64_t> dims);
  // The matrix of a tensor whose rows are `dims[0]` long, the other way round:
  // f32[dims[0], the rest], whatever the file has.
  ValueId Transposed(const std::string& tensor, std::vector<int64_t> dims);
  // The numbers of a tensor, each so many times in a row.
  ValueId Repeated(const std::string& tensor, std::vector<int64_t> dims,
                   int64_t times);
  // What frequencies of rotation are divided by, one per pair: above 0 and not
  // infinite. Where the file has it, or always.
  ValueId OptionalRopeFactors(const std::string& tensor);
  ValueId RopeFactors(const std::string& tensor);
  // What products with the experts of a matrix in NVFP4 are times
  // (`name`.scale), `rows` numbers for each expert; kNone: nothing.
  ValueId ExpertFactors(const std::string& name, ValueId matrix,
                        int64_t experts, int64_t rows);
  // Whether the file has a tensor of this full name; where a model is only
  // described, it has no other than what is always asked for.
  bool HasTensor(const std::string& tensor) const;
  // With these dimensions.
  bool HasTensor(const std::string& tensor, std::vector<int64_t> dims) const;
  // The number of a tensor that holds one, by its full name; `otherwise` where
  // the file does not have it, as OptionalVector.
  double OptionalNumber(const std::string& tensor, double otherwise);
  // A tensor of these dimensions, where the file has it, is not read.
  void Ignore(const std::string& tensor, std::vector<int64_t> dims);
  // Row `row` of the matrix `name`.weight as such a vector.
  ValueId RowVector(const std::string& name, int64_t rows, int64_t columns,
                    int64_t row);

  // x weight^T, times the number `name`.scale where the file has one (as files
  // of NVFP4 do), + `name`.bias: where the file has one, or always. Nodes are
  // named `name`.
  ValueId Linear(const std::string& name, ValueId x, int64_t outputs,
                 int64_t inputs, Bias bias = Bias::kOptional);

  // Rotation as the metadata says, of pairs as `style` says (RopeOptions).
  RopeOptions RopeOf(RopeStyle style) const;
  // The same without what stretches it to a longer context, for the blocks with
  // a window of models whose other blocks are stretched.
  RopeOptions UnscaledRopeOf(RopeStyle style) const;

  // A new state for the keys or the values of a block. Encoders write and read
  // it in the same step, so it is f32 whatever the options say.
  ValueId KeyState(int64_t block, int64_t heads, int64_t head_dim);
  ValueId ValueState(int64_t block, int64_t heads, int64_t head_dim);
  // New states by sequence of a block: the last rows of a convolution's input,
  // and of each head a matrix. Their last versions must become outputs:
  // KeepState.
  ValueId WindowState(int64_t block, const std::string& name, int64_t rows,
                      int64_t columns);
  ValueId MatrixState(int64_t block, int64_t heads, int64_t keys,
                      int64_t values);
  // Makes the new version an output, and gives the rows.
  ValueId KeepState(const std::string& name, const Stepped& stepped);
  RowsOf rows_of() const { return {positions, sequence}; }

  // Whether all is well so far. After a failure, values must not be used.
  bool ok() const { return error_.ok() && status().ok(); }
  // What is wrong with the model; the first is what Finish returns.
  void Fail(absl::Status status);
  // The same: the number of a key, without the architecture's prefix.
  void RefuseKey(absl::string_view key, int64_t found,
                 absl::string_view expected);
  // First error of building or of reading weights, or a tensor nobody used.
  absl::Status Finish();

 private:
  ValueId AddMatrix(const std::string& name, const GgufTensor& tensor);
  ValueId JoinExperts(const std::string& name, const std::string& one,
                      int64_t experts, int64_t rows, int64_t columns);
  ValueId AddVector(const GgufTensor& tensor);
  // None: a weight that is only described.
  ValueId AddNumbers(const std::string& name, Shape shape,
                     const std::vector<float>& numbers);
  // `name`.scale, that many numbers; none where the file does not have it.
  std::vector<float> FactorsOf(const std::string& name, int64_t count);
  // Fails when another block has what this one does not, or the reverse.
  void CheckAllOrNone(const std::string& tensor,
                      const std::vector<int64_t>& dims, bool has);
  ValueId State(int64_t block, const char* layout, int64_t heads,
                int64_t head_dim);

  TensorSource& weights_;
  const GraphOptions& options_;
  // The first block that asked for an optional tensor, by its name in there.
  struct FirstAsked {
    std::string tensor;
    bool has;
  };
  std::map<std::string, FirstAsked> optional_;
  absl::Status error_;
};

struct Architecture {
  const char* name;  // `general.architecture`
  ModelTraits traits;
  void (*build)(ModelBuilder& m);
  // Writes down the block behind the last one (next_token_block.h); null:
  // nobody knows how. Requires a file with such a block.
  void (*build_next_token_block)(ModelBuilder& m) = nullptr;
};

absl::Span<const Architecture* const> AllArchitectures();
// Null when there is none of this name.
const Architecture* FindArchitecture(absl::string_view name);

struct LoadedGraph {
  Graph graph;
  ModelConfig config;
  ModelOutput gives = ModelOutput::kLogits;
  // Where it was asked for; within the same bounds.
  std::optional<Graph> next_token_block;
};

// The plain graph of a model: primitives only, verified. Weights point into the
// file's mapping, which the graph keeps alive. Errors: an architecture that is
// not in the table (with those that are), bad hyper-parameters, missing,
// misshapen or unused tensors, options that the model cannot have; an output or
// a next-token block that it does not; those of AttachAdapters.
absl::StatusOr<LoadedGraph> BuildGraph(const GgufFile& file,
                                       const GraphOptions& options);

}  // namespace weft
