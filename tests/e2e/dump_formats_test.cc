// The formats of weft dump: messages, pictures, the page.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "graph/serialize.h"
#include "graph/text_format.h"
#include "ops/op_table.h"
#include "tests/e2e/weft.h"
#include "third_party/onnx.pb.h"

namespace weft {
namespace {

const std::string kModel = SmallModel("00-valid.gguf");

// A folder with a program `dot` that is this shell script.
std::string FakeDot(const std::string& name, const std::string& script) {
  const std::string folder = TemporaryPath(name);
  mkdir(folder.c_str(), 0755);
  WriteTextFile(folder + "/dot", "#!/bin/sh\n" + script);
  chmod((folder + "/dot").c_str(), 0755);
  return folder;
}

// The data of a page.
nlohmann::json ProgramOf(const std::string& page) {
  const std::string begin = "<script id=\"program\" type=\"application/json\">";
  const size_t at = page.find(begin);
  EXPECT_NE(at, std::string::npos);
  const size_t from = at + begin.size();
  return nlohmann::json::parse(
      page.substr(from, page.find("</script>", from) - from), nullptr, false);
}

std::vector<std::string> LabelsOf(const nlohmann::json& program) {
  std::vector<std::string> labels;
  for (const nlohmann::json& point : program["points"]) {
    labels.push_back(point["label"]);
  }
  return labels;
}

TEST(DumpMessage, ReadsBackAsTheSameText) {
  for (const std::vector<std::string>& where :
       {std::vector<std::string>{"--before", "dead-code"},
        {"--after", "fuse-residual"},
        {"--bucket", "8"}}) {
    std::vector<std::string> arguments = {"dump", kModel};
    arguments.insert(arguments.end(), where.begin(), where.end());
    const std::string text = WeftOut(arguments);
    arguments.insert(arguments.end(), {"--format", "pb"});
    GraphProto proto;
    ASSERT_TRUE(proto.ParseFromString(WeftOut(arguments)));
    const absl::StatusOr<Graph> graph = FromProto(proto, FindOpSchema);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(Dump(*graph), text);
    // The same to a file.
    const std::string path = TemporaryPath("graph.pb");
    arguments.insert(arguments.end(), {"-o", path});
    EXPECT_EQ(WeftOut(arguments), "");
    EXPECT_EQ(ReadFile(path), proto.SerializeAsString());
  }
}

TEST(DumpMessage, IsNotForTerminalsAndHoldsWholeGraphs) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  RunOptions options;
  options.output_file = ptsname(terminal);
  for (const char* format : {"pb", "onnx"}) {
    const RunResult result =
        Weft({"dump", kModel, "--format", format}, options);
    ExpectError(result, 2);
    EXPECT_NE(result.err.find("-o FILE"), std::string::npos) << result.err;
    ExpectError(Weft({"dump", kModel, "--format", format, "--layers", "0-1"}),
                2);
  }
  close(terminal);
}

TEST(DumpOnnx, HasTheNodesOfTheGraph) {
  onnx::ModelProto model;
  ASSERT_TRUE(
      model.ParseFromString(WeftOut({"dump", kModel, "--format", "onnx"})));
  const nlohmann::json graph = WeftJson({"dump", kModel, "--format", "json"});
  ASSERT_EQ(model.graph().node_size(), static_cast<int>(graph["nodes"].size()));
  for (int i = 0; i < model.graph().node_size(); ++i) {
    EXPECT_EQ(model.graph().node(i).name(), graph["nodes"][i]["name"]);
  }
}

TEST(DumpJson, HasCosts) {
  const nlohmann::json graph =
      WeftJson({"dump", kModel, "--format", "json", "--bucket", "8"});
  int64_t operations = 0;
  for (const nlohmann::json& node : graph["nodes"]) {
    operations += node["cost"]["operations"].get<int64_t>();
    EXPECT_TRUE(node["cost"].contains("bytes"));
  }
  EXPECT_GT(operations, 1000);
  EXPECT_NE(WeftOut({"dump", kModel, "--format", "dot"}).find(" operations, "),
            std::string::npos);
}

TEST(DumpSvg, IsWhatDotMakesOfTheGraph) {
  RunOptions options;
  options.environment = {"PATH=" + FakeDot("echo",
                                           "[ \"$*\" = -Tsvg ] && exec "
                                           "/bin/cat\n")};
  EXPECT_EQ(WeftOut({"dump", kModel, "--format", "svg"}, options),
            WeftOut({"dump", kModel, "--format", "dot"}));
}

TEST(DumpSvg, DotsFailuresAreOursAndLeaveNoFile) {
  const std::string path = TemporaryPath("never.svg");
  RunOptions options;
  options.environment = {"PATH=" +
                         FakeDot("fail", "echo no layout today >&2\nexit 1\n")};
  RunResult result =
      Weft({"dump", kModel, "--format", "svg", "-o", path}, options);
  ExpectError(result, 1);
  EXPECT_NE(result.err.find("no layout today"), std::string::npos);
  options.environment = {"PATH=" + TemporaryPath("no-such-folder")};
  result = Weft({"dump", kModel, "--format", "svg", "-o", path}, options);
  ExpectError(result, 1);
  EXPECT_NE(result.err.find("graphviz"), std::string::npos);
  EXPECT_FALSE(std::ifstream(path).good());
}

TEST(DumpSvg, GraphvizTakesIt) {
  if (access("/usr/bin/dot", X_OK) != 0) {
    GTEST_SKIP() << "needs Debian's package graphviz";
  }
  const std::string svg = WeftOut({"dump", kModel, "--format", "svg"});
  EXPECT_NE(svg.find("<svg "), std::string::npos);
  EXPECT_NE(svg.find("fused_matmul"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

TEST(DumpHtml, HasEveryGraphOfThePipeline) {
  const std::string page = WeftOut({"dump", kModel, "--format", "html"});
  EXPECT_EQ(WeftOut({"dump", kModel, "--format", "html"}), page);
  const nlohmann::json program = ProgramOf(page);
  std::vector<std::string> labels = {"as loaded"};
  std::istringstream passes(WeftOut({"dump", "--list-passes"}));
  for (std::string pass; std::getline(passes, pass);) {
    labels.push_back("after " + pass);
    const nlohmann::json graph =
        WeftJson({"dump", kModel, "--after", pass, "--format", "json"});
    EXPECT_EQ(program["points"][labels.size() - 1]["total"],
              graph["nodes"].size())
        << pass;
  }
  EXPECT_EQ(LabelsOf(program), labels);
}

TEST(DumpHtml, FollowsTheFlags) {
  const auto program = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"dump", kModel, "--format", "html"});
    return ProgramOf(WeftOut(flags));
  };
  EXPECT_EQ(LabelsOf(program({"--after", "dead-code"})),
            (std::vector<std::string>{"as loaded", "after dead-code"}));
  EXPECT_EQ(LabelsOf(program({"--before", "dead-code"})),
            std::vector<std::string>{"as loaded"});
  EXPECT_EQ(
      LabelsOf(program({"--after", "fuse-qkv", "--disable-pass", "fuse-qkv"}))
          .back(),
      "after fuse-qkv (switched off)");
  const nlohmann::json one = program({"--bucket", "1"});
  EXPECT_EQ(one["tokens"], 1);
  const nlohmann::json graph =
      WeftJson({"dump", kModel, "--bucket", "1", "--format", "json"});
  EXPECT_EQ(one["points"].back()["arena"][0], graph["arena"]["bytes"]);
  EXPECT_EQ(program({})["tokens"], 512);
  const nlohmann::json layer = program({"--layers", "1"});
  int shown = 0;
  for (const nlohmann::json& run : layer["points"].back()["nodes"]) {
    shown += run[1].get<int>();
  }
  EXPECT_GT(shown, 0);
  EXPECT_LT(shown, layer["points"].back()["total"]);
  ExpectError(Weft({"dump", kModel, "--format", "html", "--bucket", "3"}), 2);
  ExpectError(Weft({"dump", kModel, "--format", "html", "--diff", "fuse-qkv"}),
              2);
}

TEST(DumpHtml, OfAPlanHasTheFinalGraph) {
  const std::string plan = TemporaryPath("page.weft");
  WeftOut({"compile", kModel, "-o", plan});
  const nlohmann::json program =
      ProgramOf(WeftOut({"dump", plan, "--format", "html"}));
  ASSERT_EQ(program["points"].size(), 1u);
  EXPECT_TRUE(program["points"][0].contains("arena"));
  EXPECT_EQ(program["title"], "page.weft");
  // And with its source the whole way.
  EXPECT_EQ(LabelsOf(ProgramOf(WeftOut({"dump", plan, "--format", "html",
                                        "--source", kModel})))
                .back(),
            "after plan-buffers");
}

TEST(DumpFormats, OthersAreRefused) {
  const RunResult result = Weft({"dump", kModel, "--format", "png"});
  ExpectError(result, 2);
  EXPECT_NE(result.err.find("text, dot, svg, json, html, pb, onnx"),
            std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace weft
