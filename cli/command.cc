#include "cli/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "cli/interrupt.h"
#include "cli/kept_plans.h"
#include "cli/output.h"
#include "passes/pipeline.h"
#include "runtime/machine/arena.h"
#include "runtime/machine/cpus.h"
#include "runtime/ranks/mpi_communicator.h"
#include "text/pretokenizers.h"
#include "text/utf8.h"

namespace weft {
namespace {

constexpr char kUsage[] = "weft/usage";
constexpr char kRankDone[] = "weft/rank-done";

absl::Status RankIsDone() {
  absl::Status status = absl::CancelledError("rank 0 has ended");
  status.SetPayload(kRankDone, absl::Cord());
  return status;
}

// Of a process that mpirun has started beside others: the engine of rank 0; the
// others follow it until it is gone.
absl::StatusOr<std::unique_ptr<Engine>> LoadOfRank(
    const std::string& model, const EngineOptions& options) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                        Engine::Load(model, options));
  if (options.communicator->rank() == 0) return engine;
  // mpirun hands signals on to all; rank 0 finishes what was begun.
  LeaveEndToOthers();
  WEFT_RETURN_IF_ERROR(engine->Follow());
  return RankIsDone();
}

}  // namespace

absl::Status UsageError(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsage, absl::Cord());
  return status;
}

bool IsRankDone(const absl::Status& status) {
  return status.GetPayload(kRankDone).has_value();
}

bool IsUsageError(const absl::Status& status) {
  return status.GetPayload(kUsage).has_value();
}

CLI::Validator SizeInBytes() {
  const auto parse = [](std::string& text) -> std::string {
    const std::string wrong =
        absl::StrCat("'", text, "' is no size: want one above 0, as in 4GB");
    const size_t digits =
        std::min(text.find_first_not_of("0123456789."), text.size());
    std::string unit =
        absl::AsciiStrToLower(absl::StripAsciiWhitespace(text.substr(digits)));
    constexpr absl::string_view kUnits = "bkmgtp";
    const size_t power = unit.empty() ? 0 : kUnits.find(unit[0]);
    if (power == absl::string_view::npos) return wrong;
    const bool bytes_alone = power == 0;
    if (!unit.empty()) unit.erase(0, 1);
    if (!unit.empty() && (bytes_alone || (unit != "b" && unit != "ib"))) {
      return wrong;
    }
    double number;
    if (!absl::SimpleAtod(text.substr(0, digits), &number)) return wrong;
    number *= std::exp2(10.0 * static_cast<double>(power));
    if (!(number >= 1 && number < std::exp2(62))) return wrong;
    text = absl::StrCat(static_cast<int64_t>(number));
    return "";
  };
  return CLI::Validator(parse, "SIZE");
}

void CompileFlags::AddTo(CLI::App& command) {
  const std::string group = "Compilation";
  command
      .add_option("--disable-pass", disable_pass,
                  "passes to leave out, NAME,..")
      ->group(group);
  command
      .add_option(
          "--isa", isa,
          absl::StrCat("a cap on the instruction set: ", IsaNamesHere()))
      ->group(group);
  command
      .add_option(
          "--kv-type", kv_type,
          "type of the KV cache: f16, f32, bf16 (attention multiplies "
          "in bfloat16 where the CPU has avx512bf16) or q8_0; and of some "
          "blocks: q8_0,0-1=f16,21=f32")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--context", context,
                  "positions per sequence (default: the model's, at most "
                  "4096)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32))
      ->group(group);
  command
      .add_option("--context-overflow", context_overflow,
                  "when the context is full: stop or shift")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--f16-compute", f16_compute,
                  "F16 and BF16 weights: f32 (exact), or bf16, which rounds "
                  "weights and activations to bfloat16 and is faster where the "
                  "CPU has avx512bf16 (elsewhere f32 stays)")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--buckets", buckets,
                  "token counts that get a plan of their own "
                  "(default 1,2,8,32,64,256,512)")
      ->group(group);
  command
      .add_option("--planner", planner,
                  "places of intermediates: search, or to compare by-size, "
                  "first-use, no-reuse")
      ->capture_default_str()
      ->group(group);
  ask_huge_pages =
      command
          .add_flag("--hugepages,!--no-hugepages", huge_pages,
                    "ask for transparent huge pages (default: yes)")
          ->group(group);
  command
      .add_flag("--copy-model", copy_model,
                "copy what would stay in the mapped file into memory: the file "
                "may be written to then")
      ->group(group);
  AddPreFlag(command, &pre);
  command
      .add_option("--lora", lora,
                  "FILE or FILE=SCALE: a LoRA adapter beside the weights (a "
                  ".gguf file), by default with scale 1; may be given several "
                  "times")
      ->allow_extra_args(false)
      ->group(group);
  command
      .add_option("--affinity", affinity, "CPUs for the threads: 0,1 or 0-3")
      ->group(group);
  command.add_flag("--force", force, "load although memory may not suffice")
      ->group(group);
  for (const char* name :
       {"--disable-pass", "--isa", "--kv-type", "--context", "--f16-compute",
        "--buckets", "--planner", "--pre", "--lora"}) {
    compile_time.push_back(command.get_option(name));
  }
}

void CompileFlags::AddPlanCacheTo(CLI::App& command) {
  keep_plans = true;
  command
      .add_flag_callback(
          "--no-plan-cache", [this] { keep_plans = false; },
          "keep no plan of a model that was pulled: it is compiled again at "
          "each start")
      ->group("Compilation");
}

void CompileFlags::AddMemoryBudgetTo(CLI::App& command) {
  command
      .add_option("--memory-budget", memory_budget,
                  "most memory to take, as in 4GB: where the plan takes more, "
                  "experts stay in the plan file (weft compile) and are read "
                  "when tokens choose them; the same bits (default: as much as "
                  "the plan takes)")
      ->transform(SizeInBytes())
      ->group("Compilation");
}

absl::Status CompileFlags::CheckModel(const std::string& model) const {
  for (const CLI::Option* option : compile_time) {
    if (option->count() == 0 || !IsPlanFile(model)) continue;
    return UsageError(absl::StrCat(
        option->get_name(), ": ", model,
        " is a plan, which keeps the options that it was compiled with: give "
        "the flag to weft compile, or the .gguf file here"));
  }
  return absl::OkStatus();
}

absl::StatusOr<EngineOptions> CompileFlags::ToOptions(
    const CommonFlags& common) const {
  EngineOptions options;
  options.threads = common.threads;
  options.huge_pages = huge_pages;
  options.copy_model = copy_model;
  options.memory_budget = memory_budget;
  if (copy_model && memory_budget > 0) {
    return UsageError(
        "--copy-model: does not go with --memory-budget, with which experts "
        "may stay in the file");
  }
  options.model.pre = pre;
  options.force = force;
  if (!common.quiet) {
    options.model.warn = [](const std::string& warning) {
      PrintNotice(warning);
    };
  }
  if (ask_huge_pages != nullptr && ask_huge_pages->count() > 0 && huge_pages &&
      !common.quiet) {
    if (const std::string why = WhyNoHugePages(); !why.empty()) {
      std::cerr << "weft: --hugepages: " << why << ": small pages are used\n";
    }
  }
  CompileOptions& compile = options.model.compile;
  for (absl::string_view name :
       absl::StrSplit(disable_pass, ',', absl::SkipEmpty())) {
    if (absl::Status s = CheckPassName(std::string(name)); !s.ok()) {
      return UsageError(absl::StrCat("--disable-pass: ", s.message()));
    }
    compile.disabled_passes.insert(std::string(name));
  }
  if (!isa.empty()) {
    const std::optional<Isa> cap = IsaFromName(isa);
    if (!cap) {
      return UsageError(absl::StrCat("--isa: unknown instruction set '", isa,
                                     "': use ", IsaNamesHere()));
    }
    // A cap: what the CPU has not, no cap gives.
    if (RunsHere(*cap)) compile.isa = *cap;
  }
  absl::StatusOr<KvTypes> kv_types = KvTypes::Parse(kv_type);
  if (!kv_types.ok()) {
    return UsageError(absl::StrCat("--kv-type: ", kv_types.status().message()));
  }
  options.model.graph.kv_type = *std::move(kv_types);
  options.model.graph.context = context;
  if (f16_compute != "f32" && f16_compute != "bf16") {
    return UsageError(absl::StrCat("--f16-compute: unknown type '", f16_compute,
                                   "': use f32 or bf16"));
  }
  if (f16_compute == "bf16") compile.f16_compute = F16Compute::kBF16;
  if (!buckets.empty()) {
    WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> sizes,
                          ParseNumbers(buckets, "--buckets", 1 << 16));
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] < 1 || (i > 0 && sizes[i] <= sizes[i - 1])) {
        return UsageError("--buckets: want ascending numbers from 1");
      }
    }
    compile.buckets = std::move(sizes);
  }
  const std::optional<PlanStrategy> strategy = PlanStrategyFromName(planner);
  if (!strategy) {
    return UsageError(absl::StrCat("--planner: unknown strategy '", planner,
                                   "': use search, by-size, first-use or "
                                   "no-reuse"));
  }
  compile.planner = *strategy;
  for (const std::string& text : lora) {
    WEFT_ASSIGN_OR_RETURN(AdapterChoice choice, OpenAdapter(text));
    options.model.graph.adapters.push_back(std::move(choice));
  }
  if (!affinity.empty()) {
    absl::StatusOr<std::vector<int>> cpus = ParseCpuList(affinity);
    if (!cpus.ok()) {
      return UsageError(absl::StrCat("--affinity: ", cpus.status().message()));
    }
    options.affinity = *std::move(cpus);
  }
  return options;
}

absl::StatusOr<ContextOverflow> CompileFlags::Overflow() const {
  if (context_overflow == "stop") return ContextOverflow::kStop;
  if (context_overflow == "shift") return ContextOverflow::kShift;
  return UsageError(absl::StrCat("--context-overflow: unknown policy '",
                                 context_overflow, "': use stop or shift"));
}

void TextFlags::AddTo(CLI::App& command) {
  command.add_flag("--no-normalize", no_normalize,
                   "texts as they are, where the model's tokeniser puts them "
                   "into NFC");
}

void ChatTemplateFlag::AddTo(CLI::App& command) {
  command.add_option(
      "--chat-template", choice,
      absl::StrCat("in place of the model's: a file in Jinja, or one of ",
                   absl::StrJoin(ChatTemplateNames(), ", ")));
}

absl::StatusOr<std::string> ChatTemplateFlag::Source() const {
  if (choice.empty()) return std::string();
  if (std::optional<std::string> named = NamedChatTemplate(choice)) {
    return *std::move(named);
  }
  absl::StatusOr<std::string> source = ReadTextFile(choice);
  if (!source.ok()) {
    return UsageError(absl::StrCat(
        "--chat-template: ", source.status().message(), ": nor is it one of ",
        absl::StrJoin(ChatTemplateNames(), ", ")));
  }
  if (absl::Status s = ChatTemplate::Parse(*source, "", "").status(); !s.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(choice, ": ", s.message()));
  }
  if (source->empty() || ValidUtf8Prefix(*source) != source->size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(choice, ": is no template: it must be text in UTF-8"));
  }
  return source;
}

absl::StatusOr<ChatTemplate> ChatTemplateOf(const Vocabulary& vocabulary,
                                            std::string* warning) {
  absl::StatusOr<ChatTemplate> made =
      ChatTemplate::ForVocabulary(vocabulary, warning);
  if (made.ok()) return made;
  *warning = absl::StrCat(made.status().message(), ": a default is used");
  return ChatTemplate::Default(vocabulary);
}

void AddPreFlag(CLI::App& command, std::string* pre) {
  const std::vector<absl::string_view> names = PretokenizerNames();
  command
      .add_option("--pre", *pre,
                  "how byte-level vocabularies cut texts, in place of what the "
                  "file says (tokenizer.ggml.pre): qwen2, llama-bpe, ...")
      ->check(CLI::Validator(
          [names](std::string& name) {
            return std::find(names.begin(), names.end(), name) != names.end()
                       ? std::string()
                       : absl::StrCat("'", name, "' is none: use one of ",
                                      absl::StrJoin(names, ", "));
          },
          ""))
      ->group("Compilation");
}

void SamplingFlags::AddTo(CLI::App& command) {
  this->command = &command;
  const std::string group = "Sampling";
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)
        ->capture_default_str()
        ->group(group);
  };
  add("--temperature", options.temperature, "0 takes the most likely token");
  add("--top-k", options.top_k, "the k most likely; 0 or below: off");
  add("--top-p", options.top_p, "the most likely that reach p together");
  add("--min-p", options.min_p, "those at least p times the most likely");
  add("--repeat-penalty", options.repeat_penalty, "1: off");
  add("--repeat-window", options.repeat_window,
      "tokens that penalties look back; -1: all");
  add("--frequency-penalty", options.frequency_penalty, "per occurrence");
  add("--presence-penalty", options.presence_penalty, "once");
  seed = command
             .add_option("--seed", options.seed,
                         "of the random numbers (default: random, printed)")
             ->group(group);
}

absl::StatusOr<SamplingOptions> SamplingFlags::ToOptions() const {
  SamplingOptions result = options;
  if (seed->count() == 0) result.seed = std::random_device()();
  if (absl::Status s = ValidateSampling(result); !s.ok()) {
    return UsageError(s.message());
  }
  return result;
}

absl::StatusOr<std::string> SamplingFlags::TakeSuggested(
    const ModelInfo& model, SamplingOptions* sampling) const {
  std::vector<std::string> taken;
  for (const SuggestedField& field : SuggestedFields()) {
    const auto suggested =
        model.suggested_sampling.find(std::string(field.key));
    const std::string flag = absl::StrReplaceAll(field.name, {{"_", "-"}});
    if (suggested == model.suggested_sampling.end() ||
        command->get_option("--" + flag)->count() > 0) {
      continue;
    }
    field.set(sampling, suggested->second);
    taken.push_back(absl::StrCat(flag, " ", suggested->second));
  }
  if (absl::Status s = ValidateSampling(*sampling); !s.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model's suggested sampling: ", s.message(),
                     ": choose another by a flag"));
  }
  if (taken.empty()) return std::string();
  return absl::StrCat("sampling as the model suggests: ",
                      absl::StrJoin(taken, ", "));
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::ostringstream content;
  if (path == "-") {
    content << std::cin.rdbuf();
    return content.str();
  }
  // What a shell's <(...) is: a pipe by name.
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode)) {
    std::ifstream pipe(path, std::ios::binary);
    content << pipe.rdbuf();
    return content.str();
  }
  // Through the mapping: it tells directories and missing files apart.
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                        MappedFile::Open(path));
  const absl::Span<const uint8_t> bytes = file->bytes();
  return std::string(bytes.begin(), bytes.end());
}

absl::StatusOr<std::vector<int64_t>> ParseNumbers(const std::string& text,
                                                  const std::string& flag,
                                                  int64_t most) {
  std::vector<int64_t> numbers;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t n;
    if (!absl::SimpleAtoi(part, &n) || n < 0 || n > most) {
      return UsageError(absl::StrCat(flag, ": '", part,
                                     "' is not a number from 0 to ", most));
    }
    numbers.push_back(n);
  }
  return numbers;
}

std::vector<int32_t> RandomTokens(int64_t count, int64_t vocabulary) {
  std::minstd_rand random(1);
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(random() % vocabulary));
  }
  return tokens;
}

namespace {

// Gone from the screen when nothing holds it any more, also after an error.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label) : label_(std::move(label)) {}
  ~ProgressBar() { Clear(); }

  void Show(double fraction) {
    const int width = 30;
    const int filled = static_cast<int>(fraction * width);
    if (fraction >= 1.0) {
      Clear();
    } else if (filled != shown_) {
      std::fprintf(stderr, "\r%s [%s%s]", label_.c_str(),
                   std::string(filled, '#').c_str(),
                   std::string(width - filled, ' ').c_str());
      std::fflush(stderr);
      shown_ = filled;
    }
  }

 private:
  void Clear() {
    if (shown_ >= 0) std::fputs("\r\033[K", stderr);
    shown_ = -1;
  }

  const std::string label_;
  int shown_ = -1;
};

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

bool ShowsProgress(const CommonFlags& common) {
  const char* terminal = std::getenv("TERM");
  return !common.quiet && isatty(STDERR_FILENO) != 0 && !IsSet("NO_COLOR") &&
         terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

Progress MakeProgress(const CommonFlags& common, const std::string& label) {
  if (!ShowsProgress(common)) return nullptr;
  auto bar = std::make_shared<ProgressBar>(label);
  return [bar](double fraction) { bar->Show(fraction); };
}

std::function<void(const std::string& tensor, int done, int total)> ByTensor(
    const Progress& progress) {
  if (!progress) return nullptr;
  return [progress](const std::string&, int done, int total) {
    progress(static_cast<double>(done) / total);
  };
}

void PrintWarnings(const CommonFlags& common,
                   const std::vector<std::string>& warnings) {
  if (common.quiet) return;
  for (const std::string& warning : warnings) PrintNotice(warning);
}

absl::StatusOr<int64_t> PeakBytes(
    const std::string& model, const CompileFlags& compile,
    const CommonFlags& common,
    const std::function<void(EngineOptions*)>& adjust) {
  WEFT_RETURN_IF_ERROR(compile.CheckModel(model));
  WEFT_ASSIGN_OR_RETURN(EngineOptions options, compile.ToOptions(common));
  options.model.warn = nullptr;  // it is loaded after that, and warns then
  if (adjust) adjust(&options);
  return Engine::PeakBytes(model, options);
}

absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(
    const std::string& model, const CompileFlags& compile,
    const CommonFlags& common,
    const std::function<void(EngineOptions*)>& adjust) {
  WEFT_RETURN_IF_ERROR(compile.CheckModel(model));
  WEFT_ASSIGN_OR_RETURN(EngineOptions options, compile.ToOptions(common));
  const CompileOptions& chosen = options.model.compile;
  if (chosen.f16_compute == F16Compute::kBF16 &&
      !Includes(chosen.isa, Isa::kAvx512Bf16) && !common.quiet) {
    std::cerr << "weft: no bfloat16 arithmetic: instruction set "
              << Name(chosen.isa)
              << ": F16 and BF16 weights are multiplied in f32\n";
  }
  options.progress = MakeProgress(common, "packing weights");
  if (adjust) adjust(&options);
  WEFT_ASSIGN_OR_RETURN(options.communicator, MpiCommunicator());
  if (options.communicator != nullptr) return LoadOfRank(model, options);
  if (compile.keep_plans && !model.empty() && !IsPlanFile(model)) {
    const std::string plan = KeptPlanOf(model, options, common);
    if (!plan.empty()) return Engine::Load(plan, options);
  }
  return Engine::Load(model, options);
}

}  // namespace weft
