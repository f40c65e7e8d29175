#include "cli/html/program_data.h"

#include <gtest/gtest.h>

#include "cli/html/page.h"
#include "graph/text_format.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "passes/passes.h"

namespace weft {
namespace {

using Json = nlohmann::json;

Graph Read(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const absl::Status legal = VerifyGraph(*graph);
  EXPECT_TRUE(legal.ok()) << legal;
  return *std::move(graph);
}

constexpr char kPlain[] = R"(graph small tokens<=8 rows<=8 context<=64
  $norm = weight  f32[64]
  %0 = input x  f32[T,64]
  %1 = rms_norm(%0, $norm) eps=1e-05  f32[T,64]  : blk.0.norm
  %2 = silu(%1)  f32[T,64]  : blk.0.act
  %3 = silu(%2)  f32[T,64]  : blk.1.act
  %4 = add(%3, %2)  f32[T,64]  : blk.1.sum
  output y = %4
)";

// A node's record in the first point that has one of this name.
Json NodeNamed(const Json& data, const std::string& name) {
  for (const Json& node : data["nodes"]) {
    if (data["strings"][node[2].get<int>()] == name) return node;
  }
  ADD_FAILURE() << name;
  return nullptr;
}

Json ValuesNamed(const Json& data, const std::string& name) {
  Json found = Json::array();
  for (const Json& value : data["values"]) {
    if (data["strings"][value[2].get<int>()] == name) found.push_back(value);
  }
  return found;
}

TEST(ScriptJson, CannotEndItsElement) {
  const std::string hostile =
      "</script><img src=x onerror=alert(1)><!--<script>&lt;\xff\"\\\n";
  const std::string text = ScriptJson({{hostile, hostile}});
  for (const char* part : {"<", ">", "&", "\xff", "\n"}) {
    EXPECT_EQ(text.find(part), std::string::npos) << part;
  }
  const Json read = Json::parse(text);
  const std::string repaired =
      "</script><img src=x onerror=alert(1)><!--<script>&lt;\xEF\xBF\xBD\"\\\n";
  EXPECT_EQ(read, Json({{repaired, repaired}}));
}

TEST(HtmlPage, HostileNamesAreDataOnly) {
  Graph graph = Read(kPlain);
  const std::string hostile = "blk.0.</script><img src=x onerror=alert(1)>";
  graph.name = graph.node(0).name = graph.value(0).name = hostile;
  ProgramData data(hostile, std::nullopt, nullptr);
  data.Add(hostile, graph);
  EXPECT_FALSE(NodeNamed(data.ToJson(), hostile).is_null());
  const std::string page = HtmlPage(data.ToJson());
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("</script><"), std::string::npos);
}

TEST(HtmlPage, IsOneFileThatNamesNoOther) {
  ProgramData data("{{script}}{{style}}", std::nullopt, nullptr);
  data.Add("{{program}}", Read(kPlain));
  const std::string page = HtmlPage(data.ToJson());
  EXPECT_EQ(page.rfind("<!doctype html>", 0), 0u);
  for (const char* part :
       {"http:", "https:", " src=", "@import", "url(", "innerHTML", "fetch("}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
  // Names of places within the data are no places.
  EXPECT_NE(page.find("\"{{script}}{{style}}\""), std::string::npos);
  EXPECT_NE(page.find("\"{{program}}\""), std::string::npos);
  // One copy of each part.
  const size_t first = page.find("function layoutGraph");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(page.find("function layoutGraph", first + 1), std::string::npos);
}

TEST(ProgramData, SaysWhatTheGraphSays) {
  ProgramData program("title", std::nullopt, nullptr);
  const Graph graph = Read(kPlain);
  program.Add("point", graph);
  const Json data = program.ToJson();
  EXPECT_EQ(data["title"], "title");
  EXPECT_EQ(data["tokens"], 8);
  ASSERT_EQ(data["points"].size(), 1u);
  const Json& point = data["points"][0];
  EXPECT_EQ(point["label"], "point");
  EXPECT_EQ(point["total"], 4);
  EXPECT_EQ(point["nodes"], Json::parse("[[0,4,0]]"));
  EXPECT_FALSE(point.contains("arena"));
  ASSERT_EQ(data["nodes"].size(), 4u);
  const Json norm = NodeNamed(data, "blk.0.norm");
  EXPECT_EQ(data["strings"][norm[1].get<int>()], "rms_norm");
  EXPECT_EQ(data["attributes"][norm[5].get<int>()],
            Json::array({"eps", 1e-05}));
  const Cost cost = NodeCost(graph, graph.node(0), graph.bounds);
  EXPECT_EQ(norm[7], cost.bytes);
  EXPECT_EQ(norm[8], cost.operations);
  const Json weight = ValuesNamed(data, "norm")[0];
  EXPECT_EQ(data["strings"][weight[1].get<int>()], "weight");
  EXPECT_EQ(data["strings"][weight[3].get<int>()], "f32[64]");
  EXPECT_EQ(weight[4], 256);
  // The operands are these values, the result is read by the next node.
  EXPECT_EQ(norm[3][1], weight[0]);
  EXPECT_EQ(NodeNamed(data, "blk.0.act")[3], norm[4]);
}

TEST(ProgramData, APointAddsOnlyWhatIsNew) {
  Graph graph = Read(kPlain);
  ProgramData program("", std::nullopt, nullptr);
  program.Add("first", graph);
  const size_t nodes = program.ToJson()["nodes"].size();
  const size_t values = program.ToJson()["values"].size();
  program.Add("same", graph);
  // Renumbered, with other ids in the graph, and one node altered.
  graph.Erase(graph.AddNode(Node(kSiluOp, {graph.FindValue("x")}),
                            {graph.value(graph.FindValue("x")).type},
                            graph.order().front()));
  Graph other = graph.Compact();
  other.node(other.order()[0]).attributes = NormAttributes{1e-6};
  program.Add("altered", other);
  const Json data = program.ToJson();
  EXPECT_EQ(data["nodes"].size(), nodes + 1);
  EXPECT_EQ(data["values"].size(), values);
  EXPECT_EQ(data["points"][1]["values"], Json::array());
  EXPECT_EQ(data["points"][1]["nodes"], data["points"][0]["nodes"]);
  EXPECT_EQ(data["points"][2]["values"], Json::array());
  // The altered record, then the old ones from the second node on.
  EXPECT_EQ(data["points"][2]["nodes"], Json::parse("[[4,1,0],[1,3,1]]"));
  EXPECT_EQ(data["nodes"][4][0], data["nodes"][0][0]);
}

TEST(ProgramData, NodesOfOneNameStayApart) {
  ProgramData program("", std::nullopt, nullptr);
  program.Add("", Read(R"(graph twins tokens<=8 rows<=8 context<=64
  %0 = input x  f32[T,64]
  %1 = silu(%0)  f32[T,64]  : twin
  %2 = silu(%1)  f32[T,64]  : twin
  output y = %2
)"));
  const Json data = program.ToJson();
  ASSERT_EQ(data["nodes"].size(), 2u);
  EXPECT_NE(data["nodes"][0][0], data["nodes"][1][0]);
  EXPECT_NE(data["nodes"][0][4], data["nodes"][1][4]);
}

TEST(ProgramData, AFilterKeepsStepsAndTotals) {
  ProgramData program("", std::nullopt,
                      [](const Node& node) { return BlockOf(node.name) == 1; });
  program.Add("", Read(kPlain));
  const Json data = program.ToJson();
  EXPECT_EQ(data["points"][0]["nodes"], Json::parse("[[0,2,2]]"));
  EXPECT_EQ(data["points"][0]["total"], 4);
  EXPECT_TRUE(ValuesNamed(data, "norm").empty());
}

TEST(ProgramData, HasTheBuffersOfAPlannedGraph) {
  ProgramData program("", std::nullopt, nullptr);
  // Eight rows of 64 floats: 2048 bytes each; silu may work in place, but %1 is
  // read again.
  program.Add(
      "",
      Read(
          R"(graph planned tokens<=8 rows<=8 context<=64 arena=4096 lower_bound=4096 sum=4096
  %0 = input x  f32[T,64]
  %1 = silu(%0)  f32[T,64]@2048  : a
  %2 = silu(%1)  f32[T,64]@0  : b
  %3 = add(%2, %1)  f32[T,64]@0  : c
  %4 = silu(%3)  f32[T,64]  : d
  output y = %4
)"));
  const Json data = program.ToJson();
  const Json& point = data["points"][0];
  EXPECT_EQ(point["arena"], Json::parse("[4096,4096,4096]"));
  Json expected = Json::array();
  const auto add = [&](const char* name, int offset, int first, int last) {
    expected.push_back(
        {NodeNamed(data, name)[4][0], -1, offset, 2048, first, last});
  };
  add("a", 2048, 0, 2);
  add("b", 0, 1, 2);
  add("c", 0, 2, 3);
  EXPECT_EQ(point["buffers"], expected);
}

TEST(ProgramData, AWeightThatPassesMadeNamesItsSources) {
  ProgramData program("", std::nullopt, nullptr);
  program.Add("before", Read(R"(graph merged tokens<=8 rows<=8 context<=64
  $q = weight  f32[16,64]
  $k = weight  f32[16,64]
  %0 = input x  f32[T,64]
  %1 = concat_rows($q, $k)  f32[32,64]  : blk.0.qk
  %2 = matmul(%0, %1)  f32[T,32]  : blk.0.qk
  output y = %2
)"));
  program.Add("after", Read(R"(graph merged tokens<=8 rows<=8 context<=64
  $blk.0.qk = weight  f32[32,64]
  %0 = input x  f32[T,64]
  %1 = matmul(%0, $blk.0.qk)  f32[T,32]  : blk.0.qk
  output y = %1
)"));
  const Json data = program.ToJson();
  const Json weights = ValuesNamed(data, "blk.0.qk");
  ASSERT_EQ(weights.size(), 1u);
  ASSERT_EQ(weights[0].size(), 7u);
  ASSERT_EQ(weights[0][6].size(), 2u);
  EXPECT_EQ(data["strings"][weights[0][6][0].get<int>()], "q");
  EXPECT_EQ(data["strings"][weights[0][6][1].get<int>()], "k");
}

TEST(ProgramData, TellsWhyKernelsWereRefused) {
  Graph graph = Read(kPlain);
  PassOptions options;  // the reference kernels
  ASSERT_TRUE(ChooseKernels(graph, options).ok());
  ProgramData program("", options.kernels, nullptr);
  program.Add("", graph);
  const Json data = program.ToJson();
  const Json refused =
      data["refusals"][NodeNamed(data, "blk.0.norm")[6].get<int>()];
  ASSERT_FALSE(refused.empty());
  bool found = false;
  for (const Json& pair : refused) {
    found |= pair[0].get<std::string>().find("avx2") != std::string::npos &&
             pair[1] == "needs avx2";
  }
  EXPECT_TRUE(found) << refused;
}

}  // namespace
}  // namespace weft
