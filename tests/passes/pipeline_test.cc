#include "passes/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/text_format.h"
#include "ops/op_table.h"
#include "ops/ops.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const PassEntry& pass : Pipeline()) names.push_back(pass.name);
  return names;
}

absl::Status Nothing(Graph&, const PassOptions&) { return absl::OkStatus(); }

absl::Status AddSilu(Graph& graph, const PassOptions&) {
  const auto [name, value] = graph.outputs()[0];
  const NodeId node = graph.AddNode(Node(kSiluOp, {value}, {}, "planted"),
                                    {graph.value(value).type});
  graph.SetOutput(0, graph.node(node).outputs[0]);
  return absl::OkStatus();
}

absl::Status BreakTypes(Graph& graph, const PassOptions&) {
  graph.value(graph.outputs()[0].second).type.shape = Shape{Dim::Number(3)};
  return absl::OkStatus();
}

Graph Small() {
  absl::StatusOr<Graph> graph = ParseGraph(
      "graph t tokens<=4 rows<=4 context<=4\n%0 = input x  f32[T,8]\n"
      "%1 = silu(%0)  f32[T,8]\noutput y = %1\n");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

TEST(RegisterPass, StandsWhereItWasPutUntilItsEnd) {
  const std::vector<std::string> before = Names();
  {
    const absl::StatusOr<Registration> first =
        RegisterPass({"my-first", Nothing, false}, "");
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(Names().front(), "my-first");
    const absl::StatusOr<Registration> second =
        RegisterPass({"my-second", Nothing, false}, "my-first");
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ(Names()[1], "my-second");
    const absl::StatusOr<Registration> third =
        RegisterPass({"my-third", Nothing, true}, before.back());
    ASSERT_TRUE(third.ok()) << third.status();
    EXPECT_EQ(Names().back(), "my-third");
    EXPECT_EQ(Names().size(), before.size() + 3);
    EXPECT_TRUE(CheckPassName("my-third").ok());
  }
  EXPECT_EQ(Names(), before);
  EXPECT_THAT(CheckPassName("my-third").message(),
              HasSubstr("no such pass: my-third"));
}

TEST(RegisterPass, RunsInItsPlaceAndIsRecorded) {
  const absl::StatusOr<Registration> registration =
      RegisterPass({"add-silu", AddSilu, false}, "dead-code");
  ASSERT_TRUE(registration.ok());
  Graph graph = Small();
  PipelineOptions options;
  std::vector<PassRecord> records;
  bool stopped = false;
  absl::Status s = RunPasses(graph, false, options, &records, &stopped);
  ASSERT_TRUE(s.ok()) << s;
  ASSERT_GT(records.size(), 2u);
  EXPECT_EQ(records[1].name, "add-silu");
  EXPECT_EQ(records[1].nodes_before + 1, records[1].nodes_after);
  EXPECT_EQ(graph.order().size(), 2u);

  graph = Small();
  options.disabled = {"add-silu"};
  ASSERT_TRUE(RunPasses(graph, false, options, nullptr, &stopped).ok());
  EXPECT_EQ(graph.order().size(), 1u);

  graph = Small();
  options.disabled.clear();
  options.stop_after = "add-silu";
  ASSERT_TRUE(RunPasses(graph, false, options, nullptr, &stopped).ok());
  EXPECT_TRUE(stopped);
}

TEST(RegisterPass, OneThatBreaksTheGraphIsNamed) {
  const absl::StatusOr<Registration> registration =
      RegisterPass({"break-types", BreakTypes, false}, "fuse-attention");
  ASSERT_TRUE(registration.ok());
  Graph graph = Small();
  bool stopped = false;
  const absl::Status s = RunPasses(graph, false, {}, nullptr, &stopped);
  EXPECT_THAT(s.message(), HasSubstr("pass break-types: illegal graph"));
}

void ExpectRefused(const PassEntry& pass, const std::string& after,
                   const std::string& why) {
  const std::vector<std::string> before = Names();
  const absl::StatusOr<Registration> registration = RegisterPass(pass, after);
  EXPECT_EQ(registration.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(registration.status().message(), HasSubstr(why));
  EXPECT_EQ(Names(), before);
}

TEST(RegisterPass, RefusesWhatCannotBe) {
  for (const char* name : {"", "My-pass", "a,b", "my_pass", "-x"}) {
    ExpectRefused({name, Nothing, false}, "", "give it a name");
  }
  ExpectRefused({nullptr, Nothing, false}, "", "give it a name");
  ExpectRefused({"dead-code", Nothing, false}, "",
                "dead-code: there is one of this name");
  ExpectRefused({"my-pass", nullptr, false}, "", "give it a function");
  ExpectRefused({"my-pass", Nothing, false}, "no-pass",
                "my-pass: no such pass: no-pass");
}

TEST(RegisterPass, OnceAndForEachBucketDoNotMix) {
  ExpectRefused({"my-pass", Nothing, false}, "choose-kernels",
                "it runs once, but choose-kernels for each bucket");
  ExpectRefused({"my-pass", Nothing, true}, "",
                "it runs for each bucket, but dead-code, the next, once");
  ExpectRefused({"my-pass", Nothing, true}, "dead-code", "the next, once");
  EXPECT_TRUE(RegisterPass({"my-pass", Nothing, true}, "pack-weights").ok());
  EXPECT_TRUE(RegisterPass({"my-pass", Nothing, false}, "pack-weights").ok());
  EXPECT_TRUE(RegisterPass({"my-pass", Nothing, true}, "plan-buffers").ok());
}

}  // namespace
}  // namespace weft
