// The program: parses the command line and runs one subcommand.
#include "cli/main.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/aliases.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/kept_plans.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "cli/version.h"
#include "runtime/ranks/mpi_communicator.h"

namespace weft {
namespace {

using AddCommand = void (*)(CLI::App&, const CommonFlags&, Action*);

// Every subcommand, in the order of --help.
constexpr AddCommand kCommands[] = {
    AddRun,        AddCompile,  AddDump,       AddInspect,  AddEval,
    AddPerplexity, AddTokenize, AddDetokenize, AddVerify,   AddProfile,
    AddBench,      AddSynth,    AddConvert,    AddQuantize, AddImatrix,
    AddServe,      AddReplay,   AddChat,       AddPull,     AddList,
    AddRm,         AddDoctor,   AddCompletion, AddManual,
};

// Examples of each command, for its help and for the page of man: whole command
// lines without redirections. A test parses each with the command's own flags.
constexpr const char* kExamples[] = {
    "weft run -p \"It is a truth\" -n 40 --seed 7",
    "weft run owner/name:Q8_0 -f prompt.txt --temperature 0 --json",
    "weft run model.gguf -p \"A person:\" --json-schema person.json",
    "weft compile model.gguf -o model.weft",
    "weft compile model.gguf -o model.weft --weights reference --context 8192",
    "weft dump model.gguf --format html -o model.html",
    "weft dump model.gguf --diff fuse-attention --layers 0-0",
    "weft dump old.weft --diff-plan new.weft",
    "weft inspect model.gguf --context 8192",
    "weft inspect model.gguf --kernels",
    "weft eval model.gguf --text \"It is a truth\" --json",
    "weft eval bert.gguf --text \"It is a truth\" --embedding vector.f32",
    "weft perplexity model.gguf -f text.txt",
    "weft perplexity small.gguf -f text.txt --kl-base full.logits",
    "weft tokenize model.gguf \"It is a truth\" --json",
    "weft detokenize model.gguf 1,581,368",
    "weft verify model.gguf",
    "weft verify model.weft --source model.gguf",
    "weft profile model.gguf --prompt 256 --generate 32 --trace trace.json",
    "weft bench model.gguf --prompt 256 --generate 32 --limits",
    "weft synth --shape smollm-135m --type Q8_0 -o model.gguf",
    "weft quantize full.gguf small.gguf Q4_K_M",
    "weft quantize full.gguf small.gguf --imatrix full.imatrix --target-bits "
    "3.2",
    "weft imatrix full.gguf -f text.txt -o full.imatrix",
    "weft convert folder -o model.gguf",
    "weft run model.gguf --lora style.gguf=0.8 -p \"Once upon a time\"",
    "weft compile model.gguf --lora style.gguf --merge-lora -o merged.weft",
    "weft chat model.gguf --speculate mtp",
    "weft serve model.gguf --lora style.gguf --lora law.gguf=0",
    "weft serve model.gguf --slots 8",
    "weft serve --models models --model-memory 16GB",
    "weft serve model.gguf --host 0.0.0.0 --api-key-file keys.txt",
    "weft replay requests.log model.gguf",
    "weft chat owner/name:Q8_0",
    "weft chat model.gguf --system \"Answer in one sentence.\"",
    "weft chat model.gguf -p \"What is a graph compiler?\"",
    "weft pull owner/name",
    "weft pull owner/name:Q8_0",
    "weft list --json",
    "weft rm owner/name:Q8_0",
    "weft doctor --json",
    "weft completion bash",
    "weft manual",
};

// Commands that several ranks run together (LoadEngine); of the others each
// process would do all of the work, and write the same files.
constexpr absl::string_view kCommandsOfRanks[] = {
    "run", "chat", "serve", "eval", "bench", "perplexity"};

bool KnowsRanks(const CLI::App& command) {
  return std::find(std::begin(kCommandsOfRanks), std::end(kCommandsOfRanks),
                   command.get_name()) != std::end(kCommandsOfRanks);
}

int Fail(absl::string_view message, int code) {
  PrintNotice(message);
  return code;
}

// A number is all of its text and fits its type: the parser itself takes "" for
// 0 and -1 for the largest unsigned number.
void RequireWholeNumbers(CLI::App& app) {
  for (CLI::App* command :
       app.get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      const std::string type = option->get_type_name();
      const bool integer = type.rfind("INT", 0) == 0;
      const bool natural = type.rfind("UINT", 0) == 0;
      if (!integer && !natural && type.rfind("FLOAT", 0) != 0) continue;
      option->check(CLI::Validator(
          [integer, natural](std::string& text) {
            int64_t i;
            uint64_t u;
            double d;
            const bool ok = natural   ? absl::SimpleAtoi(text, &u)
                            : integer ? absl::SimpleAtoi(text, &i)
                                      : absl::SimpleAtod(text, &d);
            return ok ? std::string()
                      : absl::StrCat("'", text, "' is not a number it takes");
          },
          ""));
    }
  }
}

void AddExamples(CLI::App& app) {
  for (CLI::App* command :
       app.get_subcommands([](CLI::App*) { return true; })) {
    const std::string begin = absl::StrCat("weft ", command->get_name());
    std::string text = "Examples:";
    for (const absl::string_view example : kExamples) {
      if (example != begin && !absl::StartsWith(example, begin + " ")) continue;
      absl::StrAppend(&text, "\n  ", example);
    }
    command->footer(text);
  }
}

std::vector<std::string> CommandNames(CLI::App& app) {
  std::vector<std::string> names;
  for (CLI::App* command :
       app.get_subcommands([](CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

CLI::App* FindCommand(CLI::App& app, const std::string& name) {
  for (CLI::App* command :
       app.get_subcommands([](CLI::App*) { return true; })) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

// Of the command and of all commands.
bool HasFlag(const CLI::App& app, const CLI::App* command,
             absl::string_view name) {
  const std::string flag(name);
  return app.get_option_no_throw(flag) != nullptr ||
         (command != nullptr && command->get_option_no_throw(flag) != nullptr);
}

// Whether words that begin with a flag have no command: the flag is none that
// may stand before one, or a model is named as llama.cpp does.
bool LacksCommand(const CLI::App& app, const std::vector<std::string>& names,
                  const std::vector<std::string>& words) {
  const std::string& first = words.front();
  if (!HasFlag(app, nullptr, first.substr(0, first.find('=')))) return true;
  bool names_model = false;
  for (const std::string& word : words) {
    if (std::find(names.begin(), names.end(), word) != names.end()) {
      return false;
    }
    names_model |= IsModelFlag(word);
  }
  return names_model;
}

// "weft help run" is "weft run --help", and "weft MODEL" and "weft -m MODEL"
// are "weft chat MODEL". False if the first word is no command then.
bool FindCommandWord(const CLI::App& app, const std::vector<std::string>& names,
                     std::vector<std::string>* words) {
  if (words->empty()) return true;
  if (words->front().rfind("-", 0) == 0) {
    if (LacksCommand(app, names, *words)) words->insert(words->begin(), "chat");
    return true;
  }
  if (words->front() == "help") {
    words->erase(words->begin());
    words->push_back("--help");
    return FindCommandWord(app, names, words);
  }
  if (std::find(names.begin(), names.end(), words->front()) != names.end()) {
    return true;
  }
  const std::string& word = words->front();
  std::error_code error;
  const bool is_file =
      std::filesystem::exists(word, error) || absl::StrContains(word, "/") ||
      absl::EndsWith(word, ".gguf") || absl::EndsWith(word, ".weft");
  if (!is_file && !ParseHubName(word)) return false;
  words->insert(words->begin(), "chat");
  return true;
}

// ": did you mean ...?", or nothing.
std::string Suggestion(absl::string_view word,
                       const std::vector<std::string>& known) {
  const std::string meant = DidYouMean(word, known);
  return meant.empty() ? "" : absl::StrCat(": did you mean ", meant, "?");
}

// For the first flag that nobody knows.
std::string FlagSuggestion(const CLI::App& app, const CLI::App* command,
                           const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const CLI::App* each : {&app, command}) {
    if (each == nullptr) continue;
    for (const CLI::Option* option : each->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        known.push_back("--" + name);
      }
    }
  }
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (word == "--") break;
    if (word.rfind("--", 0) != 0 || HasFlag(app, command, name)) continue;
    return Suggestion(name, known);
  }
  return "";
}

}  // namespace

int Main(int argc, char** argv) {
  InstallSignals();
  InstallOutput();
  CLI::App app("Compiles GGUF language models into plans and runs them.",
               "weft");
  app.set_version_flag("-v,--version", VersionLine);
  app.require_subcommand(1);
  app.fallthrough();
  CommonFlags common;
  app.add_flag("--quiet", common.quiet, "no progress, no logs");
  app.add_option("--threads", common.threads,
                 "threads (default: physical cores that the process may use)")
      ->check(CLI::Range(1, 1024));
  Action action;
  for (AddCommand add : kCommands) add(app, common, &action);
  RequireWholeNumbers(app);
  AddExamples(app);
  const std::vector<std::string> names = CommandNames(app);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!FindCommandWord(app, names, &words)) {
    return Fail(absl::StrCat("unknown command: ", words.front(),
                             Suggestion(words.front(), names),
                             ": the commands are ", absl::StrJoin(names, ", ")),
                kExitUsage);
  }
  CLI::App* const command =
      words.empty() ? nullptr : FindCommand(app, words.front());
  absl::StatusOr<CommandLine> translated = TranslateFlags(
      std::move(words),
      [&](absl::string_view name) { return HasFlag(app, command, name); });
  if (!translated.ok()) {
    return Fail(translated.status().message(), kExitUsage);
  }
  const CommandLine& line = *translated;
  try {
    // From the last to the first, as the parser wants them.
    app.parse(std::vector<std::string>(line.words.rbegin(), line.words.rend()));
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return Fail(
        absl::StrCat(e.what(), FlagSuggestion(app, command, line.words),
                     ": see weft ", command ? command->get_name() + " " : "",
                     "--help"),
        kExitUsage);
  }
  // Of several ranks, the first one speaks.
  if (RankStarted() > 0) common.quiet = true;
  if (RanksStarted() > 1 && command != nullptr && !KnowsRanks(*command)) {
    if (RankStarted() > 0) return kExitOk;
    return Fail(absl::StrCat(command->get_name(),
                             ": not by several ranks: start it without mpirun "
                             "(those that ranks run together are ",
                             absl::StrJoin(kCommandsOfRanks, ", "), ")"),
                kExitUsage);
  }
  if (!common.quiet) {
    for (const std::string& notice : line.notices) PrintNotice(notice);
  }
  absl::StatusOr<int> code = kExitOk;
  try {
    if (command != nullptr) code = ResolveModels(*command, common);
    if (code.ok()) code = action();
  } catch (const std::bad_alloc&) {
    code = absl::ResourceExhaustedError(
        "not enough memory: the system gave no more: choose a smaller model or "
        "--context");
  } catch (const std::exception& e) {
    code = absl::InternalError(e.what());
  }
  if (code.ok()) {
    if (absl::Status s = FinishOutput(); !s.ok()) code = s;
  }
  if (IsRankDone(code.status())) return kExitOk;
  if (!code.ok()) {
    DropDamagedPlan(code.status());
    // The other ranks wait for this one.
    if (MpiIsStarted()) (*MpiCommunicator())->Abort(code.status());
    return Fail(code.status().message(),
                IsUsageError(code.status()) ? kExitUsage : kExitFailure);
  }
  return *code;
}

}  // namespace weft
