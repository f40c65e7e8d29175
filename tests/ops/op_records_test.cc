// What follows from the ops' records, for every op that there is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/text_format.h"
#include "ops/describe_ops.h"
#include "ops/op_table.h"
#include "ops/ops.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string SetError(const OpDef& op, const char* name, AttributeValue value) {
  Attributes attributes(op.attributes);
  return std::string(attributes.Set(op.name, name, std::move(value)).message());
}

std::string CheckError(const AttributeSchema& attribute, const OpDef& op,
                       AttributeValue value) {
  return std::string(attribute.Check(op.name, value).message());
}

TEST(OpRecords, AreWhole) {
  for (const OpDef* op : AllOps()) {
    SCOPED_TRACE(op->name);
    EXPECT_STRNE(op->meaning, "");
    EXPECT_FALSE(op->operands.empty());
    EXPECT_EQ(op->primitive, op->made_of[0] == '\0')
        << "what passes make says of what";
    EXPECT_NE(op->infer, nullptr);
    EXPECT_EQ(op->reference == nullptr, op->view);
    std::set<std::string> names;
    bool optional = false;
    for (const OperandSchema& operand : op->operands) {
      EXPECT_TRUE(names.insert(operand.name).second) << operand.name;
      EXPECT_TRUE(!optional || operand.optional)
          << operand.name << " stands behind one that may be absent";
      optional = operand.optional;
      EXPECT_LT(operand.of, static_cast<int>(op->operands.size()));
      EXPECT_LT(operand.rows_of, static_cast<int>(op->operands.size()));
    }
    EXPECT_TRUE(!op->writes_state ||
                op->operands[0].role == OperandRole::kState);
    names.clear();
    for (const AttributeSchema& attribute : op->attributes) {
      EXPECT_TRUE(names.insert(attribute.name).second) << attribute.name;
      EXPECT_STRNE(attribute.meaning, "");
      EXPECT_EQ(attribute.type == AttributeType::kChoice,
                attribute.name_count > 0);
      const auto otherwise = attribute.otherwise(attribute);
      if (!attribute.required && otherwise) {
        EXPECT_EQ(CheckError(attribute, *op, *otherwise), "")
            << "its default is out of its range";
      }
    }
  }
}

TEST(OpRecords, UnknownAttributesAreNamedWithThoseThatThereAre) {
  for (const OpDef* op : AllOps()) {
    const std::string error = SetError(*op, "windw", int64_t{4});
    EXPECT_THAT(error, AllOf(HasSubstr(op->name), HasSubstr("windw"),
                             HasSubstr("no such attribute")));
    for (const AttributeSchema& attribute : op->attributes) {
      EXPECT_THAT(error, HasSubstr(attribute.name));
    }
  }
}

TEST(OpRecords, WrongTypesNameOpAttributeAndWhatItMayBe) {
  for (const OpDef* op : AllOps()) {
    for (const AttributeSchema& attribute : op->attributes) {
      const bool is_text = attribute.type == AttributeType::kText ||
                           attribute.type == AttributeType::kChoice;
      const AttributeValue wrong =
          is_text ? AttributeValue(2.5) : AttributeValue(std::string("x"));
      EXPECT_THAT(SetError(*op, attribute.name, wrong),
                  AllOf(HasSubstr(op->name), HasSubstr(attribute.name),
                        HasSubstr(attribute.Wanted())));
    }
  }
}

TEST(OpRecords, WhatIsOutOfRangeIsRefused) {
  for (const OpDef* op : AllOps()) {
    for (const AttributeSchema& attribute : op->attributes) {
      std::vector<AttributeValue> wrong;
      switch (attribute.type) {
        case AttributeType::kInteger:
          if (attribute.least > std::numeric_limits<int64_t>::min()) {
            wrong.push_back(attribute.least - 1);
          }
          if (attribute.most < std::numeric_limits<int64_t>::max()) {
            wrong.push_back(attribute.most + 1);
          }
          break;
        case AttributeType::kFlag:
          wrong = {int64_t{-1}, int64_t{2}};
          break;
        case AttributeType::kNumber:
          wrong = {std::numeric_limits<double>::infinity(),
                   std::numeric_limits<double>::quiet_NaN()};
          if (attribute.lowest > std::numeric_limits<double>::lowest()) {
            wrong.push_back(attribute.lowest - 1);
            if (attribute.above_lowest) wrong.push_back(attribute.lowest);
          }
          break;
        case AttributeType::kChoice:
          wrong = {std::string("no such choice")};
          break;
        case AttributeType::kText:
          break;
      }
      for (const AttributeValue& value : wrong) {
        EXPECT_THAT(CheckError(attribute, *op, value),
                    AllOf(HasSubstr(op->name), HasSubstr(attribute.name),
                          HasSubstr(attribute.Wanted())));
      }
    }
  }
}

TEST(OpRecords, MissingAttributesAreNamed) {
  for (const OpDef* op : AllOps()) {
    for (const AttributeSchema& attribute : op->attributes) {
      if (!attribute.required) continue;
      EXPECT_THAT(
          std::string(Attributes(op->attributes).Check(op->name).message()),
          AllOf(HasSubstr(op->name), HasSubstr("is missing")));
      break;
    }
  }
}

TEST(OpRecords, TextMayWriteWholeNumbersAsIntegers) {
  const absl::StatusOr<Graph> graph = ParseGraph(
      "graph t tokens<=4 rows<=4 context<=64\n"
      "  %0 = input x  f32[T,64]\n  %1 = input positions  i32[T]\n"
      "  %2 = rope(%0, %1) base=10000 head_dim=32 magnitude=2 rope_dims=32 "
      "scale=1 style=\"halves\"  f32[T,64]\n  output y = %2\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(VerifyGraph(*graph).ok()) << VerifyGraph(*graph);
  const auto rope =
      graph->node(graph->order()[0]).attributes.As<RopeAttributes>();
  EXPECT_EQ(rope.magnitude, 2);
  EXPECT_EQ(rope.style, RopeStyle::kHalves);
}

TEST(OpRecords, ReadmeIsWhatTheRecordsSay) {
  std::ifstream file("ops/README.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), DescribeOps())
      << "weft dump --list-ops > ops/README.md";
}

}  // namespace
}  // namespace weft
