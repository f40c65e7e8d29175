// weft dump: the graph at any point of the pipeline.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/graph_diff.h"
#include "cli/graph_formats.h"
#include "cli/output.h"
#include "cli/pipeline_page.h"
#include "graph/text_format.h"
#include "ops/describe_ops.h"
#include "ops/op_table.h"
#include "passes/pipeline.h"

namespace weft {
namespace {

struct Flags {
  std::string model, after, before, diff, format = "text", layers, output;
  std::string from_text, source, diff_plan;
  std::vector<std::string> profiles;
  nlohmann::json times;  // of `profiles`
  int64_t bucket = 0;
  bool has_bucket = false, list_passes = false;
  bool list_ops = false;
  CompileFlags compile;
};

absl::Status CheckPass(const char* flag, const std::string& name) {
  const absl::Status s = CheckPassName(name);
  return s.ok() ? s : UsageError(absl::StrCat(flag, ": ", s.message()));
}

struct LayerRange {
  int first = 0, last = -1;  // all: none
};

// "A-B" or "A"; empty: all.
absl::StatusOr<LayerRange> ParseLayers(const std::string& text) {
  if (text.empty()) return LayerRange();
  const std::vector<std::string> ends = absl::StrSplit(text, '-');
  int first, last;
  if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
      !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first) {
    return UsageError(absl::StrCat("--layers: '", text,
                                   "' is no range of blocks: write it like "
                                   "0-3"));
  }
  return LayerRange{first, last};
}

// Nodes of the range, of a model that has these blocks.
absl::StatusOr<NodeFilter> Layers(const std::string& text, int blocks) {
  WEFT_ASSIGN_OR_RETURN(LayerRange range, ParseLayers(text));
  const auto [first, last] = range;
  if (last < 0) return NodeFilter();
  if (last >= blocks) {
    return UsageError(absl::StrCat(
        "--layers: block ", last, " is asked for: the model has ", blocks,
        blocks > 0 ? absl::StrCat(" blocks: choose from 0-", blocks - 1)
                   : " blocks: leave it out"));
  }
  return NodeFilter([first = first, last = last](const Node& node) {
    const int block = BlockOf(node.name);
    return block >= first && block <= last;
  });
}

int BlocksOf(const Graph& graph) {
  int last = -1;
  for (NodeId n : graph.order()) {
    last = std::max(last, BlockOf(graph.node(n).name));
  }
  return last + 1;
}

int BlocksOf(const GgufFile& file) {
  int last = -1;
  for (const GgufTensor& tensor : file.tensors()) {
    last = std::max(last, BlockOf(tensor.name));
  }
  return last + 1;
}

// `kernels`: what they were chosen with, if that is known.
absl::StatusOr<std::string> Write(
    const Graph& graph, const Flags& flags,
    const std::optional<KernelOptions>& kernels = std::nullopt) {
  WEFT_ASSIGN_OR_RETURN(NodeFilter show, Layers(flags.layers, BlocksOf(graph)));
  if (flags.format == "html") {
    PageOptions page;
    page.source = flags.from_text.empty() ? flags.model : flags.from_text;
    page.show = show;
    page.times = flags.times;
    return GraphPage(graph, kernels, page);
  }
  return WriteGraph(graph, flags.format, show);
}

absl::Status NoBucket(int64_t tokens, const std::vector<int64_t>& buckets) {
  return UsageError(absl::StrCat("--bucket: no bucket of ", tokens,
                                 " tokens: there are ",
                                 absl::StrJoin(buckets, ", ")));
}

// The plan's graph of this bucket.
absl::StatusOr<Graph> PickBucket(const Plan& plan, const Flags& flags) {
  if (!flags.has_bucket) return plan.buckets.back();
  std::vector<int64_t> sizes;
  for (const Graph& graph : plan.buckets) {
    if (graph.bounds.tokens == flags.bucket) return graph;
    sizes.push_back(graph.bounds.tokens);
  }
  return NoBucket(flags.bucket, sizes);
}

class Pipeliner {
 public:
  Pipeliner(const GgufFile& file, const ModelOptions& options,
            const Flags& flags)
      : file_(file), options_(options), flags_(flags) {}

  absl::StatusOr<Graph> After(const std::string& pass) {
    WEFT_ASSIGN_OR_RETURN(Plan plan,
                          CompileModel(file_, options_, nullptr, pass));
    return PickBucket(plan, flags_);
  }

  absl::StatusOr<Graph> Before(const std::string& pass) {
    std::string previous;
    for (const PassEntry& entry : Pipeline()) {
      if (pass == entry.name) break;
      previous = entry.name;
    }
    if (!previous.empty()) return After(previous);
    // As the loader wrote it.
    std::optional<Graph> first;
    WEFT_ASSIGN_OR_RETURN(Plan plan, CompileModel(
                                         file_, options_,
                                         [&](const std::string& name, int64_t,
                                             const Graph& graph) {
                                           if (name.empty())
                                             first = graph.Compact();
                                         },
                                         pass));
    WEFT_ASSIGN_OR_RETURN(Graph bucket, PickBucket(plan, flags_));
    first->bounds = bucket.bounds;
    return *std::move(first);
  }

 private:
  const GgufFile& file_;
  const ModelOptions& options_;
  const Flags& flags_;
};

absl::StatusOr<std::string> Page(const GgufFile& file,
                                 const ModelOptions& options,
                                 const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(NodeFilter show, Layers(flags.layers, BlocksOf(file)));
  const std::vector<int64_t>& buckets = options.compile.buckets;
  PageOptions page;
  page.source = flags.model;
  page.show = show;
  page.times = flags.times;
  page.bucket = flags.has_bucket ? flags.bucket : buckets.back();
  page.stop_after = flags.after;
  page.stop_before = flags.before;
  if (std::find(buckets.begin(), buckets.end(), page.bucket) == buckets.end()) {
    return NoBucket(page.bucket, buckets);
  }
  return PipelinePage(file, options, page);
}

absl::StatusOr<std::string> FromText(const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(std::string text, ReadTextFile(flags.from_text));
  const auto in_file = [&](const absl::Status& s) {
    return absl::Status(s.code(),
                        absl::StrCat(flags.from_text, ": ", s.message()));
  };
  absl::StatusOr<Graph> graph = ParseGraph(text);
  if (!graph.ok()) return in_file(graph.status());
  if (absl::Status s = VerifyGraph(*graph); !s.ok()) return in_file(s);
  return Write(*graph, flags);
}

absl::StatusOr<std::string> FromModel(const Flags& flags,
                                      const CommonFlags& common) {
  WEFT_RETURN_IF_ERROR(flags.compile.CheckModel(flags.model));
  WEFT_ASSIGN_OR_RETURN(EngineOptions engine, flags.compile.ToOptions(common));
  ModelOptions options = engine.model;
  options.reads_weights = false;
  const bool inside =
      !flags.after.empty() || !flags.before.empty() || !flags.diff.empty();
  std::string model = flags.model;
  std::optional<Plan> plan;
  if (!flags.source.empty() && !IsPlanFile(model)) {
    return UsageError("--source: only a plan has one: leave it out");
  }
  if (IsPlanFile(model)) {
    if (inside && flags.source.empty()) {
      return UsageError(absl::StrCat(
          model,
          " is a plan and holds the final graph only: give --source "
          "MODEL.gguf for --after, --before and --diff"));
    }
    WEFT_ASSIGN_OR_RETURN(Plan loaded, LoadPlan(model, options));
    plan = std::move(loaded);
    WEFT_ASSIGN_OR_RETURN(Graph graph, PickBucket(*plan, flags));
    // A page can show the way to it.
    if (!inside && (flags.format != "html" || flags.source.empty())) {
      return Write(graph, flags, KernelOptionsOf(plan->options));
    }
    options = OptionsOf(*plan);
    model = flags.source;
  }
  WEFT_ASSIGN_OR_RETURN(GgufFile file, OpenModel(model));
  if (plan) {
    WEFT_RETURN_IF_ERROR(CheckSource(file, *plan, flags.model));
  }
  if (flags.format == "html") return Page(file, options, flags);
  Pipeliner pipeline(file, options, flags);
  if (!flags.diff.empty()) {
    WEFT_ASSIGN_OR_RETURN(NodeFilter show,
                          Layers(flags.layers, BlocksOf(file)));
    WEFT_ASSIGN_OR_RETURN(Graph before, pipeline.Before(flags.diff));
    WEFT_ASSIGN_OR_RETURN(Graph after, pipeline.After(flags.diff));
    return DiffGraphs(before, after, absl::StrCat("before ", flags.diff),
                      absl::StrCat("after ", flags.diff), show);
  }
  WEFT_ASSIGN_OR_RETURN(Graph graph, flags.before.empty()
                                         ? pipeline.After(flags.after)
                                         : pipeline.Before(flags.before));
  return Write(graph, flags);
}

// Two plan files. 1 where they differ, as diff has it.
absl::StatusOr<int> DiffPlanFiles(const Flags& flags,
                                  const CommonFlags& common) {
  if (!flags.after.empty() || !flags.before.empty() || !flags.diff.empty() ||
      !flags.source.empty() || flags.format != "text") {
    return UsageError(
        "--diff-plan: it compares two plans as they are, and its result is "
        "text: leave out --after, --before, --diff, --source and --format");
  }
  for (const std::string& file : {flags.model, flags.diff_plan}) {
    if (IsPlanFile(file)) continue;
    std::error_code error;
    if (!file.empty() && !std::filesystem::exists(file, error)) {
      return absl::NotFoundError(
          absl::StrCat("--diff-plan: no such file: ", file));
    }
    return UsageError(absl::StrCat(
        "--diff-plan: ", file.empty() ? "the embedded model" : file,
        " is no plan: weft compile makes one (.weft)"));
  }
  WEFT_RETURN_IF_ERROR(flags.compile.CheckModel(flags.model));
  WEFT_ASSIGN_OR_RETURN(EngineOptions engine, flags.compile.ToOptions(common));
  ModelOptions options = engine.model;
  options.reads_weights = false;
  WEFT_ASSIGN_OR_RETURN(const Plan before, LoadPlan(flags.model, options));
  WEFT_ASSIGN_OR_RETURN(const Plan after, LoadPlan(flags.diff_plan, options));
  for (const Plan* plan : {&before, &after}) {
    WEFT_RETURN_IF_ERROR(PickBucket(*plan, flags).status());
  }
  WEFT_ASSIGN_OR_RETURN(
      NodeFilter show,
      Layers(flags.layers, std::min(BlocksOf(before.buckets.back()),
                                    BlocksOf(after.buckets.back()))));
  const std::string text =
      DiffPlans(before, after, flags.model, flags.diff_plan,
                flags.has_bucket ? flags.bucket : 0, show);
  WEFT_RETURN_IF_ERROR(WriteResult(flags.output, text));
  return text.empty() ? kExitOk : kExitFailure;
}

absl::Status CheckFlags(const Flags& flags) {
  if (!flags.after.empty() + !flags.before.empty() + !flags.diff.empty() > 1) {
    return UsageError(
        "dump: give one of --after (or --stop-after), --before and --diff");
  }
  const std::pair<const char*, const std::string*> passes[] = {
      {"--after (--stop-after)", &flags.after},
      {"--before", &flags.before},
      {"--diff", &flags.diff}};
  for (const auto& [flag, name] : passes) {
    if (name->empty()) continue;
    WEFT_RETURN_IF_ERROR(CheckPass(flag, *name));
  }
  WEFT_RETURN_IF_ERROR(
      CheckFormat(flags.format, flags.output, !flags.layers.empty()));
  if (!flags.diff.empty() && flags.format != "text") {
    return UsageError("--diff: a difference is text: leave out --format");
  }
  return ParseLayers(flags.layers).status();
}

absl::StatusOr<int> DumpCommand(Flags& flags, const CommonFlags& common,
                                bool has_model) {
  if (flags.list_ops) {
    std::cout << DescribeOps();
    return kExitOk;
  }
  if (flags.list_passes) {
    for (const PassEntry& pass : Pipeline()) std::cout << pass.name << "\n";
    return kExitOk;
  }
  WEFT_RETURN_IF_ERROR(CheckFlags(flags));
  std::vector<std::string> inputs = FilesOfModel(flags.model, flags.compile);
  inputs.insert(inputs.end(), {flags.from_text, flags.source, flags.diff_plan});
  inputs.insert(inputs.end(), flags.profiles.begin(), flags.profiles.end());
  WEFT_RETURN_IF_ERROR(CheckOverwritesNoInput("dump", flags.output, inputs));
  if (!flags.profiles.empty()) {
    if (flags.format != "html") {
      return UsageError("--profile: the html page alone shows times");
    }
    WEFT_ASSIGN_OR_RETURN(flags.times, ReadTimes(flags.profiles));
  }
  if (!flags.diff_plan.empty()) {
    if (!has_model) return UsageError("--diff-plan: give the other plan, too");
    return DiffPlanFiles(flags, common);
  }
  if (has_model == !flags.from_text.empty()) {
    return UsageError("dump: give either MODEL or --from-text FILE");
  }
  WEFT_ASSIGN_OR_RETURN(std::string text,
                        has_model ? FromModel(flags, common) : FromText(flags));
  WEFT_RETURN_IF_ERROR(WriteResult(flags.output, text));
  return kExitOk;
}

}  // namespace

void AddDump(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "dump", "The graph at any point of the pipeline (default: the end)");
  CLI::Option* model = command->add_option(
      "MODEL", flags->model,
      absl::StrCat("a .gguf or .weft file ", kEmbeddedByName));
  command->add_option("--after,--stop-after", flags->after,
                      "the graph after this pass");
  command->add_option("--before", flags->before, "the graph before this pass");
  command->add_option("--diff", flags->diff,
                      "what this pass changed, as a unified diff");
  command->add_option("--diff-plan", flags->diff_plan,
                      "in what this .weft file differs from MODEL, another: "
                      "options, passes, weights, kernels and graphs; the exit "
                      "code is 1 if they do, as diff has it");
  CLI::Option* bucket =
      command->add_option("--bucket", flags->bucket,
                          "the graph for this many tokens (default: the "
                          "largest)");
  command
      ->add_option("--format", flags->format,
                   "text, dot and json; svg: a picture by Graphviz; html: a "
                   "page with the graphs of the whole pipeline; pb: a "
                   "message (graph/graph.proto); onnx: for viewers")
      ->capture_default_str();
  command
      ->add_option("--profile", flags->profiles,
                   "for the html page: measured times, a file of what weft "
                   "profile --json prints of the same model; a second stands "
                   "beside it")
      ->expected(1)
      ->take_all();
  command->add_option("--layers", flags->layers,
                      "only the nodes of these blocks, A-B");
  command->add_option("-o", flags->output, "write to this file");
  command->add_flag("--list-ops", flags->list_ops,
                    "print every op: operands, attributes with types, ranges "
                    "and defaults");
  command->add_flag("--list-passes", flags->list_passes,
                    "the names of the passes, in order");
  command->add_option("--from-text", flags->from_text,
                      "reads a graph from this file, verifies and prints it; "
                      "- is stdin");
  command->add_option("--source", flags->source,
                      "the model file that a .weft was compiled from: for "
                      "--after, --before, --diff, and the pipeline in html");
  flags->compile.AddTo(*command);
  command->callback([flags, model, bucket, &common, action] {
    flags->has_bucket = bucket->count() > 0;
    const bool has_model = model->count() > 0;
    *action = [flags, has_model, &common] {
      return DumpCommand(*flags, common, has_model);
    };
  });
}

}  // namespace weft
