// weft completion and weft manual: what shells and man know of the command
// line, written from the parser itself, so that nothing is said twice.
//
// Formats: "Programmable Completion" of the Bash manual; zshcompsys(1);
// fish's "Writing your own completions"; man(7).
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/command.h"

namespace weft {
namespace {

std::vector<CLI::App*> Commands(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

// "-n", "--json": as they are typed.
std::vector<std::string> Names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) {
    names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  return names;
}

bool TakesValue(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// Flags of the command and of all commands.
std::vector<const CLI::Option*> Flags(CLI::App& app, CLI::App& command) {
  std::vector<const CLI::Option*> flags;
  for (CLI::App* each : {&command, &app}) {
    for (const CLI::Option* option : each->get_options()) {
      if (option->get_positional() || Names(*option).empty()) continue;
      if (each == &app && option == app.get_help_ptr()) continue;
      flags.push_back(option);
    }
  }
  return flags;
}

// For a text between single quotes.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Prints the names of models that were pulled, for a shell to read. A name that
// is not plain is left out, since bash would expand it.
constexpr char kPulledNames[] =
    "weft list --quiet 2>/dev/null | awk 'NR > 1 { name = $1 \":\" $2; "
    "if (name ~ /^[A-Za-z0-9._:\\/-]+$/) print name }'";

void PrintBash(CLI::App& app) {
  std::cout
      << "# source <(weft completion bash)\n_weft() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} flags=\n"
         "  if [ $COMP_CWORD -eq 1 ]; then\n    COMPREPLY=($(compgen -W '";
  for (CLI::App* command : Commands(app)) {
    std::cout << command->get_name() << " ";
  }
  std::cout << "help --help --version' -- \"$word\") $(compgen -f -- "
               "\"$word\"))\n    return\n  fi\n"
               "  case ${COMP_WORDS[1]} in\n";
  for (CLI::App* command : Commands(app)) {
    std::vector<std::string> names;
    for (const CLI::Option* option : Flags(app, *command)) {
      for (std::string& name : Names(*option)) names.push_back(std::move(name));
    }
    std::cout << "    " << command->get_name() << ") flags='"
              << absl::StrJoin(names, " ") << "' ;;\n";
  }
  std::cout << "  esac\n"
               "  case $word in\n"
               "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n"
               "    *) COMPREPLY=($(compgen -f -- \"$word\") $(compgen -W "
               "\"$("
            << kPulledNames
            << ")\" -- \"$word\")) ;;\n"
               "  esac\n}\ncomplete -o filenames -F _weft weft\n";
}

void PrintZsh(CLI::App& app) {
  // In brackets and between colons.
  const auto escaped = [](const std::string& text) {
    return absl::StrReplaceAll(
        text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
  };
  std::cout << "#compdef weft\n# source <(weft completion zsh), or this as "
               "_weft in a folder of $fpath\n_weft_models() {\n"
               "  local -a names\n  names=(${(f)\"$("
            << kPulledNames
            << ")\"})\n  _files\n  compadd -a names\n}\n_weft() {\n"
               "  local -a commands\n  commands=(\n";
  for (CLI::App* command : Commands(app)) {
    std::cout << "    "
              << Quoted(absl::StrCat(command->get_name(), ":",
                                     escaped(command->get_description())))
              << "\n";
  }
  std::cout << "  )\n  if (( CURRENT == 2 )); then\n"
               "    _describe command commands\n    _files\n    return\n  fi\n"
               "  case $words[2] in\n";
  for (CLI::App* command : Commands(app)) {
    std::cout << "    " << command->get_name() << ") _arguments";
    for (const CLI::Option* option : Flags(app, *command)) {
      for (const std::string& name : Names(*option)) {
        std::cout << " \\\n      "
                  << Quoted(absl::StrCat(
                         "*", name, "[", escaped(option->get_description()),
                         "]", TakesValue(*option) ? ":value:_files" : ""));
      }
    }
    std::cout << " \\\n      '*:model:_weft_models' ;;\n";
  }
  std::cout << "  esac\n}\n"
               "if [ \"$funcstack[1]\" = _weft ]; then _weft \"$@\"; "
               "else compdef _weft weft; fi\n";
}

void PrintFish(CLI::App& app) {
  const auto escaped = [](const std::string& text) {
    return absl::StrCat(
        "'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
  };
  std::cout << "# weft completion fish | source\n"
               "complete -c weft -n 'not __fish_use_subcommand' -a \"("
            << absl::StrReplaceAll(kPulledNames, {{"$", "\\$"}, {"\"", "\\\""}})
            << ")\"\n";
  for (CLI::App* command : Commands(app)) {
    std::cout << "complete -c weft -n __fish_use_subcommand -a "
              << command->get_name() << " -d "
              << escaped(command->get_description()) << "\n";
    for (const CLI::Option* option : Flags(app, *command)) {
      std::cout << "complete -c weft -n '__fish_seen_subcommand_from "
                << command->get_name() << "'";
      for (const std::string& name : option->get_snames()) {
        std::cout << (name.size() == 1 ? " -s " : " -o ") << name;
      }
      for (const std::string& name : option->get_lnames()) {
        std::cout << " -l " << name;
      }
      std::cout << (TakesValue(*option) ? " -r" : "") << " -d "
                << escaped(option->get_description()) << "\n";
    }
  }
}

// A line that man sets as text: backslashes and what a line may not begin with.
std::string Roff(absl::string_view text) {
  std::string line =
      absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"\n", " "}});
  if (!line.empty() && (line[0] == '.' || line[0] == '\'')) {
    line.insert(0, "\\&");
  }
  return line;
}

void PrintFlags(const std::vector<const CLI::Option*>& flags) {
  for (const CLI::Option* option : flags) {
    std::string value;
    if (TakesValue(*option)) {
      value = absl::StrCat(" \\fI", Roff(option->get_type_name()), "\\fR");
    }
    std::cout << ".TP\n\\fB"
              << absl::StrJoin(Names(*option), "\\fR, \\fB",
                               [](std::string* out, const std::string& name) {
                                 out->append(Roff(name));
                               })
              << "\\fR" << value << "\n";
    std::string text = option->get_description();
    if (!option->get_default_str().empty()) {
      absl::StrAppend(&text, " (", option->get_default_str(), ")");
    }
    std::cout << Roff(text) << "\n";
  }
}

void PrintManual(CLI::App& app) {
  std::cout << ".TH WEFT 1\n.SH NAME\nweft \\- " << Roff(app.get_description())
            << "\n"
            << ".SH SYNOPSIS\n.B weft\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.br\n"
               ".B weft\n.I MODEL\n"
               ".SH DESCRIPTION\n"
               "A model alone is a chat with it. Results go to standard "
               "output, all else to standard error.\n.PP\n"
               "A model is a .gguf or .weft file, or the name of one on a hub: "
               "owner/name, or owner/name:TYPE. Those that were pulled have "
               "their names in every command; run, chat and serve pull what "
               "is not there.\n"
               ".SH OPTIONS OF ALL COMMANDS\n";
  std::vector<const CLI::Option*> of_all;
  for (const CLI::Option* option : app.get_options()) of_all.push_back(option);
  PrintFlags(of_all);
  std::cout << ".SH COMMANDS\n";
  for (CLI::App* command : Commands(app)) {
    std::cout << ".SS weft " << Roff(command->get_name());
    std::vector<const CLI::Option*> flags;
    for (const CLI::Option* option : command->get_options()) {
      if (!option->get_positional()) {
        if (option != command->get_help_ptr()) flags.push_back(option);
        continue;
      }
      const std::string name = Roff(option->get_name(true));
      std::cout << (option->get_required() ? " " + name : " [" + name + "]");
    }
    std::cout << "\n" << Roff(command->get_description()) << ".\n";
    PrintFlags(flags);
    // Examples, as the help has them.
    for (const absl::string_view line :
         absl::StrSplit(command->get_footer(), '\n', absl::SkipEmpty())) {
      std::cout << (line[0] == ' ' ? ".br\n" : ".PP\n") << Roff(line) << "\n";
    }
  }
  std::cout << ".SH ENVIRONMENT\n"
               ".TP\n\\fBWEFT_CACHE\\fR\nThe folder of what was pulled "
               "($XDG_CACHE_HOME/weft, or ~/.cache/weft).\n"
               ".TP\n\\fBHF_ENDPOINT\\fR, \\fBHF_TOKEN\\fR\nThe hub "
               "(https://huggingface.co), and what shows who asks.\n"
               ".TP\n\\fBNO_COLOR\\fR\nNothing is drawn, and nothing is "
               "coloured.\n";
  std::cout << ".SH EXIT STATUS\n0 on success, 1 if it failed, 2 for a wrong "
               "use, 130 after an interrupt.\n";
}

}  // namespace

void AddCompletion(CLI::App& app, const CommonFlags&, Action* action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "What bash, zsh or fish complete, for them to read");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell, &app, action] {
    *action = [shell, &app]() -> absl::StatusOr<int> {
      if (*shell == "bash") PrintBash(app);
      if (*shell == "zsh") PrintZsh(app);
      if (*shell == "fish") PrintFish(app);
      return kExitOk;
    };
  });
}

void AddManual(CLI::App& app, const CommonFlags&, Action* action) {
  CLI::App* command = app.add_subcommand(
      "manual", "All commands and flags as a page for man(1)");
  command->callback([&app, action] {
    *action = [&app]() -> absl::StatusOr<int> {
      PrintManual(app);
      return kExitOk;
    };
  });
}

}  // namespace weft
