// Next-token blocks against reference data, in plans and plan files; files
// whose block is not whole.
#include "runtime/execution/next_token_block.h"

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf_writer.h"
#include "passes/pipeline.h"
#include "runtime/api/engine.h"
#include "tests/golden/golden_data.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Tokens = std::vector<int32_t>;

constexpr char kDense[] = "tests/data/golden/recurrent/qwen35-mtp.gguf";
// Nobody has computed what its block says; all but that holds for it too.
constexpr char kExperts[] = "tests/data/golden/families/glm4moe-air.gguf";

EngineOptions WithBlock() {
  EngineOptions options;
  options.model.graph.kv_type = DType::kF32;
  options.model.graph.next_token_block = true;
  options.threads = 2;
  return options;
}

std::unique_ptr<Engine> Load(const std::string& path,
                             const EngineOptions& options = WithBlock()) {
  auto engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

std::vector<float> Drafts(Engine& engine, const Tokens& tokens, int64_t chunk) {
  std::vector<float> rows;
  const absl::Status status = engine.EvaluateNextTokenBlock(
      tokens, chunk, [&](int64_t, absl::Span<const float> logits) {
        rows.insert(rows.end(), logits.begin(), logits.end());
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return rows;
}

std::vector<float> Logits(Engine& engine, const Tokens& tokens) {
  std::vector<int64_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<float> rows;
  const absl::Status status = engine.Evaluate(
      tokens, positions, 7, [&](int64_t, absl::Span<const float> logits) {
        rows.insert(rows.end(), logits.begin(), logits.end());
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return rows;
}

double Nmse(const std::vector<float>& found, const std::vector<float>& want) {
  if (found.size() != want.size() || want.empty()) return 1e9;
  ErrorSums sums;
  sums.Add(found, want);
  return sums.nmse();
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

Tokens SomeTokens() {
  Tokens tokens(90);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = 7 + i * i % 301;
  return tokens;
}

TEST(NextTokenBlock, SaysWhatTheReferenceSays) {
  int sequences = 0;
  for (const GoldenModel& model : GoldenModels("recurrent")) {
    for (const nlohmann::json& sequence : model.data["sequences"]) {
      if (!sequence.contains("draft")) continue;
      SCOPED_TRACE(model.name);
      ++sequences;
      const auto engine = Load(model.path());
      ASSERT_NE(engine, nullptr);
      const std::vector<float> want = ReadFloats(
          model.folder + sequence["draft"]["values"].get<std::string>());
      EXPECT_LT(
          Nmse(Drafts(*engine, sequence["tokens"].get<Tokens>(), 0), want),
          1e-10);
    }
  }
  EXPECT_GE(sequences, 2);
}

// What it hands on stands for the model's row of its own guess.
TEST(NextTokenBlock, GoesOnByItselfAsTheReferenceDoes) {
  int chains = 0;
  for (const GoldenModel& model : GoldenModels("recurrent")) {
    for (const nlohmann::json& sequence : model.data["sequences"]) {
      if (!sequence.contains("speculative")) continue;
      SCOPED_TRACE(model.name);
      ++chains;
      const nlohmann::json& chain = sequence["speculative"];
      Tokens tokens = sequence["tokens"].get<Tokens>();
      tokens.resize(chain["prompt_tokens"].get<size_t>());
      const auto engine = Load(model.path());
      ASSERT_NE(engine, nullptr);
      const int64_t d = engine->plan().model.embedding_length;
      const int64_t columns = engine->plan().model.vocabulary_size;
      const int32_t count = static_cast<int32_t>(tokens.size());
      Session session(engine->plan(), &engine->executor(), &engine->cache(), 0);
      ASSERT_TRUE(session.Append(tokens).ok());
      tokens.push_back(chain["greedy"][0].get<int32_t>());
      const absl::Span<const float> rows = engine->executor().hidden_rows();
      ASSERT_EQ(static_cast<int64_t>(rows.size()), count * d);
      std::vector<float> previous(rows.begin(), rows.end());
      NextTokenBlock block(engine->next_token_executor());
      ASSERT_TRUE(engine->cache().Reserve(0, count + 3).ok());

      std::vector<float> logits(columns), hidden(d), found;
      Tokens ids(tokens.begin() + 1, tokens.end()), positions(count);
      const Tokens slots(count, 0);
      std::iota(positions.begin(), positions.end(), 0);
      for (int32_t guess = 0; guess < 3; ++guess) {
        NextTokenRows step;
        step.ids = ids;
        step.positions = positions;
        step.slots = absl::MakeConstSpan(slots).first(ids.size());
        step.previous_hidden = previous.data();
        const int32_t last = static_cast<int32_t>(ids.size()) - 1;
        step.output_rows = absl::MakeConstSpan(&last, 1);
        step.logits = logits.data();
        step.hidden = hidden.data();
        ASSERT_TRUE(block.Run(step).ok());
        found.insert(found.end(), logits.begin(), logits.end());
        ids = {chain["draft_chain"][guess].get<int32_t>()};
        positions = {count + guess};
        previous = hidden;
      }
      EXPECT_LT(Nmse(found, ReadFloats(model.folder +
                                       chain["values"].get<std::string>())),
                1e-10);
    }
  }
  EXPECT_GE(chains, 1);
}

TEST(NextTokenBlock, BitsDependOnNoChunksThreadsOrPasses) {
  for (const char* path : {kDense, kExperts}) {
    SCOPED_TRACE(path);
    const auto engine = Load(path);
    ASSERT_NE(engine, nullptr);
    const std::vector<float> want = Drafts(*engine, SomeTokens(), 0);
    for (const int64_t chunk : {1, 7, 64}) {
      EXPECT_TRUE(SameBits(Drafts(*engine, SomeTokens(), chunk), want))
          << "chunks of " << chunk;
    }
    EngineOptions one = WithBlock();
    one.threads = 1;
    EXPECT_TRUE(SameBits(Drafts(*Load(path, one), SomeTokens(), 0), want));
    for (const PassEntry& pass : Pipeline()) {
      // Softmax in one sweep is another order of sums.
      if (pass.name == std::string("fuse-attention")) continue;
      EngineOptions options = WithBlock();
      options.model.compile.disabled_passes = {pass.name};
      const auto without = Load(path, options);
      ASSERT_NE(without, nullptr);
      EXPECT_TRUE(SameBits(Drafts(*without, SomeTokens(), 64), want))
          << "without " << pass.name;
    }
  }
}

TEST(NextTokenBlock, LeavesTheModelAsItWas) {
  for (const char* path : {kDense, kExperts}) {
    SCOPED_TRACE(path);
    EngineOptions plain = WithBlock();
    plain.model.graph.next_token_block = false;
    const auto without = Load(path, plain), with = Load(path);
    ASSERT_TRUE(without != nullptr && with != nullptr);
    EXPECT_TRUE(
        SameBits(Logits(*with, SomeTokens()), Logits(*without, SomeTokens())));
    EXPECT_EQ(without->next_token_executor(), nullptr);
    EXPECT_TRUE(without->executor().hidden_rows().empty());
    EXPECT_FALSE(
        without->EvaluateNextTokenBlock(SomeTokens(), 0, nullptr).ok());
    EXPECT_GT(Engine::PeakBytes(with->plan(), WithBlock()),
              Engine::PeakBytes(without->plan(), plain));
  }
}

std::string TempPath(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/", getpid(), name);
}

TEST(NextTokenBlock, IsInPlanFiles) {
  const EngineOptions options = WithBlock();
  EngineOptions without = options;
  without.model.graph.next_token_block = false;
  for (const char* path : {kDense, kExperts}) {
    SCOPED_TRACE(path);
    const std::vector<float> want = Drafts(*Load(path), SomeTokens(), 0);
    const auto file = GgufFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    const auto plan = CompileModel(*file, options.model);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto threads = ThreadPool::Create(2);
    const std::string packed = TempPath("packed.weft");
    ASSERT_TRUE(SaveModelPlan(*plan, *file, packed, **threads).ok());
    EXPECT_TRUE(SameBits(Drafts(*Load(packed), SomeTokens(), 0), want));
    // Who does not ask for it does not pay for it.
    const auto unasked = Load(packed, without);
    ASSERT_NE(unasked, nullptr);
    EXPECT_EQ(unasked->next_token_executor(), nullptr);
    EXPECT_TRUE(SameBits(Logits(*unasked, SomeTokens()),
                         Logits(*Load(path, without), SomeTokens())));

    const std::string reference = TempPath("reference.weft");
    const absl::Status saved =
        SaveModelReference(*plan, *file, path, options.model, reference);
    ASSERT_TRUE(saved.ok()) << saved;
    EXPECT_TRUE(SameBits(Drafts(*Load(reference), SomeTokens(), 0), want));

    const auto plain = CompileModel(*file, without.model);
    ASSERT_TRUE(plain.ok()) << plain.status();
    const std::string other = TempPath("plain.weft");
    ASSERT_TRUE(SaveModelPlan(*plain, *file, other, **threads).ok());
    const auto refused = Engine::Load(other, options);
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr("the plan has no next-token block"));
    for (const std::string& used : {packed, reference, other}) {
      unlink(used.c_str());
    }
  }
}

TEST(NextTokenBlock, IsVerifiedWithItsPlan) {
  const auto file = GgufFile::Open(kDense);
  ASSERT_TRUE(file.ok()) << file.status();
  ModelOptions options = WithBlock().model;
  options.compile.buckets = {1, 8};
  const auto plan = CompileModel(*file, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(VerifyModelPlan(*plan).ok());
  const auto refused = [&](const std::function<void(Plan&)>& change) {
    Plan changed = *plan;
    change(changed);
    return std::string(VerifyModelPlan(changed).message());
  };
  EXPECT_THAT(refused([](Plan& p) { p.next_token_buckets.pop_back(); }),
              HasSubstr("illegal plan: next-token block"));
  EXPECT_THAT(refused([](Plan& p) { p.next_token_buckets = p.buckets; }),
              HasSubstr("illegal plan"));
  const auto rename = [](Graph& graph, const std::string& name) {
    for (const auto& [output, id] : graph.outputs()) {
      if (output != name) continue;
      const ValueId value = id;
      graph.RemoveOutput(name);
      graph.AddOutput("other", value);
      return;
    }
  };
  EXPECT_THAT(refused([&](Plan& p) { rename(p.buckets[0], "hidden_rows"); }),
              HasSubstr("illegal plan: other: "));
  EXPECT_THAT(
      refused([&](Plan& p) { rename(p.next_token_buckets[1], "hidden"); }),
      HasSubstr("other: output of a next-token block"));
  EXPECT_THAT(refused([](Plan& p) { p.next_token_buckets.clear(); }),
              HasSubstr("hidden_rows"));
  EXPECT_THAT(refused([](Plan& p) {
                Graph& graph = p.next_token_buckets[0];
                graph.value(graph.FindValue("previous_hidden")).name = "ids_";
              }),
              HasSubstr("no standard input"));
}

// Two files of the last block of a family's model. In one it is the next-token
// block, whose product takes its token alone (the rows of the embedding have a
// mean square of 1, which enorm then leaves alone); in the other, it is all the
// model. So they say the same of tokens, and the second is a model like any
// other, as the references of the family check them.
struct SameBlock {
  std::string as_next_token_block, as_model;
};

SameBlock LastBlockOf(const std::string& path, const std::string& architecture,
                      int64_t main_blocks, bool has_next_token_block) {
  const auto source = GgufFile::Open(path);
  EXPECT_TRUE(source.ok()) << source.status();
  GgufWriter with, alone;
  for (GgufWriter* writer : {&with, &alone}) writer->CopyMetadata(*source);
  const auto key = [&](const char* name) {
    return absl::StrCat(architecture, ".", name);
  };
  with.SetUint32(key("block_count"), main_blocks + 1);
  with.SetUint32(key("nextn_predict_layers"), 1);
  alone.SetUint32(key("block_count"), 1);
  alone.SetUint32(key("nextn_predict_layers"), 0);
  alone.SetUint32(key("leading_dense_block_count"), 0);
  const std::string last = absl::StrCat(
      "blk.", has_next_token_block ? main_blocks : main_blocks - 1, ".");
  const std::string block = absl::StrCat("blk.", main_blocks, ".");

  std::vector<std::vector<float>> made;
  made.reserve(4);
  const auto bytes = [](const std::vector<float>& numbers) {
    return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(numbers.data()),
                               numbers.size() * 4);
  };
  const GgufTensor& table = *source->FindTensor("token_embd.weight");
  EXPECT_EQ(table.type, DType::kF32);
  const int64_t d = table.dims[0];
  std::vector<float>& rows = made.emplace_back(table.data.size() / 4);
  std::memcpy(rows.data(), table.data.data(), table.data.size());
  for (size_t row = 0; row < rows.size(); row += d) {
    double sum = 0;
    for (int64_t i = 0; i < d; ++i) sum += rows[row + i] * rows[row + i];
    for (int64_t i = 0; i < d; ++i) rows[row + i] /= std::sqrt(sum / d);
  }
  std::vector<float>& takes_token = made.emplace_back(2 * d * d);
  for (int64_t i = 0; i < d; ++i) takes_token[i * 2 * d + i] = 1;
  const double epsilon =
      *source->FindValue(key("attention.layer_norm_rms_epsilon"))->ToDouble();
  const std::vector<float>& ones =
      made.emplace_back(d, static_cast<float>(std::sqrt(1 + epsilon)));
  for (const GgufTensor& tensor : source->tensors()) {
    if (absl::StrContains(tensor.name, ".nextn.")) continue;
    const bool embeds = tensor.name == "token_embd.weight";
    const auto data = embeds ? bytes(rows) : tensor.data;
    with.AddTensor(tensor.name, tensor.type, tensor.dims, data);
    const bool of_last = absl::StartsWith(tensor.name, last);
    if (of_last) {
      const std::string rest = tensor.name.substr(last.size());
      alone.AddTensor("blk.0." + rest, tensor.type, tensor.dims, data);
      if (!has_next_token_block) {
        with.AddTensor(block + rest, tensor.type, tensor.dims, data);
      }
    } else if (!absl::StartsWith(tensor.name, "blk.")) {
      alone.AddTensor(tensor.name, tensor.type, tensor.dims, data);
    }
  }
  with.AddTensor(block + "nextn.eh_proj.weight", DType::kF32, {2 * d, d},
                 bytes(takes_token));
  for (const char* norm : {"nextn.enorm.weight", "nextn.hnorm.weight"}) {
    with.AddTensor(block + norm, DType::kF32, {d}, bytes(ones));
  }
  const SameBlock files = {TempPath(architecture + "-with.gguf"),
                           TempPath(architecture + "-alone.gguf")};
  EXPECT_TRUE(with.WriteTo(files.as_next_token_block).ok());
  EXPECT_TRUE(alone.WriteTo(files.as_model).ok());
  return files;
}

TEST(NextTokenBlock, IsABlockAsTheFamilyHasThem) {
  const struct {
    const char* path;
    const char* architecture;
    int64_t main_blocks;
    bool has_next_token_block;
  } cases[] = {
      {kExperts, "glm4moe", 3, true},
      {"tests/data/golden/families/deepseek2-v3.gguf", "deepseek2", 4, false},
      {"tests/data/golden/families/deepseek2-v3-groups.gguf", "deepseek2", 3,
       false},
      {"tests/data/golden/families/deepseek2-mla576.gguf", "deepseek2", 2,
       false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.path);
    const SameBlock files = LastBlockOf(c.path, c.architecture, c.main_blocks,
                                        c.has_next_token_block);
    EngineOptions plain = WithBlock();
    plain.model.graph.next_token_block = false;
    const auto block = Load(files.as_next_token_block);
    const auto model = Load(files.as_model, plain);
    ASSERT_TRUE(block != nullptr && model != nullptr);
    const Tokens tokens = SomeTokens();
    EXPECT_LT(Nmse(Drafts(*block, tokens, 0),
                   Logits(*model, Tokens(tokens.begin() + 1, tokens.end()))),
              1e-10);
    EXPECT_TRUE(SameBits(Drafts(*block, tokens, 7), Drafts(*block, tokens, 0)));
    unlink(files.as_next_token_block.c_str());
    unlink(files.as_model.c_str());
  }
}

// The file with one of its tensors left out, or cut to half its rows.
std::string Changed(const std::string& path, const std::string& without,
                    const std::string& cut) {
  const auto source = GgufFile::Open(path);
  EXPECT_TRUE(source.ok()) << source.status();
  GgufWriter writer;
  writer.CopyMetadata(*source);
  bool found = false;
  for (const GgufTensor& tensor : source->tensors()) {
    found |= tensor.name == without || tensor.name == cut;
    if (tensor.name == without) continue;
    std::vector<int64_t> dims(tensor.dims.begin(), tensor.dims.end());
    absl::Span<const uint8_t> data = tensor.data;
    if (tensor.name == cut) {
      dims.back() /= 2;
      data = data.first(data.size() / 2);
    }
    writer.AddTensor(tensor.name, tensor.type, dims, data);
  }
  EXPECT_TRUE(found) << without << cut;
  const std::string result = TempPath("changed.gguf");
  EXPECT_TRUE(writer.WriteTo(result).ok());
  return result;
}

TEST(NextTokenBlock, IsRefusedWhereItIsNotWhole) {
  const auto message = [](const std::string& path) {
    const auto engine = Engine::Load(path, WithBlock());
    EXPECT_FALSE(engine.ok());
    return std::string(engine.status().message());
  };
  EXPECT_THAT(
      message("tests/data/golden/recurrent/qwen35-head64.gguf"),
      AllOf(HasSubstr("the file has no next-token block"),
            HasSubstr("qwen35.nextn_predict_layers"), HasSubstr("lookup")));
  EXPECT_THAT(message("tests/data/golden/arch/llama-gqa.gguf"),
              HasSubstr("the file has no next-token block"));
  for (const char* tensor :
       {"nextn.eh_proj.weight", "nextn.enorm.weight", "nextn.hnorm.weight",
        "attn_q.weight", "attn_k_norm.weight", "ffn_down.weight",
        "post_attention_norm.weight"}) {
    const std::string name = absl::StrCat("blk.4.", tensor);
    EXPECT_THAT(message(Changed(kDense, name, "")), HasSubstr(name));
    EXPECT_THAT(message(Changed(kDense, "", name)), HasSubstr(name));
  }
  EXPECT_THAT(
      message(Changed(kDense, "", "blk.4.nextn.shared_head_norm.weight")),
      HasSubstr("blk.4.nextn.shared_head_norm.weight"));
  // Then the model's last norm takes its place.
  const std::string other =
      Changed(kDense, "blk.4.nextn.shared_head_norm.weight", "");
  EXPECT_NE(Load(other), nullptr);
  unlink(other.c_str());
}

}  // namespace
}  // namespace weft
