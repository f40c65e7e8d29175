// The program: parses the command line and runs one subcommand.
#include "cli/main.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <new>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"

namespace weft {
namespace {

constexpr char kVersion[] = "weft 0.1.0";

using AddCommand = void (*)(CLI::App&, const CommonFlags&, Action*);

// Every subcommand, in the order of --help.
constexpr AddCommand kCommands[] = {
    AddRun,      AddCompile,    AddDump,   AddInspect, AddEval,  AddPerplexity,
    AddTokenize, AddDetokenize, AddVerify, AddProfile, AddBench, AddSynth,
    AddQuantize, AddImatrix,    AddServe,  AddChat,
};

// One line, whatever the message holds.
int Fail(absl::string_view message, int code) {
  std::string line(message);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  std::cerr << "weft: " << line << "\n";
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

std::vector<std::string> CommandNames(CLI::App& app) {
  std::vector<std::string> names;
  for (CLI::App* command :
       app.get_subcommands([](CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

}  // namespace

int Main(int argc, char** argv) {
  InstallSignals();
  InstallOutput();
  CLI::App app("Compiles GGUF language models into plans and runs them.",
               "weft");
  app.set_version_flag("--version", kVersion);
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
  const std::vector<std::string> names = CommandNames(app);
  if (argc > 1 && argv[1][0] != '-' &&
      std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    return Fail(absl::StrCat("unknown command: ", argv[1],
                             ": the commands are ", absl::StrJoin(names, ", ")),
                kExitUsage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return Fail(std::string(e.what()) + ": see weft --help", kExitUsage);
  }
  absl::StatusOr<int> code = kExitOk;
  try {
    code = action();
  } catch (const std::bad_alloc&) {
    return Fail(
        "not enough memory: the system gave no more: choose a smaller model or "
        "--context",
        kExitFailure);
  } catch (const std::exception& e) {
    return Fail(e.what(), kExitFailure);
  }
  if (code.ok()) {
    if (absl::Status s = FinishOutput(); !s.ok()) code = s;
  }
  if (!code.ok()) {
    return Fail(code.status().message(),
                IsUsageError(code.status()) ? kExitUsage : kExitFailure);
  }
  return *code;
}

}  // namespace weft
