#include "runtime/plan/plan_header.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/serialize.h"
#include "ops/attributes.h"
#include "ops/lora.h"
#include "ops/op_table.h"
#include "passes/pipeline.h"

namespace weft {
namespace {

constexpr int kMaxBuckets = 64;
constexpr int64_t kMaxTextColumns = int64_t{1} << 24;

absl::Status Bad(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("bad header: ", where, ": ", what));
}

void WriteModel(const ModelInfo& model, ModelInfoProto* proto) {
  proto->set_architecture(model.architecture);
  proto->set_name(model.name);
  proto->set_parameters(model.parameters);
  proto->set_context_length(model.context_length);
  proto->set_embedding_length(model.embedding_length);
  for (const auto& [name, values] : model.hyper_parameters) {
    NumbersProto* out = proto->add_hyper_parameters();
    out->set_name(name);
    out->mutable_values()->Add(values.begin(), values.end());
  }
  for (const auto& [name, value] : model.suggested_sampling) {
    NumbersProto* out = proto->add_suggested_sampling();
    out->set_name(name);
    out->add_values(value);
  }
  proto->set_vocabulary_size(model.vocabulary_size);
  proto->set_file_bytes(model.file_bytes);
  proto->set_encoder(model.encoder);
  proto->set_pooling(static_cast<int32_t>(model.pooling));
  proto->set_gives(static_cast<int32_t>(model.gives));
  proto->set_text_columns(model.text_columns);
  for (const std::string& label : model.labels) proto->add_labels(label);
  for (const AdapterInfo& adapter : model.adapters) {
    AdapterInfoProto* out = proto->add_adapters();
    out->set_path(adapter.path);
    out->set_rank(adapter.rank);
    out->set_scale(adapter.scale);
  }
  for (const TensorInfo& tensor : model.tensors) {
    TensorInfoProto* out = proto->add_tensors();
    out->set_name(tensor.name);
    out->set_type(Info(tensor.type).name);
    for (int64_t dim : tensor.shape) out->add_shape(dim);
    out->set_bytes(tensor.bytes);
    out->set_offset(tensor.offset);
  }
}

absl::Status ReadModel(const ModelInfoProto& proto, ModelInfo* model) {
  model->architecture = proto.architecture();
  model->name = proto.name();
  model->parameters = proto.parameters();
  model->context_length = proto.context_length();
  model->embedding_length = proto.embedding_length();
  for (const NumbersProto& row : proto.hyper_parameters()) {
    model->hyper_parameters.emplace_back(
        row.name(),
        std::vector<double>(row.values().begin(), row.values().end()));
  }
  for (const NumbersProto& row : proto.suggested_sampling()) {
    if (row.values_size() != 1 || !std::isfinite(row.values(0))) {
      return Bad("suggested_sampling", "an entry is not one number");
    }
    model->suggested_sampling.emplace(row.name(), row.values(0));
  }
  model->vocabulary_size = proto.vocabulary_size();
  model->file_bytes = proto.file_bytes();
  model->encoder = proto.encoder();
  if (proto.pooling() < 0 ||
      proto.pooling() > static_cast<int32_t>(Pooling::kLast)) {
    return Bad("pooling", absl::StrCat("unknown kind ", proto.pooling()));
  }
  model->pooling = static_cast<Pooling>(proto.pooling());
  if (proto.gives() < 0 || proto.gives() >= kModelOutputs) {
    return Bad("gives", absl::StrCat("unknown kind ", proto.gives()));
  }
  model->gives = static_cast<ModelOutput>(proto.gives());
  if (model->encoder && model->generates()) {
    return Bad("gives", "an encoder has no logits");
  }
  model->text_columns = proto.text_columns();
  if (IsOfText(model->gives) &&
      (model->text_columns < 1 || model->text_columns > kMaxTextColumns)) {
    return Bad("text_columns", absl::StrCat(proto.text_columns(),
                                            ", want 1 to ", kMaxTextColumns));
  }
  model->labels.assign(proto.labels().begin(), proto.labels().end());
  if (proto.adapters_size() > kMostAdapters) {
    return Bad("adapters", absl::StrCat(proto.adapters_size(), ", at most ",
                                        kMostAdapters));
  }
  for (const AdapterInfoProto& adapter : proto.adapters()) {
    if (!std::isfinite(adapter.scale()) || adapter.rank() < 0) {
      return Bad("adapters", "a rank or scale is none");
    }
    model->adapters.push_back(
        {adapter.path(), adapter.rank(), adapter.scale()});
  }
  for (const TensorInfoProto& tensor : proto.tensors()) {
    const std::optional<DType> type = DTypeFromName(tensor.type());
    if (!type) {
      return Bad(tensor.name(),
                 absl::StrCat("unknown type '", tensor.type(), "'"));
    }
    model->tensors.push_back({tensor.name(),
                              *type,
                              {tensor.shape().begin(), tensor.shape().end()},
                              tensor.bytes(),
                              tensor.offset()});
  }
  return absl::OkStatus();
}

void WriteOptions(const CompileOptions& options, CompileOptionsProto* proto) {
  proto->set_isa(Name(options.isa));
  for (const std::string& pass : options.disabled_passes) {
    proto->add_disabled_passes(pass);
  }
  proto->set_planner(Name(options.planner));
  for (int64_t tokens : options.buckets) proto->add_buckets(tokens);
  proto->set_f16_as_bf16(options.f16_compute == F16Compute::kBF16);
  if (options.shard.ranks > 1) {
    proto->set_rank(options.shard.rank);
    proto->set_ranks(options.shard.ranks);
  }
}

absl::Status ReadOptions(const CompileOptionsProto& proto,
                         CompileOptions* options) {
  const std::optional<Isa> isa = IsaFromName(proto.isa());
  if (!isa) {
    return Bad("isa", absl::StrCat("unknown instruction set '", proto.isa(),
                                   "', this machine has ", Name(DetectIsa())));
  }
  options->isa = *isa;
  if (proto.f16_as_bf16()) options->f16_compute = F16Compute::kBF16;
  for (const std::string& pass : proto.disabled_passes()) {
    if (absl::Status s = CheckPassName(pass); !s.ok()) {
      return Bad("disabled passes", s.message());
    }
    options->disabled_passes.insert(pass);
  }
  const std::optional<PlanStrategy> planner =
      PlanStrategyFromName(proto.planner());
  if (!planner) {
    return Bad("planner", absl::StrCat("unknown: '", proto.planner(), "'"));
  }
  options->planner = *planner;
  options->buckets.assign(proto.buckets().begin(), proto.buckets().end());
  int64_t before = 0;
  for (int64_t tokens : options->buckets) {
    if (tokens <= before || tokens > 1 << 16) {
      return Bad("buckets", "want ascending numbers from 1 to 65536");
    }
    before = tokens;
  }
  if (proto.ranks() < 0 || proto.ranks() > kMostRanksOfPlan ||
      proto.rank() < 0 || proto.rank() >= std::max<int64_t>(proto.ranks(), 1)) {
    return Bad("ranks",
               absl::StrCat("rank ", proto.rank(), " of ", proto.ranks(),
                            ", want at most ", kMostRanksOfPlan));
  }
  options->shard = {proto.rank(), std::max<int64_t>(proto.ranks(), 1)};
  if (options->buckets.empty() || options->buckets.size() > kMaxBuckets) {
    return Bad("buckets", absl::StrCat(options->buckets.size(), ", want 1 to ",
                                       kMaxBuckets));
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelReference> ReadReference(const ModelReferenceProto& proto) {
  ModelReference reference;
  reference.path = proto.path();
  reference.bytes = proto.bytes();
  reference.header_xxh3 = proto.header_xxh3();
  reference.tensors_xxh3 = proto.tensors_xxh3();
  absl::StatusOr<KvTypes> kv_type = KvTypes::Parse(proto.kv_type());
  if (!kv_type.ok()) {
    return Bad("reference",
               absl::StrCat("KV cache: ", kv_type.status().message()));
  }
  reference.kv_type = *std::move(kv_type);
  reference.context = proto.context();
  reference.next_token_block = proto.next_token_block();
  if (reference.path.find('\0') != std::string::npos || reference.bytes < 0 ||
      reference.context < 1) {
    return Bad("reference", "its path, size or context cannot be");
  }
  return reference;
}

void WriteReference(const ModelReference& reference,
                    ModelReferenceProto* proto) {
  proto->set_path(reference.path);
  proto->set_bytes(reference.bytes);
  proto->set_header_xxh3(reference.header_xxh3);
  proto->set_tensors_xxh3(reference.tensors_xxh3);
  proto->set_kv_type(reference.kv_type.ToString());
  proto->set_context(reference.context);
  proto->set_next_token_block(reference.next_token_block);
}

absl::Status ReadBuckets(
    const google::protobuf::RepeatedPtrField<GraphProto>& protos,
    const CompileOptions& options, std::vector<Graph>* buckets) {
  if (static_cast<size_t>(protos.size()) != options.buckets.size()) {
    return Bad("buckets", absl::StrCat(protos.size(), " graphs for ",
                                       options.buckets.size()));
  }
  for (int i = 0; i < protos.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(Graph graph, FromProto(protos[i], FindOpSchema));
    if (graph.bounds.tokens != options.buckets[i]) {
      return Bad("buckets", "a graph is for another number of tokens");
    }
    buckets->push_back(std::move(graph));
  }
  return absl::OkStatus();
}

}  // namespace

PlanProto HeaderOf(const Plan& plan) {
  PlanProto header;
  WriteModel(plan.model, header.mutable_model());
  *header.mutable_vocabulary() = plan.vocabulary;
  WriteOptions(plan.options, header.mutable_options());
  for (const Graph& graph : plan.buckets) {
    *header.add_buckets() = ToProto(graph);
  }
  for (const Graph& graph : plan.next_token_buckets) {
    *header.add_next_token_buckets() = ToProto(graph);
  }
  for (const PassRecord& pass : plan.passes) {
    PassRecordProto* out = header.add_passes();
    out->set_name(pass.name);
    out->set_nodes_before(pass.nodes_before);
    out->set_nodes_after(pass.nodes_after);
  }
  header.set_nodes_before(plan.nodes_before);
  if (plan.source) WriteReference(*plan.source, header.mutable_source());
  header.set_parts_xxh3(plan.parts_xxh3);
  return header;
}

void WriteReference(const ModelReference& reference, PlanProto* header) {
  header->clear_source();
  WriteReference(reference, header->mutable_reference());
}

absl::StatusOr<PlanFile> ReadHeader(PlanProto header) {
  PlanFile file;
  Plan& plan = file.plan;
  WEFT_RETURN_IF_ERROR(ReadModel(header.model(), &plan.model));
  WEFT_RETURN_IF_ERROR(ReadOptions(header.options(), &plan.options));
  plan.vocabulary = std::move(*header.mutable_vocabulary());
  for (const PassRecordProto& pass : header.passes()) {
    PassRecord record;
    record.name = pass.name();
    record.nodes_before = pass.nodes_before();
    record.nodes_after = pass.nodes_after();
    plan.passes.push_back(std::move(record));
  }
  plan.nodes_before = header.nodes_before();
  plan.parts_xxh3 = header.parts_xxh3();
  if (header.has_source()) {
    WEFT_ASSIGN_OR_RETURN(ModelReference source,
                          ReadReference(header.source()));
    if (source.path.find('/') != std::string::npos) {
      return Bad("source", "its path is more than a name");
    }
    plan.source = std::move(source);
  }
  if (header.has_reference()) {
    if (header.buckets_size() > 0 || header.weights_size() > 0 ||
        header.next_token_buckets_size() > 0) {
      return Bad("reference", "there are graphs or weights too");
    }
    WEFT_ASSIGN_OR_RETURN(ModelReference reference,
                          ReadReference(header.reference()));
    if (reference.path.empty()) return Bad("reference", "it has no path");
    file.reference = std::move(reference);
    return file;
  }
  WEFT_RETURN_IF_ERROR(
      ReadBuckets(header.buckets(), plan.options, &plan.buckets));
  if (header.next_token_buckets_size() > 0) {
    WEFT_RETURN_IF_ERROR(ReadBuckets(header.next_token_buckets(), plan.options,
                                     &plan.next_token_buckets));
  }
  return file;
}

}  // namespace weft
