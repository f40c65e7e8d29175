// Prompts that are kept in files: the same bits after a restart, and whatever
// becomes of the files.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/api/serving.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PromptFiles : public testing::Test {
 protected:
  PromptFiles() {
    options_.cache_folder = testing::TempDir() + "/prompts";
    fs::remove_all(options_.cache_folder);
  }

  struct Run {
    ChoiceResult text;
    int64_t cached;
    SchedulerStats stats;
  };
  // From a start to an end.
  Run Complete(Request request, int64_t pages = 0,
               const std::string& kv_type = "f16") {
    const auto scheduler =
        MakeScheduler(MakeEngine(model_, 2, pages, kv_type), options_);
    auto completion = weft::Complete(*scheduler, std::move(request));
    EXPECT_TRUE(completion.ok()) << completion.status();
    scheduler->Drain(absl::InfiniteDuration());
    return {completion->choices[0], completion->usage.cached_tokens,
            scheduler->GetStats()};
  }

  static Request Question(int64_t size, uint32_t seed = 1) {
    Request request = MakeRequest(RandomPrompt(seed, size), 80);
    request.logprobs = 3;
    return request;
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(options_.cache_folder)) {
      files.push_back(entry.path().string());
    }
    return files;
  }

  std::string model_ = kTinyModel;
  SchedulerOptions options_;
};

TEST_F(PromptFiles, GiveTheSameBitsAfterARestart) {
  const Run cold = Complete(Question(200));
  EXPECT_EQ(cold.cached, 0);
  // Of 280 tokens, of which the last has not run.
  EXPECT_EQ(Files().size(), 4u);
  const Run warm = Complete(Question(200));
  EXPECT_EQ(warm.cached, 192);
  EXPECT_EQ(warm.stats.pages_loaded, 3);
  EXPECT_EQ(warm.stats.pages_damaged, 0);
  ExpectSame(cold.text, warm.text);
  // What was written is a prompt of the next turn.
  Request next = Question(200);
  for (const GeneratedToken& token : cold.text.tokens) {
    next.prompt_tokens.push_back(token.id);
  }
  Request again = Question(200);
  again.prompt_tokens = next.prompt_tokens;
  const Run turn = Complete(std::move(next));
  EXPECT_EQ(turn.cached, 256);
  options_.cache_folder.clear();
  ExpectSame(Complete(std::move(again)).text, turn.text);
}

TEST_F(PromptFiles, ThatAreDamagedCostTimeAlone) {
  const Run cold = Complete(Question(200));
  for (const std::string& file : Files()) {
    const auto size = fs::file_size(file);
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(size / 2));
    bytes.put('\x55').put('\xaa').put('\x55');
  }
  std::vector<std::string> log;
  options_.log = [&](const std::string& line) { log.push_back(line); };
  const Run damaged = Complete(Question(200));
  EXPECT_EQ(damaged.cached, 0);
  EXPECT_EQ(damaged.stats.pages_damaged, 3);  // all of the prompt, at once
  EXPECT_EQ(log.size(), 3u);
  ExpectSame(cold.text, damaged.text);
  // Whole again after one start.
  const Run healed = Complete(Question(200));
  EXPECT_EQ(healed.cached, 192);
  EXPECT_EQ(healed.stats.pages_damaged, 0);
  ExpectSame(cold.text, healed.text);
}

TEST_F(PromptFiles, OnePageThatIsDamagedCostsNoOther) {
  Complete(Question(200));
  const std::vector<std::string> files = Files();
  // The prompt's first page is the one that was used last.
  const std::string first = *std::max_element(
      files.begin(), files.end(),
      [](const std::string& a, const std::string& b) {
        return fs::last_write_time(a) < fs::last_write_time(b);
      });
  std::ofstream(first, std::ios::binary) << "x";
  EXPECT_EQ(Complete(Question(200)).stats.pages_damaged, 1);
  EXPECT_EQ(Complete(Question(200)).cached, 192);
}

TEST_F(PromptFiles, AreRefusedWhereNotOnePageHasRoom) {
  options_.cache_bytes = 1000;
  const auto scheduler =
      Scheduler::Create(MakeEngine(model_, 2, 0, "f16"), options_);
  EXPECT_EQ(scheduler.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(scheduler.status().message()),
              HasSubstr("one page takes"));
}

TEST_F(PromptFiles, AreOfOnePlan) {
  const Run f16 = Complete(Question(200));
  const Run f32 = Complete(Question(200), 0, "f32");
  EXPECT_EQ(f32.cached, 0);
  EXPECT_EQ(Complete(Question(200), 0, "f32").cached, 192);
  EXPECT_EQ(Complete(Question(200)).cached, 192);
}

TEST_F(PromptFiles, FewPagesOfMemoryAreEnough) {
  const Run cold = Complete(Question(200), 5);
  // Other prompts in between; all pages are taken when it comes again.
  Complete(Question(190, 2), 5);
  const Run warm = Complete(Question(200), 5);
  EXPECT_EQ(warm.cached, 192);
  ExpectSame(cold.text, warm.text);
}

TEST_F(PromptFiles, NothingOfAScopeIsWritten) {
  Request request = Question(200);
  request.cache_scope = 7;
  Complete(std::move(request));
  EXPECT_TRUE(Files().empty());
}

// Their states are kept behind the prompt's last whole page.
TEST_F(PromptFiles, HaveTheStatesOfRecurrentBlocks) {
  model_ = kTinyHybrid;
  const Run cold = Complete(Question(200));
  EXPECT_EQ(cold.cached, 0);
  EXPECT_EQ(Files().size(), 5u);  // four pages, and the states behind three
  const Run warm = Complete(Question(200));
  EXPECT_EQ(warm.cached, 192);
  EXPECT_EQ(warm.stats.pages_loaded, 4);
  ExpectSame(cold.text, warm.text);
  // The next turn, and a question that begins alike.
  Request next = Question(200);
  for (const GeneratedToken& token : cold.text.tokens) {
    next.prompt_tokens.push_back(token.id);
  }
  Request other = Question(200);
  other.prompt_tokens.resize(195);
  other.prompt_tokens.back() ^= 1;
  Request again = Question(200), other_again = Question(200);
  again.prompt_tokens = next.prompt_tokens;
  other_again.prompt_tokens = other.prompt_tokens;
  const Run turn = Complete(std::move(next));
  EXPECT_EQ(turn.cached, 192);
  const Run alike = Complete(std::move(other));
  EXPECT_EQ(alike.cached, 192);
  options_.cache_folder.clear();
  ExpectSame(Complete(std::move(again)).text, turn.text);
  ExpectSame(Complete(std::move(other_again)).text, alike.text);
}

// Whatever is missing or damaged: the same text.
TEST_F(PromptFiles, OfRecurrentBlocksAreOfUseTogetherOnly) {
  model_ = kTinyHybrid;
  const Run cold = Complete(Question(200));
  for (size_t i = 0; i < 5; ++i) {
    std::vector<std::string> files = Files();
    std::sort(files.begin(), files.end());
    ASSERT_EQ(files.size(), 5u);
    if (i % 2 == 0) {
      fs::remove(files[i]);
    } else {
      std::ofstream(files[i], std::ios::binary | std::ios::app) << "x";
    }
    const Run again = Complete(Question(200));
    // Only the last page stands behind what is asked for.
    EXPECT_TRUE(again.cached == 0 || again.cached == 192) << i;
    ExpectSame(cold.text, again.text);
  }
  EXPECT_EQ(Complete(Question(200)).cached, 192);
}

}  // namespace
}  // namespace weft
