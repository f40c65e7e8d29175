#include "ops/describe_ops.h"

#include "absl/strings/str_cat.h"
#include "graph/attribute_text.h"
#include "ops/op_table.h"

namespace weft {
namespace {

constexpr char kHead[] =
    R"(# Ops

Made of the ops' records by `weft dump --list-ops`; a test keeps this file equal.
T, R, S are a step's tokens, its output rows and the context; M is T or R. An operand
or attribute in brackets may be absent.
)";

const char* Name(OperandRole role) {
  switch (role) {
    case OperandRole::kRows:
      return "rows";
    case OperandRole::kWeight:
      return "weight";
    case OperandRole::kState:
      return "state";
    case OperandRole::kIndex:
      break;
  }
  return "index";
}

std::string Describe(const OpSchema& op, const OperandSchema& operand) {
  std::string text = absl::StrCat(operand.name, ": ", Name(operand.role));
  if (operand.role == OperandRole::kIndex) {
    switch (operand.index) {
      case IndexKind::kRowOf:
        absl::StrAppend(&text, " of ", op.operands[operand.of].name);
        break;
      case IndexKind::kPosition:
        absl::StrAppend(&text, ", positions");
        break;
      case IndexKind::kSequence:
        absl::StrAppend(&text, ", slots of the cache");
        break;
      case IndexKind::kChosen:
        absl::StrAppend(&text, " that top_k chose");
        break;
      case IndexKind::kAny:
        break;
    }
  }
  if (operand.layout[0] != '\0') {
    absl::StrAppend(&text, " of ", operand.layout);
  }
  if (operand.repeated) absl::StrAppend(&text, ", one or more");
  return operand.optional ? absl::StrCat("[", text, "]") : text;
}

std::string Otherwise(const AttributeSchema& attribute) {
  const auto value = attribute.otherwise(attribute);
  return value ? ToText(*value) : "absent";
}

void Describe(const OpSchema& op, std::string* out) {
  absl::StrAppend(out, "\n### ", op.name, "\n\n", op.meaning, "\n\n");
  if (op.made_of[0] != '\0') absl::StrAppend(out, "- of: ", op.made_of, "\n");
  for (const OperandSchema& operand : op.operands) {
    absl::StrAppend(out, "- ", Describe(op, operand), "\n");
  }
  if (op.attributes.empty()) return;
  absl::StrAppend(out, "\n| attribute | may be | default | what it is |\n",
                  "|---|---|---|---|\n");
  for (const AttributeSchema& attribute : op.attributes) {
    absl::StrAppend(out, "| ",
                    attribute.required ? attribute.name
                                       : absl::StrCat("[", attribute.name, "]"),
                    " | ", attribute.Wanted(), " | ",
                    attribute.required ? "" : Otherwise(attribute), " | ",
                    attribute.meaning, " |\n");
  }
}

}  // namespace

std::string DescribeOps() {
  std::string text = kHead;
  for (const bool primitive : {true, false}) {
    absl::StrAppend(&text,
                    primitive ? "\n## Primitives\n" : "\n## Made by passes\n");
    for (const OpDef* op : AllOps()) {
      if (op->primitive == primitive) Describe(*op, &text);
    }
  }
  return text;
}

}  // namespace weft
