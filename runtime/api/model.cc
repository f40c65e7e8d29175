#include "runtime/api/model.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "loaders/vocabulary.h"
#include "models/default_model.h"
#include "runtime/generation/sampler.h"
#include "runtime/plan/plan_needs.h"
#include "xxhash.h"

namespace weft {
namespace {

// Of what stands before the tensor data in the file that holds the first
// tensor: all metadata, and names, types and places of tensors.
uint64_t HeaderChecksum(const GgufFile& model) {
  const absl::Span<const GgufTensor> tensors = model.tensors();
  if (tensors.empty()) return 0;
  const MappedFile* file = tensors.front().file.get();
  uint64_t start = tensors.front().offset;
  for (const GgufTensor& tensor : tensors) {
    if (tensor.file.get() == file) start = std::min(start, tensor.offset);
  }
  return XXH3_64bits(file->bytes().data(), start);
}

// Reads every tensor.
uint64_t TensorsChecksum(const GgufFile& model) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  for (const GgufTensor& tensor : model.tensors()) {
    XXH3_64bits_update(state, tensor.data.data(), tensor.data.size());
  }
  const uint64_t checksum = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return checksum;
}

// Of what the parts of a plan are made from (Plan::parts_xxh3). Each rank makes
// it of its own file when it starts, so not all is read, as TensorsChecksum
// does: of a tensor up to 16 pieces of 4 KiB, evenly spread, or all of a small
// one; models that were trained apart differ in each of them.
uint64_t PartsChecksum(const GgufFile& model,
                       const std::vector<AdapterChoice>& adapters) {
  constexpr size_t kPieces = 16, kPiece = 4096;
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  const auto add = [&](const void* data, size_t bytes) {
    XXH3_64bits_update(state, data, bytes);
  };
  const uint64_t header = HeaderChecksum(model);
  add(&header, sizeof(header));
  for (const GgufTensor& tensor : model.tensors()) {
    const absl::Span<const uint8_t> data = tensor.data;
    if (data.size() <= kPieces * kPiece) {
      add(data.data(), data.size());
      continue;
    }
    for (size_t i = 0; i < kPieces; ++i) {
      add(data.data() + (data.size() - kPiece) / (kPieces - 1) * i, kPiece);
    }
  }
  for (const AdapterChoice& choice : adapters) {
    for (const LoraAdapter::Pair& pair : choice.adapter->pairs()) {
      add(pair.tensor.data(), pair.tensor.size() + 1);
      add(pair.a.data(), pair.a.size() * sizeof(float));
      add(pair.b.data(), pair.b.size() * sizeof(float));
    }
  }
  const uint64_t checksum = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return checksum;
}

// The same metadata and, where the plan knows of them, the same weights, if
// they are about to be read and laid out, which takes ten times as long.
bool IsSame(const GgufFile& model, const ModelReference& reference,
            bool reads_weights) {
  return model.file_bytes() == reference.bytes &&
         HeaderChecksum(model) == reference.header_xxh3 &&
         (!reads_weights || reference.tensors_xxh3 == 0 ||
          TensorsChecksum(model) == reference.tensors_xxh3);
}

// The model file that a plan refers to, if it is still the same.
absl::StatusOr<GgufFile> OpenReference(const ModelReference& reference,
                                       const std::string& path,
                                       bool reads_weights) {
  const std::string model_path =
      (std::filesystem::path(path).parent_path() / reference.path).string();
  absl::StatusOr<GgufFile> model = OpenModel(model_path);
  if (!model.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "plan needs its model file: ", path, ": ", model.status().message(),
        ": put it there, or compile it again"));
  }
  if (!IsSame(*model, reference, reads_weights)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "model file is not the one that the plan was compiled from: ",
        model_path, ": compile it again"));
  }
  return model;
}

// With the options that the plan was compiled with, as far as this machine has
// the instructions, and cutting text as it did.
absl::StatusOr<Plan> CompileAgain(const GgufFile& model,
                                  const ModelReference& reference,
                                  const Plan& plan) {
  ModelOptions options;
  options.compile = plan.options;
  if (!RunsHere(options.compile.isa)) {
    options.compile.isa = DetectIsa();
  }
  options.graph.kv_type = reference.kv_type;
  options.graph.context = reference.context;
  options.graph.output = plan.model.gives;
  options.graph.next_token_block = reference.next_token_block;
  if (plan.vocabulary.model() == "gpt2") options.pre = plan.vocabulary.pre();
  return CompileModel(model, options);
}

absl::StatusOr<Plan> CompileReference(const PlanFile& file,
                                      const std::string& path,
                                      bool reads_weights) {
  WEFT_RETURN_IF_ERROR(CheckSamePasses(file.plan, path));
  WEFT_ASSIGN_OR_RETURN(GgufFile model,
                        OpenReference(*file.reference, path, reads_weights));
  return CompileAgain(model, *file.reference, file.plan);
}

// The model file that a plan with weights was made of, if it is beside the plan
// or in the current folder, and still the same.
absl::StatusOr<GgufFile> FindSource(const ModelReference& source,
                                    const std::string& path,
                                    bool reads_weights) {
  std::vector<std::string> places = {""};  // the embedded model
  if (!source.path.empty()) {
    const auto folder = std::filesystem::path(path).parent_path();
    places = {(folder / source.path).string(), source.path};
  }
  for (const std::string& place : places) {
    absl::StatusOr<GgufFile> model = OpenModel(place);
    if (model.ok() && IsSame(*model, source, reads_weights)) return model;
  }
  return absl::NotFoundError(source.path);
}

// In place of a plan that cannot run here, as `why` tells.
absl::StatusOr<Plan> CompileSource(const std::string& path,
                                   const absl::Status& why,
                                   const ModelOptions& options) {
  const absl::StatusOr<PlanFile> file = LoadPlanOptions(path);
  if (!file.ok() || !file->plan.source ||
      !CheckSamePasses(file->plan, path).ok()) {
    return why;
  }
  const ModelReference& source = *file->plan.source;
  absl::StatusOr<GgufFile> model =
      FindSource(source, path, options.reads_weights);
  if (!model.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(why.message(), ", or put ",
                     source.path.empty() ? "a weft with the same embedded model"
                                         : source.path,
                     " beside it"));
  }
  if (options.warn) {
    options.warn(absl::StrCat(why.message(), ": compiled from ", model->path(),
                              " for now"));
  }
  return CompileAgain(*model, source, file->plan);
}

// What a model suggests of sampling beyond what there is.
void WarnOfSuggestions(const ModelConfig& config, const ModelOptions& options) {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : config.suggested_sampling) {
    if (value == 0) continue;
    const auto fields = SuggestedFields();
    if (std::none_of(fields.begin(), fields.end(),
                     [&, &key = key](const SuggestedField& field) {
                       return field.key == key;
                     })) {
      unknown.push_back(QuoteForMessage(key));
    }
  }
  if (unknown.empty()) return;
  constexpr size_t kMostNamed = 8;
  unknown.resize(std::min(unknown.size(), kMostNamed));
  options.warn(absl::StrCat("the model suggests sampling that weft does not ",
                            "have: ", absl::StrJoin(unknown, ", ")));
}

// Of what the graph gives of a whole text; 0 where it does not.
int64_t TextColumns(const LoadedGraph& loaded) {
  if (!IsOfText(loaded.gives)) return 0;
  for (const auto& [name, id] : loaded.graph.outputs()) {
    if (name == NameOf(loaded.gives)) {
      return loaded.graph.value(id).type.shape[1].value;
    }
  }
  return 0;
}

ModelReference SourceOf(const GgufFile& file, const ModelOptions& options,
                        int64_t context) {
  ModelReference source;
  if (file.path() != kDefaultModelName) {
    source.path = std::filesystem::path(file.path()).filename().string();
  }
  source.bytes = file.file_bytes();
  source.header_xxh3 = HeaderChecksum(file);
  source.kv_type = options.graph.kv_type;
  source.context = context;
  source.next_token_block = options.graph.next_token_block;
  return source;
}

}  // namespace

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
  WEFT_ASSIGN_OR_RETURN(LoadedGraph loaded, BuildGraph(file, graph_options));
  if (options.warn) {
    for (const std::string& warning : loaded.config.warnings) {
      options.warn(warning);
    }
    WarnOfSuggestions(loaded.config, options);
  }
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary,
                        ReadVocabulary(file, {options.pre, options.warn}));
  const int64_t loaded_context = loaded.graph.bounds.context;
  const int64_t text_columns = TextColumns(loaded);
  WEFT_ASSIGN_OR_RETURN(
      Plan plan,
      Compile(std::move(loaded.graph), options.compile, observer, stop_after));
  if (loaded.next_token_block.has_value() && stop_after.empty()) {
    WEFT_ASSIGN_OR_RETURN(
        Plan block,
        Compile(*std::move(loaded.next_token_block), options.compile));
    AddNextTokenBlock(std::move(block), &plan);
  }

  const ModelConfig& config = loaded.config;
  ModelInfo& model = plan.model;
  model.architecture = config.architecture;
  model.name = config.name;
  model.context_length = config.context_length;
  model.embedding_length = config.embedding_length;
  model.hyper_parameters = DescribeConfig(config);
  model.suggested_sampling = config.suggested_sampling;
  model.vocabulary_size = config.vocabulary_size;
  model.file_bytes = file.file_bytes();
  model.encoder = config.encoder;
  model.gives = loaded.gives;
  model.text_columns = text_columns;
  model.pooling = config.pooling;
  // Only the last token of a decoder has seen the whole text.
  if (!config.encoder && !model.generates() &&
      model.pooling == Pooling::kNone) {
    model.pooling = Pooling::kLast;
  }
  if (model.gives == ModelOutput::kScores) model.labels = config.labels;
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
  for (const GgufTensor& tensor : file.tensors()) {
    if (plan.files.empty() || plan.files.back() != tensor.file) {
      plan.files.push_back(tensor.file);
    }
  }
  plan.vocabulary = std::move(vocabulary);
  for (const AdapterChoice& choice : options.graph.adapters) {
    model.adapters.push_back(
        {choice.adapter->path(), choice.adapter->rank(), choice.scale});
  }
  // What the file alone makes again.
  if (!file.altered() && model.adapters.empty()) {
    plan.source = SourceOf(file, options, loaded_context);
  }
  if (!stop_after.empty()) return plan;
  if (options.compile.shard.ranks > 1) {
    plan.parts_xxh3 = PartsChecksum(file, options.graph.adapters);
  }
  WEFT_RETURN_IF_ERROR(VerifyModelPlan(plan));
  return plan;
}

absl::Status SaveModelPlan(Plan plan, const GgufFile& model,
                           const std::string& path, ThreadPool& threads,
                           const Progress& progress) {
  if (plan.source) plan.source->tensors_xxh3 = TensorsChecksum(model);
  return SavePlan(plan, path, threads, progress);
}

absl::Status SaveModelReference(const Plan& plan, const GgufFile& model,
                                const std::string& model_path,
                                const ModelOptions& options,
                                const std::string& path) {
  if (model_path.empty()) {
    return absl::InvalidArgumentError(
        "cannot write plan: the embedded model has no file to refer to: choose "
        "packed weights");
  }
  if (model.altered() || !plan.model.adapters.empty()) {
    return absl::InvalidArgumentError(
        "cannot write plan: adapters are not in the model file that it would "
        "refer to: choose packed weights");
  }
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::absolute(path, error).parent_path();
  ModelReference reference =
      plan.source.value_or(SourceOf(model, options, plan.context()));
  reference.path =
      std::filesystem::relative(model_path, folder, error).string();
  if (error || reference.path.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "cannot write plan: ", path, ": no way from there to ", model_path));
  }
  reference.tensors_xxh3 = TensorsChecksum(model);
  return SaveReference(plan, reference, path);
}

ModelOptions OptionsOf(const Plan& plan) {
  ModelOptions options;
  options.compile = plan.options;
  options.graph.context = plan.context();
  options.graph.output = plan.model.gives;
  options.graph.kv_type = KvTypes::Of(plan.buckets.back());
  options.graph.next_token_block = !plan.next_token_buckets.empty();
  if (plan.vocabulary.model() == "gpt2") options.pre = plan.vocabulary.pre();
  return options;
}

absl::Status CheckSource(const GgufFile& model, const Plan& plan,
                         const std::string& plan_path) {
  if (!plan.model.adapters.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "source is not all that the plan was compiled from: ", plan_path,
        ": it has adapters: give the model with --lora in place of the plan"));
  }
  const std::vector<TensorInfo>& tensors = plan.model.tensors;
  bool same = model.tensors().size() == tensors.size();
  for (size_t i = 0; same && i < tensors.size(); ++i) {
    const GgufTensor& tensor = model.tensors()[i];
    same = tensor.name == tensors[i].name && tensor.type == tensors[i].type &&
           tensor.data.size() == static_cast<size_t>(tensors[i].bytes);
  }
  if (same) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "source is not the model that the plan was compiled from: ", model.path(),
      ": it has other tensors than ", plan_path));
}

absl::Status CheckPlanAndModel(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(PlanFile plan, LoadPlanFile(path));
  if (!plan.reference) return CheckPlanFile(path);
  return OpenReference(*plan.reference, path, /*reads_weights=*/true).status();
}

std::string PathOfRank(const std::string& path, int64_t rank) {
  const std::filesystem::path whole(path);
  return (whole.parent_path() / absl::StrCat(whole.stem().string(), ".", rank,
                                             whole.extension().string()))
      .string();
}

absl::StatusOr<Plan> LoadPlan(const std::string& path,
                              const ModelOptions& options) {
  if (IsPlanFile(path)) {
    absl::StatusOr<PlanFile> plan = LoadPlanFile(path);
    if (absl::IsFailedPrecondition(plan.status())) {
      return CompileSource(path, plan.status(), options);
    }
    if (!plan.ok()) return plan.status();
    if (plan->reference) {
      return CompileReference(*plan, path, options.reads_weights);
    }
    return std::move(plan->plan);
  }
  WEFT_ASSIGN_OR_RETURN(GgufFile file, OpenModel(path));
  return CompileModel(file, options);
}

}  // namespace weft
