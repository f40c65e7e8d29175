#include "graph/serialize.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft {
namespace {

// Far above any model, far below what would hurt: some checks compare all
// values with all outputs.
constexpr int kMaxValues = 1 << 16;
constexpr int kMaxResults = 16;

void Write(const ValueType& type, TypeProto* proto) {
  proto->set_dtype(Info(type.dtype).name);
  for (int i = 0; i < type.shape.rank(); ++i) {
    DimProto* dim = proto->add_dims();
    dim->set_symbol(static_cast<DimProto::Symbol>(type.shape[i].symbol));
    dim->set_value(type.shape[i].value);
  }
  proto->set_layout(type.layout);
}

void WriteAttributes(const Node& node, NodeProto* proto) {
  ForEachAttribute(
      node, [&](absl::string_view name, const AttributeValue& value) {
        AttributeProto* attribute = proto->add_attributes();
        attribute->set_name(std::string(name));
        if (const int64_t* integer = std::get_if<int64_t>(&value)) {
          attribute->set_integer(*integer);
        } else if (const double* number = std::get_if<double>(&value)) {
          attribute->set_number(*number);
        } else {
          attribute->set_text(std::get<std::string>(value));
        }
      });
}

SourceProto::Kind KindOf(ValueKind kind) {
  switch (kind) {
    case ValueKind::kWeight:
      return SourceProto::WEIGHT;
    case ValueKind::kState:
      return SourceProto::STATE;
    default:
      return SourceProto::INPUT;
  }
}

absl::Status Bad(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("bad graph: ", where, ": ", what));
}

absl::StatusOr<ValueType> ReadType(const TypeProto& proto,
                                   absl::string_view where) {
  ValueType type;
  const std::optional<DType> dtype = DTypeFromName(proto.dtype());
  if (!dtype) {
    return Bad(where, absl::StrCat("unknown type '", proto.dtype(), "'"));
  }
  type.dtype = *dtype;
  if (proto.dims_size() > Shape::kMaxRank) {
    return Bad(where, absl::StrCat(proto.dims_size(), " dimensions, at most ",
                                   Shape::kMaxRank, " are possible"));
  }
  for (const DimProto& dim : proto.dims()) {
    if (!DimProto::Symbol_IsValid(dim.symbol())) {
      return Bad(where, absl::StrCat("unknown dimension ", dim.symbol()));
    }
    if (dim.symbol() != DimProto::NUMBER && dim.value() != 0) {
      return Bad(where, "a dimension is a number and a symbol at once");
    }
    type.shape.Append({static_cast<Dim::Symbol>(dim.symbol()), dim.value()});
  }
  type.layout = proto.layout();
  return type;
}

absl::StatusOr<std::vector<std::pair<std::string, AttributeValue>>>
ReadAttributes(const NodeProto& proto, absl::string_view where) {
  std::vector<std::pair<std::string, AttributeValue>> attributes;
  for (const AttributeProto& attribute : proto.attributes()) {
    switch (attribute.value_case()) {
      case AttributeProto::kInteger:
        attributes.emplace_back(attribute.name(), attribute.integer());
        break;
      case AttributeProto::kNumber:
        attributes.emplace_back(attribute.name(), attribute.number());
        break;
      case AttributeProto::kText:
        attributes.emplace_back(attribute.name(), attribute.text());
        break;
      case AttributeProto::VALUE_NOT_SET:
        return Bad(where, absl::StrCat("attribute '", attribute.name(),
                                       "' has no value"));
    }
  }
  return attributes;
}

absl::Status ReadSource(const SourceProto& proto, Graph* graph) {
  WEFT_ASSIGN_OR_RETURN(ValueType type, ReadType(proto.type(), proto.name()));
  switch (proto.kind()) {
    case SourceProto::INPUT:
      graph->AddInput(proto.name(), std::move(type));
      return absl::OkStatus();
    case SourceProto::WEIGHT:
      graph->AddWeight(proto.name(), std::move(type), {});
      return absl::OkStatus();
    case SourceProto::STATE:
      graph->AddState(proto.name(), std::move(type));
      return absl::OkStatus();
    default:
      return Bad(proto.name(), absl::StrCat("unknown kind ", proto.kind()));
  }
}

absl::Status ReadNode(const NodeProto& proto, OpLookup find, Graph* graph) {
  const std::string where =
      absl::StrCat("node ", graph->node_count(), " (", proto.op(), ")");
  for (int32_t input : proto.inputs()) {
    if (input < 0 || input >= graph->value_count()) {
      return Bad(where, absl::StrCat("operand ", input, " is not made before"));
    }
  }
  if (proto.results_size() > kMaxResults ||
      proto.results_size() > kMaxValues - graph->value_count()) {
    return Bad(where, "too many results");
  }
  std::vector<ValueType> types;
  for (const ResultProto& result : proto.results()) {
    WEFT_ASSIGN_OR_RETURN(ValueType type, ReadType(result.type(), where));
    types.push_back(std::move(type));
  }
  WEFT_ASSIGN_OR_RETURN(auto attributes, ReadAttributes(proto, where));
  absl::StatusOr<Node> made = MakeNode(proto.op(), attributes, find);
  if (!made.ok()) return Bad(where, made.status().message());
  made->inputs = {proto.inputs().begin(), proto.inputs().end()};
  made->name = proto.name();
  Node& node = graph->node(graph->AddNode(*std::move(made), std::move(types)));
  node.scratch_offset = proto.scratch_offset();
  for (int i = 0; i < proto.results_size(); ++i) {
    graph->value(node.outputs[i]).offset = proto.results(i).offset();
  }
  return absl::OkStatus();
}

}  // namespace

GraphProto ToProto(const Graph& graph) {
  const Graph compact = graph.Compact();
  GraphProto proto;
  proto.set_name(compact.name);
  proto.set_tokens(compact.bounds.tokens);
  proto.set_rows(compact.bounds.rows);
  proto.set_context(compact.bounds.context);
  proto.set_arena_bytes(compact.arena.bytes);
  proto.set_arena_lower_bound(compact.arena.lower_bound);
  proto.set_sum_of_intermediates(compact.arena.sum_of_intermediates);
  for (ValueId id = 0; id < compact.value_count(); ++id) {
    const Value& value = compact.value(id);
    // Sources come first in a compact graph.
    if (value.kind == ValueKind::kTemporary) break;
    SourceProto* source = proto.add_sources();
    source->set_kind(KindOf(value.kind));
    source->set_name(value.name);
    Write(value.type, source->mutable_type());
  }
  for (NodeId id : compact.order()) {
    const Node& node = compact.node(id);
    NodeProto* out = proto.add_nodes();
    out->set_op(node.op->name);
    out->set_name(node.name);
    for (ValueId input : node.inputs) out->add_inputs(input);
    for (ValueId output : node.outputs) {
      ResultProto* result = out->add_results();
      Write(compact.value(output).type, result->mutable_type());
      result->set_offset(compact.value(output).offset);
    }
    WriteAttributes(node, out);
    out->set_scratch_offset(node.scratch_offset);
  }
  for (const auto& [name, value] : compact.outputs()) {
    OutputProto* output = proto.add_outputs();
    output->set_name(name);
    output->set_value(value);
  }
  return proto;
}

absl::StatusOr<Graph> FromProto(const GraphProto& proto, OpLookup find) {
  if (proto.sources_size() > kMaxValues || proto.nodes_size() > kMaxValues ||
      proto.outputs_size() > kMaxValues) {
    return Bad("header", absl::StrCat("more than ", kMaxValues, " values"));
  }
  Graph graph;
  graph.name = proto.name();
  graph.bounds = {proto.tokens(), proto.rows(), proto.context()};
  graph.arena = {proto.arena_bytes(), proto.arena_lower_bound(),
                 proto.sum_of_intermediates()};
  for (const SourceProto& source : proto.sources()) {
    WEFT_RETURN_IF_ERROR(ReadSource(source, &graph));
  }
  for (const NodeProto& node : proto.nodes()) {
    WEFT_RETURN_IF_ERROR(ReadNode(node, find, &graph));
  }
  for (const OutputProto& output : proto.outputs()) {
    if (output.value() < 0 || output.value() >= graph.value_count()) {
      return Bad(output.name(), absl::StrCat("no value ", output.value()));
    }
    graph.AddOutput(output.name(), output.value());
  }
  return graph;
}

}  // namespace weft
