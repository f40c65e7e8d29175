// weft verify: every pass and every node of a plan against reference functions.
//
// Passes: the graph before and after each, on a few random tokens. Nodes: the
// plan is run in every bucket, and each kernel's results are compared with the
// reference function's on the operands that it really had. Of a plan file,
// nodes are those of the plan, and passes those of its --source.
#include <iostream>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "graph/text_format.h"
#include "passes/pipeline.h"
#include "runtime/check/check_nodes.h"
#include "runtime/check/check_passes.h"
#include "runtime/machine/cpus.h"
#include "text/printable.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string model, source;
  int64_t tokens = 16;
  bool json = false;
  CompileFlags compile;
};

struct Report {
  std::vector<PassCheck> passes;
  NodeReport nodes;
};

// Compiles, looking at every pass.
absl::StatusOr<Plan> CheckPasses(const GgufFile& file,
                                 const ModelOptions& options,
                                 const Flags& flags,
                                 ReferenceEvaluator* evaluator,
                                 const Progress& progress, Report* report) {
  // The vocabulary is known from the graph only once it is there.
  std::optional<PassChecker> checker;
  const size_t all = Pipeline().size();
  size_t done = 0;
  WEFT_ASSIGN_OR_RETURN(
      Plan plan,
      CompileModel(
          file, options,
          [&](const std::string& pass, int64_t bucket, const Graph& graph) {
            if (!checker) {
              const Value& logits = graph.value(graph.outputs()[0].second);
              const int64_t vocabulary = logits.type.shape[1].value;
              const int64_t positions =
                  std::min<int64_t>(flags.tokens, graph.bounds.context);
              checker.emplace(
                  evaluator,
                  TokenInputs(RandomTokens(positions, vocabulary), 0,
                              AdapterScales(options.graph.adapters)),
                  Bounds{positions, positions,
                         (positions + kPageTokens - 1) / kPageTokens *
                             kPageTokens},
                  options.compile.f16_compute);
            }
            if (progress) progress(std::min(1.0, 0.5 * done++ / all));
            checker->Look(pass, bucket, graph);
          }));
  WEFT_RETURN_IF_ERROR(checker->status());
  report->passes = checker->checks();
  return plan;
}

// The first line of two texts that differs, as the first has it.
std::string FirstDifference(const std::string& found, const std::string& want) {
  const std::vector<std::string> a = absl::StrSplit(found, '\n');
  const std::vector<std::string> b = absl::StrSplit(want, '\n');
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= b.size() || (i < a.size() && a[i] != b[i])) return a[i];
    if (i >= a.size()) return b[i];
  }
  return "";
}

// A loaded plan against its model compiled again: graphs and vocabulary. What
// kernels do is checked against the plan's own graph, so that has to be right.
absl::Status CheckGraphs(const Plan& plan, const Plan& compiled,
                         const std::string& path) {
  const auto differs = [&](absl::string_view what) {
    return absl::DataLossError(
        absl::StrCat("plan differs from its model compiled again: ", path, ": ",
                     what, ": compile it again"));
  };
  const std::vector<const Graph*> graphs = plan.AllGraphs();
  const std::vector<const Graph*> want_graphs = compiled.AllGraphs();
  if (plan.buckets.size() != compiled.buckets.size() ||
      graphs.size() != want_graphs.size()) {
    return differs("it has other buckets");
  }
  for (size_t i = 0; i < graphs.size(); ++i) {
    const std::string found = Dump(*graphs[i]);
    const std::string want = Dump(*want_graphs[i]);
    if (found == want) continue;
    return differs(absl::StrCat(
        i < plan.buckets.size() ? "" : "next-token block, ", "bucket of ",
        graphs[i]->bounds.tokens,
        " tokens: ", absl::StripAsciiWhitespace(FirstDifference(found, want))));
  }
  if (plan.vocabulary.SerializeAsString() !=
      compiled.vocabulary.SerializeAsString()) {
    return differs("it has another vocabulary");
  }
  return absl::OkStatus();
}

// The same of the weights.
absl::StatusOr<std::vector<NodeFault>> CheckWeights(const Plan& plan,
                                                    const Plan& compiled) {
  std::vector<NodeFault> faults;
  const Graph& want_graph = compiled.buckets.back();
  const Graph& graph = plan.buckets.back();
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& found = graph.value(id);
    if (found.kind != ValueKind::kWeight) continue;
    const ValueId other = want_graph.FindValue(found.name);
    std::string fault;
    if (other == kNone || !(want_graph.value(other).type == found.type)) {
      fault = "is not a weight of the model compiled again";
    } else {
      // One at a time: together they take as much memory as the model.
      ReferenceEvaluator evaluator;
      WEFT_ASSIGN_OR_RETURN(ContentPointer a, evaluator.Weight(found));
      WEFT_ASSIGN_OR_RETURN(ContentPointer b,
                            evaluator.Weight(want_graph.value(other)));
      if (!(*a == *b)) fault = "differs from what the source gives";
    }
    if (!fault.empty()) {
      faults.push_back({graph.bounds.tokens, found.name, "weight", "", fault});
    }
  }
  return faults;
}

Json ToJson(const Report& report, int64_t tokens) {
  Json passes = Json::array(), buckets = Json::array(), faults = Json::array();
  for (const PassCheck& check : report.passes) {
    Json json = {{"pass", check.pass}};
    if (check.bucket > 0) json["bucket"] = check.bucket;
    json["ok"] = check.fault.empty();
    json["worst"] = check.worst;
    json["tolerance"] = check.tolerance;
    if (!check.node.empty()) json["node"] = check.node;
    if (!check.fault.empty()) json["fault"] = check.fault;
    passes.push_back(std::move(json));
  }
  for (const NodeCheck& check : report.nodes.checks) {
    buckets.push_back({{"bucket", check.bucket},
                       {"steps", check.steps},
                       {"nodes", check.nodes},
                       {"worst_share_of_tolerance", check.worst},
                       {"worst_node", check.worst_node},
                       {"worst_kernel", check.worst_kernel}});
    if (!check.nan_node.empty()) buckets.back()["nan_node"] = check.nan_node;
  }
  for (const NodeFault& fault : report.nodes.faults) {
    faults.push_back({{"bucket", fault.bucket},
                      {"node", fault.node},
                      {"op", fault.op},
                      {"kernel", fault.kernel},
                      {"fault", fault.fault}});
  }
  return {{"tokens", tokens},
          {"passes", std::move(passes)},
          {"nodes",
           {{"buckets", std::move(buckets)}, {"faults", std::move(faults)}}}};
}

void Print(const Report& report) {
  for (const PassCheck& check : report.passes) {
    const std::string name =
        check.bucket == 0
            ? check.pass
            : absl::StrFormat("%s (%d tokens)", check.pass, check.bucket);
    std::cout << absl::StreamFormat("pass  %-30s %s", name,
                                    check.fault.empty() ? "ok" : "WRONG");
    if (check.worst > 0) {
      std::cout << absl::StreamFormat(", moves %.2g of a row's size at %s",
                                      check.worst, PrintableLine(check.node));
    }
    std::cout << "\n";
  }
  for (const NodeCheck& check : report.nodes.checks) {
    std::cout << absl::StreamFormat(
        "nodes %5d tokens: %5d compared in %d steps, worst %.0f%% of what "
        "its kernel may differ: %s, %s\n",
        check.bucket, check.nodes, check.steps, 100 * check.worst,
        PrintableLine(check.worst_node), check.worst_kernel);
    if (!check.nan_node.empty()) {
      std::cout << absl::StreamFormat(
          "nodes %5d tokens: %s gives NaN, as its reference does: the model's "
          "weights are broken, or what they make overflows\n",
          check.bucket, PrintableLine(check.nan_node));
    }
  }
  for (const NodeFault& fault : report.nodes.faults) {
    const std::string name = PrintableLine(fault.node),
                      what = PrintableLine(fault.fault);
    if (fault.kernel.empty()) {
      std::cout << absl::StreamFormat("weight %s: %s\n", name, what);
    } else {
      std::cout << absl::StreamFormat("node  %s (%s, %s, %d tokens): %s\n",
                                      name, fault.op, fault.kernel,
                                      fault.bucket, what);
    }
  }
}

// The first that is guilty: passes come before nodes.
absl::Status Verdict(const Report& report) {
  for (const PassCheck& check : report.passes) {
    if (check.fault.empty()) continue;
    return absl::DataLossError(absl::StrCat(
        "verify found a wrong pass: ", check.pass, ": node ", check.node, ": ",
        check.fault, ": look at it with weft dump --diff ", check.pass));
  }
  if (report.nodes.faults.empty()) return absl::OkStatus();
  const NodeFault& fault = report.nodes.faults.front();
  if (fault.kernel.empty()) {
    return absl::DataLossError(
        absl::StrCat("verify found a wrong weight: ", fault.node, ": ",
                     fault.fault, ": compile it again"));
  }
  return absl::DataLossError(absl::StrCat(
      "verify found a wrong node: ", fault.node, " (", fault.op, ", kernel ",
      fault.kernel, ", ", fault.bucket, " tokens): ", fault.fault,
      ": look at it with weft dump --bucket ", fault.bucket));
}

absl::StatusOr<int> Verify(const Flags& flags, const CommonFlags& common) {
  WEFT_RETURN_IF_ERROR(flags.compile.CheckModel(flags.model));
  WEFT_ASSIGN_OR_RETURN(EngineOptions options, flags.compile.ToOptions(common));
  const bool is_plan = IsPlanFile(flags.model);
  if (is_plan && flags.source.empty()) {
    return UsageError(absl::StrCat(
        "verify: ", flags.model,
        " is a plan: passes need the model that it was compiled from: give "
        "--source MODEL.gguf"));
  }
  if (!is_plan && !flags.source.empty()) {
    return UsageError("--source: only a plan has one: leave it out");
  }
  const Progress progress = MakeProgress(common, "verifying");
  Report report;
  ReferenceEvaluator evaluator;
  std::optional<Plan> plan;
  ModelOptions model_options = options.model;
  if (is_plan) {
    WEFT_ASSIGN_OR_RETURN(Plan loaded, LoadPlan(flags.model, options.model));
    plan = std::move(loaded);
    model_options = OptionsOf(*plan);
  }
  WEFT_ASSIGN_OR_RETURN(GgufFile file,
                        OpenModel(is_plan ? flags.source : flags.model));
  if (plan) {
    WEFT_RETURN_IF_ERROR(CheckSource(file, *plan, flags.model));
  }
  WEFT_ASSIGN_OR_RETURN(
      Plan compiled,
      CheckPasses(file, model_options, flags, &evaluator, progress, &report));
  if (plan) {
    WEFT_RETURN_IF_ERROR(CheckGraphs(*plan, compiled, flags.model));
    WEFT_ASSIGN_OR_RETURN(std::vector<NodeFault> faults,
                          CheckWeights(*plan, compiled));
    report.nodes.faults = std::move(faults);
  } else {
    plan = std::move(compiled);
  }
  const int threads = options.threads > 0 ? options.threads : DefaultThreads();
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> pool,
                        ThreadPool::Create(threads, options.affinity));
  WEFT_RETURN_IF_ERROR(MakeWeights(*plan, *pool));
  const int64_t tokens = std::min(flags.tokens, plan->context());
  WEFT_ASSIGN_OR_RETURN(
      NodeReport nodes,
      CheckNodes(*plan, RandomTokens(tokens, plan->model.vocabulary_size),
                 *pool, &evaluator));
  report.nodes.checks = std::move(nodes.checks);
  for (NodeFault& fault : nodes.faults) {
    report.nodes.faults.push_back(std::move(fault));
  }
  if (progress) progress(1.0);

  const absl::Status verdict = Verdict(report);
  if (flags.json) {
    Json json = ToJson(report, tokens);
    json["ok"] = verdict.ok();
    PrintJson(json);
  } else {
    Print(report);
  }
  if (!verdict.ok()) return verdict;
  return kExitOk;
}

}  // namespace

void AddVerify(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "verify", "Checks every pass and every node against reference functions");
  command
      ->add_option("MODEL", flags->model,
                   absl::StrCat("a .gguf or .weft file ", kEmbeddedByName))
      ->required();
  command->add_option("--source", flags->source,
                      "of a .weft file: the model it was compiled from");
  command
      ->add_option("--tokens", flags->tokens,
                   "random tokens to run (at most the context)")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object");
  flags->compile.AddTo(*command);
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return Verify(*flags, common); };
  });
}

}  // namespace weft
