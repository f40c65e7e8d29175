// Commands that write model files, and those that need a vocabulary only.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "tests/e2e/weft.h"

namespace weft {
namespace {

const std::string kModel = SmallModel("00-valid.gguf");

TEST(Tokenize, TextComesBack) {
  for (const char* text : {"hello", " two  spaces ", "",
                           "\xF0\x9F\xA6\x99 llama", "-dash", "line\nbreak"}) {
    const std::string ids =
        WeftOut({"tokenize", kModel, "--no-special", "--", text});
    EXPECT_EQ(ids.back(), '\n');
    const std::string joined = ids.substr(0, ids.size() - 1);
    EXPECT_EQ(joined.find_first_not_of("0123456789,"), std::string::npos);
    EXPECT_EQ(WeftOut({"detokenize", kModel, joined}),
              std::string(text) + "\n");
  }
}

TEST(Tokenize, GivesTheIdsOfTheReference) {
  EXPECT_EQ(WeftOut({"tokenize", kModel, "hello"}), "1,286,264,290\n");
  EXPECT_EQ(WeftOut({"tokenize", kModel, "hello", "--no-bos"}),
            "286,264,290\n");
}

TEST(Tokenize, ReadsFilesAsTheyAre) {
  const std::string path = TemporaryPath("text.txt");
  WriteTextFile(path, "hello\n");
  RunOptions options;
  options.input = "hello\n";
  const std::string ids = WeftOut({"tokenize", kModel, "hello\n"});
  EXPECT_EQ(WeftOut({"tokenize", kModel, "-f", path}), ids);
  EXPECT_EQ(WeftOut({"tokenize", kModel, "-f", "-"}, options), ids);
}

TEST(Tokenize, JsonIsValidForHalfCharacters) {
  const nlohmann::json json =
      WeftJson({"tokenize", kModel, "\xF0\x9F\xA6\x99", "--json", "--no-bos"});
  ASSERT_EQ(json["tokens"].size(), json["pieces"].size());
  std::string bytes;
  for (const nlohmann::json& piece : json["pieces"]) {
    if (piece.is_string()) {
      bytes += piece.get<std::string>();
    } else {
      for (int byte : piece) bytes += static_cast<char>(byte);
    }
  }
  EXPECT_EQ(bytes, " \xF0\x9F\xA6\x99");
}

TEST(Tokenize, ControlTokensInTextAndASecondBos) {
  const RunResult twice = Weft({"tokenize", kModel, "<s>hello"});
  EXPECT_EQ(twice.exit_code, 0);
  EXPECT_EQ(twice.out.rfind("1,", 0), 0u);
  EXPECT_NE(twice.out.rfind("1,1,", 0), 0u) << twice.out;
  EXPECT_NE(twice.err.find("BOS"), std::string::npos);
  const RunResult quiet = Weft({"tokenize", kModel, "<s>hello", "--quiet"});
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(quiet.out, twice.out);
  const RunResult plain =
      Weft({"tokenize", kModel, "<s>hello", "--no-special"});
  EXPECT_EQ(plain.err, "");
  EXPECT_GT(plain.out.size(), twice.out.size());
}

TEST(Tokenize, AVocabularyAloneSuffices) {
  const char* folder = std::getenv("WEFT_VOCAB_DIR");
  const std::string model =
      std::string(folder != nullptr ? folder : "../shared/vocab") +
      "/ggml-vocab-llama-spm.gguf";
  if (access(model.c_str(), R_OK) != 0) GTEST_SKIP() << "no " << model;
  EXPECT_EQ(WeftOut({"tokenize", model, "Hello world"}), "1,15043,3186\n");
  EXPECT_EQ(WeftOut({"detokenize", model, "1,15043,3186"}), "Hello world\n");
  EXPECT_EQ(WeftJson({"inspect", model, "--json"})["model"]["vocabulary"],
            32000);
}

TEST(Quantize, TheResultRunsAndSaysNearlyTheSame) {
  // From the small float model: 32 columns, whole blocks of Q8_0.
  const std::string path = TemporaryPath("q8.gguf");
  EXPECT_NE(WeftOut({"quantize", kModel, path, "Q8_0"}).find(path),
            std::string::npos);
  const auto logits = [](const std::string& model) {
    const std::string rows = TemporaryPath("quantized.bin");
    WeftOut({"eval", model, "--tokens", "1,286,264,290", "--logits", rows});
    return ReadFile(rows);
  };
  const std::string before = logits(kModel), after = logits(path);
  ASSERT_EQ(before.size(), after.size());
  const float* a = reinterpret_cast<const float*>(before.data());
  const float* b = reinterpret_cast<const float*>(after.data());
  double worst = 0;
  for (size_t i = 0; i < before.size() / 4; ++i) {
    worst = std::max(worst, std::abs(double{a[i]} - b[i]));
  }
  EXPECT_LT(worst, 0.15);
  EXPECT_GT(worst, 0);
}

TEST(Quantize, RowsThatDoNotFitAreWarnedAbout) {
  const RunResult result =
      Weft({"quantize", kModel, TemporaryPath("q4k.gguf"), "Q4_K"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("no multiple"), std::string::npos) << result.err;
  EXPECT_EQ(Weft({"run", TemporaryPath("q4k.gguf"), "-n", "2"}).exit_code, 0);
}

TEST(Quantize, NothingIsLeftAfterAFailure) {
  const std::string path = TemporaryPath("never.gguf");
  ExpectError(Weft({"quantize", "", path, "Q4_0"}), 1);
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(Quantize, NeverOntoItsSource) {
  const std::string path = TemporaryPath("both.gguf");
  WriteTextFile(path, ReadFile(kModel));
  ExpectError(Weft({"quantize", path, path, "Q8_0"}), 2);
  EXPECT_EQ(ReadFile(path), ReadFile(kModel));
}

// Whatever is read stays, by whatever path it is written to.
TEST(Files, NoCommandWritesOverWhatItReads) {
  const std::string model = TemporaryPath("input.gguf"),
                    text = TemporaryPath("input.txt"),
                    matrix = TemporaryPath("input.imatrix"),
                    shape = TemporaryPath("input.json"),
                    link = TemporaryPath("link");
  WriteTextFile(model, ReadFile(kModel));
  WriteTextFile(text, ReadFile("models/austen-heldout.txt").substr(0, 1500));
  WriteTextFile(matrix, "matrix");
  WriteTextFile(shape, "{}");
  remove(link.c_str());
  ASSERT_EQ(symlink(model.c_str(), link.c_str()), 0);
  const std::string part = TemporaryPath("split-00001-of-00002.gguf"),
                    other_part = TemporaryPath("split-00002-of-00002.gguf");
  WriteTextFile(part, "GGUF");
  WriteTextFile(other_part, "GGUF");
  const std::vector<std::vector<std::string>> wrong = {
      {"quantize", model, link, "Q8_0"},
      {"quantize", model, matrix, "Q8_0", "--imatrix", matrix},
      {"quantize", part, other_part, "Q8_0"},
      {"imatrix", model, "-f", text, "-o", text},
      {"imatrix", model, "-f", text, "-o", link},
      {"perplexity", model, "-f", text, "--kl-save", text},
      {"perplexity", model, "-f", text, "--kl-save", link},
      {"compile", model, "-o", link},
      {"eval", model, "--tokens", "1,2", "--logits", link},
      {"dump", model, "-o", link},
      {"dump", "--from-text", text, "-o", text},
      {"profile", model, "--trace", link},
      {"synth", "--shape", shape, "--type", "F32", "-o", shape},
      {"serve", model, "--log-requests", link},
  };
  for (const std::vector<std::string>& line : wrong) {
    const RunResult result = Weft(line);
    ExpectError(result, 2);
    EXPECT_NE(result.err.find("is read too"), std::string::npos) << result.err;
  }
  EXPECT_EQ(ReadFile(model), ReadFile(kModel));
  EXPECT_EQ(ReadFile(matrix), "matrix");
}

// A rename would put a plain file in the place of what is no file.
TEST(Output, PipesAndLinksStayWhatTheyAre) {
  const std::string link = TemporaryPath("link.txt");
  const std::string target = TemporaryPath("target.txt");
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  WeftOut({"dump", kModel, "-o", link});
  EXPECT_EQ(ReadFile(target), WeftOut({"dump", kModel}));
  char to[4096];
  EXPECT_GT(readlink(link.c_str(), to, sizeof(to)), 0);

  const std::string pipe = TemporaryPath("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = ReadFile(pipe); });
  WeftOut({"dump", kModel, "-o", pipe});
  reader.join();
  EXPECT_EQ(received, ReadFile(target));
  ExpectError(Weft({"compile", kModel, "-o", pipe}), 1);
  ExpectError(Weft({"quantize", kModel, pipe, "Q8_0"}), 1);
  struct stat info;
  ASSERT_EQ(stat(pipe.c_str(), &info), 0);
  EXPECT_TRUE(S_ISFIFO(info.st_mode));
}

// Nobody writes to it: whoever waited for it would wait for ever.
TEST(Model, APipeIsRefusedAtOnce) {
  const std::string pipe = TemporaryPath("model.pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string out = TemporaryPath("of-pipe");
  const std::vector<std::vector<std::string>> commands = {
      {"run", pipe},
      {"compile", pipe, "-o", out},
      {"dump", pipe},
      {"inspect", pipe},
      {"inspect", pipe, "--check"},
      {"eval", pipe, "--tokens", "1", "--context", "8"},
      {"perplexity", pipe, "--file", kModel},
      {"tokenize", pipe, "x"},
      {"detokenize", pipe, "1"},
      {"verify", pipe},
      {"profile", pipe},
      {"bench", pipe},
      {"quantize", pipe, out, "Q8_0"},
      {"serve", pipe, "--port", "0"},
      {"chat", pipe},
      {"run", "/dev/zero"},
  };
  for (const std::vector<std::string>& command : commands) {
    const RunResult result = Weft(command);
    ExpectError(result, 1);
    EXPECT_NE(result.err.find("not a regular file"), std::string::npos)
        << command[0] << ": " << result.err;
  }
}

TEST(Plan, WithoutWeightsKnowsItsModelFile) {
  const std::string model = TemporaryPath("referred.gguf");
  const std::string plan = TemporaryPath("reference.weft");
  std::string bytes = ReadFile(kModel);
  WriteTextFile(model, bytes);
  WeftOut({"compile", model, "-o", plan, "--weights", "reference"});
  WeftOut({"inspect", plan, "--check"});
  // A weight that changed in place.
  bytes[bytes.size() - 100] ^= 1;
  WriteTextFile(model, bytes);
  ExpectError(Weft({"inspect", plan, "--check"}), 1);
  ExpectError(Weft({"run", plan}), 1);
  bytes += "more";
  WriteTextFile(model, bytes);
  ExpectError(Weft({"run", plan}), 1);
}

TEST(Plan, IsInspectedDumpedAndCheckedLikeItsModel) {
  const std::string path = TemporaryPath("model.weft");
  WeftOut({"compile", kModel, "-o", path});
  const nlohmann::json plan = WeftJson({"inspect", path, "--check", "--json"});
  const nlohmann::json model = WeftJson({"inspect", kModel, "--json"});
  EXPECT_EQ(plan["model"], model["model"]);
  EXPECT_EQ(plan["plan"]["kernels"], model["plan"]["kernels"]);
  EXPECT_EQ(WeftOut({"dump", path}), WeftOut({"dump", kModel}));
  EXPECT_EQ(WeftOut({"tokenize", path, "hello"}), "1,286,264,290\n");
  const std::vector<std::string> earlier = {"dump", path, "--after",
                                            "fuse-qkv"};
  ExpectError(Weft(earlier), 2);
  std::vector<std::string> with_source = earlier;
  with_source.insert(with_source.end(), {"--source", kModel});
  EXPECT_EQ(WeftOut(with_source),
            WeftOut({"dump", kModel, "--after", "fuse-qkv"}));
  std::vector<std::string> other_source = earlier;
  other_source.insert(other_source.end(),
                      {"--source", "models/austen-Q8_0.gguf"});
  ExpectError(Weft(other_source), 1);
  ExpectError(Weft({"inspect", path, "--kv-type", "f32"}), 2);
  ExpectError(Weft({"inspect", kModel, "--check"}), 2);
  ExpectError(Weft({"inspect", "no-such-file", "--check"}), 1);
  // One weight's byte turned: the checksum tells.
  std::string bytes = ReadFile(path);
  bytes[bytes.size() - 100] ^= 1;
  WriteTextFile(path, bytes);
  ExpectError(Weft({"inspect", path, "--check"}), 1);
  const RunResult eval = Weft({"eval", path, "--tokens", "1,5,9"});
  ExpectError(eval, 1);
  EXPECT_NE(eval.err.find("checksum is wrong"), std::string::npos) << eval.err;
}

TEST(Synth, MakesAModelThatInspectsAndRuns) {
  const std::string shape = TemporaryPath("shape.json");
  WriteTextFile(shape, R"({"embedding_length": 64, "block_count": 2,
      "feed_forward_length": 128, "head_count": 4, "head_count_kv": 2,
      "vocabulary_size": 512, "context_length": 128})");
  const std::string path = TemporaryPath("synth.gguf");
  const std::vector<std::string> arguments = {
      "synth", "--shape", shape, "--type", "Q4_0", "--seed", "3", "-o", path};
  WeftOut(arguments);
  const std::string first = ReadFile(path);
  WeftOut(arguments);
  EXPECT_TRUE(ReadFile(path) == first);
  const nlohmann::json json = WeftJson({"inspect", path, "--json"});
  EXPECT_EQ(json["model"]["block_count"], 2);
  EXPECT_EQ(json["model"]["vocabulary"], 512);
  EXPECT_EQ(json["model"]["context_length"], 128);
  EXPECT_GE(json["plan"]["packed_overhead"], -0.001);
  EXPECT_LT(json["plan"]["packed_overhead"], 0.2);
  EXPECT_EQ(WeftJson({"run", path, "-p", "hello", "-n", "4", "--temperature",
                      "0", "--json"})
                .value("stop_reason", ""),
            "length");
}

TEST(Synth, ABadShapeFileIsAFailure) {
  const std::string shape = TemporaryPath("bad.json");
  WriteTextFile(shape, "{\"embedding_length\": ");
  ExpectError(Weft({"synth", "--shape", shape, "--type", "Q4_0", "-o",
                    TemporaryPath("bad.gguf")}),
              1);
}

TEST(Bench, RecurrentStatesGoOnBehindADepth) {
  const std::string model = "tests/data/golden/recurrent/qwen35-head64.gguf";
  std::vector<std::string> arguments = {
      "bench",     model, "--prompt", "8", "--generate", "4", "--depth", "20",
      "--context", "32",  "--repeat", "2", "--json"};
  const nlohmann::json json = WeftJson(arguments);
  EXPECT_GT(json["decode_tokens_per_second"]["min"], 0);
  // A run more would not fit.
  arguments[11] = "3";
  ExpectError(Weft(arguments), 2);
}

TEST(Bench, JsonHasTheKeysOfTheContract) {
  for (const auto& [batch, depth] : {std::pair("1", "0"), {"3", "70"}}) {
    const nlohmann::json json = WeftJson(
        {"bench", "--prompt", "16", "--generate", "8", "--depth", depth,
         "--batch", batch, "--repeat", "2", "--limits", "--json"});
    EXPECT_EQ(json["depth"].dump(), depth);
    for (const char* rate :
         {"prefill_tokens_per_second", "decode_tokens_per_second"}) {
      EXPECT_GT(json[rate]["min"], 0);
      EXPECT_LE(json[rate]["min"], json[rate]["median"]);
      EXPECT_LE(json[rate]["median"], json[rate]["max"]);
    }
    EXPECT_GT(json["load_seconds"], 0);
    EXPECT_GT(json["peak_rss_bytes"], 1 << 20);
    EXPECT_GE(json["threads"], 1);
    EXPECT_TRUE(json["isa"].is_string());
    EXPECT_EQ(json["allocations_per_decode_step"], 0);
    for (const char* key : {"int8_ops", "tile_int8_ops", "bf16_flops",
                            "f32_flops", "read_bytes_per_second"}) {
      EXPECT_TRUE(json["limits"].contains(key)) << key;
    }
    EXPECT_GT(json["shares"]["decode_of_read_bytes"], 0);
  }
}

}  // namespace
}  // namespace weft
