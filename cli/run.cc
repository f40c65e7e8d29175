// weft run: streams generated text.
//
// Standard output gets what the model generates and one newline, nothing else:
// the default prompt, the seed and the speeds go to standard error.
#include <cstdio>
#include <iostream>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"

namespace weft {
namespace {

constexpr char kDefaultPrompt[] =
    "It is a truth universally acknowledged, that";

struct Flags {
  std::string model, prompt, file;
  bool has_prompt = false, has_file = false;
  int64_t tokens = 100;
  bool json = false;
  CompileFlags compile;
  SamplingFlags sampling;
};

// What the user did not choose, for another run of the same.
void LogChoices(const Flags& flags, const GenerateRequest& request) {
  if (!flags.has_prompt && !flags.has_file) {
    std::cerr << "prompt " << request.prompt << "\n";
  }
  if (flags.sampling.seed->count() == 0 && request.sampling.temperature > 0) {
    std::cerr << "seed " << request.sampling.seed << "\n";
  }
}

absl::StatusOr<int> Run(const Flags& flags, const CommonFlags& common) {
  if (flags.has_prompt && flags.has_file) {
    return UsageError("run: give either -p or -f");
  }
  if (flags.tokens < 0) return UsageError("-n: want a number from 0");
  GenerateRequest request;
  request.prompt = flags.has_prompt ? flags.prompt : kDefaultPrompt;
  if (flags.has_file) {
    WEFT_ASSIGN_OR_RETURN(std::string text, ReadTextFile(flags.file));
    request.prompt = std::move(text);
  }
  request.max_tokens = flags.tokens;
  WEFT_ASSIGN_OR_RETURN(SamplingOptions sampling, flags.sampling.ToOptions());
  request.sampling = sampling;
  WEFT_ASSIGN_OR_RETURN(ContextOverflow overflow, flags.compile.Overflow());
  request.overflow = overflow;

  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                        LoadEngine(flags.model, flags.compile, common));
  WEFT_ASSIGN_OR_RETURN(
      std::string suggested,
      flags.sampling.TakeSuggested(engine->plan().model, &request.sampling));
  absl::StatusOr<GenerateResult> result = GenerateResult();
  // Not before it is clear that the prompt is taken: an error stands alone.
  bool logged = common.quiet;
  const auto log_once = [&] {
    if (!logged) LogChoices(flags, request);
    if (!logged && !suggested.empty()) std::cerr << suggested << "\n";
    logged = true;
  };
  {
    const CancelOnInterrupt cancel(engine.get());
    result = engine->Generate(request, [&](absl::string_view text) {
      log_once();
      if (!flags.json) std::cout << text << std::flush;
      // A reader that has gone stops it too.
      return static_cast<bool>(std::cout) && !Interrupted();
    });
  }
  if (!result.ok()) return result.status();
  log_once();
  if (result->bos_in_prompt && !common.quiet) {
    std::cerr << "weft: the prompt begins with BOS itself: no second one was "
                 "added\n";
  }
  if (flags.json) {
    PrintJson({{"prompt_tokens", result->prompt_tokens.size()},
               {"generated_tokens", result->tokens.size()},
               {"text", result->text},
               {"tokens", result->tokens},
               {"prefill_seconds", result->prefill_seconds},
               {"decode_seconds", result->decode_seconds},
               {"seed", request.sampling.seed},
               {"stop_reason", Name(result->stop_reason)}});
  } else {
    std::cout << "\n";
    if (!common.quiet) {
      const double prefill = result->prompt_tokens.size() /
                             std::max(result->prefill_seconds, 1e-9);
      const double decode =
          result->tokens.size() / std::max(result->decode_seconds, 1e-9);
      std::cerr << absl::StreamFormat(
          "load %.3f s, prompt %d tokens at %.1f/s, generated %d at %.1f/s, "
          "stopped by %s\n",
          engine->load_seconds(), result->prompt_tokens.size(), prefill,
          result->tokens.size(), decode, Name(result->stop_reason));
    }
  }
  return Interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace

void AddRun(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("run", "Streams generated text");
  command->add_option("MODEL", flags->model,
                      "a .gguf or .weft file (default: the embedded model)");
  CLI::Option* prompt = command->add_option("-p,--prompt", flags->prompt,
                                            "the text to go on from");
  CLI::Option* file = command->add_option("-f,--file", flags->file,
                                          "the same from a file; - is stdin");
  command->add_option("-n", flags->tokens, "tokens at most")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object");
  flags->sampling.AddTo(*command);
  flags->compile.AddTo(*command);
  command->callback([flags, prompt, file, &common, action] {
    flags->has_prompt = prompt->count() > 0;
    flags->has_file = file->count() > 0;
    *action = [flags, &common] { return Run(*flags, common); };
  });
}

}  // namespace weft
