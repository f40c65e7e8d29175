// weft perplexity: how well a model foretells a text.
//
// The text is cut into windows as long as the context, each `stride` tokens
// after the one before. A window is run from an empty cache, with BOS in front
// where the vocabulary adds one, and of its tokens those count that no earlier
// window counted: so each token counts once, and all but those of the first
// window are seen with at least context - stride tokens before them. Smaller
// strides cost more and give lower (truer) figures. The nll is the mean
// negative log-likelihood per token, in nats; the perplexity is exp(nll).
//
// --kl-save keeps what the model gives for the same tokens (base_logits.h), and
// --kl-base compares another model with that.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cli/base_logits.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/output.h"
#include "runtime/generation/logprobs.h"
#include "runtime/generation/nan_logits.h"

namespace weft {
namespace {

struct Flags {
  std::string model, file, save, base;
  int64_t stride = 0;
  bool json = false;
  TextFlags text;
  CompileFlags compile;
};

struct Total {
  double nll = 0;
  int64_t tokens = 0;
  std::optional<BaseLogitsWriter> save;
  std::optional<BaseLogitsReader> base;
  std::vector<float> numbers;  // logits without NaNs
  NanLogits masked;            // the first of them
};

// Adds what `window` says of its tokens from `first` on.
absl::Status Score(Engine& engine, const std::vector<int32_t>& window,
                   int64_t first, Total* total) {
  std::vector<int64_t> positions;
  for (int64_t i = first; i < static_cast<int64_t>(window.size()); ++i) {
    positions.push_back(i - 1);
  }
  // At most 64 MB of logits at once; results do not depend on it.
  const int64_t chunk = std::clamp<int64_t>(
      (int64_t{1} << 24) / engine.plan().model.vocabulary_size, 1, 512);
  return engine.Evaluate(
      window, positions, chunk,
      [&](int64_t position, absl::Span<const float> row) -> absl::Status {
        const int32_t token = window[position + 1];
        std::vector<float>& logits = total->numbers;
        logits.assign(row.begin(), row.end());
        const NanLogits nans = MaskNans(absl::MakeSpan(logits));
        WEFT_RETURN_IF_ERROR(
            CheckSomeLeft(nans, static_cast<int64_t>(logits.size())));
        if (total->masked.count == 0) total->masked = nans;
        WEFT_ASSIGN_OR_RETURN(double p, LogProbability(logits, token));
        if (total->save) {
          WEFT_RETURN_IF_ERROR(total->save->Add(token, logits));
        }
        if (total->base) {
          WEFT_RETURN_IF_ERROR(total->base->Compare(token, logits));
        }
        total->nll -= p;
        ++total->tokens;
        return absl::OkStatus();
      });
}

absl::StatusOr<int> Perplexity(const Flags& flags, const CommonFlags& common) {
  if (flags.stride < 0) return UsageError("--stride: want a number from 1");
  std::vector<std::string> inputs = FilesOfModel(flags.model, flags.compile);
  inputs.push_back(flags.file);
  WEFT_RETURN_IF_ERROR(
      CheckOverwritesNoInput("perplexity", flags.save, inputs));
  WEFT_ASSIGN_OR_RETURN(std::string text, ReadTextFile(flags.file));
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<Engine> engine,
      LoadEngine(flags.model, flags.compile, common,
                 [&](EngineOptions* options) { flags.text.ApplyTo(options); }));
  WEFT_RETURN_IF_ERROR(CheckGenerates(engine->plan()));
  const Tokenizer& tokenizer = engine->tokenizer();
  EncodeOptions plain;
  plain.add_special = false;
  plain.parse_special = false;
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                        tokenizer.Encode(text, plain));
  std::vector<int32_t> head;
  if (tokenizer.add_bos()) head.push_back(tokenizer.bos());
  const int64_t count = static_cast<int64_t>(ids.size());
  const int64_t length =
      engine->plan().context() - static_cast<int64_t>(head.size());
  const int64_t stride =
      flags.stride > 0 ? flags.stride : std::max<int64_t>(1, length / 2);
  // The first token of a window can only be foretold from BOS.
  const int64_t most = engine->plan().context() - 1;
  if (stride > most) {
    return UsageError(absl::StrCat("--stride: want at most ", most,
                                   ": the context is ", most + 1));
  }
  if (count + static_cast<int64_t>(head.size()) < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("text too short: ", flags.file, ": it has ", count,
                     " tokens: give a longer one"));
  }
  const Progress progress = MakeProgress(common, "perplexity");
  Total total;
  const int64_t vocabulary = engine->plan().model.vocabulary_size;
  BaseRun run;
  run.vocabulary = vocabulary;
  run.context = engine->plan().context();
  run.stride = stride;
  run.text_hash = HashText(text);
  run.vocabulary_hash =
      HashText(absl::StrJoin(engine->plan().vocabulary.tokens(), "\n"));
  if (!flags.save.empty()) {
    WEFT_ASSIGN_OR_RETURN(BaseLogitsWriter save,
                          BaseLogitsWriter::Create(flags.save, run));
    total.save.emplace(std::move(save));
  }
  if (!flags.base.empty()) {
    WEFT_ASSIGN_OR_RETURN(BaseLogitsReader base,
                          BaseLogitsReader::Open(flags.base, run));
    total.base.emplace(std::move(base));
  }
  // Of a text without BOS the first token cannot be foretold.
  int64_t counted = head.empty() ? 1 : 0;
  for (int64_t begin = 0; counted < count; begin += stride) {
    const int64_t end = std::min(count, begin + length);
    std::vector<int32_t> window = head;
    window.insert(window.end(), ids.begin() + begin, ids.begin() + end);
    const int64_t first = static_cast<int64_t>(head.size()) + counted - begin;
    WEFT_RETURN_IF_ERROR(Score(*engine, window, first, &total));
    counted = end;
    if (progress) progress(static_cast<double>(end) / count);
  }
  if (total.masked.count > 0) {
    PrintWarnings(common, {NanWarning(total.masked, vocabulary)});
  }
  if (total.save) WEFT_RETURN_IF_ERROR(total.save->Commit());
  std::optional<Divergence> divergence;
  if (total.base) {
    WEFT_ASSIGN_OR_RETURN(divergence, total.base->Result());
  }
  const double nll = total.nll / total.tokens;
  if (flags.json) {
    nlohmann::ordered_json json = {
        {"perplexity", std::exp(nll)}, {"tokens", total.tokens}, {"nll", nll}};
    if (divergence) {
      json["kl_mean"] = divergence->mean;
      json["kl_p99"] = divergence->percentile99;
      json["same_top"] = divergence->same_top;
    }
    PrintJson(json);
    return kExitOk;
  }
  std::cout << absl::StreamFormat(
      "perplexity %.4f over %d tokens (%.6f nats per token)\n", std::exp(nll),
      total.tokens, nll);
  if (divergence) {
    std::cout << absl::StreamFormat(
        "divergence from the base %.6f nats per token (99%% below %.6f), same "
        "first choice %.2f%%\n",
        divergence->mean, divergence->percentile99,
        100.0 * divergence->same_top);
  }
  return kExitOk;
}

}  // namespace

void AddPerplexity(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("perplexity", "How well a model foretells a text");
  command
      ->add_option("MODEL", flags->model,
                   absl::StrCat("a .gguf or .weft file ", kEmbeddedByName))
      ->required();
  command->add_option("-f,--file", flags->file, "the text; - is stdin")
      ->required();
  command->add_option("--stride", flags->stride,
                      "tokens from window to window (default: half of what "
                      "the context holds)");
  CLI::Option* save = command->add_option(
      "--kl-save", flags->save,
      "keep the model's distributions in this file: 2 bytes for each token of "
      "the vocabulary and of the text");
  command
      ->add_option("--kl-base", flags->base,
                   "compare with the distributions of such a file: mean and "
                   "99th percentile of the KL divergence, same first choice")
      ->excludes(save);
  command->add_flag("--json", flags->json, "print one JSON object");
  flags->text.AddTo(*command);
  flags->compile.AddTo(*command);
  flags->compile.AddMemoryBudgetTo(*command);
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return Perplexity(*flags, common); };
  });
}

}  // namespace weft
