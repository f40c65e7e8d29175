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

}  // namespace

KernelOptions KernelOptionsOf(const CompileOptions& options) {
  return {options.isa, options.f16_compute};
}

std::string GraphPage(const Graph& graph,
                      const std::optional<KernelOptions>& kernels,
                      const PageOptions& page) {
  ProgramData data(Title(page.source), kernels, page.show);
  data.Add("the graph", graph);
  return HtmlPage(data.ToJson());
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
  return HtmlPage(data.ToJson());
}

}  // namespace weft
