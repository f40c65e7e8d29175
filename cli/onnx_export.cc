#include "cli/onnx_export.h"

#include "absl/strings/str_cat.h"
#include "graph/listing.h"
#include "ops/ops.h"
#include "text/utf8.h"
#include "third_party/onnx.pb.h"

namespace weft {
namespace {

constexpr int kIrVersion = 8;
constexpr int kOpset = 13;

// The operator of ONNX with the same operands and result, or null.
const char* OnnxOperator(const Node& node) {
  if (node.Is(kAddOp)) return "Add";
  if (node.Is(kMulOp)) return "Mul";
  if (node.Is(kSoftmaxOp)) return "Softmax";  // both: over the last dimension
  return nullptr;
}

onnx::TensorProto::DataType DataType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return onnx::TensorProto::FLOAT;
    case DType::kF16:
      return onnx::TensorProto::FLOAT16;
    case DType::kBF16:
      return onnx::TensorProto::BFLOAT16;
    case DType::kI32:
      return onnx::TensorProto::INT32;
    default:
      return onnx::TensorProto::UINT8;
  }
}

// Names of values must differ: ids of the text form do.
std::string ValueName(const Graph& graph, const std::vector<int>& numbers,
                      ValueId id) {
  const std::string& name = graph.value(id).name;
  return name.empty() ? absl::StrCat("%", numbers[id]) : RepairUtf8(name);
}

void SetInfo(const std::string& name, const Value& value,
             onnx::ValueInfoProto* info) {
  info->set_name(name);
  info->set_doc_string(RepairUtf8(value.type.ToString()));
  onnx::TypeProto::Tensor* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(DataType(value.type.dtype));
  for (int i = 0; i < value.type.shape.rank(); ++i) {
    const Dim& dim = value.type.shape[i];
    onnx::TensorShapeProto::Dimension* out = tensor->mutable_shape()->add_dim();
    if (dim.symbol == Dim::kNumber) {
      out->set_dim_value(dim.value);
    } else {
      out->set_dim_param(dim.ToString());
    }
  }
}

void SetInitializer(const std::string& name, const Value& value,
                    onnx::TensorProto* tensor) {
  tensor->set_name(name);
  tensor->set_doc_string(RepairUtf8(value.type.ToString()));
  tensor->set_data_type(DataType(value.type.dtype));
  for (int i = 0; i < value.type.shape.rank(); ++i) {
    tensor->add_dims(value.type.shape[i].value);
  }
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* location = tensor->add_external_data();
  location->set_key("location");
  location->set_value("weights-are-not-part-of-this-file");
}

void SetAttribute(const std::string& name, const AttributeValue& value,
                  onnx::AttributeProto* out) {
  out->set_name(RepairUtf8(name));
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    out->set_type(onnx::AttributeProto::INT);
    out->set_i(*integer);
  } else if (const auto* number = std::get_if<double>(&value)) {
    out->set_type(onnx::AttributeProto::FLOAT);
    out->set_f(static_cast<float>(*number));
  } else {
    out->set_type(onnx::AttributeProto::STRING);
    out->set_s(std::get<std::string>(value));
  }
}

}  // namespace

std::string ToOnnx(const Graph& graph) {
  const std::vector<int> numbers = NumberValues(graph);
  const auto name_of = [&](ValueId id) {
    return ValueName(graph, numbers, id);
  };
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("weft");
  for (const auto& [domain, version] :
       {std::pair<const char*, int>{"", kOpset}, {"weft", 1}}) {
    onnx::OperatorSetIdProto* opset = model.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
  }
  onnx::GraphProto* out = model.mutable_graph();
  out->set_name(graph.name.empty() ? "graph" : RepairUtf8(graph.name));
  out->set_doc_string(absl::StrCat("tokens<=", graph.bounds.tokens,
                                   " rows<=", graph.bounds.rows,
                                   " context<=", graph.bounds.context));
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind == ValueKind::kWeight) {
      SetInitializer(name_of(id), value, out->add_initializer());
    } else if (value.kind != ValueKind::kTemporary) {
      SetInfo(name_of(id), value, out->add_input());
    }
  }
  for (NodeId n : graph.order()) {
    const Node& node = graph.node(n);
    onnx::NodeProto* proto = out->add_node();
    const char* known = OnnxOperator(node);
    proto->set_op_type(known != nullptr ? known : node.op->name);
    if (known == nullptr) proto->set_domain("weft");
    proto->set_name(RepairUtf8(node.name));
    for (ValueId id : node.inputs) proto->add_input(name_of(id));
    for (ValueId id : node.outputs) {
      proto->add_output(name_of(id));
      if (!graph.IsOutput(id)) {
        SetInfo(name_of(id), graph.value(id), out->add_value_info());
      }
    }
    // Of ONNX's own operators only their attributes.
    if (known == nullptr) {
      ForEachAttribute(
          node, [&](absl::string_view name, const AttributeValue& value) {
            SetAttribute(std::string(name), value, proto->add_attribute());
          });
    }
    const std::string kernel = node.kernel;
    if (!kernel.empty()) {
      proto->set_doc_string(RepairUtf8(absl::StrCat("kernel ", kernel)));
    }
  }
  for (const auto& [name, id] : graph.outputs()) {
    SetInfo(name_of(id), graph.value(id), out->add_output());
  }
  return model.SerializeAsString();
}

}  // namespace weft
