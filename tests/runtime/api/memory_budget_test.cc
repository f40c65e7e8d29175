// Models larger than the memory that they are given.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/allocation_counter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "loaders/synthesize.h"
#include "runtime/plan/plan_identity.h"
#include "runtime/plan/streamed_experts.h"
#include "tests/runtime/api/serving.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// A mixture of 16 experts in each of two blocks, of which a token has 2.
std::string Model() {
  const std::string path = ::testing::TempDir() + "/mixture";
  std::ofstream(path + ".json") << R"({"architecture": "qwen3moe",
      "embedding_length": 256, "block_count": 2, "feed_forward_length": 256,
      "head_count": 4, "head_count_kv": 2, "vocabulary_size": 320,
      "context_length": 256, "keys": {"expert_count": 16,
      "expert_used_count": 2, "expert_feed_forward_length": 512}})";
  SynthesizeOptions options;
  options.shape = path + ".json";
  options.type = "F32";
  options.seed = 3;
  EXPECT_TRUE(SynthesizeModel(options, path + ".gguf").ok());
  return path + ".gguf";
}

EngineOptions TwoThreads() {
  EngineOptions options;
  options.threads = 2;
  return options;
}

std::string Compiled(const std::string& model) {
  const auto threads = ThreadPool::Create(2);
  const auto file = GgufFile::Open(model);
  EXPECT_TRUE(threads.ok() && file.ok());
  const auto plan = CompileModel(*file, TwoThreads().model);
  EXPECT_TRUE(plan.ok()) << plan.status();
  const std::string path = model + ".weft";
  EXPECT_TRUE(SaveModelPlan(*plan, *file, path, **threads).ok());
  return path;
}

// With which a fourth of the experts is in memory.
EngineOptions WithAFourth(const std::string& path) {
  EngineOptions options = TwoThreads();
  absl::StatusOr<Plan> plan = LoadPlan(path, options.model);
  EXPECT_TRUE(plan.ok()) << plan.status();
  plan->streamed = StreamableExperts(*plan);
  EXPECT_EQ(plan->streamed.size(), 2u);
  for (ExpertGroup& group : plan->streamed) group.slots = 4;
  options.memory_budget = Engine::PeakBytes(*plan, options);
  return options;
}

std::unique_ptr<Engine> Load(const std::string& path,
                             const EngineOptions& options) {
  auto engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

const LogitsCallback kIgnore = [](int64_t, absl::Span<const float>) {
  return absl::OkStatus();
};

std::vector<float> Last(Engine& engine, const std::vector<int32_t>& tokens) {
  std::vector<float> logits;
  const absl::Status status =
      engine.Evaluate(tokens, {static_cast<int64_t>(tokens.size()) - 1}, 8,
                      [&](int64_t, absl::Span<const float> row) {
                        logits.assign(row.begin(), row.end());
                        return absl::OkStatus();
                      });
  EXPECT_TRUE(status.ok()) << status;
  return logits;
}

// Changes a file in place and puts it back, with its times.
class Damage {
 public:
  explicit Damage(const std::string& path) : path_(path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(stat(path.c_str(), &info_), 0);
  }
  void Truncate() { EXPECT_EQ(truncate(path_.c_str(), 8192), 0); }
  void Invert() {
    std::string other = bytes_;
    for (char& c : other) c = static_cast<char>(~c);
    Write(other);
  }
  void InvertAt(int64_t offset) {
    std::string other = bytes_;
    other[offset] = static_cast<char>(~other[offset]);
    Write(other);
  }
  void Undo() { Write(bytes_); }

 private:
  void Write(const std::string& bytes) {
    const int file = open(path_.c_str(), O_WRONLY);
    EXPECT_EQ(pwrite(file, bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    const timespec times[] = {info_.st_atim, info_.st_mtim};
    EXPECT_EQ(futimens(file, times), 0);
    close(file);
  }

  const std::string path_;
  std::string bytes_;
  struct stat info_ = {};
};

TEST(MemoryBudgetTest, IsKeptToAndExpertsAreCounted) {
  const std::string path = Compiled(Model());
  const EngineOptions options = WithAFourth(path);
  const auto engine = Load(path, options);
  ASSERT_NE(engine, nullptr);
  const Plan& plan = engine->plan();
  const int64_t peak = Engine::PeakBytes(plan, TwoThreads());
  EXPECT_EQ(peak, options.memory_budget);
  const PlanMemory memory = MemoryOf(plan, 1, 1);
  for (const ExpertGroup& group : plan.streamed) {
    EXPECT_EQ(group.slots, 4);
    EXPECT_EQ(group.used, 2);
    EXPECT_EQ(memory.experts, 2 * 4 * group.SlotBytes());
  }
  // A token chooses two of 16 experts of each block, and a fourth is there.
  const double all = 2.0 * 16 * 3 * 256 * 512 * 4;
  EXPECT_EQ(ExpertBytesPerToken(plan.streamed), all / 16 * 2 * 3 / 4);
  EXPECT_EQ(ExpertBytesPerFullStep(plan.streamed), all * 3 / 4);
  const auto whole = Load(path, TwoThreads());
  const std::vector<int32_t> tokens = RandomPrompt(1, 40);
  EXPECT_EQ(Last(*engine, tokens), Last(*whole, tokens));
  const ExpertStream::Stats stats = engine->expert_stream()->stats();
  EXPECT_GT(stats.found, 0);
  EXPECT_GT(stats.chosen, stats.found);
  EXPECT_GT(stats.bytes, 0);
  EXPECT_EQ(whole->expert_stream(), nullptr);
  // So prompts that were kept in files serve both.
  EXPECT_EQ(PlanIdentity(plan), PlanIdentity(whole->plan()));
  // Where all fit, nothing is streamed.
  EngineOptions large = options;
  large.memory_budget = int64_t{1} << 40;
  EXPECT_EQ(Load(path, large)->expert_stream(), nullptr);
}

TEST(MemoryBudgetTest, StepsAllocateNothing) {
  const std::string path = Compiled(Model());
  const auto engine = Load(path, WithAFourth(path));
  ASSERT_NE(engine, nullptr);
  Session session(engine->plan(), &engine->executor(), &engine->cache(), 0);
  ASSERT_TRUE(session.Append(RandomPrompt(1, 32)).ok());
  const int64_t before = AllocationCount();
  for (const int32_t token : {20, 30, 40, 50, 60}) {
    ASSERT_TRUE(session.Append(absl::MakeConstSpan(&token, 1)).ok());
  }
  EXPECT_EQ(AllocationCount() - before, 0);
}

TEST(MemoryBudgetTest, WhatIsTooLittleNamesWhatIsEnough) {
  const std::string path = Compiled(Model());
  EngineOptions options = TwoThreads();
  options.memory_budget = 1 << 20;
  const std::string why(Engine::Load(path, options).status().message());
  EXPECT_THAT(why, HasSubstr("memory budget is too small: " + path));
  const size_t at = why.find("the plan takes ");
  ASSERT_NE(at, std::string::npos) << why;
  int64_t enough = std::atoll(why.c_str() + at + 15);
  options.memory_budget = enough << 20;
  const auto engine = Load(path, options);
  ASSERT_NE(engine, nullptr);
  EXPECT_LT(engine->plan().streamed[0].slots, 4);
  options.memory_budget = (enough - 1) << 20;
  EXPECT_FALSE(Engine::Load(path, options).ok());
}

TEST(MemoryBudgetTest, WhatHasNoExpertsToReadSaysWhatToDo) {
  const std::string model = Model();
  const std::string path = Compiled(model);
  EngineOptions options = WithAFourth(path);
  EXPECT_THAT(std::string(Engine::Load(model, options).status().message()),
              HasSubstr("experts cannot be streamed: " + model));
  EXPECT_THAT(std::string(Engine::Load(model, options).status().message()),
              HasSubstr("weft compile " + model));
  options.copy_model = true;
  EXPECT_THAT(std::string(Engine::Load(path, options).status().message()),
              HasSubstr("copy_model"));
  options = TwoThreads();
  options.memory_budget = 1 << 20;
  EXPECT_THAT(std::string(Engine::Load("", options).status().message()),
              HasSubstr("no experts"));
  // A plan from before there were checksums of experts.
  absl::StatusOr<Plan> plan = LoadPlan(path, options.model);
  ASSERT_TRUE(plan.ok());
  plan->streamed = StreamableExperts(*plan);
  EXPECT_TRUE(CheckStreams(*plan, path).ok());
  plan->expert_checksums.clear();
  EXPECT_THAT(std::string(CheckStreams(*plan, path).message()),
              HasSubstr("compile it again"));
}

TEST(MemoryBudgetTest, AFileThatIsCutOffEndsTheCallAndNoMore) {
  const std::string path = Compiled(Model());
  const auto engine = Load(path, WithAFourth(path));
  ASSERT_NE(engine, nullptr);
  const std::vector<int32_t> tokens = RandomPrompt(1, 40);
  const std::vector<float> logits = Last(*engine, tokens);
  Damage damage(path);
  const absl::Status status = engine->Evaluate(
      tokens, {0, 39}, 8, [&](int64_t position, absl::Span<const float>) {
        if (position == 0) damage.Truncate();
        return absl::OkStatus();
      });
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("file is cut off: " + path));
  // So is the next one that needs what is gone.
  EXPECT_THAT(std::string(engine->Evaluate(tokens, {0}, 8, kIgnore).message()),
              HasSubstr("file is cut off: " + path));
  damage.Undo();
  EXPECT_EQ(Last(*engine, tokens), logits);
}

TEST(MemoryBudgetTest, TheSameBytesWrittenAgainChangeNothing) {
  const std::string path = Compiled(Model());
  const auto engine = Load(path, WithAFourth(path));
  ASSERT_NE(engine, nullptr);
  const std::vector<int32_t> tokens = RandomPrompt(1, 40);
  const std::vector<float> logits = Last(*engine, tokens);
  const timespec times[] = {{1, 0}, {1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_TRUE(engine->CheckFiles().ok());
  EXPECT_EQ(Last(*engine, tokens), logits);
}

// One token's experts cannot be read: who runs beside it goes on.
TEST(MemoryBudgetTest, AnErrorEndsOnlyThoseThatMeetIt) {
  const std::string path = Compiled(Model());
  const auto whole = MakeScheduler(Load(path, TwoThreads()), {});
  const auto request = [](int i) {
    return MakeRequest({10 + 7 * i, 11 + 7 * i}, 3);
  };
  constexpr int kRequests = 24;
  std::vector<absl::StatusOr<Completion>> want;
  for (int i = 0; i < kRequests; ++i) {
    want.push_back(Complete(*whole, request(i)));
    ASSERT_TRUE(want.back().ok()) << want.back().status();
  }
  // A few bytes of one expert, with the file's times as they were.
  const absl::StatusOr<Plan> plan = LoadPlan(path, TwoThreads().model);
  ASSERT_TRUE(plan.ok());
  const std::string weight = StreamableExperts(*plan)[1].weights[0].name;
  const Graph& graph = plan->buckets.front();
  const auto bytes = graph.value(graph.FindValue(weight)).data.bytes;
  const int64_t offset =
      bytes.data() - plan->files.front()->bytes().data() + 100;
  EngineOptions options = WithAFourth(path);
  options.slots = 4;
  options.memory_budget += int64_t{64} << 20;
  options.memory_budget = std::min(
      options.memory_budget, Engine::PeakBytes(*plan, options) - (1 << 20));
  SchedulerOptions plain;
  plain.prefix_cache = false;
  const auto scheduler = MakeScheduler(Load(path, options), plain);
  ASSERT_NE(scheduler, nullptr);
  Damage damage(path);
  damage.InvertAt(offset);
  std::vector<bool> meets;
  for (int i = 0; i < kRequests; ++i) {
    meets.push_back(!Complete(*scheduler, request(i)).ok());
  }
  EXPECT_GT(std::count(meets.begin(), meets.end(), true), 0);
  EXPECT_GT(std::count(meets.begin(), meets.end(), false), 0);
  std::vector<std::thread> askers;
  std::vector<absl::StatusOr<Completion>> found(
      kRequests, absl::StatusOr<Completion>(absl::UnknownError("")));
  for (int i = 0; i < kRequests; ++i) {
    askers.emplace_back(
        [&, i] { found[i] = Complete(*scheduler, request(i)); });
  }
  for (std::thread& asker : askers) asker.join();
  for (int i = 0; i < kRequests; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(found[i].ok(), !meets[i]) << found[i].status();
    if (found[i].ok() && !meets[i]) {
      ExpectSame(found[i]->choices[0], want[i]->choices[0]);
    }
  }
  ExpectNoPagesUsed(*scheduler);
}

TEST(MemoryBudgetTest, OtherBytesAreFoundWhenTheyAreRead) {
  const std::string path = Compiled(Model());
  const auto engine = Load(path, WithAFourth(path));
  ASSERT_NE(engine, nullptr);
  const std::vector<int32_t> tokens = RandomPrompt(1, 40);
  Damage damage(path);
  damage.Invert();
  const absl::Status status = engine->Evaluate(tokens, {39}, 8, kIgnore);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("plan file is damaged: " + path));
  EXPECT_THAT(std::string(status.message()), HasSubstr("expert "));
  damage.Undo();
  EXPECT_EQ(Last(*engine, tokens), Last(*Load(path, TwoThreads()), tokens));
}

TEST(MemoryBudgetTest, AnErrorEndsItsRequestsAndTheNextOnesRun) {
  const std::string path = Compiled(Model());
  EngineOptions options = WithAFourth(path);
  const auto request = [] { return MakeRequest(RandomPrompt(1, 40), 20); };
  const auto whole = MakeScheduler(Load(path, TwoThreads()), {});
  const auto want = Complete(*whole, request());
  const auto scheduler = MakeScheduler(Load(path, options), {});
  ASSERT_NE(scheduler, nullptr);
  Damage damage(path);
  damage.Invert();
  const auto failed = Complete(*scheduler, request());
  EXPECT_THAT(std::string(failed.status().message()),
              HasSubstr("plan file is damaged"));
  damage.Undo();
  const auto found = Complete(*scheduler, request());
  ASSERT_TRUE(found.ok() && want.ok()) << found.status() << want.status();
  ExpectSame(found->choices[0], want->choices[0]);
  ExpectNoPagesUsed(*scheduler);
}

}  // namespace
}  // namespace weft
