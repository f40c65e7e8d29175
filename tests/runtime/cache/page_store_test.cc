#include "runtime/cache/page_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ops/kernels/kernel.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPage = 1000;

class PageStoreTest : public testing::Test {
 protected:
  PageStoreTest() {
    folder_ = testing::TempDir() + "/pages";
    fs::remove_all(folder_);
    options_.identity = "a plan";
    options_.page_bytes = kPage;
    options_.log = [this](const std::string& line) { log_.push_back(line); };
  }

  std::unique_ptr<PageStore> Open() {
    auto folder = PageFolder::Open(folder_, limit_, pause_);
    EXPECT_TRUE(folder.ok()) << folder.status();
    if (!folder.ok()) return nullptr;
    options_.folder = *std::move(folder);
    return std::make_unique<PageStore>(options_);
  }

  static std::vector<int32_t> Tokens(int first) {
    std::vector<int32_t> tokens(kPageTokens);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
  }
  static void Write(PageStore* store, const PageStore::Key& key, int number,
                    int64_t index = 0) {
    store->Write(key, index, Tokens(number), [&](uint8_t* page) {
      std::fill_n(page, kPage, static_cast<uint8_t>(number));
    });
  }
  static bool Read(PageStore* store, const PageStore::Key& key, int number) {
    bool same = false;
    const bool found =
        store->Read(key, 0, Tokens(number), [&](const uint8_t* page) {
          same = std::all_of(page, page + kPage, [&](uint8_t byte) {
            return byte == static_cast<uint8_t>(number);
          });
        });
    EXPECT_EQ(found, same);
    return found;
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      files.push_back(entry.path().string());
    }
    return files;
  }

  static void WriteOther(const std::string& path) {
    std::ofstream(path) << "mine";
  }

  std::string folder_;
  absl::Duration pause_ = PageFolder::kPause;
  int64_t limit_ = int64_t{1} << 30;
  PageStoreOptions options_;
  std::vector<std::string> log_;
};

TEST_F(PageStoreTest, PagesAreThereAfterARestart) {
  auto store = Open();
  const auto first = store->KeyOf({}, Tokens(1));
  const auto second = store->KeyOf(first, Tokens(2));
  EXPECT_FALSE(store->Has(first));
  EXPECT_FALSE(Read(store.get(), first, 1));
  Write(store.get(), first, 1);
  Write(store.get(), second, 2);
  Write(store.get(), second, 2);  // once is enough
  store.reset();
  EXPECT_EQ(Files().size(), 2u);
  store = Open();
  EXPECT_TRUE(store->Has(first));
  EXPECT_TRUE(Read(store.get(), first, 1));
  EXPECT_TRUE(Read(store.get(), second, 2));
  EXPECT_EQ(store->GetStats().read, 2);
  EXPECT_EQ(store->GetStats().damaged, 0);
  EXPECT_TRUE(log_.empty());
}

TEST_F(PageStoreTest, KeysDependOnWhatAPageDependsOn) {
  auto store = Open();
  const auto key = store->KeyOf({}, Tokens(1));
  EXPECT_NE(key, store->KeyOf({}, Tokens(2)));
  EXPECT_NE(key, store->KeyOf({1, 0}, Tokens(1)));
  EXPECT_NE(key, store->KeyOf({0, 1}, Tokens(1)));
  Write(store.get(), key, 1);
  store.reset();
  options_.identity = "another plan";
  store = Open();
  EXPECT_NE(key, store->KeyOf({}, Tokens(1)));
  EXPECT_FALSE(store->Has(key));
  EXPECT_FALSE(Read(store.get(), key, 1));
}

TEST_F(PageStoreTest, DamageIsNoticedWhereverItIs) {
  auto store = Open();
  const auto key = store->KeyOf({}, Tokens(1));
  Write(store.get(), key, 1);
  store.reset();
  const std::string file = Files().at(0);
  std::string whole;
  {
    std::ifstream in(file, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::vector<std::string> damaged = {"", whole.substr(0, whole.size() - 1),
                                      whole + "x"};
  for (size_t at = 0; at < whole.size(); at += 7) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 1;
  }
  for (const std::string& bytes : damaged) {
    std::ofstream(file, std::ios::binary) << bytes;
    store = Open();
    EXPECT_FALSE(Read(store.get(), key, 1));
    EXPECT_FALSE(store->Has(key));
    EXPECT_EQ(store->GetStats().damaged, 1);
    EXPECT_FALSE(fs::exists(file));
    // And it can be written anew.
    Write(store.get(), key, 1);
    store.reset();
    EXPECT_TRUE(fs::exists(file));
  }
  EXPECT_EQ(log_.size(), damaged.size());
}

TEST_F(PageStoreTest, TheOldestGiveWay) {
  auto store = Open();
  std::vector<PageStore::Key> keys;
  for (int i = 0; i < 8; ++i) {
    keys.push_back(store->KeyOf({}, Tokens(i)));
    Write(store.get(), keys[i], i);
  }
  store.reset();
  const int64_t one = static_cast<int64_t>(fs::file_size(Files().at(0)));
  store = Open();
  EXPECT_TRUE(Read(store.get(), keys[0], 0));  // the newest now
  store.reset();
  limit_ = 4 * one;
  store = Open();
  EXPECT_EQ(Files().size(), 4u);
  EXPECT_LE(options_.folder->bytes(), limit_);
  EXPECT_TRUE(store->Has(keys[0]));
  for (int i = 1; i < 5; ++i) EXPECT_FALSE(store->Has(keys[i])) << i;
  Write(store.get(), store->KeyOf({}, Tokens(9)), 9);
  store.reset();
  EXPECT_EQ(Files().size(), 4u);
}

TEST_F(PageStoreTest, OfOneTextTheFirstPagesStay) {
  {
    auto probe = Open();
    Write(probe.get(), probe->KeyOf({}, Tokens(99)), 99);
  }
  const int64_t one = static_cast<int64_t>(fs::file_size(Files().at(0)));
  fs::remove(Files().at(0));
  limit_ = 4 * one;
  std::vector<PageStore::Key> keys;
  for (int run = 0; run < 2; ++run) {
    auto store = Open();
    PageStore::Key key;
    keys.clear();
    for (int i = 0; i < 8; ++i) {
      key = store->KeyOf(key, Tokens(i));
      keys.push_back(key);
      Write(store.get(), key, i, i);
    }
    store.reset();
    store = Open();
    for (int i = 0; i < 8; ++i) EXPECT_EQ(store->Has(keys[i]), i < 4) << i;
  }
}

TEST_F(PageStoreTest, SeveralStoresOfAFolderShareItsLimit) {
  auto pages = Open();
  PageStoreOptions others = options_;
  others.identity = "its states";
  others.page_bytes = 3 * kPage;
  auto states = std::make_unique<PageStore>(others);
  for (int i = 0; i < 4; ++i) {
    Write(pages.get(), pages->KeyOf({}, Tokens(i)), i);
    states->Write(states->KeyOf({}, Tokens(i)), 0, Tokens(i),
                  [](uint8_t* bytes) { std::fill_n(bytes, 3 * kPage, 1); });
  }
  pages.reset();
  states.reset();
  int64_t bytes = 0;
  for (const std::string& file : Files()) bytes += fs::file_size(file);
  EXPECT_EQ(options_.folder->bytes(), bytes);
  EXPECT_EQ(Files().size(), 8u);
  limit_ = bytes / 2;
  states = std::make_unique<PageStore>(others);
  pages = Open();
  EXPECT_LE(options_.folder->bytes(), limit_);
}

TEST_F(PageStoreTest, OthersFilesAreLeftAlone) {
  fs::create_directories(folder_);
  const std::string other = folder_ + "/notes.txt";
  std::ofstream(other) << "mine";
  fs::create_symlink(other, folder_ + "/link.page");
  limit_ = 1;
  auto store = Open();
  Write(store.get(), store->KeyOf({}, Tokens(1)), 1);  // larger than the limit
  store.reset();
  EXPECT_TRUE(fs::exists(other));
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(PageStoreTest, FilesAreTheirOwnersAndNothingElseIsOpened) {
  auto store = Open();
  const auto key = store->KeyOf({}, Tokens(1));
  Write(store.get(), key, 1);
  store.reset();
  const std::string file = Files().at(0);
  EXPECT_EQ(fs::status(file).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  store = Open();
  EXPECT_FALSE(Read(store.get(), key, 1));  // and does not wait
}

TEST_F(PageStoreTest, AFolderIsOneForAllOfAProcess) {
  auto one = PageFolder::Open(folder_, limit_);
  auto same = PageFolder::Open(folder_ + "/../pages", limit_);
  ASSERT_TRUE(one.ok() && same.ok());
  EXPECT_EQ(*one, *same);
}

// Two processes that write into one folder keep to its limit together.
TEST_F(PageStoreTest, WhatOtherProcessesWriteCounts) {
  auto store = Open();
  Write(store.get(), store->KeyOf({}, Tokens(0)), 0);
  store.reset();
  const std::string file = Files().at(0);
  const int64_t one = static_cast<int64_t>(fs::file_size(file));
  limit_ = 6 * one;
  store = Open();
  for (int i = 0; i < 5; ++i) {
    fs::copy_file(file, absl::StrCat(folder_, "/", i, PageFolder::kEnding));
  }
  // So that looking again is due.
  absl::SleepFor(absl::Milliseconds(200));
  for (int i = 1; i < 4; ++i) {
    Write(store.get(), store->KeyOf({}, Tokens(i)), i);
  }
  store.reset();
  EXPECT_LE(Files().size(), 6u);
  EXPECT_EQ(options_.folder->bytes(), 6 * one);
}

TEST_F(PageStoreTest, DamagedPagesAreFoundWithoutTakingThem) {
  auto store = Open();
  const auto key = store->KeyOf({}, Tokens(1));
  Write(store.get(), key, 1);
  store.reset();
  store = Open();
  EXPECT_TRUE(store->Check(key, 0, Tokens(1)));
  EXPECT_EQ(store->GetStats().read, 0);
  std::ofstream(Files().at(0), std::ios::binary) << "x";
  EXPECT_FALSE(store->Check(key, 0, Tokens(1)));
  EXPECT_FALSE(store->Has(key));
  EXPECT_EQ(store->GetStats().damaged, 1);
}

TEST_F(PageStoreTest, AFolderThatHasGoneIsMadeAgain) {
  auto store = Open();
  Write(store.get(), store->KeyOf({}, Tokens(1)), 1);
  store.reset();
  fs::remove_all(folder_);
  store = std::make_unique<PageStore>(options_);
  const auto key = store->KeyOf({}, Tokens(2));
  Write(store.get(), key, 2);
  store.reset();
  EXPECT_EQ(Files().size(), 1u);
  store = std::make_unique<PageStore>(options_);
  EXPECT_TRUE(Read(store.get(), key, 2));
  // The one that went with it is not there.
  EXPECT_FALSE(store->Has(store->KeyOf({}, Tokens(1))));
  EXPECT_TRUE(log_.empty());
}

TEST_F(PageStoreTest, WhatCannotBeWrittenIsToldAndTriedAgain) {
  pause_ = absl::Milliseconds(50);
  auto store = Open();
  const auto write = [&](int number) {
    store = std::make_unique<PageStore>(options_);
    Write(store.get(), store->KeyOf({}, Tokens(number)), number);
    store.reset();
  };
  fs::remove_all(folder_);
  WriteOther(folder_);  // a file where the folder was
  write(1);
  write(2);  // in the pause: not tried
  absl::SleepFor(2 * pause_);
  write(3);  // still no use, and not told again
  EXPECT_EQ(log_.size(), 1u);
  EXPECT_TRUE(absl::StrContains(log_.at(0), "not cached for now")) << log_[0];
  fs::remove(folder_);
  write(4);  // the pause is twice as long now
  EXPECT_FALSE(fs::exists(folder_));
  absl::SleepFor(3 * pause_);
  write(5);
  EXPECT_EQ(Files().size(), 1u);
  write(6);
  EXPECT_EQ(Files().size(), 2u);
  ASSERT_EQ(log_.size(), 2u);
  EXPECT_TRUE(absl::StrContains(log_[1], "cached again")) << log_[1];
}

TEST_F(PageStoreTest, WhatStandsInAPagesPlaceIsReplacedOrLeft) {
  auto store = Open();
  const PageStore::Key keys[] = {store->KeyOf({}, Tokens(1)),
                                 store->KeyOf({}, Tokens(2))};
  for (int i = 0; i < 2; ++i) Write(store.get(), keys[i], i + 1);
  store.reset();
  const std::vector<std::string> files = Files();
  for (const std::string& file : files) {
    fs::remove(file);
    fs::create_directory(file);
  }
  WriteOther(files[1] + "/mine");
  store = Open();
  for (int i = 0; i < 2; ++i) Write(store.get(), keys[i], i + 1);
  Write(store.get(), store->KeyOf({}, Tokens(3)), 3);
  store.reset();
  EXPECT_TRUE(fs::is_regular_file(files[0]));
  EXPECT_TRUE(fs::exists(files[1] + "/mine"));
  EXPECT_EQ(Files().size(), 3u);
  EXPECT_TRUE(log_.empty());
}

TEST_F(PageStoreTest, WhatDeadProcessesLeftHalfWrittenGoes) {
  Open();
  options_.folder.reset();
  const std::string left = folder_ + "/a.page.tmp.0123456789abcdef";
  const std::string other = folder_ + "/a.txt.tmp.0123456789abcdef";
  WriteOther(left);
  WriteOther(other);
  Open();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(PageStoreTest, AFolderThatCannotBeIsAnError) {
  const std::string file = testing::TempDir() + "/file";
  std::ofstream(file) << "x";
  EXPECT_FALSE(PageFolder::Open(file + "/folder", 1).ok());
  EXPECT_FALSE(PageFolder::Open(file, 1).ok());
}

}  // namespace
}  // namespace weft
