// What a terminal would obey does not reach one; a pipe gets every byte.
#include <gtest/gtest.h>

#include "tests/e2e/weft.h"
#include "text/printable.h"

namespace weft {
namespace {

const std::string kModel = SmallModel("00-valid.gguf");

// Escape sequences, C1 in UTF-8 and as a bare byte, and a turned direction.
constexpr char kHostile[] = "a\033]0;x\a \u009b31m \x9b \u202e\u2066 end";

std::string IdsOf(const std::string& text) {
  std::string ids =
      WeftOut({"tokenize", kModel, "--no-special", "--no-bos", "--", text});
  ids.pop_back();
  return ids;
}

TEST(OutputGate, DetokenizeOnATerminalIsPrintable) {
  const std::string ids = IdsOf(kHostile);
  EXPECT_EQ(WeftOut({"detokenize", kModel, ids}), std::string(kHostile) + "\n");
  RunOptions terminal;
  terminal.terminal = true;
  EXPECT_EQ(WeftOut({"detokenize", kModel, ids}, terminal),
            Printable(std::string(kHostile) + "\n"));
}

// Token by token, and a model of random weights writes any byte.
TEST(OutputGate, RunOnATerminalIsPrintable) {
  const std::string model = TemporaryPath("random.gguf");
  const std::string shape = TemporaryPath("shape.json");
  WriteTextFile(shape, R"({"embedding_length": 64, "block_count": 1,
      "feed_forward_length": 64, "head_count": 2, "head_count_kv": 1,
      "vocabulary_size": 512, "context_length": 1000})");
  WeftOut({"synth", "--shape", shape, "--type", "F32", "--quiet", "-o", model});
  const std::vector<std::string> arguments = {"run",
                                              model,
                                              "-p",
                                              "a",
                                              "-n",
                                              "600",
                                              "--temperature",
                                              "1.5",
                                              "--top-k",
                                              "0",
                                              "--top-p",
                                              "1",
                                              "--repeat-penalty",
                                              "1",
                                              "--seed",
                                              "1",
                                              "--quiet"};
  const std::string text = WeftOut(arguments);
  ASSERT_NE(text.find('\033'), std::string::npos);
  RunOptions terminal;
  terminal.terminal = true;
  EXPECT_EQ(WeftOut(arguments, terminal), Printable(text));
}

TEST(OutputGate, ErrorsAreOnePrintableLineWhereverTheyGo) {
  const std::string name = "no\nweft: such\r\033[2J\u009bm\u202e.gguf";
  for (const char* command : {"run", "inspect", "dump", "eval"}) {
    const RunResult result = Weft({command, name});
    EXPECT_NE(result.exit_code, 0);
    ASSERT_FALSE(result.err.empty());
    EXPECT_EQ(Printable(result.err), result.err) << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  }
}

}  // namespace
}  // namespace weft
