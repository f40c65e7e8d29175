// weft compile: a model file to a plan file.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/files.h"
#include "ops/attributes.h"
#include "runtime/machine/cpus.h"
#include "runtime/machine/thread_pool.h"
#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

struct Flags {
  std::string model, output, weights = "packed";
  bool merge_lora = false;
  bool next_token_block = false;
  int64_t shards = 1;
  std::string shard_plan = "auto";
  CompileFlags compile;
};

void Print(const Plan& plan) {
  for (const PassRecord& pass : plan.passes) {
    std::cout << absl::StreamFormat("%-22s %6d -> %d nodes\n", pass.name,
                                    pass.nodes_before, pass.nodes_after);
  }
  for (const Graph& graph : plan.buckets) {
    std::cout << absl::StreamFormat(
        "%5d tokens: %4d nodes, arena %d bytes (lower bound %d)\n",
        graph.bounds.tokens, graph.order().size(), graph.arena.bytes,
        graph.arena.lower_bound);
  }
  if (!plan.next_token_buckets.empty()) {
    const Graph& block = plan.next_token_buckets.back();
    std::cout << absl::StreamFormat(
        "next-token block: %d nodes, arena %d bytes\n", block.order().size(),
        block.arena.bytes);
  }
  const PlanMemory memory = MemoryOf(plan, 1, 1);
  const double overhead = 100.0 * (memory.weights - memory.source_weights) /
                          std::max<int64_t>(memory.source_weights, 1);
  std::cout << absl::StreamFormat(
      "weights %d bytes, %d in the model file (%+.2f%%)\n", memory.weights,
      memory.source_weights, overhead);
}

absl::StatusOr<int> Compile(const Flags& flags, const CommonFlags& common) {
  if (flags.weights != "packed" && flags.weights != "reference") {
    return UsageError(absl::StrCat("--weights: unknown kind '", flags.weights,
                                   "': use packed or reference"));
  }
  if (IsPlanFile(flags.model)) {
    return UsageError(absl::StrCat("compile: ", flags.model,
                                   " is a plan already: give a .gguf file"));
  }
  WEFT_RETURN_IF_ERROR(CheckOverwritesNoInput(
      "compile", flags.output, FilesOfModel(flags.model, flags.compile)));
  if (flags.merge_lora && flags.compile.lora.empty()) {
    return UsageError("--merge-lora: merges adapters: give --lora FILE, too");
  }
  if (!flags.compile.lora.empty() && flags.weights == "reference") {
    return UsageError(
        "--weights reference: the plan would not hold the adapters: leave out "
        "--lora or choose packed");
  }
  if (flags.shard_plan != "auto" && flags.shard_plan != "tensor") {
    return UsageError(absl::StrCat(
        "--shard-plan: ", flags.shard_plan,
        ": there is tensor (each rank has columns of every block), which auto "
        "takes"));
  }
  if (flags.shards > 1 && flags.next_token_block) {
    return UsageError(
        "--next-token-block: does not go with --shards: leave one out");
  }
  WEFT_ASSIGN_OR_RETURN(EngineOptions options, flags.compile.ToOptions(common));
  options.model.graph.next_token_block = flags.next_token_block;
  WEFT_ASSIGN_OR_RETURN(GgufFile file, OpenModel(flags.model));
  if (flags.merge_lora) {
    WEFT_RETURN_IF_ERROR(MergeAdapters(options.model.graph.adapters, &file));
    options.model.graph.adapters.clear();
  }
  const int threads = options.threads > 0 ? options.threads : DefaultThreads();
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> pool,
                        ThreadPool::Create(threads, options.affinity));
  for (int64_t rank = 0; rank < flags.shards; ++rank) {
    std::string output = flags.output;
    if (flags.shards > 1) {
      options.model.compile.shard = {rank, flags.shards};
      output = PathOfRank(flags.output, rank);
      std::cout << (rank > 0 ? "\n" : "") << output << "\n";
    }
    WEFT_ASSIGN_OR_RETURN(Plan plan, CompileModel(file, options.model));
    if (flags.weights == "reference") {
      WEFT_RETURN_IF_ERROR(
          SaveModelReference(plan, file, flags.model, options.model, output));
    } else {
      WEFT_RETURN_IF_ERROR(SaveModelPlan(
          plan, file, output, *pool, MakeProgress(common, "packing weights")));
    }
    Print(plan);
  }
  return kExitOk;
}

}  // namespace

void AddCompile(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("compile",
                         "Compiles a model into a plan file and prints passes, "
                         "arenas and weights");
  command
      ->add_option("MODEL", flags->model,
                   absl::StrCat("a .gguf file ", kEmbeddedByName))
      ->required();
  command->add_option("-o,--output", flags->output, "the .weft file to write")
      ->required();
  command
      ->add_option("--weights", flags->weights,
                   "packed: the plan holds them; reference: they stay in the "
                   ".gguf file and are packed at load")
      ->capture_default_str();
  command->add_flag("--merge-lora", flags->merge_lora,
                    "add the adapters of --lora to the weights, rounded to "
                    "their types, in place of keeping them beside");
  command->add_flag("--next-token-block", flags->next_token_block,
                    "the plan is for --speculate mtp, too");
  command
      ->add_option("--shards", flags->shards,
                   "plans for so many ranks, which run the model together "
                   "(mpirun -n N weft run FILE): of -o model.weft, "
                   "model.0.weft and so on")
      ->check(CLI::Range(int64_t{1}, kMostRanksOfPlan));
  command
      ->add_option("--shard-plan", flags->shard_plan,
                   "how: tensor, each rank has columns of every block; or "
                   "auto, which takes that")
      ->capture_default_str();
  flags->compile.AddTo(*command);
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return Compile(*flags, common); };
  });
}

}  // namespace weft
