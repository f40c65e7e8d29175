// Every file of the manifest, through the command line: what is bad is refused
// with one line and without a trace of it in memory, time or on standard
// output.
#include <gtest/gtest.h>

#include "tests/e2e/weft.h"

namespace weft {
namespace {

TEST(Malformed, EveryFileEndsAsTheManifestSays) {
  const nlohmann::json manifest =
      nlohmann::json::parse(ReadFile(SmallModel("manifest.json")));
  ASSERT_GT(manifest.size(), 30u);
  for (const nlohmann::json& entry : manifest) {
    const std::string file = entry["file"].get<std::string>();
    SCOPED_TRACE(file + ": " + entry["why_bad"].get<std::string>());
    RunOptions options;
    options.memory_limit = 2'000'000 * int64_t{1024};
    const RunResult result =
        Weft({"run", SmallModel(file), "-p", "hello", "-n", "4",
              "--temperature", "0", "--context", "64"},
             options);
    EXPECT_EQ(result.signal, 0);
    const bool ok = entry["expected"] == "ok";
    // Not strict: either outcome, but a clean one.
    if (!entry["strict"].get<bool>() && (result.exit_code == 0) != ok) {
      EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 1);
      continue;
    }
    if (ok) {
      EXPECT_EQ(result.exit_code, 0) << result.err;
      continue;
    }
    ExpectError(result, 1);
    EXPECT_NE(result.err.find(file), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("bad_alloc"), std::string::npos) << result.err;
  }
}

TEST(Malformed, OtherCommandsRefuseThemToo) {
  for (const char* file : {"02-dim-product-wraps.gguf", "35-cut-in-tokens.gguf",
                           "42-heads-3.gguf", "61-n-kv-2e40.gguf"}) {
    const std::string model = SmallModel(file);
    SCOPED_TRACE(file);
    ExpectError(Weft({"inspect", model}), 1);
    ExpectError(Weft({"dump", model}), 1);
    ExpectError(Weft({"eval", model, "--tokens", "1"}), 1);
    ExpectError(Weft({"bench", model}), 1);
    if (file[0] != '4') {
      ExpectError(Weft({"tokenize", model, "a"}), 1);
      ExpectError(
          Weft({"quantize", model, TemporaryPath("never.gguf"), "Q8_0"}), 1);
    }
  }
}

TEST(Malformed, GraphTextIsRefusedWithTheLine) {
  const std::string path = TemporaryPath("bad.txt");
  for (const char* text :
       {"", "graph", "graph g tokens<=1 rows<=1 context<=1\n  %0 = nonsense",
        "graph g tokens<=1 rows<=1 context<=1\n  output x = %0\n",
        "graph g tokens<=1 rows<=1 context<=1\n  %0 = input ids  i32[T]\n"}) {
    WriteTextFile(path, text);
    ExpectError(Weft({"dump", "--from-text", path}), 1);
  }
}

}  // namespace
}  // namespace weft
