// weft imatrix: how large the inputs of each product are, over some text.
//
// For every matrix of a block, per column, the mean over all tokens of the
// squared input; of experts, over the tokens that chose them. A text becomes
// tokens as a whole, BOS in front, and is cut into whole chunks; the rest is
// left out. Each chunk runs from an empty cache with BOS in the place of its
// first token; a block that predicts further tokens runs behind the model. The
// model is compiled without fusions and without rounding of
// activations, so that inputs are there to be looked at, as floats.
//
// The file is written every few chunks; --resume goes on behind the chunks that
// it has, if they are of the same model and texts.
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
#include "cli/files.h"
#include "cli/input_observer.h"
#include "loaders/architectures/architecture.h"
#include "loaders/importance_matrix.h"
#include "passes/pipeline.h"
#include "runtime/plan/weight_checksum.h"

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

struct Texts {
  std::vector<std::vector<int32_t>> chunks;
  std::string hash;  // of all that was read
};

absl::StatusOr<Texts> ReadTexts(const Flags& flags,
                                const Tokenizer& tokenizer) {
  Texts texts;
  std::vector<std::vector<int32_t>>& chunks = texts.chunks;
  for (const std::string& file : flags.files) {
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
    texts.hash += HashText(text);
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
  return texts;
}

// Of all weights: a model with other numbers in the same tensors is another.
std::string HashModel(const GgufFile& file) {
  std::string hashes;
  for (const GgufTensor& tensor : file.tensors()) {
    absl::StrAppend(&hashes, tensor.name, " ", WeightChecksum(tensor.data),
                    "\n");
  }
  return HashText(hashes);
}

// `matrix` is what the file holds, `now` what this run would begin with.
absl::Status CheckResumed(const Flags& flags, const InputPoints& points,
                          const ImportanceMatrix& now, int64_t chunks,
                          const ImportanceMatrix& matrix) {
  const auto refuse = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot resume ", flags.result, ": ", what,
                     ": give the same model, texts and --chunk, or leave "
                     "--resume out"));
  };
  if (matrix.model_hash.empty() || matrix.text_hash.empty()) {
    return refuse("it does not say of which model and texts it is");
  }
  if (absl::Status entries = CheckEntries(points, matrix); !entries.ok()) {
    return refuse(entries.message());
  }
  if (matrix.model_hash != now.model_hash) {
    return refuse("it is of a model with other weights");
  }
  if (matrix.chunk_size != now.chunk_size || matrix.datasets != now.datasets ||
      matrix.chunks > chunks) {
    return refuse(absl::StrCat("it has ", matrix.chunks, " chunks of ",
                               matrix.chunk_size, " tokens of ",
                               absl::StrJoin(matrix.datasets, ", ")));
  }
  if (matrix.text_hash != now.text_hash) {
    return refuse("its texts were others, of the same names");
  }
  return absl::OkStatus();
}

// Whether the model has a block that predicts further tokens, and it can run.
// Of a model that does not say so, or has one of an unknown kind, the rest is
// measured alone.
bool HasNextTokenBlock(const GgufFile& file, GraphOptions options) {
  options.next_token_block = true;
  return BuildGraph(file, options).ok();
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
  if (IsPlanFile(given.model)) {
    return UsageError(absl::StrCat("imatrix: ", given.model,
                                   " is a plan, which has other products: "
                                   "give its .gguf file"));
  }
  std::vector<std::string> inputs = FilesOfModel(given.model, given.compile);
  inputs.insert(inputs.end(), given.files.begin(), given.files.end());
  WEFT_RETURN_IF_ERROR(CheckOverwritesNoInput("imatrix", given.result, inputs));
  Flags flags = given;
  WEFT_ASSIGN_OR_RETURN(flags.chunk, ChunkOf(given, common));
  if (flags.chunks < 0) return UsageError("--chunks: want a number from 1");
  CompileFlags compile = flags.compile;
  if (compile.context != 0 && compile.context < flags.chunk) {
    return UsageError("--context: want at least --chunk");
  }
  if (compile.context == 0) compile.context = flags.chunk;
  compile.keep_plans = false;  // such a plan is for nothing else
  WEFT_ASSIGN_OR_RETURN(const GgufFile file, OpenModel(flags.model));
  WEFT_ASSIGN_OR_RETURN(const EngineOptions plain, compile.ToOptions(common));
  GraphOptions graph_options = plain.model.graph;
  graph_options.next_token_block = HasNextTokenBlock(file, graph_options);
  WEFT_ASSIGN_OR_RETURN(const LoadedGraph loaded,
                        BuildGraph(file, graph_options));
  const InputPoints points =
      FindInputPoints(loaded.graph, flags.process_output);
  InputPoints all_points = points, block_points;
  if (loaded.next_token_block.has_value()) {
    // Its output matrix is the model's, which has its entry already.
    block_points = FindInputPoints(*loaded.next_token_block,
                                   /*process_output=*/false);
    all_points.insert(block_points.begin(), block_points.end());
  }
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<Engine> engine,
      LoadEngine(flags.model, compile, common, [&](EngineOptions* options) {
        options->model.graph.next_token_block = graph_options.next_token_block;
        std::set<std::string>& disabled =
            options->model.compile.disabled_passes;
        for (const PassEntry& pass : Pipeline()) {
          if (absl::StartsWith(pass.name, "fuse-")) disabled.insert(pass.name);
        }
        disabled.insert("quantize-activations");
      }));
  WEFT_RETURN_IF_ERROR(CheckGenerates(engine->plan()));
  WEFT_ASSIGN_OR_RETURN(const Texts texts,
                        ReadTexts(flags, engine->tokenizer()));
  const std::vector<std::vector<int32_t>>& chunks = texts.chunks;
  const int64_t count = static_cast<int64_t>(chunks.size());
  ImportanceMatrix matrix;
  matrix.datasets = flags.files;
  matrix.chunk_size = flags.chunk;
  matrix.text_hash = HashText(texts.hash);
  matrix.model_hash = HashModel(file);
  if (flags.resume && std::filesystem::exists(flags.result)) {
    WEFT_ASSIGN_OR_RETURN(ImportanceMatrix written,
                          ImportanceMatrix::Read(flags.result));
    WEFT_RETURN_IF_ERROR(
        CheckResumed(flags, all_points, matrix, count, written));
    matrix = std::move(written);
  }
  AddEntries(all_points, &matrix);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < flags.chunk; ++i) positions.push_back(i);
  // At most 64 MB of logits at once; results do not depend on it.
  const int64_t step = std::clamp<int64_t>(
      (int64_t{1} << 24) / engine->plan().model.vocabulary_size, 1, 512);
  InputObserver observer(points, &matrix);
  InputObserver block_observer(block_points, &matrix);
  const auto nothing = [](int64_t, absl::Span<const float>) {
    return absl::OkStatus();
  };
  const Progress progress = MakeProgress(common, "imatrix");
  while (matrix.chunks < count) {
    const std::vector<int32_t>& chunk =
        chunks[static_cast<size_t>(matrix.chunks)];
    engine->executor().Observe(&observer);
    WEFT_RETURN_IF_ERROR(engine->Evaluate(chunk, positions, step, nothing));
    engine->executor().Observe(nullptr);
    // The block wants what the model makes of each token, so that runs again.
    if (Executor* block = engine->next_token_executor(); block != nullptr) {
      block->Observe(&block_observer);
      WEFT_RETURN_IF_ERROR(
          engine->EvaluateNextTokenBlock(chunk, step, nothing));
      block->Observe(nullptr);
    }
    ++matrix.chunks;
    std::vector<std::string> unseen = observer.Unseen();
    for (const std::string& tensor : block_observer.Unseen()) {
      unseen.push_back(tensor);
    }
    if (!unseen.empty()) {
      return absl::InternalError(absl::StrCat(
          "no product with tensor ", unseen.front(), " was seen: ", flags.model,
          ": please report it with the model's architecture"));
    }
    if (matrix.chunks % kChunksPerWrite == 0 && matrix.chunks < count) {
      WEFT_RETURN_IF_ERROR(matrix.Write(flags.result));
    }
    if (progress) progress(static_cast<double>(matrix.chunks) / count);
  }
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
