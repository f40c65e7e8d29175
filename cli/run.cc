// weft run: streams generated text.
//
// Standard output gets what the model generates and one newline, nothing else:
// the default prompt, the seed and the speeds go to standard error. The prompt
// is -p, or the file of -f, or standard input where that is a pipe or a file
// that says something, or a default.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/speculation_flags.h"
#include "runtime/api/completion.h"
#include "runtime/api/scheduler.h"
#include "runtime/generation/constraint_cache.h"

namespace weft {
namespace {

constexpr char kDefaultPrompt[] =
    "It is a truth universally acknowledged, that";

// How often Ctrl-C is looked for while the model works.
constexpr std::chrono::milliseconds kLook(20);

struct Flags {
  std::string model, prompt, file;
  bool has_prompt = false, has_file = false;
  int64_t tokens = 100;
  std::vector<std::string> stop, logit_bias;
  std::string grammar_file, json_schema, prompt_cache;
  bool json = false;
  TextFlags text;
  CompileFlags compile;
  SamplingFlags sampling;
  SpeculationFlags speculation{"off"};
};

// What the user did not choose, for another run of the same.
void LogChoices(const Flags& flags, const SamplingOptions& sampling) {
  if (!flags.has_prompt && !flags.has_file) {
    std::cerr << "prompt " << kDefaultPrompt << "\n";
  }
  if (flags.sampling.seed->count() == 0 && sampling.temperature > 0) {
    std::cerr << "seed " << sampling.seed << "\n";
  }
}

absl::StatusOr<std::pair<int32_t, float>> ParseBias(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '=');
  std::pair<int32_t, float> bias;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &bias.first) ||
      !absl::SimpleAtof(parts[1], &bias.second)) {
    return UsageError(absl::StrCat("--logit-bias: '", text,
                                   "': want ID=B, a token and a number"));
  }
  return bias;
}

// A pipe or a file. Not a terminal or /dev/null, and not a socket: programs
// start others with one that they never close.
bool IsInputGiven() {
  struct stat input;
  return fstat(STDIN_FILENO, &input) == 0 &&
         (S_ISFIFO(input.st_mode) || S_ISREG(input.st_mode));
}

// Sets `flags.has_prompt` where standard input has one. Programs start others
// with an empty one, which asks for nothing; an empty file was named.
absl::Status FindPrompt(Flags& flags, const CommonFlags& common) {
  if (flags.has_file) {
    WEFT_ASSIGN_OR_RETURN(flags.prompt, ReadTextFile(flags.file));
    if (flags.prompt.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("run: ", flags.file,
                       " is empty: there is nothing to go on from: give a "
                       "text, or -p \"\" for one that begins anywhere"));
    }
  } else if (!flags.has_prompt && flags.grammar_file != "-" &&
             flags.json_schema != "-" && IsInputGiven()) {
    WEFT_ASSIGN_OR_RETURN(flags.prompt, ReadTextFile("-"));
    flags.has_prompt = !flags.prompt.empty();
    if (!flags.has_prompt) {
      PrintWarnings(common, {"run: standard input is empty: the prompt is that "
                             "of the examples: give one with -p or -f"});
    }
  }
  if (!flags.has_prompt && !flags.has_file) flags.prompt = kDefaultPrompt;
  return absl::OkStatus();
}

// All that needs no model.
absl::StatusOr<Request> MakeRequest(const Flags& flags) {
  if (flags.has_prompt && flags.has_file) {
    return UsageError("run: give either -p or -f");
  }
  if (flags.tokens < 0) return UsageError("-n: want a number from 0");
  if (!flags.grammar_file.empty() && !flags.json_schema.empty()) {
    return UsageError("run: give either --grammar-file or --json-schema");
  }
  Request request;
  request.max_tokens = flags.tokens;
  WEFT_ASSIGN_OR_RETURN(request.sampling, flags.sampling.ToOptions());
  WEFT_ASSIGN_OR_RETURN(request.overflow, flags.compile.Overflow());
  request.stop_strings = flags.stop;
  for (const std::string& text : flags.stop) {
    if (text.empty()) return UsageError("--stop: want a text");
  }
  for (const std::string& text : flags.logit_bias) {
    WEFT_ASSIGN_OR_RETURN(const auto bias, ParseBias(text));
    request.logit_bias.push_back(bias);
  }
  return request;
}

// Null for any text.
absl::StatusOr<std::unique_ptr<TokenConstraint>> MakeConstraint(
    const Flags& flags, const Tokenizer& tokenizer) {
  const bool is_grammar = !flags.grammar_file.empty();
  const std::string& file = is_grammar ? flags.grammar_file : flags.json_schema;
  if (file.empty()) return nullptr;
  WEFT_ASSIGN_OR_RETURN(const std::string source, ReadTextFile(file));
  ConstraintCache cache(&tokenizer);
  auto constraint =
      is_grammar ? cache.OfGrammar(source) : cache.OfJsonSchema(source);
  if (constraint.ok()) return constraint;
  return absl::Status(constraint.status().code(),
                      absl::StrCat(file, ": ", constraint.status().message()));
}

struct Generated {
  ChoiceResult text;
  Usage usage;
  double seconds = 0;  // from Submit to the end
};

// Runs the request to its end, or until Ctrl-C or the reader of standard output
// has gone. `begin` is called before the first of the text.
absl::StatusOr<Generated> Generate(Scheduler& scheduler, Request request,
                                   bool print,
                                   const std::function<void()>& begin) {
  const DeferInterrupt defer;
  const auto start = std::chrono::steady_clock::now();
  RequestId id = 0;
  WEFT_ASSIGN_OR_RETURN(
      auto result,
      SubmitForResult(
          scheduler, std::move(request),
          [&scheduler, print, &begin](const Event& event) {
            if (event.reason == FinishReason::kError && event.finished) return;
            begin();
            if (print) std::cout << event.text << std::flush;
            if (!event.last && (!std::cout || Interrupted())) {
              scheduler.Cancel(event.request);
            }
          },
          &id));
  while (result.wait_for(kLook) != std::future_status::ready) {
    if (Interrupted()) scheduler.Cancel(id);
  }
  Generated generated;
  generated.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  WEFT_ASSIGN_OR_RETURN(Completion completion, result.get());
  generated.text = std::move(completion.choices[0]);
  generated.usage = completion.usage;
  return generated;
}

void PrintResult(const Flags& flags, const CommonFlags& common,
                 const Generated& generated, uint64_t seed,
                 double load_seconds) {
  const double prefill = generated.usage.prompt_seconds;
  const double decode = generated.seconds - prefill;
  const char* const reason = Name(generated.text.reason);
  std::vector<int32_t> tokens;
  for (const GeneratedToken& token : generated.text.tokens) {
    tokens.push_back(token.id);
  }
  if (flags.json) {
    return PrintJson({{"prompt_tokens", generated.usage.prompt_tokens},
                      {"cached_tokens", generated.usage.cached_tokens},
                      {"generated_tokens", tokens.size()},
                      {"text", generated.text.text},
                      {"tokens", tokens},
                      {"prefill_seconds", prefill},
                      {"decode_seconds", decode},
                      {"seed", seed},
                      {"drafted_tokens", generated.usage.drafted_tokens},
                      {"accepted_tokens", generated.usage.accepted_tokens},
                      {"stop_reason", reason}});
  }
  std::cout << "\n";
  if (common.quiet) return;
  std::cerr << absl::StreamFormat(
      "load %.3f s, prompt %d tokens at %.1f/s, generated %d at %.1f/s%s, "
      "stopped by %s\n",
      load_seconds, generated.usage.prompt_tokens,
      generated.usage.prompt_tokens / std::max(prefill, 1e-9), tokens.size(),
      tokens.size() / std::max(decode, 1e-9), GuessedText(generated.usage),
      reason);
}

absl::StatusOr<int> Run(Flags& flags, const CommonFlags& common) {
  WEFT_RETURN_IF_ERROR(flags.speculation.Check());
  WEFT_ASSIGN_OR_RETURN(Request request, MakeRequest(flags));
  WEFT_RETURN_IF_ERROR(FindPrompt(flags, common));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                        LoadEngine(flags.model, flags.compile, common,
                                   [&](EngineOptions* options) {
                                     flags.text.ApplyTo(options);
                                     if (!flags.prompt_cache.empty()) {
                                       options->keeps_prompts = true;
                                     }
                                     const bool skips =
                                         !flags.grammar_file.empty() ||
                                         !flags.json_schema.empty();
                                     flags.speculation.ApplyTo(options, skips);
                                   }));
  WEFT_ASSIGN_OR_RETURN(
      const std::string suggested,
      flags.sampling.TakeSuggested(engine->plan().model, &request.sampling));
  WEFT_RETURN_IF_ERROR(CheckGenerates(engine->plan()));
  const bool has_chat_template =
      !engine->plan().vocabulary.chat_template().empty();
  bool bos_in_prompt = false;
  WEFT_ASSIGN_OR_RETURN(
      request.prompt_tokens,
      engine->tokenizer().Encode(flags.prompt, {}, &bos_in_prompt));
  WEFT_ASSIGN_OR_RETURN(request.constraint,
                        MakeConstraint(flags, engine->tokenizer()));
  SchedulerOptions options;
  options.cache_folder = flags.prompt_cache;
  WEFT_ASSIGN_OR_RETURN(options.proposer,
                        flags.speculation.Make(*engine, flags.compile, common));
  std::vector<std::string> warnings;
  options.log = [&warnings](const std::string& line) {
    warnings.push_back(line);
  };
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Scheduler> scheduler,
                        Scheduler::Create(std::move(engine), options));
  const uint64_t seed = request.sampling.seed;
  // Not before it is clear that the prompt is taken: an error stands alone.
  bool begun = common.quiet;
  const auto begin = [&, sampling = request.sampling] {
    if (!begun) LogChoices(flags, sampling);
    if (!begun && !suggested.empty()) std::cerr << suggested << "\n";
    if (!begun && has_chat_template) {
      std::cerr << "the model has a chat template: run goes on with a text; "
                   "weft chat asks\n";
    }
    begun = true;
  };
  WEFT_ASSIGN_OR_RETURN(
      const Generated generated,
      Generate(*scheduler, std::move(request), !flags.json, begin));
  PrintWarnings(common, warnings);
  if (bos_in_prompt && !common.quiet) {
    std::cerr << "weft: the prompt begins with BOS itself: no second one was "
                 "added\n";
  }
  PrintResult(flags, common, generated, seed,
              scheduler->engine().load_seconds());
  return Interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace

void AddRun(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("run", "Streams generated text");
  command->add_option("MODEL", flags->model, kModelHelp);
  CLI::Option* prompt = command->add_option("-p,--prompt", flags->prompt,
                                            "the text to go on from");
  CLI::Option* file = command->add_option("-f,--file", flags->file,
                                          "the same from a file; - is stdin");
  command->add_option("-n", flags->tokens, "tokens at most")
      ->capture_default_str();
  command
      ->add_option("--stop", flags->stop,
                   "the text ends before this; may be given several times")
      ->allow_extra_args(false);
  command
      ->add_option("--logit-bias", flags->logit_bias,
                   "ID=B: adds B to the token's logit, -inf forbids it; may be "
                   "given several times")
      ->allow_extra_args(false);
  command->add_option("--grammar-file", flags->grammar_file,
                      "the text is one of this grammar, in GBNF; - is stdin");
  command->add_option("--json-schema", flags->json_schema,
                      "the text is JSON of the schema in this file");
  command->add_option("--prompt-cache", flags->prompt_cache,
                      "a folder for pages of prompts: a prompt that begins "
                      "like one before goes on from there, with the same bits; "
                      "made if it is not there");
  command->add_flag("--json", flags->json, "print one JSON object");
  flags->text.AddTo(*command);
  flags->sampling.AddTo(*command);
  flags->speculation.AddTo(*command);
  flags->compile.AddTo(*command);
  flags->compile.AddMemoryBudgetTo(*command);
  flags->compile.AddPlanCacheTo(*command);
  command->callback([flags, prompt, file, &common, action] {
    flags->has_prompt = prompt->count() > 0;
    flags->has_file = file->count() > 0;
    *action = [flags, &common] { return Run(*flags, common); };
  });
}

}  // namespace weft
