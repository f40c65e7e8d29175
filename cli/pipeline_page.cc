#include "cli/pipeline_page.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
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

absl::StatusOr<nlohmann::json> TimesOf(const std::string& profile) {
  using Json = nlohmann::json;
  const absl::Status wrong = absl::InvalidArgumentError(
      "no profile: want what weft profile --json prints");
  const Json read = Json::parse(profile, nullptr, false);
  if (!read.is_object() || !read.contains("phases") ||
      !read["phases"].is_array()) {
    return wrong;
  }
  Json times = Json::array();
  for (const Json& phase : read["phases"]) {
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
      nodes[node["name"].get<std::string>()] = node["seconds"];
    }
    times.push_back({{"label", phase["name"]},
                     {"steps", phase["steps"]},
                     {"nodes", std::move(nodes)}});
  }
  return times;
}

}  // namespace weft
