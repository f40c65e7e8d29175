// What the subcommands share: how one is added, the flags of many, and how
// results and errors go out.
//
// A command is one file that adds its flags to the parser and sets an action,
// and one line in main.cc. Results go to standard output, all else to standard
// error.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/api/engine.h"
#include "runtime/generation/request.h"
#include "text/chat_template.h"

namespace weft {

// Exit codes of the command-line contract.
constexpr int kExitOk = 0;
constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kExitInterrupted = 130;

// Set by the subcommand that was named; run after parsing. An error of
// kInvalidArgument whose payload says so (UsageError) exits with 2, others
// with 1.
using Action = std::function<absl::StatusOr<int>()>;

// A wrong use of the command line that the parser cannot see.
absl::Status UsageError(absl::string_view message);
bool IsUsageError(const absl::Status& status);
// No error: a rank above 0 has done its part.
bool IsRankDone(const absl::Status& status);

// Flags of every command.
struct CommonFlags {
  bool quiet = false;
  int threads = 0;
};

// For flags with a number of bytes: 4GB, 1.5g, 300 MiB, 1000; a thousand is
// 1024 then. Errors: what is no size, or none above 0.
CLI::Validator SizeInBytes();

// "Compilation flags" of the contract, and --force.
struct CompileFlags {
  std::string disable_pass;
  std::string isa;
  std::string kv_type = "f16";
  int64_t context = 0;
  std::string context_overflow = "stop";
  std::string f16_compute = "f32";
  std::string buckets;
  std::string planner = "search";
  bool huge_pages = true;
  const CLI::Option* ask_huge_pages = nullptr;
  bool copy_model = false;
  std::string pre;
  std::vector<std::string> lora;  // FILE or FILE=SCALE
  std::string affinity;
  bool force = false;
  std::vector<const CLI::Option*> compile_time;  // what a plan file fixes
  // Plans of models that were pulled are kept (kept_plans.h).
  bool keep_plans = false;
  // For commands that run or look at models larger than memory.
  int64_t memory_budget = 0;

  void AddTo(CLI::App& command);
  // For commands that are started again and again: --no-plan-cache, and plans
  // are kept otherwise.
  void AddPlanCacheTo(CLI::App& command);
  void AddMemoryBudgetTo(CLI::App& command);
  // A plan file keeps the options that it was compiled with: flags that would
  // change them are a usage error.
  absl::Status CheckModel(const std::string& model) const;
  // Checks the values; usage errors name the flag.
  absl::StatusOr<EngineOptions> ToOptions(const CommonFlags& common) const;
  absl::StatusOr<ContextOverflow> Overflow() const;
};

// How texts become tokens.
struct TextFlags {
  bool no_normalize = false;

  void AddTo(CLI::App& command);
  void ApplyTo(EngineOptions* options) const {
    options->normalize = !no_normalize;
  }
};

// The template of chats: the model's, or another.
struct ChatTemplateFlag {
  std::string choice;

  void AddTo(CLI::App& command);
  // The source of the named template or of the file, which was parsed; empty
  // for the model's own. Before the model is loaded, so that a mistake is told
  // at once.
  absl::StatusOr<std::string> Source() const;
};

// The vocabulary's template, or a default where there is none or one that does
// not work: then `warning` says so in one line.
absl::StatusOr<ChatTemplate> ChatTemplateOf(const Vocabulary& vocabulary,
                                            std::string* warning);

// Behind what MODEL may be: where it may be left out, and where it may not.
inline constexpr char kEmbeddedUsually[] =
    "(\"\", or left out: the embedded model)";
inline constexpr char kEmbeddedByName[] = "(\"\": the embedded model)";

// Of MODEL, where a name fetches it (model_argument.h).
inline constexpr char kModelHelp[] =
    "a .gguf or .weft file, the folder of a published model (safetensors), "
    "which is converted once, or owner/name:TYPE on a hub, which is pulled if "
    "it is not there (\"\", or left out: the embedded model)";

// The flag --pre NAME.
void AddPreFlag(CLI::App& command, std::string* pre);

// Sampling flags with the defaults of the contract.
struct SamplingFlags {
  SamplingOptions options;
  CLI::Option* seed = nullptr;
  const CLI::App* command = nullptr;

  void AddTo(CLI::App& command);
  // The options; without --seed, with a seed from the system.
  absl::StatusOr<SamplingOptions> ToOptions() const;
  // Takes over what the model suggests where no flag says otherwise; returns a
  // line that tells what, or nothing.
  absl::StatusOr<std::string> TakeSuggested(const ModelInfo& model,
                                            SamplingOptions* sampling) const;
};

// The whole file, or an error with its path and the system's reason. "-" is
// standard input.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// "1,2,3" as numbers from 0 to `most`; usage errors name `flag`.
absl::StatusOr<std::vector<int64_t>> ParseNumbers(const std::string& text,
                                                  const std::string& flag,
                                                  int64_t most);

// Token ids for a measurement or a check: the same in every run.
std::vector<int32_t> RandomTokens(int64_t count, int64_t vocabulary);

// Whether standard error is a terminal that shows lines which change, and wants
// to.
bool ShowsProgress(const CommonFlags& common);

// A progress bar on a terminal, nothing elsewhere or when quiet. `label` stands
// before it. Clears itself when done.
Progress MakeProgress(const CommonFlags& common, const std::string& label);
// As it is wanted by what works tensor by tensor; null where `progress` is.
std::function<void(const std::string& tensor, int done, int total)> ByTensor(
    const Progress& progress);

// One line each on standard error, unless quiet.
void PrintWarnings(const CommonFlags& common,
                   const std::vector<std::string>& warnings);

// The most memory that an engine would take (Engine::PeakBytes).
absl::StatusOr<int64_t> PeakBytes(
    const std::string& model, const CompileFlags& compile,
    const CommonFlags& common,
    const std::function<void(EngineOptions*)>& adjust);

// Loads the engine with a progress bar. `adjust`, if given, changes the options
// first. In a process that mpirun has started beside others, they run the model
// together: for rank 0 alone there is an engine, and the others do not return
// before it is gone, with an error that IsRankDone knows.
absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(
    const std::string& model, const CompileFlags& compile,
    const CommonFlags& common,
    const std::function<void(EngineOptions*)>& adjust = nullptr);

void AddRun(CLI::App& app, const CommonFlags& common, Action* action);
void AddDump(CLI::App& app, const CommonFlags& common, Action* action);
void AddInspect(CLI::App& app, const CommonFlags& common, Action* action);
void AddEval(CLI::App& app, const CommonFlags& common, Action* action);
void AddCompile(CLI::App& app, const CommonFlags& common, Action* action);
void AddPerplexity(CLI::App& app, const CommonFlags& common, Action* action);
void AddTokenize(CLI::App& app, const CommonFlags& common, Action* action);
void AddDetokenize(CLI::App& app, const CommonFlags& common, Action* action);
void AddVerify(CLI::App& app, const CommonFlags& common, Action* action);
void AddProfile(CLI::App& app, const CommonFlags& common, Action* action);
void AddBench(CLI::App& app, const CommonFlags& common, Action* action);
void AddSynth(CLI::App& app, const CommonFlags& common, Action* action);
void AddQuantize(CLI::App& app, const CommonFlags& common, Action* action);
void AddConvert(CLI::App& app, const CommonFlags& common, Action* action);
void AddImatrix(CLI::App& app, const CommonFlags& common, Action* action);
void AddReplay(CLI::App& app, const CommonFlags& common, Action* action);
void AddPull(CLI::App& app, const CommonFlags& common, Action* action);
void AddList(CLI::App& app, const CommonFlags& common, Action* action);
void AddRm(CLI::App& app, const CommonFlags& common, Action* action);
void AddServe(CLI::App& app, const CommonFlags& common, Action* action);
void AddChat(CLI::App& app, const CommonFlags& common, Action* action);
void AddDoctor(CLI::App& app, const CommonFlags& common, Action* action);
void AddCompletion(CLI::App& app, const CommonFlags& common, Action* action);
void AddManual(CLI::App& app, const CommonFlags& common, Action* action);

}  // namespace weft
