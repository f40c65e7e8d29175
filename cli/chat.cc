// weft chat: a conversation at the terminal.
//
// A screen where there is one; plain lines where standard input or output is
// none, where the terminal can do nothing, or where asked for.
#include "chat/chat.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/output_file.h"
#include "base/status.h"
#include "chat/line_mode.h"
#include "chat/screen.h"
#include "chat/terminal_text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/speculation_flags.h"
#include "runtime/api/scheduler.h"
#include "text/chat_template.h"

namespace weft {
namespace {

struct Flags {
  std::string model, system, message;
  bool has_message = false;
  int64_t tokens = chat::Settings().max_tokens;
  bool plain = false;
  TextFlags text;
  ChatTemplateFlag chat_template;
  CompileFlags compile;
  SamplingFlags sampling;
  SpeculationFlags speculation{"lookup"};
};

bool HasScreen(const Flags& flags) {
  const char* terminal = std::getenv("TERM");
  return !flags.plain && !flags.has_message && isatty(STDIN_FILENO) != 0 &&
         isatty(STDOUT_FILENO) != 0 && terminal != nullptr &&
         *terminal != '\0' && std::strcmp(terminal, "dumb") != 0;
}

absl::StatusOr<std::unique_ptr<chat::Chat>> MakeChat(
    const Flags& flags, const CommonFlags& common,
    std::vector<std::string>* warnings) {
  chat::Options options;
  WEFT_RETURN_IF_ERROR(flags.speculation.Check());
  WEFT_ASSIGN_OR_RETURN(SamplingOptions sampling, flags.sampling.ToOptions());
  options.settings.sampling = sampling;
  options.settings.max_tokens = flags.tokens;
  options.system = flags.system;
  options.write_file = WriteFile;
  options.read_file = ReadTextFile;
  WEFT_ASSIGN_OR_RETURN(ContextOverflow overflow, flags.compile.Overflow());
  if (overflow == ContextOverflow::kShift) {
    return UsageError(
        "--context-overflow: chat knows stop alone: it leaves out the oldest "
        "turns when the context is full");
  }
  WEFT_ASSIGN_OR_RETURN(const std::string source, flags.chat_template.Source());
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                        LoadEngine(flags.model, flags.compile, common,
                                   [&](EngineOptions* engine_options) {
                                     if (flags.plain) {
                                       engine_options->progress = nullptr;
                                     }
                                     engine_options->chat_template = source;
                                     flags.text.ApplyTo(engine_options);
                                     // The prompt's and the answer's, now and
                                     // of the turn before.
                                     engine_options->checkpoints = 4;
                                     flags.speculation.ApplyTo(engine_options);
                                   }));
  WEFT_RETURN_IF_ERROR(CheckGenerates(engine->plan()));
  WEFT_ASSIGN_OR_RETURN(std::string suggested,
                        flags.sampling.TakeSuggested(
                            engine->plan().model, &options.settings.sampling));
  if (!suggested.empty()) warnings->push_back(suggested);
  std::string warning;
  WEFT_ASSIGN_OR_RETURN(ChatTemplate chat_template,
                        ChatTemplateOf(engine->plan().vocabulary, &warning));
  if (!warning.empty()) warnings->push_back(warning);
  SchedulerOptions scheduling;
  WEFT_ASSIGN_OR_RETURN(scheduling.proposer,
                        flags.speculation.Make(*engine, flags.compile, common));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Scheduler> scheduler,
                        Scheduler::Create(std::move(engine), scheduling));
  return chat::Chat::Create(std::move(scheduler), std::move(chat_template),
                            std::move(options));
}

absl::StatusOr<int> Run(const Flags& flags, const CommonFlags& common) {
  // Before any thread is there.
  const bool wide = chat::UseUtf8Locale();
  std::vector<std::string> warnings;
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<chat::Chat> chat,
                        MakeChat(flags, common, &warnings));
  const bool random = flags.sampling.seed->count() == 0 &&
                      chat->settings().sampling.temperature > 0;
  if (wide && HasScreen(flags)) {
    const absl::StatusOr<int> code = chat::RunScreen(*chat, warnings);
    if (!absl::IsUnavailable(code.status())) return code;
    warnings.push_back(std::string(code.status().message()));
  }
  PrintWarnings(common, warnings);
  if (random && !common.quiet) {
    std::cerr << "seed " << chat->settings().sampling.seed << "\n";
  }
  chat::LineModeOptions options;
  options.quiet = common.quiet;
  options.prompt = !flags.has_message && isatty(STDIN_FILENO) != 0;
  if (flags.has_message) options.message = flags.message;
  return chat::RunLineMode(*chat, options);
}

}  // namespace

void AddChat(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("chat", "A conversation at the terminal");
  command->add_option("MODEL", flags->model, kModelHelp);
  CLI::Option* message = command->add_option(
      "-p,--prompt", flags->message, "the only message: its answer, no more");
  command->add_option("--system", flags->system, "the system message");
  command->add_option("-n", flags->tokens, "tokens of an answer at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  command->add_flag("--plain", flags->plain,
                    "plain lines, also where a screen could be");
  flags->chat_template.AddTo(*command);
  flags->text.AddTo(*command);
  flags->sampling.AddTo(*command);
  flags->speculation.AddTo(*command);
  flags->compile.AddTo(*command);
  flags->compile.AddMemoryBudgetTo(*command);
  flags->compile.AddPlanCacheTo(*command);
  command->callback([flags, message, &common, action] {
    flags->has_message = message->count() > 0;
    *action = [flags, &common] { return Run(*flags, common); };
  });
}

}  // namespace weft
