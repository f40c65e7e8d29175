// weft run and weft eval: text and numbers.
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "base/mapped_file.h"
#include "loaders/gguf_parser.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

std::vector<int> Greedy(const std::string& model, int count,
                        std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"run",
                                        model,
                                        "-p",
                                        "hello",
                                        "--temperature",
                                        "0",
                                        "--repeat-penalty",
                                        "1",
                                        "-n",
                                        std::to_string(count),
                                        "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const nlohmann::json json = WeftJson(arguments);
  EXPECT_TRUE(json.contains("tokens")) << json;
  return json.value("tokens", std::vector<int>());
}

TEST(Run, GreedyTokensAreThoseOfTheReference) {
  const nlohmann::json reference =
      nlohmann::json::parse(ReadFile(SmallModel("reference.json")));
  for (const auto& [file, entry] : reference.items()) {
    EXPECT_EQ(Greedy(SmallModel(file), entry["greedy"].size()),
              entry["greedy"].get<std::vector<int>>())
        << file;
  }
}

TEST(Run, HarmlessOdditiesOfAFileDoNotChangeTheResult) {
  const std::vector<int> plain = Greedy(SmallModel("00b-valid-micro.gguf"), 8);
  EXPECT_EQ(Greedy(SmallModel("26-v2.gguf"), 8), plain);
  EXPECT_EQ(Greedy(SmallModel("18-align-64.gguf"), 8), plain);
  EXPECT_EQ(Greedy(SmallModel("48-no-kv-heads-mha.gguf"), 8).size(), 8u);
  EXPECT_EQ(
      Greedy(SmallModel("49-ctx-4294967295.gguf"), 8, {"--context", "64"}),
      plain);
}

TEST(Run, HugeContextIsCapped) {
  const nlohmann::json json =
      WeftJson({"inspect", SmallModel("49-ctx-4294967295.gguf"), "--json"});
  EXPECT_EQ(json["plan"]["context"], 4096);
}

TEST(Run, HugePagesThatAreRefusedAreSaidToBe) {
  const std::vector<std::string> arguments = {
      "run", "-p", "It", "-n", "4", "--temperature", "0"};
  std::vector<std::string> asking = arguments;
  asking.push_back("--hugepages");
  // Of this process and those that it starts.
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  const RunResult refused = Weft(asking);
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
  EXPECT_EQ(refused.exit_code, 0);
  EXPECT_TRUE(absl::StrContains(
      refused.err, "weft: --hugepages: they are switched off for this process"))
      << refused.err;
  EXPECT_EQ(refused.out, WeftOut(arguments));
}

TEST(Run, TextIsWhatJsonSaysAndOneNewline) {
  const std::vector<std::string> arguments = {
      "run", "-p", "It is a truth", "-n", "20", "--seed", "9"};
  std::vector<std::string> as_json = arguments;
  as_json.push_back("--json");
  const nlohmann::json json = WeftJson(as_json);
  EXPECT_EQ(WeftOut(arguments), json["text"].get<std::string>() + "\n");
  EXPECT_EQ(json["generated_tokens"], json["tokens"].size());
  EXPECT_EQ(json["seed"], 9);
  for (const char* key :
       {"prompt_tokens", "generated_tokens", "text", "tokens",
        "prefill_seconds", "decode_seconds", "seed", "stop_reason"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
}

TEST(Run, SameSeedSameTextOtherSeedOtherText) {
  const auto run = [](const char* seed) {
    return WeftOut({"run", "-n", "30", "--seed", seed});
  };
  EXPECT_EQ(run("3"), run("3"));
  EXPECT_NE(run("3"), run("4"));
}

TEST(Run, DefaultPromptIsNoPartOfTheText) {
  const std::string prompt = "It is a truth universally acknowledged, that";
  EXPECT_EQ(WeftOut({"run", "-n", "12", "--seed", "1"}),
            WeftOut({"run", "-n", "12", "--seed", "1", "-p", prompt}));
}

TEST(Run, PromptFromFileOrStandardInputIsTheSamePrompt) {
  const std::string prompt = "Emma Woodhouse, handsome,";
  const std::string path = TemporaryPath("prompt.txt");
  WriteTextFile(path, prompt);
  const std::string expected =
      WeftOut({"run", "-n", "8", "--seed", "1", "-p", prompt});
  EXPECT_EQ(WeftOut({"run", "-n", "8", "--seed", "1", "-f", path}), expected);
  RunOptions options;
  options.input = prompt;
  EXPECT_EQ(WeftOut({"run", "-n", "8", "--seed", "1", "-f", "-"}, options),
            expected);
}

TEST(Run, StopsAtTheEndOfTheContextOrShiftsIt) {
  const std::string model = SmallModel("00-valid.gguf");
  const std::vector<std::string> arguments = {
      "run", model, "-p", "hello", "--seed", "1", "-n", "200", "--json"};
  const nlohmann::json stopped = WeftJson(arguments);
  if (stopped["stop_reason"] == "context") {
    EXPECT_EQ(stopped["prompt_tokens"].get<int>() +
                  stopped["generated_tokens"].get<int>(),
              65);  // the last one is drawn from the full context
  }
  std::vector<std::string> shifting = arguments;
  shifting.insert(shifting.end(), {"--context-overflow", "shift"});
  const nlohmann::json shifted = WeftJson(shifting);
  EXPECT_NE(shifted["stop_reason"], "context");
}

std::vector<std::string> GreedyRun(std::vector<std::string> more) {
  std::vector<std::string> arguments = {
      "run", "-p", "It is", "-n", "12", "--temperature", "0", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Run, APromptThatIsKeptGivesTheSameSooner) {
  const std::string folder = TemporaryPath("kept-prompts");
  std::filesystem::remove_all(folder);
  std::string prompt;
  for (int i = 0; i < 40; ++i) prompt += "It is a truth universally known. ";
  const std::vector<std::string> command = {
      "run", "-p",     prompt,           "-n",  "20", "--seed",
      "3",   "--json", "--prompt-cache", folder};
  const nlohmann::json cold = WeftJson(command);
  const nlohmann::json warm = WeftJson(command);
  EXPECT_EQ(cold["cached_tokens"], 0);
  EXPECT_GT(warm["cached_tokens"], 128);
  EXPECT_EQ(cold["tokens"], warm["tokens"]);
  EXPECT_EQ(cold["text"], warm["text"]);
  ExpectError(Weft({"run", "-p", "a", "--prompt-cache",
                    "tests/data/golden/arch/llama-gqa.gguf"}),
              1);
}

TEST(Run, StopTextsEndTheText) {
  const std::string text = WeftJson(GreedyRun({}))["text"];
  const std::string stop = text.substr(text.size() / 2, 3);
  const nlohmann::json stopped =
      WeftJson(GreedyRun({"--stop", "no such text", "--stop", stop}));
  EXPECT_EQ(stopped["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(stopped["stop_reason"], "stop_string");
  ExpectError(Weft({"run", "--stop", ""}), 2);
}

TEST(Run, BiasForbidsAndForces) {
  const nlohmann::json free = WeftJson(GreedyRun({}));
  const std::string first = std::to_string(free["tokens"][0].get<int>());
  EXPECT_NE(WeftJson(GreedyRun({"--logit-bias", first + "=-inf"}))["tokens"][0],
            free["tokens"][0]);
  const nlohmann::json forced = WeftJson(
      GreedyRun({"--logit-bias", first + "=0", "--logit-bias", "40=1000"}));
  for (const auto& token : forced["tokens"]) EXPECT_EQ(token, 40);
  for (const char* bias : {"5", "5=", "=1", "a=1", "5=x", "5=1=2"}) {
    ExpectError(Weft({"run", "--logit-bias", bias}), 2);
  }
  ExpectError(Weft({"run", "--logit-bias", "99999999=1"}), 1);
  ExpectError(Weft({"run", "--logit-bias", "5=nan"}), 1);
}

TEST(Run, GuessedTokensChangeNothing) {
  const nlohmann::json plain = WeftJson(GreedyRun({}));
  EXPECT_EQ(plain["drafted_tokens"], 0);
  // What will be written stands in a file; and a model is its own draft.
  const std::string file = TemporaryPath("text.txt");
  WriteTextFile(file, plain["text"].get<std::string>());
  const std::string model = SmallModel("00-valid.gguf");
  const std::string prompt = "hello";
  for (const std::vector<std::string>& who :
       std::vector<std::vector<std::string>>{
           {"--speculate", "lookup"},
           {"--speculate", "lookup", "--lookup-file", file}}) {
    const nlohmann::json guessed = WeftJson(GreedyRun(who));
    EXPECT_EQ(guessed["text"], plain["text"]);
    EXPECT_EQ(guessed["tokens"], plain["tokens"]);
    EXPECT_LE(guessed["accepted_tokens"], guessed["drafted_tokens"]);
  }
  const std::vector<std::string> small = {"run", model,    "-p", prompt,  "-n",
                                          "40",  "--seed", "3",  "--json"};
  std::vector<std::string> drafted = small;
  drafted.insert(drafted.end(), {"--speculate", "draft:" + model});
  EXPECT_EQ(WeftJson(drafted)["tokens"], WeftJson(small)["tokens"]);
  const RunResult other =
      Weft({"run", "--speculate", "draft:" + model, "-p", prompt, "-n", "2"});
  ExpectError(other, 1);
  EXPECT_NE(other.err.find("the draft model does not fit"), std::string::npos);
  ExpectError(Weft({"run", "--speculate", "draft:no-such-file"}), 1);
  const RunResult without = Weft({"run", "--speculate", "mtp", "-p", prompt});
  ExpectError(without, 1);
  EXPECT_NE(without.err.find("the file has no next-token block"),
            std::string::npos);
  ExpectError(
      Weft({"run", "--speculate", "lookup", "--lookup-file", "no-such-file"}),
      1);
}

TEST(Run, GrammarsAndSchemasHoldForTheText) {
  const std::string grammar = TemporaryPath("grammar.gbnf");
  WriteTextFile(grammar, "root ::= \"yes\" | \"no\"");
  const nlohmann::json answer =
      WeftJson(GreedyRun({"--grammar-file", grammar}));
  EXPECT_TRUE(answer["text"] == "yes" || answer["text"] == "no") << answer;
  EXPECT_EQ(answer["stop_reason"], "eos");
  const std::string schema = TemporaryPath("schema.json");
  WriteTextFile(schema, R"({"enum": ["red", "green"]})");
  const std::string text =
      WeftJson(GreedyRun({"--json-schema", schema}))["text"];
  EXPECT_TRUE(text == "\"red\"" || text == "\"green\"") << text;
  ExpectError(Weft({"run", "--json-schema", schema, "--grammar-file", grammar}),
              2);
  ExpectError(Weft({"run", "--json-schema", grammar}), 1);
  ExpectError(Weft({"run", "--grammar-file", schema}), 1);
  ExpectError(Weft({"run", "--grammar-file", "no-such-file"}), 1);
}

TEST(Run, PromptBeyondTheContextIsAnErrorWithBothNumbers) {
  std::string prompt;
  for (int i = 0; i < 40; ++i) prompt += "hello ";
  const RunResult result =
      Weft({"run", SmallModel("00-valid.gguf"), "-p", prompt});
  ExpectError(result, 1);
  EXPECT_NE(result.err.find(" 64 "), std::string::npos) << result.err;
  // The whole prompt's length, also when it is more than one step.
  std::string tokens = "1";
  for (int i = 0; i < 40; ++i) tokens += ",286,264,290";
  const RunResult long_one = Weft({"eval", SmallModel("00-valid.gguf"),
                                   "--tokens", tokens, "--chunk", "8"});
  ExpectError(long_one, 1);
  EXPECT_NE(long_one.err.find("121"), std::string::npos) << long_one.err;
}

// A copy of the tiny model, with NaNs in one row of an F32 matrix.
std::string BrokenModel(const std::string& tensor, int64_t row) {
  const auto file = MappedFile::Open("tests/data/golden/arch/llama-gqa.gguf");
  EXPECT_TRUE(file.ok());
  const auto parsed = ParseGguf(*file);
  EXPECT_TRUE(parsed.ok());
  std::string bytes((*file)->bytes().begin(), (*file)->bytes().end());
  for (const GgufTensor& t : parsed->tensors) {
    if (t.name != tensor) continue;
    for (int64_t i = row * t.dims[0]; i < (row + 1) * t.dims[0]; ++i) {
      const float nan = std::nanf("");
      std::memcpy(&bytes[t.offset + i * sizeof(nan)], &nan, sizeof(nan));
    }
  }
  const std::string path = TemporaryPath(tensor + ".gguf");
  WriteTextFile(path, bytes);
  return path;
}

TEST(Eval, RowsOfNaNsAreAnErrorAndSingleOnesAWarning) {
  const std::string all = BrokenModel("token_embd.weight", 33);
  for (const char* positions : {"last", "all"}) {
    const RunResult result = Weft(
        {"eval", all, "--tokens", "20,33", "--positions", positions, "--json"});
    ExpectError(result, 1);
    EXPECT_NE(result.err.find("all logits are NaN"), std::string::npos);
  }
  WeftOut({"eval", all, "--tokens", "20,34"});
  const RunResult one = Weft({"eval", BrokenModel("output.weight", 319),
                              "--tokens", "20,33,34", "--json"});
  EXPECT_EQ(one.exit_code, 0);
  EXPECT_NE(one.err.find("1 of 320 are NaN"), std::string::npos) << one.err;
  EXPECT_TRUE(nlohmann::json::parse(one.out)["logprob_of_next"][0].is_number());
}

// Byte for byte, whatever cuts the work: the promise of the README.
TEST(Eval, LogitsDoNotDependOnChunkOrThreads) {
  const std::string text =
      "She was the youngest of the two daughters of a most affectionate, "
      "indulgent father; and had, in consequence of her sister's marriage, "
      "been mistress of his house from a very early period.";
  for (const char* isa : {"avx2", "avx512bf16", "avx512amx"}) {
    std::string first;
    for (const char* threads : {"1", "2"}) {
      for (const char* chunk : {"1", "7", "512"}) {
        const std::string path = TemporaryPath("logits.bin");
        WeftOut({"eval", "", "--text", text, "--isa", isa, "--threads", threads,
                 "--chunk", chunk, "--logits", path});
        const std::string logits = ReadFile(path);
        if (first.empty()) first = logits;
        EXPECT_GT(logits.size(), 2048u * 4 * 20);
        EXPECT_TRUE(logits == first) << isa << " " << threads << " " << chunk;
      }
    }
  }
}

TEST(Eval, JsonSaysWhatTheLogitsSay) {
  const std::string path = TemporaryPath("rows.bin");
  const nlohmann::json json =
      WeftJson({"eval", SmallModel("00-valid.gguf"), "--tokens", "1,286,264",
                "--positions", "0,2", "--logits", path, "--json"});
  EXPECT_EQ(json["tokens"], (std::vector<int>{1, 286, 264}));
  EXPECT_EQ(json["positions"], (std::vector<int>{0, 2}));
  const std::string bytes = ReadFile(path);
  ASSERT_EQ(bytes.size(), 2u * 300 * 4);
  const float* row = reinterpret_cast<const float*>(bytes.data());
  EXPECT_EQ(json["argmax"][0], std::max_element(row, row + 300) - row);
  double sum = 0;
  for (int i = 0; i < 300; ++i) sum += std::exp(double{row[i]});
  EXPECT_NEAR(json["logprob_of_next"][0].get<double>(),
              row[286] - std::log(sum), 1e-6);
  EXPECT_TRUE(json["logprob_of_next"][1].is_null());
}

TEST(Perplexity, IsTheExponentialOfWhatEvalSays) {
  const std::string path = TemporaryPath("short.txt");
  const std::string text = "It was a very pleasant evening.";
  WriteTextFile(path, text);
  const nlohmann::json json =
      WeftJson({"perplexity", "", "-f", path, "--json"});
  const nlohmann::json eval = WeftJson({"eval", "", "--text", text, "--json"});
  double nll = 0;
  int count = 0;
  for (const nlohmann::json& p : eval["logprob_of_next"]) {
    if (p.is_null()) continue;
    nll -= p.get<double>();
    ++count;
  }
  EXPECT_EQ(json["tokens"], count);
  EXPECT_NEAR(json["nll"].get<double>(), nll / count, 1e-9);
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(nll / count), 1e-6);
}

TEST(Perplexity, WindowsCountEachTokenOnce) {
  const std::string path = TemporaryPath("long.txt");
  WriteTextFile(path, ReadFile("models/austen-heldout.txt").substr(0, 2500));
  const auto run = [&](const char* context, const char* stride) {
    return WeftJson({"perplexity", "", "-f", path, "--context", context,
                     "--stride", stride, "--json"});
  };
  // As long as the sequences that the model was trained on.
  const nlohmann::json whole = run("256", "255");
  const nlohmann::json coarse = run("64", "63");
  const nlohmann::json fine = run("64", "16");
  EXPECT_EQ(coarse["tokens"], whole["tokens"]);
  EXPECT_EQ(fine["tokens"], whole["tokens"]);
  // More to look back at, better foretold.
  EXPECT_LT(fine["perplexity"], coarse["perplexity"]);
  EXPECT_LT(whole["perplexity"], coarse["perplexity"]);
}

TEST(Perplexity, ComparesWithABase) {
  const std::string text = TemporaryPath("kl.txt"),
                    base = TemporaryPath("kl.base");
  WriteTextFile(text, ReadFile("models/austen-heldout.txt").substr(0, 1200));
  WeftOut({"perplexity", "", "-f", text, "--kl-save", base});
  const nlohmann::json same =
      WeftJson({"perplexity", "", "-f", text, "--kl-base", base, "--json"});
  EXPECT_GE(same["kl_mean"].get<double>(), 0.0);
  EXPECT_LT(same["kl_mean"].get<double>(), 1e-6);
  EXPECT_LT(same["kl_p99"].get<double>(), 1e-5);
  EXPECT_EQ(same["same_top"], 1.0);
  const nlohmann::json rounded =
      WeftJson({"perplexity", "", "-f", text, "--kl-base", base, "--json",
                "--kv-type", "q8_0"});
  EXPECT_GT(rounded["kl_mean"], same["kl_mean"]);
  EXPECT_GE(rounded["kl_p99"], rounded["kl_mean"]);
  const auto expect_refused = [&](std::vector<std::string> further,
                                  const std::string& why) {
    std::vector<std::string> line = {"perplexity", "",          "-f",
                                     text,         "--kl-base", base};
    line.insert(line.end(), further.begin(), further.end());
    const RunResult result = Weft(line);
    ExpectError(result, 1);
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  };
  // The same tokens, seen with another past.
  expect_refused({"--stride", "100"}, "they have --stride ");
  expect_refused({"--context", "128"}, "they have --context ");
  const std::string whole = ReadFile(base);
  WriteTextFile(base, whole.substr(0, whole.size() - 1));
  expect_refused({}, "cut off or damaged");
  WriteTextFile(base, whole.substr(0, 20));
  expect_refused({}, "cut off");
  WriteTextFile(base, "WEFTKLB1" + whole.substr(8));
  expect_refused({}, "of an earlier version of weft");
  WriteTextFile(base, whole);
  WriteTextFile(text, ReadFile("models/austen-heldout.txt").substr(0, 1100));
  expect_refused({}, "base logits of another text");
  ExpectError(Weft({"perplexity", "", "-f", text, "--kl-base", text}), 1);
}

// What the columns of inputs are worth, and types that need it.
TEST(Imatrix, LeadsToSmallTypes) {
  const std::string text = TemporaryPath("imatrix.txt"),
                    part = TemporaryPath("part.gguf"),
                    whole = TemporaryPath("imatrix.gguf"),
                    tiny = TemporaryPath("tiny.gguf");
  WriteTextFile(text, ReadFile("models/austen-heldout.txt").substr(0, 3000));
  WeftOut({"imatrix", "", "-f", text, "-o", whole, "--chunk", "64", "--chunks",
           "4"});
  WeftOut({"imatrix", "", "-f", text, "-o", part, "--chunk", "64", "--chunks",
           "2"});
  WeftOut({"imatrix", "", "-f", text, "-o", part, "--chunk", "64", "--chunks",
           "4", "--resume"});
  // Sums are kept as float32 between the runs.
  EXPECT_EQ(ReadFile(part).size(), ReadFile(whole).size());
  ExpectError(Weft({"imatrix", "", "-f", text, "-o", part, "--chunk", "32",
                    "--resume"}),
              1);
  ExpectError(Weft({"imatrix", "", "-f", text, "-o", part, "--chunk", "4000"}),
              1);
}

// With what is usual, and with words that a context so short has no use for.
TEST(Run, MeasurementsFitAShortContext) {
  const std::string shape = TemporaryPath("short.json"),
                    model = TemporaryPath("short.gguf"),
                    text = TemporaryPath("short.txt");
  WriteTextFile(shape, R"({"architecture": "llama", "block_count": 1,
      "embedding_length": 64, "feed_forward_length": 128, "head_count": 2,
      "head_count_kv": 1, "vocabulary_size": 320, "context_length": 128})");
  WeftOut({"synth", "--shape", shape, "--type", "F32", "-o", model});
  WriteTextFile(text, ReadFile("models/austen-heldout.txt").substr(0, 2000));
  EXPECT_NE(WeftOut({"imatrix", model, "-f", text, "-o",
                     TemporaryPath("short.imatrix")})
                .find("chunks of 128 tokens"),
            std::string::npos);
  const RunResult chunk = Weft({"imatrix", model, "-f", text, "-o",
                                TemporaryPath("x"), "--chunk", "512"});
  ExpectError(chunk, 1);
  EXPECT_NE(chunk.err.find("--chunk 512"), std::string::npos) << chunk.err;
  WeftOut({"profile", model});
  WeftOut({"profile", model, "--prompt", "120"});
  const RunResult prompt = Weft({"profile", model, "--prompt", "128"});
  ExpectError(prompt, 2);
  EXPECT_EQ(prompt.err.find("larger --context"), std::string::npos)
      << prompt.err;
}

TEST(Run, StandardInputIsThePromptWhereNoneIsGiven) {
  const std::vector<std::string> greedy = {"run", "-n", "4", "--temperature",
                                           "0"};
  std::vector<std::string> with_prompt = greedy;
  with_prompt.insert(with_prompt.end(), {"-p", "She was not"});
  RunOptions piped;
  piped.input = "She was not";
  EXPECT_EQ(WeftOut(greedy, piped), WeftOut(with_prompt));
  // -p wins; an empty input is none.
  EXPECT_EQ(WeftOut(with_prompt, piped), WeftOut(with_prompt));
  EXPECT_NE(Weft(greedy).err.find("prompt It is a truth"), std::string::npos);
}

}  // namespace
}  // namespace weft
