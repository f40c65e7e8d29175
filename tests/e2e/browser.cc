#include "tests/e2e/browser.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/filter_process.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

constexpr char kCollectErrors[] = R"(<head><script nonce="weft">
const errors = [];
addEventListener('error', (event) => errors.push(event.message));
addEventListener('unhandledrejection', (event) => errors.push(event.reason));
addEventListener('securitypolicyviolation',
  (event) => errors.push('refused: ' + event.blockedURI));
for (const level of ['error', 'warn']) {
  console[level] = (...words) => errors.push(words.join(' '));
}
</script>)";

}  // namespace

void NeedChromium() {
  signal(SIGPIPE, SIG_IGN);
  const absl::Status found =
      FilterThrough({"chromium", "--version"}, "").status();
  if (!found.ok()) {
    GTEST_SKIP() << "needs Debian's package chromium: " << found;
  }
}

std::string WithChecks(std::string html, const std::string& script,
                       const std::string& checks) {
  html = absl::StrReplaceAll(html, {{"<head>", kCollectErrors}});
  const size_t end = html.rfind("</body>");
  EXPECT_NE(end, std::string::npos);
  html.insert(end, absl::StrCat("<script nonce=\"weft\">", ReadFile(script),
                                "runChecks(", checks, ");</script>"));
  return html;
}

void ExpectChecksPass(const std::string& url, const std::string& size,
                      Until until) {
  std::vector<std::string> command = {
      "chromium",
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--disable-dev-shm-usage",
      absl::StrCat("--user-data-dir=", TemporaryPath("profile")),
      absl::StrCat("--window-size=", size)};
  if (until == Until::kMinuteOfItsOwn) {
    command.push_back("--virtual-time-budget=60000");
  }
  command.insert(command.end(), {"--dump-dom", url});
  const absl::StatusOr<std::string> dom = FilterThrough(command, "");
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

}  // namespace weft
