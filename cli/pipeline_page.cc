#include "cli/pipeline_page.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/html/page.h"
#include "cli/html/program_data.h"

namespace weft {
namespace {

std::string Title(const std::string& source) {
  if (source.empty()) return "embedded model";
  if (source == "-") return "standard input";
  return source.substr(source.rfind('/') + 1);
}

std::string PageOf(const ProgramData& data, const PageOptions& page) {
  nlohmann::json program = data.ToJson();
  if (!page.times.is_null()) program["times"] = page.times;
  return HtmlPage(program);
}

}  // namespace

KernelOptions KernelOptionsOf(const CompileOptions& options) {
  return {options.isa, options.f16_compute};
}

std::string GraphPage(const Graph& graph,
                      const std::optional<KernelOptions>& kernels,
                      const PageOptions& page) {
  ProgramData data(Title(page.source), kernels, page.show);
  data.Add("the graph", graph);
  return PageOf(data, page);
}

absl::StatusOr<std::string> PipelinePage(const GgufFile& file,
                                         const ModelOptions& options,
                                         const PageOptions& page) {
  ProgramData data(Title(page.source), KernelOptionsOf(options.compile),
                   page.show);
  bool done = false;
  const auto observe = [&](const std::string& pass, int64_t bucket,
                           const Graph& graph) {
    done = done || (!pass.empty() && pass == page.stop_before);
    if (done || (bucket != 0 && bucket != page.bucket)) return;
    std::string label =
        pass.empty() ? "as loaded" : absl::StrCat("after ", pass);
    if (options.compile.disabled_passes.count(pass) > 0) {
      absl::StrAppend(&label, " (switched off)");
    }
    // What the bucket's graph comes from is told in its numbers.
    Graph shown = graph;
    shown.bounds.tokens = shown.bounds.rows = page.bucket;
    data.Add(label, shown);
  };
  WEFT_ASSIGN_OR_RETURN(
      Plan plan, CompileModel(file, options, observe,
                              page.stop_before.empty() ? page.stop_after
                                                       : page.stop_before));
  return PageOf(data, page);
}

absl::Status AddTimes(const nlohmann::json& profile, const std::string& name,
                      nlohmann::json* times) {
  using Json = nlohmann::json;
  const absl::Status wrong = absl::InvalidArgumentError(
      "no profile: want what weft profile --json prints");
  if (!profile.is_object() || !profile.contains("phases") ||
      !profile["phases"].is_array()) {
    return wrong;
  }
  for (const Json& phase : profile["phases"]) {
    const auto is = [&](const char* key, auto type) {
      return phase.is_object() && phase.contains(key) && (phase[key].*type)();
    };
    if (!is("name", &Json::is_string) || !is("steps", &Json::is_number) ||
        !is("nodes", &Json::is_array)) {
      return wrong;
    }
    Json nodes = Json::object();
    for (const Json& node : phase["nodes"]) {
      if (!node.is_object() || !node.contains("name") ||
          !node["name"].is_string() || !node.contains("seconds") ||
          !node["seconds"].is_number()) {
        return wrong;
      }
      const auto share = [&](const char* key) {
        const auto found = node.find(key);
        return found != node.end() && found->is_number() ? *found : Json();
      };
      nodes[node["name"].get<std::string>()] = {node["seconds"],
                                                share("share_of_bandwidth"),
                                                share("share_of_arithmetic")};
    }
    const std::string label = phase["name"].get<std::string>();
    times->push_back(
        {{"label", name.empty() ? label : absl::StrCat(label, ", ", name)},
         {"phase", label},
         {"steps", phase["steps"]},
         {"nodes", std::move(nodes)}});
  }
  return absl::OkStatus();
}

absl::StatusOr<nlohmann::json> ReadTimes(
    const std::vector<std::string>& files) {
  nlohmann::json times = nlohmann::json::array();
  for (const std::string& file : files) {
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
    const absl::Status added =
        AddTimes(nlohmann::json::parse(text, nullptr, false),
                 files.size() > 1 ? Title(file) : "", &times);
    if (!added.ok()) {
      return absl::Status(added.code(),
                          absl::StrCat(file, ": ", added.message()));
    }
  }
  return times;
}

}  // namespace weft
