// The page of `weft dump --format html` in a browser: Chromium without a
// screen, where it is installed (Debian's package chromium).
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/e2e/browser.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

class Page : public testing::Test {
 protected:
  void SetUp() override { NeedChromium(); }

  // Opens the page and runs these functions of tests/e2e/page/checks.js.
  void Run(const std::string& html, const std::string& checks,
           const std::string& size = "1280,800") {
    const std::string path = TemporaryPath("page.html");
    WriteTextFile(path, WithChecks(html, "tests/e2e/page/checks.js", checks));
    ExpectChecksPass("file://" + path, size);
  }
};

constexpr char kAllChecks[] =
    "checkSlider, checkBlocks, checkSearch, checkDetails, checkKeyboard, "
    "checkArena, checkDrawing, checkLayouts";

TEST_F(Page, ShowsASmallModel) {
  Run(WeftOut({"dump", "", "--format", "html"}), kAllChecks);
}

TEST_F(Page, ShowsAModelOfManyBlocks) {
  const std::string shape = TemporaryPath("shape.json");
  WriteTextFile(shape, R"({"embedding_length": 64, "block_count": 22,
      "feed_forward_length": 128, "head_count": 4, "head_count_kv": 2,
      "vocabulary_size": 512, "context_length": 128})");
  const std::string model = TemporaryPath("model.gguf");
  WeftOut(
      {"synth", "--shape", shape, "--type", "Q4_0", "--quiet", "-o", model});
  Run(WeftOut({"dump", model, "--format", "html"}),
      absl::StrCat("async () => {"
                   "  equal('closed at first', state.open.size, 0);"
                   "  check('it can be read', "
                   "graphView.scale >= READABLE_SCALE, graphView.scale);"
                   "}, ",
                   kAllChecks));
}

TEST_F(Page, WorksOnAPhone) {
  Run(WeftOut({"dump", "", "--format", "html", "--bucket", "1"}),
      absl::StrCat("async () => check('fits', document.documentElement"
                   ".scrollWidth <= innerWidth), ",
                   kAllChecks),
      "390,844");
}

TEST_F(Page, ShowsMeasuredTimes) {
  const std::string profile = TemporaryPath("profile.json");
  WriteTextFile(profile, WeftOut({"profile", "", "--prompt", "16", "--generate",
                                  "2", "--json", "--quiet"}));
  Run(WeftOut({"dump", "", "--format", "html", "--profile", profile}),
      "checkTimes");
  for (const char* other : {"", "[]", R"({"phases": [{}]})",
                            R"({"phases": [{"name": "x", "steps": 1,
                                "nodes": [{"name": 1, "seconds": 2}]}]})"}) {
    WriteTextFile(profile, other);
    ExpectError(Weft({"dump", "", "--format", "html", "--profile", profile}),
                1);
  }
  ExpectError(Weft({"dump", "", "--profile", profile}), 2);
}

TEST_F(Page, SetsTwoProfilesSideBySide) {
  std::vector<std::string> dump = {"dump", "", "--format", "html"};
  for (const char* name : {"a.json", "b.json"}) {
    const std::string profile = TemporaryPath(name);
    WriteTextFile(profile, WeftOut({"profile", "", "--prompt", "16",
                                    "--generate", "2", "--json", "--quiet"}));
    dump.insert(dump.end(), {"--profile", profile});
  }
  Run(WeftOut(dump), "checkTwoProfiles");
}

TEST_F(Page, IsWrittenByProfileItself) {
  const std::string page = TemporaryPath("profile.html");
  WeftOut({"profile", "", "--prompt", "16", "--generate", "2", "--html", page,
           "--quiet"});
  Run(ReadFile(page), "checkTimes");
}

TEST_F(Page, ShowsAPlanAndSomeLayers) {
  const std::string plan = TemporaryPath("model.weft");
  WeftOut({"compile", "models/austen-Q8_0.gguf", "-o", plan, "--quiet"});
  Run(WeftOut({"dump", plan, "--format", "html", "--layers", "1-2"}),
      "async () => {"
      "  equal('one point', program.points.length, 1);"
      "  check('the slider rests', $('point').disabled);"
      "  equal('blocks', [...blocksOf(state.point)].join(), '1,2');"
      "  check('the rest is counted', state.point.total > "
      "state.point.nodes.length);"
      "  openAll(blocksOf(state.point));"
      "  check('what comes from elsewhere', layout.items.some((item) => "
      "item.kind === 'source' && itemText(item).includes('not shown')));"
      "}, checkBlocks, checkKeyboard, checkDrawing, checkLayouts");
}

TEST_F(Page, NamesFromFilesAreText) {
  RunOptions options;
  options.input =
      "graph hostile tokens<=8 rows<=8 context<=64\n"
      "  %0 = input x  f32[T,64]\n"
      "  %1 = silu(%0)  f32[T,64]  : \"</script><img src=x "
      "onerror=attacked=1>\"\n"
      "  output y = %1\n";
  Run(WeftOut({"dump", "--from-text", "-", "--format", "html"}, options),
      "checkHostileNames");
}

}  // namespace
}  // namespace weft
