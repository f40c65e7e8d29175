// weft eval: the logits of given tokens, or vectors of them and of the text, or
// what a ranker says of it.
#include <iostream>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/first_largest.h"
#include "base/output_file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/files.h"
#include "nlohmann/json.hpp"
#include "ops/pooling.h"
#include "runtime/generation/nan_logits.h"

namespace weft {
namespace {

struct Flags {
  std::string model, tokens, text, positions = "all", logits;
  std::string embedding, hidden, score, states, next_token_block;
  bool has_text = false;
  int64_t chunk = 512;
  int64_t at = -1;
  bool json = false;
  TextFlags texts;
  CompileFlags compile;
};

absl::StatusOr<std::vector<int64_t>> Positions(const std::string& text,
                                               int64_t count) {
  std::vector<int64_t> positions;
  if (text == "all") {
    for (int64_t i = 0; i < count; ++i) positions.push_back(i);
    return positions;
  }
  if (text == "last") return std::vector<int64_t>{count - 1};
  absl::StatusOr<std::vector<int64_t>> numbers =
      ParseNumbers(text, "--positions", count - 1);
  if (!numbers.ok()) return numbers;
  for (size_t i = 1; i < numbers->size(); ++i) {
    if ((*numbers)[i] <= (*numbers)[i - 1]) {
      return UsageError("--positions: want ascending numbers");
    }
  }
  return numbers;
}

absl::Status WriteFloats(const std::string& path,
                         absl::Span<const float> numbers) {
  if (path.empty()) return absl::OkStatus();
  return WriteFile(path,
                   std::string(reinterpret_cast<const char*>(numbers.data()),
                               numbers.size() * sizeof(float)));
}

// The tokens that flags name.
absl::StatusOr<std::vector<int32_t>> TokensOf(const Flags& flags,
                                              const Engine& engine) {
  std::vector<int32_t> tokens;
  if (flags.has_text) {
    WEFT_ASSIGN_OR_RETURN(tokens, engine.tokenizer().Encode(flags.text, {}));
  } else {
    WEFT_ASSIGN_OR_RETURN(
        const std::vector<int64_t> ids,
        ParseNumbers(flags.tokens, "--tokens",
                     engine.plan().model.vocabulary_size - 1));
    tokens.assign(ids.begin(), ids.end());
  }
  if (tokens.empty()) return UsageError("eval: there are no tokens");
  return tokens;
}

absl::StatusOr<std::unique_ptr<Engine>> Load(const Flags& flags,
                                             const CommonFlags& common,
                                             std::optional<ModelOutput> gives) {
  return LoadEngine(flags.model, flags.compile, common,
                    [&](EngineOptions* options) {
                      flags.texts.ApplyTo(options);
                      options->model.graph.output = gives;
                    });
}

// A plan file gives what it was compiled for.
absl::Status CheckGives(const Engine& engine, bool good, const char* flag) {
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": the plan gives ",
                                                 engine.plan().model.output(),
                                                 ": use the model file"));
}

absl::Status WriteHidden(const Flags& flags, const CommonFlags& common) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                        Load(flags, common, ModelOutput::kHidden));
  WEFT_RETURN_IF_ERROR(CheckGives(
      *engine, engine->plan().model.gives == ModelOutput::kHidden, "--hidden"));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                        TokensOf(flags, *engine));
  std::vector<float> rows;
  WEFT_RETURN_IF_ERROR(engine->Hidden(
      tokens,
      [&](int64_t, absl::Span<const float> vector) {
        rows.insert(rows.end(), vector.begin(), vector.end());
        return absl::OkStatus();
      },
      flags.chunk));
  if (flags.json && flags.embedding.empty() && flags.score.empty()) {
    std::cout << nlohmann::json{{"tokens", tokens}}.dump() << "\n";
  }
  return WriteFloats(flags.hidden, rows);
}

// What a text gives as a whole: its vector, or scores.
absl::Status EvalText(const Flags& flags, Engine& engine,
                      const std::string& file) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                        TokensOf(flags, engine));
  WEFT_ASSIGN_OR_RETURN(const std::vector<float> numbers,
                        engine.Embed(tokens, flags.chunk));
  WEFT_RETURN_IF_ERROR(WriteFloats(file, numbers));
  const ModelInfo& model = engine.plan().model;
  if (flags.json) {
    const bool scores = model.gives == ModelOutput::kScores;
    nlohmann::json result = {{"tokens", tokens},
                             {scores ? "scores" : "embedding", numbers}};
    if (!model.labels.empty()) result["labels"] = model.labels;
    std::cout << result.dump() << "\n";
  } else if (file.empty()) {
    std::cout << absl::StrJoin(numbers, " ") << "\n";
  }
  return absl::OkStatus();
}

// A model is loaded for each of what is wanted of it: graphs give one thing.
absl::StatusOr<int> EvalVectors(const Flags& flags, const CommonFlags& common) {
  if (!flags.logits.empty() || !flags.states.empty()) {
    return UsageError(
        "eval: --hidden, --embedding and --score do not go with --logits and "
        "--states");
  }
  if (!flags.hidden.empty()) {
    WEFT_RETURN_IF_ERROR(WriteHidden(flags, common));
  }
  if (!flags.embedding.empty()) {
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          Load(flags, common, ModelOutput::kEmbedding));
    const ModelOutput gives = engine->plan().model.gives;
    WEFT_RETURN_IF_ERROR(CheckGives(
        *engine,
        gives == ModelOutput::kEmbedding || gives == ModelOutput::kHidden,
        "--embedding"));
    WEFT_RETURN_IF_ERROR(EvalText(flags, *engine, flags.embedding));
  }
  if (!flags.score.empty()) {
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          Load(flags, common, ModelOutput::kScores));
    WEFT_RETURN_IF_ERROR(
        CheckGives(*engine, engine->plan().model.gives == ModelOutput::kScores,
                   "--score"));
    WEFT_RETURN_IF_ERROR(EvalText(flags, *engine, flags.score));
  }
  return kExitOk;
}

absl::StatusOr<int> EvalNextTokenBlock(const Flags& flags,
                                       const CommonFlags& common) {
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<Engine> engine,
      LoadEngine(flags.model, flags.compile, common,
                 [&](EngineOptions* options) {
                   flags.texts.ApplyTo(options);
                   options->model.graph.output = ModelOutput::kLogits;
                   options->model.graph.next_token_block = true;
                 }));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                        TokensOf(flags, *engine));
  std::vector<float> rows;
  WEFT_RETURN_IF_ERROR(engine->EvaluateNextTokenBlock(
      tokens, flags.chunk, [&](int64_t, absl::Span<const float> logits) {
        rows.insert(rows.end(), logits.begin(), logits.end());
        return absl::OkStatus();
      }));
  if (flags.json) {
    std::cout << nlohmann::json{{"tokens", tokens}}.dump() << "\n";
  }
  WEFT_RETURN_IF_ERROR(WriteFloats(flags.next_token_block, rows));
  return kExitOk;
}

absl::StatusOr<int> Eval(const Flags& flags, const CommonFlags& common) {
  if (flags.tokens.empty() == !flags.has_text) {
    return UsageError("eval: give either --tokens or --text");
  }
  if (flags.states.empty() && flags.at != -1) {
    return UsageError("--at: goes with --states");
  }
  if (flags.at == 0 || flags.at < -1) {
    return UsageError("--at: want a positive number");
  }
  if (flags.chunk < 1) return UsageError("--chunk: want a positive number");
  for (const std::string& path :
       {flags.logits, flags.embedding, flags.hidden, flags.score, flags.states,
        flags.next_token_block}) {
    if (path.empty()) continue;
    WEFT_RETURN_IF_ERROR(CheckOverwritesNoInput(
        "eval", path, FilesOfModel(flags.model, flags.compile)));
    WEFT_RETURN_IF_ERROR(CheckCanWrite(path));
  }
  if (!flags.next_token_block.empty()) {
    if (!flags.logits.empty() || !flags.states.empty() ||
        !flags.hidden.empty() || !flags.embedding.empty() ||
        !flags.score.empty()) {
      return UsageError(
          "eval: --next-token-block goes with no other file to write");
    }
    return EvalNextTokenBlock(flags, common);
  }
  if (!flags.hidden.empty() || !flags.embedding.empty() ||
      !flags.score.empty()) {
    return EvalVectors(flags, common);
  }
  // Of a model for vectors logits are had when they are asked for.
  const bool logits = !flags.logits.empty() || !flags.states.empty();
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<Engine> engine,
      Load(flags, common,
           logits ? std::optional(ModelOutput::kLogits) : std::nullopt));
  if (!engine->plan().model.generates() && !logits) {
    WEFT_RETURN_IF_ERROR(EvalText(flags, *engine, ""));
    return kExitOk;
  }
  const int64_t vocabulary = engine->plan().model.vocabulary_size;
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                        TokensOf(flags, *engine));
  if (!flags.states.empty()) {
    const int64_t count = static_cast<int64_t>(tokens.size());
    if (flags.at > count) {
      return UsageError(
          absl::StrCat("--at: there are only ", count, " tokens"));
    }
    WEFT_ASSIGN_OR_RETURN(
        const std::vector<float> states,
        engine->SlotStates(
            absl::MakeConstSpan(tokens).first(flags.at < 0 ? count : flags.at),
            flags.chunk));
    WEFT_RETURN_IF_ERROR(WriteFloats(flags.states, states));
  }
  WEFT_ASSIGN_OR_RETURN(
      std::vector<int64_t> positions,
      Positions(flags.positions, static_cast<int64_t>(tokens.size())));

  std::string rows;
  nlohmann::json argmax = nlohmann::json::array();
  nlohmann::json logprobs = nlohmann::json::array();
  std::vector<float> numbers;  // logits without NaNs
  NanLogits masked;
  absl::Status status = engine->Evaluate(
      tokens, positions, flags.chunk,
      [&](int64_t position, absl::Span<const float> logits) -> absl::Status {
        if (!flags.logits.empty()) {
          rows.append(reinterpret_cast<const char*>(logits.data()),
                      logits.size() * sizeof(float));
        }
        numbers.assign(logits.begin(), logits.end());
        const NanLogits nans = MaskNans(absl::MakeSpan(numbers));
        WEFT_RETURN_IF_ERROR(
            CheckSomeLeft(nans, static_cast<int64_t>(numbers.size())));
        if (masked.count == 0) masked = nans;
        argmax.push_back(FirstLargest(numbers));
        if (position + 1 < static_cast<int64_t>(tokens.size())) {
          WEFT_ASSIGN_OR_RETURN(double p,
                                LogProbability(numbers, tokens[position + 1]));
          logprobs.push_back(p);
        } else {
          logprobs.push_back(nullptr);
        }
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  if (masked.count > 0) PrintWarnings(common, {NanWarning(masked, vocabulary)});
  if (!flags.logits.empty()) {
    WEFT_RETURN_IF_ERROR(WriteFile(flags.logits, rows));
  }
  if (flags.json) {
    const nlohmann::json result = {{"tokens", tokens},
                                   {"positions", positions},
                                   {"argmax", argmax},
                                   {"logprob_of_next", logprobs}};
    std::cout << result.dump() << "\n";
  } else {
    for (size_t i = 0; i < positions.size(); ++i) {
      std::cout << positions[i] << " " << tokens[positions[i]] << " "
                << argmax[i] << " " << logprobs[i] << "\n";
    }
  }
  return kExitOk;
}

}  // namespace

void AddEval(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "eval",
      "Runs tokens and tells, per position: token, most likely next token, "
      "log-probability of the token that comes next");
  command
      ->add_option("MODEL", flags->model,
                   absl::StrCat("a .gguf or .weft file ", kEmbeddedByName))
      ->required();
  command->add_option("--tokens", flags->tokens, "ids, as 1,2,3");
  CLI::Option* text = command->add_option(
      "--text", flags->text, "a text; BOS is added as the model says");
  command
      ->add_option("--positions", flags->positions,
                   "all, last, or numbers as 0,5,9")
      ->capture_default_str();
  command->add_option("--chunk", flags->chunk, "tokens in one step")
      ->capture_default_str();
  command->add_option("--logits", flags->logits,
                      "write float32 rows, one per position, to this file");
  command->add_option("--embedding", flags->embedding,
                      "write the text's vector, float32, pooled as the model "
                      "says and not normalised, to this file");
  command->add_option("--hidden", flags->hidden,
                      "write the tokens' vectors after the last norm, a "
                      "float32 row each, to this file");
  command->add_option("--score", flags->score,
                      "rankers and classifiers: write the text's scores, "
                      "float32, to this file");
  command->add_option("--next-token-block", flags->next_token_block,
                      "models with a next-token block: write what it says of "
                      "the third and later tokens, float32 rows of logits, "
                      "one per token but the last, to this file");
  command->add_option("--states", flags->states,
                      "models with recurrent blocks: write their states, "
                      "float32, block by block, to this file");
  command->add_option("--at", flags->at,
                      "with --states: after this many tokens (default: all)");
  command->add_flag("--json", flags->json, "print one JSON object");
  flags->texts.AddTo(*command);
  flags->compile.AddTo(*command);
  flags->compile.AddMemoryBudgetTo(*command);
  command->callback([flags, text, &common, action] {
    flags->has_text = text->count() > 0;
    *action = [flags, &common] { return Eval(*flags, common); };
  });
}

}  // namespace weft
