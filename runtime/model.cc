#include "runtime/model.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "loaders/vocabulary.h"
#include "models/default_model.h"

namespace weft {

absl::StatusOr<GgufFile> OpenModel(const std::string& path) {
  if (!path.empty()) return GgufFile::Open(path);
  return GgufFile::FromFile(
      MappedFile::FromStatic(DefaultModel(), kDefaultModelName));
}

absl::StatusOr<Plan> CompileModel(const GgufFile& file,
                                  const ModelOptions& options,
                                  const PassObserver& observer,
                                  const std::string& stop_after) {
  if (options.compile.buckets.empty()) {
    return absl::InvalidArgumentError(
        "no token-count buckets: give at least one");
  }
  GraphOptions graph_options = options.graph;
  graph_options.tokens = options.compile.buckets.back();
  absl::StatusOr<LoadedGraph> loaded = BuildGraph(file, graph_options);
  if (!loaded.ok()) return loaded.status();
  absl::StatusOr<Vocabulary> vocabulary = ReadVocabulary(file);
  if (!vocabulary.ok()) return vocabulary.status();
  absl::StatusOr<Plan> plan =
      Compile(std::move(loaded->graph), options.compile, observer, stop_after);
  if (!plan.ok()) return plan.status();

  const ModelConfig& config = loaded->config;
  ModelInfo& model = plan->model;
  model.architecture = config.architecture;
  model.name = config.name;
  model.context_length = config.context_length;
  model.embedding_length = config.embedding_length;
  model.block_count = config.block_count;
  model.feed_forward_length = config.feed_forward_length;
  model.head_count = config.head_count;
  model.head_count_kv = config.head_count_kv;
  model.vocabulary_size = config.vocabulary_size;
  model.file_bytes = file.file_bytes();
  for (const GgufTensor& tensor : file.tensors()) {
    TensorInfo info;
    info.name = tensor.name;
    info.type = tensor.type;
    info.shape.assign(tensor.dims.begin(), tensor.dims.end());
    info.bytes = static_cast<int64_t>(tensor.data.size());
    info.offset = static_cast<int64_t>(tensor.offset);
    int64_t elements = 1;
    for (int64_t dim : info.shape) elements *= dim;
    model.parameters += elements;
    model.tensors.push_back(std::move(info));
  }
  plan->vocabulary = *std::move(vocabulary);
  return plan;
}

bool IsPlanFile(const std::string& path) {
  // Not through a mapping: the path may be of a pipe or a directory.
  std::ifstream stream(path, std::ios::binary);
  char start[8] = {};
  return stream.read(start, sizeof(start)) &&
         absl::string_view(start, sizeof(start)) == "weftplan";
}

absl::StatusOr<Plan> LoadPlan(const std::string& path,
                              const ModelOptions& options) {
  absl::StatusOr<GgufFile> file = OpenModel(path);
  if (!file.ok()) return file.status();
  return CompileModel(*file, options);
}

}  // namespace weft
