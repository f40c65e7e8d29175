// Exit codes, messages, and what may appear on which stream.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/e2e/weft.h"

namespace weft {
namespace {

TEST(Usage, HelpAndVersionSucceed) {
  EXPECT_NE(WeftOut({"--help"}).find("run"), std::string::npos);
  EXPECT_EQ(WeftOut({"--version"}).rfind("weft ", 0), 0u);
  for (const char* command :
       {"run", "dump", "inspect", "eval", "perplexity", "tokenize",
        "detokenize", "bench", "synth", "convert", "quantize", "imatrix",
        "verify", "profile", "pull", "list", "rm"}) {
    EXPECT_NE(WeftOut({command, "--help"}).find(command), std::string::npos);
  }
}

TEST(Usage, TheVersionSaysWhatRunsHere) {
  const std::string line = WeftOut({"--version"});
  EXPECT_NE(line.find("oneDNN "), std::string::npos) << line;
  const nlohmann::json doctor = WeftJson({"doctor", "--json"});
  EXPECT_EQ(doctor["weft"].get<std::string>() + "\n", line);
  EXPECT_NE(line.find(doctor["kernels"].get<std::string>()), std::string::npos);
  for (const char* limit : {"float32", "memory_read"}) {
    EXPECT_GT(doctor[limit].get<double>(), 0) << limit;
  }
}

// The words of a command line as a shell has them.
std::vector<std::string> Words(const std::string& line) {
  std::vector<std::string> words;
  bool inside = false, quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c != '"') words.back() += c;
  }
  return words;
}

TEST(Usage, EveryCommandHasExamplesThatItTakes) {
  const std::string all = WeftOut({"completion", "fish"});
  const std::string marker = "__fish_use_subcommand -a ";
  int commands = 0;
  for (size_t at = 0; (at = all.find(marker, at)) != std::string::npos;) {
    at += marker.size();
    const std::string command = all.substr(at, all.find(' ', at) - at);
    ++commands;
    const std::string help = WeftOut({command, "--help"});
    const std::string begin = "\n  weft " + command;
    size_t example = help.find("Examples:");
    ASSERT_NE(example, std::string::npos) << command;
    int examples = 0;
    while ((example = help.find(begin, example)) != std::string::npos) {
      ++examples;
      example += 3;
      std::vector<std::string> words =
          Words(help.substr(example, help.find('\n', example) - example));
      words.erase(words.begin());  // "weft"
      words.push_back("--no-such-flag");
      const RunResult result = Weft(words);
      // All that is wrong with it.
      EXPECT_EQ(result.err,
                "weft: The following argument was not expected: "
                "--no-such-flag: see weft " +
                    command + " --help\n");
      EXPECT_EQ(result.exit_code, 2);
    }
    EXPECT_GT(examples, 0) << help;
  }
  EXPECT_GT(commands, 20);
}

TEST(Usage, ErrorsNameWhatWasAskedFor) {
  EXPECT_NE(Weft({"dump", "", "--stop-after", "nosuch"})
                .err.find("--after (--stop-after)"),
            std::string::npos);
  const RunResult size = Weft({"serve", "", "--cache-size", "8GB"});
  ExpectError(size, 2);
  EXPECT_NE(size.err.find("--cache-dir"), std::string::npos) << size.err;
}

TEST(Usage, ALargerContextIsAdvisedWhereThereIsOne) {
  std::string prompt;
  for (int i = 0; i < 200; ++i) prompt += "It is a truth. ";
  for (const auto& [context, advised] :
       std::vector<std::pair<std::string, bool>>{{"256", true},
                                                 {"512", false}}) {
    const RunResult result =
        Weft({"run", "", "-p", prompt, "--context", context});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("prompt is too long"), std::string::npos)
        << result.err;
    EXPECT_EQ(result.err.find("larger context") != std::string::npos, advised)
        << result.err;
  }
}

TEST(Usage, AnEmptyInputIsSaidAndAnEmptyFileIsAnError) {
  const std::string empty = TemporaryPath("empty.txt");
  WriteTextFile(empty, "");
  const std::string out = TemporaryPath("err.txt");
  const auto code_of = [&](const std::string& input) {
    const int code =
        std::system(("cli/weft run -n 1 " + input + " 2> " + out).c_str());
    return WEXITSTATUS(code);
  };
  EXPECT_EQ(code_of("< " + empty), 0);
  EXPECT_NE(ReadFile(out).find("standard input is empty"), std::string::npos)
      << ReadFile(out);
  for (const std::string& input : {"-f - < " + empty, "-f " + empty}) {
    EXPECT_EQ(code_of(input), 1) << input;
    EXPECT_NE(ReadFile(out).find(" is empty"), std::string::npos)
        << ReadFile(out);
  }
  // Asked for, and not come by.
  EXPECT_EQ(Weft({"run", "-p", "", "-n", "1"}).exit_code, 0);
}

TEST(Usage, TheEmbeddedModelHasOneName) {
  for (const char* command : {"run", "compile", "dump", "inspect", "eval",
                              "perplexity", "tokenize", "detokenize", "verify",
                              "profile", "bench", "imatrix", "serve", "chat"}) {
    EXPECT_NE(WeftOut({command, "--help"}).find("the embedded model)"),
              std::string::npos)
        << command;
  }
  EXPECT_EQ(
      Weft({"inspect", "", "--context", "1000000"}).err.find("default model"),
      std::string::npos);
}

// What is written for shells and man names every command and flag.
TEST(Usage, CompletionsAndManualHaveEveryFlag) {
  const std::string help = WeftOut({"serve", "--help"});
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"completion", "bash"},
                                             {"completion", "zsh"},
                                             {"completion", "fish"},
                                             {"manual"}}) {
    std::string text = WeftOut(words);
    text.erase(std::remove(text.begin(), text.end(), '\\'), text.end());
    size_t flags = 0;
    for (size_t at = 0; (at = help.find(" --", at)) != std::string::npos;
         ++at) {
      const size_t end = help.find_first_of(" ,=\n", at + 1);
      const std::string name = help.substr(at + 3, end - at - 3);
      EXPECT_NE(text.find(name), std::string::npos)
          << words.back() << " " << name;
      ++flags;
    }
    EXPECT_GT(flags, 20u);
  }
  ExpectError(Weft({"completion", "tcsh"}), 2);
}

TEST(Usage, WrongUseExitsWithTwo) {
  const std::string model = SmallModel("00-valid.gguf");
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"no-such-command"},
      {"run", "--no-such-flag"},
      {"run", "-n", "many"},
      {"run", "-n", "-1"},
      {"run", "-n", ""},
      {"run", "-n", "99999999999999999999"},
      {"run", "--seed", "-1"},
      {"run", "--seed", ""},
      {"run", "--temperature", ""},
      {"run", "--context", "0"},
      {"run", "-p", "a", "-f", "b"},
      {"run", "--top-p", "7"},
      {"run", "--isa", "mmx"},
      {"inspect", model, "--planner", "best"},
      {"run", "--kv-type", "q2_k"},
      {"run", "--kv-type", ""},
      {"run", "--kv-type", "f16,0=q2_k"},
      {"run", "--kv-type", "f16,1-0=f32"},
      {"run", "--threads", "0"},
      {"run", "--disable-pass", "no-such-pass"},
      {"run", "--context-overflow", "explode"},
      {"run", "--affinity", "x"},
      {"eval", model},
      {"eval", model, "--tokens", "1", "--text", "a"},
      {"eval", model, "--tokens", "300"},
      {"eval", model, "--tokens", "1,2", "--positions", "1,0"},
      {"dump"},
      {"dump", model, "--after", "no-such-pass"},
      {"dump", model, "--before", "no-such-pass"},
      {"dump", model, "--diff", "no-such-pass"},
      {"dump", model, "--after", "schedule", "--before", "schedule"},
      {"dump", model, "--bucket", "7"},
      {"dump", model, "--bucket", "0"},
      {"dump", model, "--format", "pb", "--layers", "0"},
      {"dump", model, "--format", "klingon"},
      {"dump", model, "--layers", "3-1"},
      {"dump", model, "--layers", "0-99"},
      {"dump", model, "--from-text", "x"},
      {"inspect"},
      {"tokenize", model},
      {"tokenize", model, "a", "-f", "b"},
      {"detokenize", model, "1,x"},
      {"detokenize", model, "300"},
      {"perplexity", model},
      {"perplexity", model, "-f", "models/austen-heldout.txt", "--stride",
       "64"},
      {"run", "--speculate", "guess"},
      {"run", "--speculate", "draft:"},
      {"run", "--lookup-file", "x"},
      {"chat", "--speculate", "guess"},
      {"serve", "--speculate", "guess"},
      {"bench", "--speculate", "right:2"},
      {"bench", "--repeat", "0"},
      {"bench", "--batch", "513"},
      {"bench", "--depth", "-1"},
      {"bench", "--depth", "100000"},
      {"bench", "--prompt", "100000"},
      {"synth", "--shape", "tinyllama-1.1b", "-o", "x"},
      {"synth", "--shape", "no-such", "--type", "Q4_0", "-o", "x"},
      {"synth", "--shape", "tinyllama-1.1b", "--type", "Q9", "-o", "x"},
      {"quantize", model, "x"},
      {"quantize", model, "x", "Q9"},
  };
  for (const std::vector<std::string>& arguments : wrong) {
    std::string line;
    for (const std::string& argument : arguments) line += " " + argument;
    SCOPED_TRACE("weft" + line);
    ExpectError(Weft(arguments), 2);
  }
}

TEST(Usage, HelpIsFoundTheWaysItIsLookedFor) {
  EXPECT_EQ(WeftOut({"help"}), WeftOut({"--help"}));
  EXPECT_EQ(WeftOut({"help", "run"}), WeftOut({"run", "--help"}));
  EXPECT_EQ(WeftOut({"-v"}), WeftOut({"--version"}));
}

TEST(Usage, NearMissesAreNamed) {
  const struct {
    std::vector<std::string> words;
    const char* meant;
  } cases[] = {
      {{"compil"}, "did you mean compile?"},
      {{"pul"}, "did you mean pull?"},
      {{"lsit"}, "did you mean list?"},
      {{"rn", "x"}, "did you mean run?"},
      {{"list", "--jsn"}, "did you mean --json?"},
      {{"run", "--temperatur", "0"}, "did you mean --temperature?"},
      {{"serve", "--slotz=2"}, "did you mean --slots?"},
      {{"run", "--thread", "2"}, "did you mean --threads?"},
  };
  for (const auto& c : cases) {
    const RunResult result = Weft(c.words);
    ExpectError(result, 2);
    EXPECT_NE(result.err.find(c.meant), std::string::npos) << result.err;
  }
  const RunResult far = Weft({"frobnicate"});
  ExpectError(far, 2);
  EXPECT_EQ(far.err.find("did you mean"), std::string::npos) << far.err;
}

TEST(Usage, AFileAloneIsAChat) {
  const std::string model = SmallModel("00-valid.gguf");
  RunOptions options;
  options.input = "hello\n";
  EXPECT_EQ(WeftOut({model, "--temperature", "0", "-n", "4"}, options),
            WeftOut({"chat", model, "--temperature", "0", "-n", "4"}, options));
  // As llama.cpp's program is called.
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{
           {"-m", model, "-p", "hello", "-n", "4"},
           {"-p", "hello", "-n", "4", "--model=" + model, "-cnv"},
           {"--threads", "1", "-m", model, "-p", "hello", "-n", "4"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--temperature", "0"});
    EXPECT_EQ(WeftOut(all), WeftOut({"chat", model, "-p", "hello", "-n", "4",
                                     "--temperature", "0"}));
  }
  EXPECT_EQ(WeftOut({"--quiet", "run", "-m", model, "-p", "a", "-n", "2",
                     "--seed", "1"}),
            WeftOut({"run", model, "-p", "a", "-n", "2", "--seed", "1"}));
  // What looks like a file is meant as one; other words are commands.
  const RunResult missing = Weft({"no-such-model.gguf"});
  ExpectError(missing, 1);
  EXPECT_NE(missing.err.find("cannot open file"), std::string::npos);
  ExpectError(Weft({"no-such-command"}), 2);
}

TEST(Usage, FlagsOfLlamaCppAreUnderstood) {
  const std::string model = SmallModel("00-valid.gguf");
  const RunResult theirs =
      Weft({"run", "-m", model, "-p", "hello", "-c", "32", "-t", "1", "-s", "3",
            "--temp", "0.5", "-ngl", "99", "--n-predict", "4"});
  EXPECT_EQ(theirs.exit_code, 0) << theirs.err;
  EXPECT_EQ(theirs.out, WeftOut({"run", model, "-p", "hello", "--context", "32",
                                 "--threads", "1", "--seed", "3",
                                 "--temperature", "0.5", "-n", "4"}));
  EXPECT_NE(theirs.err.find("-ngl is left out"), std::string::npos);
}

TEST(Usage, ModelsThatCannotBeReadExitWithOneAndSayWhy) {
  const RunResult missing = Weft({"run", "no-such-file.gguf", "-p", "a"});
  ExpectError(missing, 1);
  EXPECT_NE(missing.err.find("no-such-file.gguf"), std::string::npos);
  EXPECT_NE(missing.err.find("No such file"), std::string::npos);
  const RunResult folder = Weft({"run", "tests", "-p", "a"});
  ExpectError(folder, 1);
  EXPECT_NE(folder.err.find("irectory"), std::string::npos) << folder.err;
  EXPECT_NE(folder.err.find("model.safetensors"), std::string::npos)
      << folder.err;
  ExpectError(Weft({"run", "/dev/null", "-p", "a"}), 1);
  if (geteuid() != 0) {
    const std::string locked = TemporaryPath("locked.gguf");
    WriteTextFile(locked, "GGUF");
    chmod(locked.c_str(), 0);
    const RunResult denied = Weft({"run", locked, "-p", "a"});
    ExpectError(denied, 1);
    EXPECT_NE(denied.err.find("denied"), std::string::npos) << denied.err;
  }
}

TEST(Usage, FilesThatCannotBeReadOrWrittenExitWithOne) {
  const std::string model = SmallModel("00-valid.gguf");
  ExpectError(Weft({"run", "-f", "no-such-file.txt"}), 1);
  ExpectError(Weft({"dump", model, "-o", "/no-such-folder/x"}), 1);
  ExpectError(Weft({"dump", "--from-text", "no-such-file.txt"}), 1);
  ExpectError(
      Weft({"eval", model, "--tokens", "1", "--logits", "/no-such-folder/x"}),
      1);
  ExpectError(Weft({"quantize", model, "/no-such-folder/x", "Q8_0"}), 1);
  ExpectError(Weft({"perplexity", model, "-f", "/dev/null"}), 1);
}

TEST(Usage, OutputThatCannotBeWrittenIsAnError) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  RunOptions options;
  options.output_file = "/dev/full";
  const RunResult result = Weft({"dump", SmallModel("00-valid.gguf")}, options);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("No space left"), std::string::npos) << result.err;
}

// What comes before a pipe or a file has no colour and moves no cursor,
// whatever the command and the stream.
TEST(Usage, NoEscapeAndNoCarriageReturnInPipes) {
  const std::string model = SmallModel("00-valid.gguf");
  const std::vector<std::vector<std::string>> commands = {
      {"run", model, "-p", "hello", "-n", "4"},
      {"--help"},
      {"dump", model},
      {"inspect", model},
      {"bench", model, "--prompt", "8", "--generate", "4", "--repeat", "1"},
      {"quantize", model, TemporaryPath("escape.gguf"), "Q8_0"},
      {"run", "no-such\x1b[31m-file"},
  };
  for (const std::vector<std::string>& arguments : commands) {
    RunOptions options;
    options.environment = {"TERM=xterm-256color"};
    const RunResult result = Weft(arguments, options);
    for (char bad : {'\x1b', '\r'}) {
      EXPECT_EQ(result.out.find(bad), std::string::npos) << arguments[0];
      EXPECT_EQ(result.err.find(bad), std::string::npos) << arguments[0];
    }
  }
}

TEST(Usage, QuietSilencesLogsOnly) {
  const std::vector<std::string> arguments = {
      "run", "-n", "8", "--seed", "5", "-p", "It is a truth"};
  std::vector<std::string> quiet = arguments;
  quiet.push_back("--quiet");
  const RunResult loud_result = Weft(arguments);
  const RunResult quiet_result = Weft(quiet);
  EXPECT_EQ(loud_result.out, quiet_result.out);
  EXPECT_FALSE(loud_result.err.empty());
  EXPECT_EQ(quiet_result.err, "");
}

TEST(Usage, AReaderThatGoesEndsTheRunCleanly) {
  RunOptions options;
  options.close_output_after = 5;
  const RunResult result =
      Weft({"run", "-n", "100000", "--context-overflow", "shift", "--quiet"},
           options);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

TEST(Usage, ControlCEndsWith130AndAWholeLine) {
  RunOptions options;
  options.interrupt = true;
  const RunResult result =
      Weft({"run", "-n", "100000", "--context-overflow", "shift", "--quiet"},
           options);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.out.back(), '\n');
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace weft
