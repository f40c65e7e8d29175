#include "passes/pipeline.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "ops/op_table.h"
#include "passes/passes.h"

namespace weft {
namespace {

constexpr bool kOnce = false;
constexpr bool kPerBucket = true;

constexpr PassEntry kPipeline[] = {
#define WEFT_PASS(name, function, ...) {name, function, __VA_ARGS__},
#include "passes/pass_list.h"
#undef WEFT_PASS
};

std::vector<PassEntry>& Table() {
  static auto* passes =
      new std::vector<PassEntry>(std::begin(kPipeline), std::end(kPipeline));
  return *passes;
}

bool IsPassName(absl::string_view name) {
  return !name.empty() && absl::ascii_islower(name[0]) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
         });
}

std::vector<PassEntry>::iterator FindPass(absl::string_view name) {
  return std::find_if(Table().begin(), Table().end(),
                      [&](const PassEntry& pass) { return name == pass.name; });
}

}  // namespace

absl::Span<const PassEntry> Pipeline() { return Table(); }

absl::StatusOr<Registration> RegisterPass(const PassEntry& pass,
                                          const std::string& after) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot register pass: ", pass.name != nullptr ? pass.name : "?", ": ",
        what));
  };
  if (pass.name == nullptr || !IsPassName(pass.name)) {
    return error("give it a name of lower-case letters, digits and -");
  }
  if (FindPass(pass.name) != Table().end()) {
    return error("there is one of this name: choose another");
  }
  if (pass.run == nullptr) return error("give it a function");
  auto place = Table().begin();
  if (!after.empty()) {
    if (absl::Status s = CheckPassName(after); !s.ok()) {
      return error(s.message());
    }
    place = FindPass(after) + 1;
  }
  if (!pass.per_bucket && place != Table().begin() &&
      std::prev(place)->per_bucket) {
    return error(absl::StrCat("it runs once, but ", after,
                              " for each bucket: choose a place before"));
  }
  if (pass.per_bucket && place != Table().end() && !place->per_bucket) {
    return error(absl::StrCat("it runs for each bucket, but ", place->name,
                              ", the next, once: choose a place behind"));
  }
  Table().insert(place, pass);
  return Registration([name = pass.name] { Table().erase(FindPass(name)); });
}

absl::Status CheckPassName(const std::string& name) {
  std::vector<std::string> names;
  for (const PassEntry& pass : Table()) {
    if (name == pass.name) return absl::OkStatus();
    names.push_back(pass.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no such pass: ", name, ": the passes are ", absl::StrJoin(names, ", ")));
}

absl::Status RunPasses(Graph& graph, bool per_bucket,
                       const PipelineOptions& options,
                       std::vector<PassRecord>* records, bool* stopped) {
  WEFT_RETURN_IF_ERROR(VerifyGraph(graph));
  if (!per_bucket && options.observe) options.observe("", graph);
  for (const PassEntry& pass : Table()) {
    if (pass.per_bucket != per_bucket) continue;
    if (options.disabled.count(pass.name) == 0) {
      PassRecord record;
      record.name = pass.name;
      record.nodes_before = static_cast<int>(graph.order().size());
      const auto start = std::chrono::steady_clock::now();
      absl::Status status = pass.run(graph, options.passes);
      if (status.ok()) status = VerifyGraph(graph);
      if (!status.ok()) {
        return absl::Status(
            status.code(),
            absl::StrCat("pass ", pass.name, ": ", status.message()));
      }
      record.nodes_after = static_cast<int>(graph.order().size());
      record.seconds = std::chrono::duration<double>(
                           std::chrono::steady_clock::now() - start)
                           .count();
      if (records != nullptr) records->push_back(record);
    }
    if (options.observe) options.observe(pass.name, graph);
    if (options.stop_after == pass.name) {
      *stopped = true;
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
