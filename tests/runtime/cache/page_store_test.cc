#include "runtime/cache/page_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

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
    auto folder = PageFolder::Open(folder_, limit_);
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

  std::string folder_;
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

TEST_F(PageStoreTest, AFolderThatCannotBeIsAnError) {
  const std::string file = testing::TempDir() + "/file";
  std::ofstream(file) << "x";
  EXPECT_FALSE(PageFolder::Open(file + "/folder", 1).ok());
  EXPECT_FALSE(PageFolder::Open(file, 1).ok());
}

}  // namespace
}  // namespace weft
