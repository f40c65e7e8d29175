// weft profile: time, bytes and operations of every node, against what the
// machine can do.
//
// A prompt of random tokens, then tokens one by one (the most likely). Both are
// run once before they count.
#include "runtime/execution/profile.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/first_largest.h"
#include "base/output_file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/pipeline_page.h"
#include "graph/listing.h"
#include "text/printable.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Rows of a table for people.
constexpr size_t kTopNodes = 12;

struct Flags {
  std::string model, trace, html;
  int64_t prompt = 256, generate = 32;
  bool json = false;
  CompileFlags compile;
  const CLI::Option* names_prompt = nullptr;
  const CLI::Option* names_generate = nullptr;
};

// Prompt and generation, told to the profiler.
absl::Status RunSteps(Engine& engine, const Flags& flags, Profiler* profiler) {
  const Plan& plan = engine.plan();
  const std::vector<int32_t> prompt =
      RandomTokens(flags.prompt, plan.model.vocabulary_size);
  Session session(plan, &engine.executor(), &engine.cache(), 0);
  const auto step = [&](const char* phase, absl::Span<const int32_t> tokens) {
    const int64_t count = static_cast<int64_t>(tokens.size());
    const int64_t before = static_cast<int64_t>(session.tokens().size());
    // Each token looks back on itself and all before it.
    profiler->BeginStep(phase, plan.BucketFor(count),
                        {count, 1, before + (count + 1) / 2});
    const absl::Status status = session.Append(tokens);
    profiler->EndStep();
    return status;
  };
  absl::Span<const int32_t> left = prompt;
  while (!left.empty()) {
    const absl::Span<const int32_t> part = left.subspan(0, plan.max_tokens());
    WEFT_RETURN_IF_ERROR(step("prefill", part));
    left.remove_prefix(part.size());
  }
  const int64_t generate = plan.model.generates() ? flags.generate : 0;
  for (int64_t i = 0; i < generate; ++i) {
    const absl::Span<const float> logits = session.logits();
    const int32_t next = static_cast<int32_t>(FirstLargest(logits));
    WEFT_RETURN_IF_ERROR(step("decode", absl::MakeConstSpan(&next, 1)));
  }
  return absl::OkStatus();
}

struct Phase {
  std::string name;
  int64_t tokens = 0, steps = 0;
  double seconds = 0, node_seconds = 0;
};

std::vector<Phase> PhasesOf(const std::vector<StepTime>& steps) {
  std::vector<Phase> phases;
  for (const StepTime& step : steps) {
    if (phases.empty() || phases.back().name != step.phase) {
      phases.push_back({step.phase});
    }
    Phase& phase = phases.back();
    phase.tokens += step.bounds.tokens;
    ++phase.steps;
    phase.seconds += step.seconds;
    for (const NodeTime& node : step.nodes) phase.node_seconds += node.seconds;
  }
  return phases;
}

Json Share(double part, double whole) {
  return whole > 0 && part > 0 ? Json(part / whole) : Json(nullptr);
}

Json RowsJson(const std::vector<ProfileRow>& rows, const Phase& phase) {
  Json list = Json::array();
  for (const ProfileRow& row : rows) {
    Json json = {{"name", row.name}};
    if (!row.kernel.empty()) json["kernel"] = row.kernel;
    json["count"] = row.count;
    json["seconds"] = row.seconds;
    json["share_of_time"] = Share(row.seconds, phase.seconds);
    json["bytes"] = row.bytes;
    json["operations"] = row.operations;
    json["share_of_bandwidth"] = Share(row.memory_seconds, row.seconds);
    json["share_of_arithmetic"] = Share(row.arithmetic_seconds, row.seconds);
    list.push_back(std::move(json));
  }
  return list;
}

void PrintRows(const char* title, const std::vector<ProfileRow>& rows,
               const Phase& phase, size_t most) {
  std::cout << absl::StreamFormat("  %-30s %6s %10s %6s %8s %6s %9s %6s  %s\n",
                                  title, "count", "ms", "time", "GB/s",
                                  "of max", "Gop/s", "of max", "kernel");
  const auto percent = [](double part, double whole) {
    return part > 0 && whole > 0 ? absl::StrFormat("%.0f%%", 100 * part / whole)
                                 : std::string("-");
  };
  for (size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const ProfileRow& row = rows[i];
    const double seconds = std::max(row.seconds, 1e-12);
    std::cout << absl::StreamFormat(
        "  %-30s %6d %10.3f %6s %8.1f %6s %9.1f %6s  %s\n",
        PrintableLine(row.name), row.count, row.seconds * 1e3,
        percent(row.seconds, phase.seconds), row.bytes / seconds / 1e9,
        percent(row.memory_seconds, row.seconds),
        row.operations / seconds / 1e9,
        percent(row.arithmetic_seconds, row.seconds), row.kernel);
  }
  if (rows.size() > most) {
    std::cout << absl::StreamFormat("  and %d more (--json has them all)\n",
                                    rows.size() - most);
  }
}

// Chrome's trace-event format ("Trace Event Format", Google, 2016): complete
// events in microseconds. The first lane has steps, which enclose their nodes;
// below it is one for each thread, with the ranges of nodes that it did.
Json TraceOf(const Profiler& profiler, const Limits& limits) {
  constexpr int kStepsLane = 1;
  Json events = Json::array();
  const auto meta = [&](const char* what, int lane, const std::string& name) {
    events.push_back({{"name", what},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", lane},
                      {"args", {{"name", name}}}});
  };
  meta("process_name", kStepsLane, "weft");
  meta("thread_name", kStepsLane, "steps and nodes");
  for (int thread = 0; thread < profiler.threads(); ++thread) {
    const int lane = kStepsLane + 1 + thread;
    meta("thread_name", lane, absl::StrCat("thread ", thread));
    for (const RangeTime& range : profiler.ranges(thread)) {
      const Node& node = range.graph->node(range.node);
      events.push_back({{"name", LabelOf(node)},
                        {"cat", "range"},
                        {"ph", "X"},
                        {"ts", range.start * 1e6},
                        {"dur", range.seconds * 1e6},
                        {"pid", 1},
                        {"tid", lane},
                        {"args", {{"op", node.op->name}}}});
    }
  }
  for (const StepTime& step : profiler.steps()) {
    events.push_back({{"name", absl::StrCat(step.phase, ", ",
                                            step.bounds.tokens, " tokens")},
                      {"cat", "step"},
                      {"ph", "X"},
                      {"ts", step.start * 1e6},
                      {"dur", step.seconds * 1e6},
                      {"pid", 1},
                      {"tid", kStepsLane},
                      {"args",
                       {{"tokens", step.bounds.tokens},
                        {"bucket", step.graph->bounds.tokens},
                        {"positions", step.bounds.context}}}});
    for (const NodeTime& time : step.nodes) {
      const Node& node = step.graph->node(time.node);
      const Cost cost = NodeCost(*step.graph, node, step.bounds);
      const double peak =
          PeakOf(ArithmeticOf(*step.graph, node), limits) * time.seconds;
      events.push_back(
          {{"name", LabelOf(node)},
           {"cat", node.op->name},
           {"ph", "X"},
           {"ts", time.start * 1e6},
           {"dur", time.seconds * 1e6},
           {"pid", 1},
           {"tid", kStepsLane},
           {"args",
            {{"op", node.op->name},
             {"kernel", node.kernel},
             {"bytes", cost.bytes},
             {"operations", cost.operations},
             {"share_of_bandwidth",
              Share(cost.bytes, limits.read_bytes_per_second * time.seconds)},
             {"share_of_arithmetic", Share(cost.operations, peak)}}}});
    }
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

struct Profile {
  std::vector<Phase> phases;
  const std::vector<StepTime>& steps;
  Limits limits;
  int threads;
  Isa isa;

  std::vector<ProfileRow> Rows(const Phase& phase, ProfileBy by) const {
    return Summarize(steps, phase.name, by, limits);
  }

  ProfileRow Total(const Phase& phase) const {
    ProfileRow total;
    for (const ProfileRow& row : Rows(phase, ProfileBy::kOp)) {
      total.bytes += row.bytes;
      total.operations += row.operations;
      total.memory_seconds += row.memory_seconds;
      total.arithmetic_seconds += row.arithmetic_seconds;
    }
    return total;
  }
};

Json ToJson(const Profile& profile) {
  const Limits& limits = profile.limits;
  Json json = {{"threads", profile.threads},
               {"isa", Name(profile.isa)},
               {"limits",
                {{"int8_ops", Share(limits.int8_ops, 1)},
                 {"tile_int8_ops", Share(limits.tile_int8_ops, 1)},
                 {"bf16_flops", Share(limits.bf16_flops, 1)},
                 {"f32_flops", Share(limits.f32_flops, 1)},
                 {"read_bytes_per_second", limits.read_bytes_per_second}}}};
  json["phases"] = Json::array();
  for (const Phase& phase : profile.phases) {
    const ProfileRow total = profile.Total(phase);
    json["phases"].push_back(
        {{"name", phase.name},
         {"tokens", phase.tokens},
         {"steps", phase.steps},
         {"seconds", phase.seconds},
         {"tokens_per_second", phase.tokens / phase.seconds},
         {"seconds_outside_nodes", phase.seconds - phase.node_seconds},
         {"bytes", total.bytes},
         {"bytes_per_token", static_cast<double>(total.bytes) / phase.tokens},
         {"operations", total.operations},
         {"share_of_bandwidth", Share(total.memory_seconds, phase.seconds)},
         {"share_of_arithmetic",
          Share(total.arithmetic_seconds, phase.seconds)},
         {"ops", RowsJson(profile.Rows(phase, ProfileBy::kOp), phase)},
         {"blocks", RowsJson(profile.Rows(phase, ProfileBy::kBlock), phase)},
         {"nodes", RowsJson(profile.Rows(phase, ProfileBy::kNode), phase)}});
  }
  return json;
}

void Print(const Profile& profile) {
  const Limits& limits = profile.limits;
  std::cout << absl::StreamFormat(
      "limits of %d threads: int8 %.0f Gop/s%s, bf16 %.0f Gop/s, f32 %.0f "
      "Gop/s, reading %.1f GB/s\n",
      profile.threads, limits.int8_ops / 1e9,
      limits.tile_int8_ops > 0
          ? absl::StrFormat(" (%.0f in tiles)", limits.tile_int8_ops / 1e9)
          : "",
      limits.bf16_flops / 1e9, limits.f32_flops / 1e9,
      limits.read_bytes_per_second / 1e9);
  for (const Phase& phase : profile.phases) {
    const ProfileRow total = profile.Total(phase);
    std::cout << absl::StreamFormat(
        "\n%s: %d tokens in %d steps, %.1f ms, %.1f tokens/s; %.0f%% of "
        "reading memory, %.0f%% of arithmetic; %.1f%% outside nodes\n",
        phase.name, phase.tokens, phase.steps, phase.seconds * 1e3,
        phase.tokens / phase.seconds,
        100 * total.memory_seconds / phase.seconds,
        100 * total.arithmetic_seconds / phase.seconds,
        100 * (1 - phase.node_seconds / phase.seconds));
    PrintRows("op", profile.Rows(phase, ProfileBy::kOp), phase, 100);
    PrintRows("block", profile.Rows(phase, ProfileBy::kBlock), phase, 100);
    PrintRows("longest nodes", profile.Rows(phase, ProfileBy::kNode), phase,
              kTopNodes);
  }
}

// The page of dump with the graph that ran and these times.
absl::Status WritePage(const Plan& plan, const Json& profile,
                       const Flags& flags) {
  PageOptions page;
  page.source = flags.model;
  page.times = nlohmann::json::array();
  WEFT_RETURN_IF_ERROR(AddTimes(nlohmann::json(profile), "", &page.times));
  return WriteFile(flags.html, GraphPage(plan.buckets.back(),
                                         KernelOptionsOf(plan.options), page));
}

absl::Status Check(const Flags& flags) {
  const std::pair<const char*, int64_t> numbers[] = {
      {"--prompt", flags.prompt}, {"--generate", flags.generate}};
  for (const auto& [name, value] : numbers) {
    if (value < 1 || value > (1 << 20)) {
      return UsageError(absl::StrCat(name, ": want a number from 1"));
    }
  }
  return absl::OkStatus();
}

// Numbers that nobody gave become smaller where the context is.
absl::Status FitContext(const Plan& plan, Flags* flags) {
  const int64_t most = plan.context();
  if (flags->names_prompt->count() == 0) {
    flags->prompt =
        std::max<int64_t>(1, std::min(flags->prompt, most - flags->generate));
  } else if (flags->names_generate->count() == 0) {
    flags->generate =
        std::max<int64_t>(1, std::min(flags->generate, most - flags->prompt));
  }
  if (flags->prompt + flags->generate <= most) return absl::OkStatus();
  return UsageError(absl::StrCat(
      "profile: --prompt and --generate together must fit the context of ",
      most, " positions: choose less",
      most < plan.model.context_length ? ", or a larger --context" : ""));
}

absl::StatusOr<int> ProfileCommand(const Flags& given,
                                   const CommonFlags& common) {
  Flags flags = given;
  WEFT_RETURN_IF_ERROR(Check(flags));
  for (const std::string& file : {flags.trace, flags.html}) {
    if (file.empty()) continue;
    WEFT_RETURN_IF_ERROR(CheckOverwritesNoInput(
        "profile", file, FilesOfModel(flags.model, flags.compile)));
    WEFT_RETURN_IF_ERROR(CheckCanWrite(file));
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                        LoadEngine(flags.model, flags.compile, common));
  const Plan& plan = engine->plan();
  WEFT_RETURN_IF_ERROR(FitContext(plan, &flags));
  WEFT_ASSIGN_OR_RETURN(EngineOptions options, flags.compile.ToOptions(common));
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<ThreadPool> threads,
      ThreadPool::Create(engine->threads(), options.affinity));
  WEFT_ASSIGN_OR_RETURN(Limits limits,
                        MeasureLimits(*threads, plan.options.isa));

  // First what is not counted: it pays for the first touch of memory.
  // Threads are watched for the trace alone: it costs a little.
  Profiler warm_up, profiler(flags.trace.empty() ? 0 : engine->threads());
  engine->executor().Observe(&warm_up);
  absl::Status ran = RunSteps(*engine, flags, &warm_up);
  engine->executor().Observe(&profiler);
  if (ran.ok()) ran = RunSteps(*engine, flags, &profiler);
  engine->executor().Observe(nullptr);
  if (!ran.ok()) return ran;

  if (!flags.trace.empty()) {
    const std::string text =
        TraceOf(profiler, limits)
            .dump(-1, ' ', false, Json::error_handler_t::replace);
    WEFT_RETURN_IF_ERROR(WriteFile(flags.trace, text));
  }
  const Profile profile = {PhasesOf(profiler.steps()), profiler.steps(), limits,
                           engine->threads(), plan.options.isa};
  if (!flags.html.empty()) {
    WEFT_RETURN_IF_ERROR(WritePage(plan, ToJson(profile), flags));
  }
  if (flags.json) {
    PrintJson(ToJson(profile));
  } else {
    Print(profile);
  }
  return kExitOk;
}

}  // namespace

void AddProfile(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "profile", "Time, bytes and operations of every node and kind of op");
  command->add_option("MODEL", flags->model,
                      absl::StrCat("a .gguf or .weft file ", kEmbeddedUsually));
  flags->names_prompt =
      command->add_option("--prompt", flags->prompt, "tokens of the prompt")
          ->capture_default_str();
  flags->names_generate =
      command->add_option("--generate", flags->generate, "tokens generated")
          ->capture_default_str();
  command->add_option("--trace", flags->trace,
                      "write Chrome trace events to this file, for Perfetto");
  command->add_option("--html", flags->html,
                      "write the page of dump with these times to this file; "
                      "dump --profile sets profiles side by side");
  command->add_flag("--json", flags->json, "print one JSON object");
  flags->compile.AddTo(*command);
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return ProfileCommand(*flags, common); };
  });
}

}  // namespace weft
