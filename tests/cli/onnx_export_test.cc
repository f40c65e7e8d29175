#include "cli/onnx_export.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/text_format.h"
#include "ops/op_table.h"
#include "third_party/onnx.pb.h"

namespace weft {
namespace {

Graph Small() {
  absl::StatusOr<Graph> graph =
      ParseGraph(R"(graph small tokens<=8 rows<=8 context<=64
  $table = weight  q4_0[100,64]{panel16}
  $norm = weight  f32[64]
  %0 = input ids  i32[T]
  %1 = state blk.0.k  f16[S,2,32]{keys}
  %2 = embed(%0, $table)  f32[T,64]  : token_embd
  %3 = rms_norm(%2, $norm) eps=0.5 kernel="rms_norm_ref" heads=2  f32[T,64]
  %4 = add(%3, %2) kernel="add_ref"  f32[T,64]  : sum
  %5 = kv_write(%1, %4)  f16[S,2,32]{keys}
  output logits = %4
  output keys = %5
)");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

onnx::ModelProto Export(const Graph& graph) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(ToOnnx(graph)));
  return model;
}

TEST(ToOnnx, EveryValueIsMadeOnceBeforeItIsRead) {
  const onnx::ModelProto model = Export(Small());
  std::set<std::string> made;
  for (const auto& input : model.graph().input()) {
    EXPECT_TRUE(made.insert(input.name()).second);
  }
  for (const auto& weight : model.graph().initializer()) {
    EXPECT_TRUE(made.insert(weight.name()).second);
  }
  for (const auto& node : model.graph().node()) {
    for (const auto& name : node.input()) EXPECT_EQ(made.count(name), 1u);
    for (const auto& name : node.output()) {
      EXPECT_TRUE(made.insert(name).second);
    }
  }
  ASSERT_EQ(model.graph().output_size(), 2);
  for (const auto& output : model.graph().output()) {
    EXPECT_EQ(made.count(output.name()), 1u);
  }
}

TEST(ToOnnx, OpsWithoutCounterpartStandInADomainOfTheirOwn) {
  const onnx::ModelProto model = Export(Small());
  ASSERT_EQ(model.graph().node_size(), 4);
  EXPECT_EQ(model.graph().node(0).domain(), "weft");
  EXPECT_EQ(model.graph().node(0).op_type(), "embed");
  const onnx::NodeProto& norm = model.graph().node(1);
  EXPECT_EQ(norm.doc_string(), "kernel rms_norm_ref");
  ASSERT_EQ(norm.attribute_size(), 3);
  EXPECT_EQ(norm.attribute(0).f(), 0.5f);
  EXPECT_EQ(norm.attribute(1).i(), 2);
  EXPECT_EQ(norm.attribute(2).s(), "rms_norm_ref");
  const onnx::NodeProto& add = model.graph().node(2);
  EXPECT_EQ(add.op_type(), "Add");
  EXPECT_EQ(add.domain(), "");
  EXPECT_EQ(add.attribute_size(), 0);
  std::set<std::string> domains;
  for (const auto& opset : model.opset_import()) domains.insert(opset.domain());
  EXPECT_EQ(domains, (std::set<std::string>{"", "weft"}));
}

TEST(ToOnnx, WeightsHaveTypesButNoBytes) {
  const onnx::ModelProto model = Export(Small());
  ASSERT_EQ(model.graph().initializer_size(), 2);
  const onnx::TensorProto& table = model.graph().initializer(0);
  EXPECT_EQ(table.name(), "table");
  EXPECT_EQ(table.doc_string(), "q4_0[100,64]{panel16}");
  EXPECT_EQ(table.data_type(), onnx::TensorProto::UINT8);
  EXPECT_EQ(table.dims(0), 100);
  EXPECT_EQ(table.dims(1), 64);
  EXPECT_EQ(table.data_location(), onnx::TensorProto::EXTERNAL);
  EXPECT_TRUE(table.raw_data().empty());
  EXPECT_EQ(model.graph().initializer(1).data_type(), onnx::TensorProto::FLOAT);
  const auto& ids = model.graph().input(0).type().tensor_type();
  EXPECT_EQ(ids.elem_type(), onnx::TensorProto::INT32);
  EXPECT_EQ(ids.shape().dim(0).dim_param(), "T");
}

TEST(ToOnnx, NamesThatAreNoUtf8AreRepaired) {
  Graph graph = Small();
  graph.name = graph.node(0).name = "not \xff UTF-8";
  const onnx::ModelProto model = Export(graph);
  EXPECT_EQ(model.graph().name(), "not \xEF\xBF\xBD UTF-8");
  EXPECT_EQ(model.graph().node(0).name(), "not \xEF\xBF\xBD UTF-8");
}

}  // namespace
}  // namespace weft
