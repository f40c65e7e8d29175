#include "graph/op_schema.h"

#include <limits>
#include <utility>
#include <vector>

namespace weft {
namespace {

// Owns what its base points at.
struct UnknownOp : OpSchema {
  std::string name_text;
  std::vector<std::string> attribute_names;
  std::vector<AttributeSchema> attribute_list;
};

AttributeType TypeOf(const AttributeValue& value) {
  switch (value.index()) {
    case 0:
      return AttributeType::kInteger;
    case 1:
      return AttributeType::kNumber;
    default:
      return AttributeType::kText;
  }
}

}  // namespace

int OpSchema::least_operands() const {
  int least = 0;
  for (const OperandSchema& operand : operands) least += !operand.optional;
  return least;
}

int OpSchema::most_operands() const {
  return !operands.empty() && operands.back().repeated
             ? std::numeric_limits<int>::max()
             : static_cast<int>(operands.size());
}

std::shared_ptr<const OpSchema> MakeUnknownOp(
    absl::string_view name,
    absl::Span<const std::pair<std::string, AttributeValue>> attributes) {
  auto op = std::make_shared<UnknownOp>();
  op->known = false;
  op->name_text = std::string(name);
  op->name = op->name_text.c_str();
  for (const auto& attribute : attributes) {
    op->attribute_names.push_back(attribute.first);
  }
  for (size_t i = 0; i < attributes.size(); ++i) {
    AttributeSchema schema;
    schema.name = op->attribute_names[i].c_str();
    schema.type = TypeOf(attributes[i].second);
    op->attribute_list.push_back(schema);
  }
  op->attributes = op->attribute_list;
  return op;
}

}  // namespace weft
