// The server as clients of npm see it (clients/*.mjs), each in a version that
// clients/package.json pins.
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

class ClientTest : public testing::TestWithParam<const char*> {
 protected:
  // Packages are fetched once for all.
  static void SetUpTestSuite() {
    folder_ = new std::string(TemporaryPath("clients"));
    if (std::system("npm --version >/dev/null 2>&1") != 0) {
      why_not_ = new std::string("needs node and npm");
      return;
    }
    const std::string install =
        absl::StrCat("mkdir -p ", *folder_, " && cp tests/e2e/clients/* ",
                     *folder_, " && cd ", *folder_,
                     " && npm install --ignore-scripts --no-audit --no-fund "
                     "--legacy-peer-deps --cache ",
                     *folder_, "/cache >npm.log 2>&1");
    if (std::system(install.c_str()) != 0) {
      why_not_ = new std::string(absl::StrCat("npm cannot fetch the packages: ",
                                              ReadFile(*folder_ + "/npm.log")));
      return;
    }
    const std::string keys = TemporaryPath("keys");
    WriteTextFile(keys, "secret\n");
    server_ = new Server({"--api-key-file", keys});
  }
  static void TearDownTestSuite() { delete server_; }

  static std::string *folder_, *why_not_;
  static Server* server_;
};

std::string* ClientTest::folder_ = nullptr;
std::string* ClientTest::why_not_ = nullptr;
Server* ClientTest::server_ = nullptr;

TEST_P(ClientTest, WorksAsItsUsersExpect) {
  if (why_not_ != nullptr) GTEST_SKIP() << *why_not_;
  const std::string command =
      absl::StrCat("cd ", *folder_, " && node ", GetParam(),
                   ".mjs http://127.0.0.1:", server_->port(), " secret");
  EXPECT_EQ(std::system(command.c_str()), 0);
}

INSTANTIATE_TEST_SUITE_P(All, ClientTest,
                         testing::Values("openai", "ai", "anthropic", "ollama",
                                         "langchain", "instructor"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft
