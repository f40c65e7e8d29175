// The server as the `openai` package of npm sees it (openai_client/check.mjs).
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

TEST(OpenAiClientTest, WorksAsItsUsersExpect) {
  if (std::system("npm --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "needs node and npm";
  }
  const std::string folder = TemporaryPath("client");
  const std::string install = absl::StrCat(
      "mkdir -p ", folder, " && cp tests/e2e/openai_client/* ", folder,
      " && cd ", folder,
      " && npm install --ignore-scripts --no-audit --no-fund --cache ", folder,
      "/cache >npm.log 2>&1");
  if (std::system(install.c_str()) != 0) {
    GTEST_SKIP() << "npm cannot fetch the package: "
                 << ReadFile(folder + "/npm.log");
  }
  const std::string keys = TemporaryPath("keys");
  WriteTextFile(keys, "secret\n");
  const Server server({"--api-key-file", keys});
  EXPECT_EQ(std::system(absl::StrCat("cd ", folder,
                                     " && node check.mjs http://127.0.0.1:",
                                     server.port(), " secret")
                            .c_str()),
            0);
}

}  // namespace
}  // namespace weft
