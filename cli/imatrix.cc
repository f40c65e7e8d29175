// weft imatrix: how large the inputs of each product are, over some text.
//
// For every matrix of a block, per column, the mean over all tokens of the
// squared input; of experts, over the tokens that chose them. A text becomes
// tokens as a whole, BOS in front, and is cut into whole chunks; the rest is
// left out. Each chunk runs from an empty cache with BOS in the place of its
// first token. The model is compiled without fusions and without rounding of
// activations, so that inputs are there to be looked at, as floats.
//
// The file is written every few chunks; --resume goes on behind the chunks that
// it has.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cli/command.h"
#include "loaders/importance_matrix.h"
#include "ops/experts.h"
#include "ops/kernels/kernel.h"
#include "passes/pipeline.h"

namespace weft {
namespace {

// Chunks between two writings of the file.
constexpr int64_t kChunksPerWrite = 16;
// Tokens of one, where the model takes so many.
constexpr int64_t kUsualChunk = 512;

struct Flags {
  std::string model, result;
  std::vector<std::string> files;
  int64_t chunk = 0;  // 0: the usual one
  int64_t chunks = 0;
  bool resume = false;
  bool process_output = false;
  CompileFlags compile;
};

// Adds up the squares that products see.
class InputObserver : public NodeObserver {
 public:
  InputObserver(bool process_output, ImportanceMatrix* matrix)
      : process_output_(process_output), matrix_(*matrix) {}

  void Before(const Graph& graph, NodeId id, const KernelCall& call) override {
    const Node& node = graph.node(id);
    if (!IsProduct(node)) return;
    const Value& weight = graph.value(node.inputs[1]);
    const Value& x = graph.value(node.inputs[0]);
    if (weight.kind != ValueKind::kWeight || x.type.dtype != DType::kF32)
      return;
    const bool in_block = absl::StartsWith(weight.name, "blk.");
    if (!in_block && !(process_output_ && weight.name == "output")) return;
    InputSquares& squares = matrix_.tensors[weight.name + ".weight"];
    if (IsExpertMatmul(node)) {
      AddExperts(ExpertPartsOf(graph, node), call, &squares);
    } else {
      const Operand& rows = call.inputs[0];
      Grow(1, rows.columns, &squares);
      for (int64_t m = 0; m < rows.rows; ++m) {
        AddRow(RowOf(rows, m), 0, rows.columns, &squares);
      }
    }
  }
  void After(const Graph&, NodeId, const KernelCall&) override {}

 private:
  static const float* RowOf(const Operand& x, int64_t row) {
    return reinterpret_cast<const float*>(static_cast<const uint8_t*>(x.data) +
                                          row * x.row_bytes);
  }

  static void Grow(int64_t matrices, int64_t columns, InputSquares* squares) {
    squares->sums.resize(static_cast<size_t>(matrices * columns));
    squares->counts.resize(static_cast<size_t>(matrices));
  }

  static void AddRow(const float* x, int64_t matrix, int64_t columns,
                     InputSquares* squares) {
    double* sums = squares->sums.data() + matrix * columns;
    for (int64_t i = 0; i < columns; ++i) sums[i] += double{x[i]} * x[i];
    squares->counts[static_cast<size_t>(matrix)] += 1.0;
  }

  static void AddExperts(const ExpertParts& parts, const KernelCall& call,
                         InputSquares* squares) {
    const Operand& x = call.inputs[0];
    const Operand& ids = call.inputs[2];
    const int64_t columns = parts.shared ? x.columns : x.columns / parts.used;
    Grow(parts.experts, columns, squares);
    for (int64_t m = 0; m < x.rows; ++m) {
      const int32_t* chosen = reinterpret_cast<const int32_t*>(
          static_cast<const uint8_t*>(ids.data) + m * ids.row_bytes);
      for (int64_t j = 0; j < parts.used; ++j) {
        const float* row = RowOf(x, m) + (parts.shared ? 0 : j * columns);
        AddRow(row, chosen[j], columns, squares);
      }
    }
  }

  const bool process_output_;
  ImportanceMatrix& matrix_;
};

absl::StatusOr<std::vector<std::vector<int32_t>>> ChunksOf(
    const Flags& flags, const Tokenizer& tokenizer) {
  std::vector<std::vector<int32_t>> chunks;
  for (const std::string& file : flags.files) {
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
    EncodeOptions plain;
    plain.add_special = false;
    plain.parse_special = false;
    WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                          tokenizer.Encode(text, plain));
    if (tokenizer.add_bos()) ids.insert(ids.begin(), tokenizer.bos());
    const size_t size = static_cast<size_t>(flags.chunk);
    for (size_t at = 0; at + size <= ids.size(); at += size) {
      if (flags.chunks > 0 &&
          static_cast<int64_t>(chunks.size()) == flags.chunks)
        break;
      chunks.emplace_back(ids.begin() + at, ids.begin() + at + size);
      if (tokenizer.add_bos()) chunks.back()[0] = tokenizer.bos();
    }
  }
  if (chunks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("texts too short: none has a whole chunk of ", flags.chunk,
                     " tokens: give longer ones, or a smaller --chunk"));
  }
  return chunks;
}

absl::Status CheckResumed(const Flags& flags, const ImportanceMatrix& matrix,
                          int64_t chunks) {
  if (matrix.chunk_size == flags.chunk && matrix.datasets == flags.files &&
      matrix.chunks <= chunks) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "cannot resume ", flags.result, ": it has ", matrix.chunks, " chunks of ",
      matrix.chunk_size, " tokens of ", absl::StrJoin(matrix.datasets, ", "),
      ": give the same texts and --chunk, or leave --resume out"));
}

// What the flags say, or as many tokens as are usual and the model takes.
absl::StatusOr<int64_t> ChunkOf(const Flags& flags, const CommonFlags& common) {
  WEFT_ASSIGN_OR_RETURN(EngineOptions options, flags.compile.ToOptions(common));
  options.model.warn = nullptr;  // the model is loaded after that
  options.model.reads_weights = false;
  options.model.graph.context = 0;
  WEFT_ASSIGN_OR_RETURN(const Plan plan, LoadPlan(flags.model, options.model));
  const int64_t most = plan.model.context_length;
  const int64_t chunk =
      flags.chunk > 0 ? flags.chunk : std::min(kUsualChunk, most);
  if (chunk <= most) return chunk;
  return absl::InvalidArgumentError(
      absl::StrCat("imatrix: --chunk ", chunk, ": the model takes at most ",
                   most, " tokens at once: choose less"));
}

absl::StatusOr<int> Imatrix(const Flags& given, const CommonFlags& common) {
  if (given.chunk != 0 && given.chunk < 2) {
    return UsageError("--chunk: want a number from 2");
  }
  WEFT_RETURN_IF_ERROR(given.compile.CheckModel(given.model));
  Flags flags = given;
  WEFT_ASSIGN_OR_RETURN(flags.chunk, ChunkOf(given, common));
  if (flags.chunks < 0) return UsageError("--chunks: want a number from 1");
  CompileFlags compile = flags.compile;
  if (compile.context != 0 && compile.context < flags.chunk) {
    return UsageError("--context: want at least --chunk");
  }
  if (compile.context == 0) compile.context = flags.chunk;
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<Engine> engine,
      LoadEngine(flags.model, compile, common, [](EngineOptions* options) {
        std::set<std::string>& disabled =
            options->model.compile.disabled_passes;
        for (const PassEntry& pass : Pipeline()) {
          if (absl::StartsWith(pass.name, "fuse-")) disabled.insert(pass.name);
        }
        disabled.insert("quantize-activations");
      }));
  WEFT_RETURN_IF_ERROR(CheckGenerates(engine->plan()));
  WEFT_ASSIGN_OR_RETURN(const auto chunks,
                        ChunksOf(flags, engine->tokenizer()));
  const int64_t count = static_cast<int64_t>(chunks.size());
  ImportanceMatrix matrix;
  matrix.datasets = flags.files;
  matrix.chunk_size = flags.chunk;
  if (flags.resume && std::filesystem::exists(flags.result)) {
    WEFT_ASSIGN_OR_RETURN(matrix, ImportanceMatrix::Read(flags.result));
    WEFT_RETURN_IF_ERROR(CheckResumed(flags, matrix, count));
  }
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < flags.chunk; ++i) positions.push_back(i);
  // At most 64 MB of logits at once; results do not depend on it.
  const int64_t step = std::clamp<int64_t>(
      (int64_t{1} << 24) / engine->plan().model.vocabulary_size, 1, 512);
  InputObserver observer(flags.process_output, &matrix);
  const Progress progress = MakeProgress(common, "imatrix");
  engine->executor().Observe(&observer);
  while (matrix.chunks < count) {
    WEFT_RETURN_IF_ERROR(engine->Evaluate(
        chunks[static_cast<size_t>(matrix.chunks)], positions, step,
        [](int64_t, absl::Span<const float>) { return absl::OkStatus(); }));
    ++matrix.chunks;
    if (matrix.tensors.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no products are seen: ", flags.model,
                       ": give the .gguf file rather than a plan"));
    }
    if (matrix.chunks % kChunksPerWrite == 0 && matrix.chunks < count) {
      WEFT_RETURN_IF_ERROR(matrix.Write(flags.result));
    }
    if (progress) progress(static_cast<double>(matrix.chunks) / count);
  }
  engine->executor().Observe(nullptr);
  WEFT_RETURN_IF_ERROR(matrix.Write(flags.result));
  std::cout << absl::StreamFormat("%s: %d tensors, %d chunks of %d tokens\n",
                                  flags.result, matrix.tensors.size(),
                                  matrix.chunks, matrix.chunk_size);
  return kExitOk;
}

}  // namespace

void AddImatrix(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  // Sums are of exact inputs but for this.
  flags->compile.kv_type = "f32";
  CLI::App* command = app.add_subcommand(
      "imatrix", "Measures which columns matter, for quantize --imatrix");
  command
      ->add_option("MODEL", flags->model,
                   absl::StrCat("a .gguf file ", kEmbeddedByName))
      ->required();
  command
      ->add_option("-f,--file", flags->files,
                   "a text; may come several times; - is stdin")
      ->required()
      ->expected(1)
      ->take_all();
  command->add_option("-o,--output", flags->result, "the file to write")
      ->required();
  command->add_option("--chunk", flags->chunk,
                      "tokens that are seen together (512, or as many as the "
                      "model takes)");
  command->add_option("--chunks", flags->chunks, "at most so many (all)");
  command->add_flag("--resume", flags->resume,
                    "go on where the file to write ends");
  command->add_flag("--process-output", flags->process_output,
                    "measure the output matrix too");
  flags->compile.AddTo(*command);
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return Imatrix(*flags, common); };
  });
}

}  // namespace weft
