// The page of `weft dump --format html` in a browser: Chromium without a
// screen, where it is installed (Debian's package chromium).
#include <gtest/gtest.h>
#include <signal.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/filter_process.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

constexpr char kCollectErrors[] = R"(<head><script>
const errors = [];
addEventListener('error', (event) => errors.push(event.message));
addEventListener('unhandledrejection', (event) => errors.push(event.reason));
addEventListener('securitypolicyviolation',
  (event) => errors.push('refused: ' + event.blockedURI));
for (const level of ['error', 'warn']) {
  console[level] = (...words) => errors.push(words.join(' '));
}
</script>)";

class Page : public testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    const absl::Status found =
        FilterThrough({"chromium", "--version"}, "").status();
    if (!found.ok()) {
      GTEST_SKIP() << "needs Debian's package chromium: " << found;
    }
  }

  // Opens the page and runs these functions of tests/e2e/page/checks.js.
  void Run(std::string html, const std::string& checks,
           const std::string& size = "1280,800") {
    html = absl::StrReplaceAll(html, {{"<head>", kCollectErrors}});
    const size_t end = html.rfind("</body>");
    ASSERT_NE(end, std::string::npos);
    html.insert(end, absl::StrCat("<script nonce=\"weft\">",
                                  ReadFile("tests/e2e/page/checks.js"),
                                  "runChecks(", checks, ");</script>"));
    const std::string path = TemporaryPath("page.html");
    WriteTextFile(path, html);
    const absl::StatusOr<std::string> dom = FilterThrough(
        {"chromium", "--headless", "--no-sandbox", "--disable-gpu",
         "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage",
         absl::StrCat("--user-data-dir=", TemporaryPath("profile")),
         absl::StrCat("--window-size=", size), "--virtual-time-budget=60000",
         "--dump-dom", absl::StrCat("file://", path)},
        "");
    ASSERT_TRUE(dom.ok()) << dom.status();
    const size_t begin = dom->find("<pre id=\"report\">");
    ASSERT_NE(begin, std::string::npos) << *dom;
    const std::string report =
        dom->substr(begin, dom->find("</pre>", begin) - begin);
    EXPECT_NE(report.find("\nfinished\n"), std::string::npos) << report;
    int passed = 0;
    for (absl::string_view line : absl::StrSplit(report, '\n')) {
      EXPECT_EQ(line.find("FAILED"), absl::string_view::npos) << line;
      passed += line.substr(0, 3) == "ok ";
    }
    EXPECT_GT(passed, 0);
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
      absl::StrCat("async () => equal('closed at first', state.open.size, 0), ",
                   kAllChecks));
}

TEST_F(Page, WorksOnAPhone) {
  Run(WeftOut({"dump", "", "--format", "html", "--bucket", "1"}),
      absl::StrCat("async () => check('fits', document.documentElement"
                   ".scrollWidth <= innerWidth), ",
                   kAllChecks),
      "390,844");
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
