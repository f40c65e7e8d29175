// One pass on one small graph: what it makes of it, written in text.
//
// A case is a file of data/<pass>/:
//
//   # what the case shows
//   isa: avx2            (of passes that choose kernels; absent: ref)
//   rank: 1 of 2         (of those that leave a rank's part; absent: 0 of 1)
//   weights: random      (of passes that read them; absent: they have no bytes)
//   == before ==
//   graph ...
//   == after ==          or: == unchanged ==
//   graph ...
//
// Both graphs are verified and numbered anew before they are compared, so names
// of values and comments are free. WEFT_UPDATE_GOLDEN=<data folder> writes what
// the passes do now; read it before you keep it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/text_format.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "passes/pipeline.h"
#include "tests/passes/random_weights.h"

namespace weft {
namespace {

constexpr char kData[] = "tests/passes/data";

std::vector<std::string> ListCases() {
  std::vector<std::string> names;
  const std::filesystem::path root = kData;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".txt") {
      names.push_back(entry.path().lexically_relative(root).string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Case {
  std::string head;  // up to and with the line "== before =="
  std::string before, after;
  bool unchanged = false;
  Isa isa = Isa::kRef;
  bool random_weights = false;
  ShardOptions shard;
};

Case ReadCase(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  Case result;
  std::string* part = &result.head;
  for (absl::string_view line : absl::StrSplit(text.str(), '\n')) {
    const bool after = line == "== after ==";
    result.unchanged |= line == "== unchanged ==";
    if (after || result.unchanged) {
      part = &result.after;
      continue;
    }
    absl::StrAppend(part, line, "\n");
    if (line == "== before ==") part = &result.before;
    if (part != &result.head) continue;
    if (absl::ConsumePrefix(&line, "isa: ")) result.isa = *IsaFromName(line);
    if (absl::ConsumePrefix(&line, "rank: ")) {
      const std::vector<std::string> numbers = absl::StrSplit(line, " of ");
      result.shard = {std::stoi(numbers.at(0)), std::stoi(numbers.at(1))};
    }
    if (line == "weights: random") result.random_weights = true;
  }
  return result;
}

const PassEntry* FindPass(absl::string_view name) {
  for (const PassEntry& pass : Pipeline()) {
    if (name == pass.name) return &pass;
  }
  return nullptr;
}

// Parsed and verified. What nobody reads is still there: a pass may look for
// it.
absl::StatusOr<Graph> ReadGraph(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  if (!graph.ok()) return graph;
  if (absl::Status s = VerifyGraph(*graph); !s.ok()) return s;
  return graph;
}

// Lines that only one of the two has, in order, with those in common around
// them.
std::string Diff(const std::string& want, const std::string& found) {
  const std::vector<std::string> a = absl::StrSplit(want, '\n');
  const std::vector<std::string> b = absl::StrSplit(found, '\n');
  std::vector<std::vector<int>> common(a.size() + 1,
                                       std::vector<int>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i][j] = a[i] == b[j]
                         ? common[i + 1][j + 1] + 1
                         : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string diff;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      absl::StrAppend(&diff, "  ", a[i++], "\n");
      ++j;
    } else if (j == b.size() ||
               (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
      absl::StrAppend(&diff, "- ", a[i++], "\n");
    } else {
      absl::StrAppend(&diff, "+ ", b[j++], "\n");
    }
  }
  return diff;
}

class GoldenPass : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenPass, GivesTheGraphInTheFile) {
  const std::string path = absl::StrCat(kData, "/", GetParam());
  const Case golden = ReadCase(path);
  if (golden.isa != Isa::kRef &&
      FindKernel("attention_f16_64_avx2") == nullptr) {
    GTEST_SKIP() << "kernels of another processor";
  }
  const std::string name = GetParam().substr(0, GetParam().find('/'));
  const PassEntry* pass = FindPass(name);
  ASSERT_NE(pass, nullptr) << "the folder is the pass's name: " << name;

  absl::StatusOr<Graph> graph = ReadGraph(golden.before);
  ASSERT_TRUE(graph.ok()) << "before: " << graph.status();
  const std::string before = Dump(graph->Compact());
  if (golden.random_weights) FillWeights(&*graph, 1);
  PassOptions options;
  options.kernels.isa = golden.isa;
  options.shard = golden.shard;
  const absl::Status ran = pass->run(*graph, options);
  ASSERT_TRUE(ran.ok()) << ran;
  const absl::Status legal = VerifyGraph(*graph);
  ASSERT_TRUE(legal.ok()) << legal << "\n" << Dump(*graph);
  const std::string found = Dump(graph->Compact());

  std::string want = before;
  if (!golden.unchanged) {
    absl::StatusOr<Graph> after = ReadGraph(golden.after);
    if (after.ok()) {
      want = Dump(after->Compact());
    } else {
      want = after.status().ToString();
    }
    EXPECT_NE(found, before) << "the pass did nothing: say == unchanged ==";
  }
  if (const char* folder = std::getenv("WEFT_UPDATE_GOLDEN");
      folder != nullptr && found != want) {
    std::ofstream out(absl::StrCat(folder, "/", GetParam()));
    out << golden.head << golden.before
        << (found == before ? "== unchanged ==\n" : "== after ==\n" + found);
  }
  EXPECT_EQ(want, found) << "- wanted, + found:\n" << Diff(want, found);
}

std::string CaseName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.size() - 4);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenPass, ::testing::ValuesIn(ListCases()),
                         CaseName);

TEST(GoldenPasses, EveryPassHasThreeCases) {
  const std::vector<std::string> cases = ListCases();
  for (const PassEntry& pass : Pipeline()) {
    const auto of_pass =
        std::count_if(cases.begin(), cases.end(), [&](const std::string& name) {
          return absl::StartsWith(name, absl::StrCat(pass.name, "/"));
        });
    EXPECT_GE(of_pass, 3) << pass.name;
  }
}

}  // namespace
}  // namespace weft
