#include "runtime/hub/hub.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/hub/http_client.h"
#include "runtime/hub/part_file.h"
#include "runtime/hub/pull.h"
#include "tests/runtime/hub/fake_hub.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr char kRepository[] = "owner/name";
constexpr char kFile[] = "x-Q4_K_M.gguf";

// Of a model: what begins otherwise is not kept.
std::string RandomBytes(size_t size, unsigned seed) {
  std::string bytes(size, '\0');
  for (char& c : bytes) {
    seed = seed * 1664525 + 1013904223;
    c = static_cast<char>(seed >> 24);
  }
  return bytes.replace(0, 4, "GGUF");
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

bool IsContent(const FakeRequest& request) {
  return absl::StrContains(request.path, "/resolve/") &&
         request.method == "GET";
}

class HubTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = absl::StrCat(
        testing::TempDir(), "/hub-",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder);
    store_ = std::make_unique<ModelStore>(folder);
    fake_.Add(kRepository, kFile, content_);
    options_.endpoint = fake_.url();
    options_.first_wait = absl::Milliseconds(1);
    options_.notice = [this](const std::string& line) {
      absl::StrAppend(&notices_, line, "\n");
    };
  }

  absl::StatusOr<Pulled> PullName(const std::string& text) {
    absl::StatusOr<std::unique_ptr<Hub>> hub = Hub::Create(options_);
    if (!hub.ok()) return hub.status();
    PullObserver observer;
    observer.notice = options_.notice;
    observer.progress = [this](int64_t done, int64_t total) {
      EXPECT_LE(done, total);
      first_progress_ = first_progress_ < 0 ? done : first_progress_;
    };
    first_progress_ = -1;
    return Pull(hub->get(), *store_, *ParseHubName(text), observer);
  }

  void ExpectPulled(const std::string& text, const std::string& content) {
    const absl::StatusOr<Pulled> pulled = PullName(text);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    EXPECT_EQ(ReadAll(pulled->model.path), content);
    EXPECT_EQ(ReadChecksum(pulled->model.path), HashOf(content));
    EXPECT_TRUE(Parts().empty());
  }

  // Returns the error's message.
  std::string ExpectRefused(const std::string& text, absl::StatusCode code) {
    const absl::StatusOr<Pulled> pulled = PullName(text);
    EXPECT_EQ(pulled.status().code(), code) << pulled.status();
    EXPECT_FALSE(fs::exists(store_->PathOf(kRepository, kFile)));
    return std::string(pulled.status().message());
  }

  std::vector<std::string> Parts() const {
    std::vector<std::string> parts;
    std::error_code error;
    for (const auto& entry :
         fs::recursive_directory_iterator(store_->folder(), error)) {
      if (entry.path().extension() == ".part") parts.push_back(entry.path());
    }
    return parts;
  }

  // The content is cut off after so many bytes, each time.
  void CutAfter(int64_t bytes) {
    fake_.SetIntercept(
        [=](const FakeRequest& request) -> std::optional<FakeAnswer> {
          if (!IsContent(request)) return std::nullopt;
          FakeAnswer answer = FakeHub::Content(request, content_);
          answer.cut_after = bytes;
          return answer;
        });
  }

  // So that a part stays: the first answer is cut off, others fail.
  void LeaveAPart(int64_t bytes) {
    auto count = std::make_shared<std::atomic<int>>(0);
    fake_.SetIntercept(
        [=](const FakeRequest& request) -> std::optional<FakeAnswer> {
          if (!IsContent(request)) return std::nullopt;
          FakeAnswer answer = FakeHub::Content(request, content_);
          answer.cut_after = bytes;
          if ((*count)++ > 0) answer = FakeAnswer{500, {}, "", -1};
          return answer;
        });
    ExpectRefused(kRepository, absl::StatusCode::kUnavailable);
    ASSERT_EQ(Parts().size(), 1u);
    ASSERT_EQ(fs::file_size(Parts()[0]), static_cast<uint64_t>(bytes));
    fake_.SetIntercept(nullptr);
    fake_.ForgetRequests();
  }

  const std::string content_ = RandomBytes(3 << 20, 1);
  FakeHub fake_;
  HubOptions options_;
  std::unique_ptr<ModelStore> store_;
  std::string notices_;
  int64_t first_progress_ = -1;
};

TEST_F(HubTest, AFileComesWholeAndOnce) {
  ExpectPulled(kRepository, content_);
  fake_.ForgetRequests();
  const absl::StatusOr<Pulled> again = PullName(kRepository);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->was_there);
  for (const FakeRequest& request : fake_.requests()) {
    EXPECT_FALSE(IsContent(request));
  }
  EXPECT_EQ(notices_, "");
}

TEST_F(HubTest, WithoutSizesInTheListTheFileIsAsked) {
  fake_.SetShortLists(true);
  ExpectPulled(kRepository, content_);
}

TEST_F(HubTest, ACutConnectionIsGoneOnFromWhereItWas) {
  CutAfter(1 << 20);
  ExpectPulled(kRepository, content_);
  int ranges = 0;
  for (const FakeRequest& request : fake_.requests()) {
    ranges += request.headers.count("range");
  }
  EXPECT_EQ(ranges, 2);
}

TEST_F(HubTest, TheNextPullGoesOnWhereTheLastEnded) {
  LeaveAPart(1234567);
  ExpectPulled(kRepository, content_);
  EXPECT_EQ(first_progress_, 1234567);
  for (const FakeRequest& request : fake_.requests()) {
    if (IsContent(request)) {
      EXPECT_EQ(request.headers.at("range"), "bytes=1234567-");
    }
  }
}

TEST_F(HubTest, AServerWithoutRangesBeginsAgain) {
  LeaveAPart(1000);
  fake_.SetIntercept(
      [this](const FakeRequest& request) -> std::optional<FakeAnswer> {
        if (!IsContent(request)) return std::nullopt;
        return FakeHub::Content({}, content_);
      });
  ExpectPulled(kRepository, content_);
}

TEST_F(HubTest, AContentThatChangedIsFetchedAnew) {
  LeaveAPart(1000);
  const std::string other = RandomBytes(2 << 20, 2);
  fake_.Add(kRepository, kFile, other);
  ExpectPulled(kRepository, other);
  EXPECT_EQ(first_progress_, 0);
}

// The list still tells of the old content; the file is the new one.
TEST_F(HubTest, AContentThatChangesMeanwhileIsSeenByItsEtag) {
  LeaveAPart(1000);
  const std::string other = RandomBytes(content_.size(), 2);
  FakeHub storage;
  storage.Add(kRepository, kFile, other);
  auto listed = std::make_shared<std::atomic<bool>>(false);
  fake_.SetStorage(&storage);
  fake_.SetIntercept([&, listed](const FakeRequest& request)
                         -> std::optional<FakeAnswer> {
    if (absl::StrContains(request.path, "/api/") && listed->exchange(true)) {
      fake_.Add(kRepository, kFile, other);
    }
    if (!IsContent(request)) return std::nullopt;
    FakeAnswer answer;
    answer.status = 302;
    answer.headers = {absl::StrCat("Location: ", storage.url(), request.path),
                      absl::StrCat("X-Linked-Etag: \"", HashOf(other), "\"")};
    return answer;
  });
  ExpectPulled(kRepository, other);
}

// What a storage says of its file between two parts.
TEST_F(HubTest, AStorageWhoseContentChangesSendsItWhole) {
  FakeHub storage;
  auto count = std::make_shared<std::atomic<int>>(0);
  storage.SetIntercept(
      [=](const FakeRequest& request) -> std::optional<FakeAnswer> {
        const int number = (*count)++;
        FakeAnswer answer = FakeHub::Content(
            request, number == 0 ? RandomBytes(content_.size(), 3) : content_);
        if (number == 0) answer.cut_after = 100000;
        return answer;
      });
  fake_.SetStorage(&storage);
  ExpectPulled(kRepository, content_);
  ASSERT_EQ(storage.requests().size(), 2u);
  EXPECT_EQ(storage.requests()[1].headers.count("if-range"), 1u);
}

TEST_F(HubTest, TheTokenStaysWithTheHub) {
  FakeHub storage;
  storage.Add(kRepository, kFile, content_);
  fake_.SetStorage(&storage);
  options_.token = "secret";
  ExpectPulled(kRepository, content_);
  for (const FakeRequest& request : fake_.requests()) {
    EXPECT_EQ(request.headers.at("authorization"), "Bearer secret");
  }
  ASSERT_FALSE(storage.requests().empty());
  for (const FakeRequest& request : storage.requests()) {
    EXPECT_EQ(request.headers.count("authorization"), 0u);
  }
}

TEST_F(HubTest, RedirectsOfTheHubItselfKeepTheToken) {
  options_.token = "secret";
  fake_.SetIntercept(
      [](const FakeRequest& request) -> std::optional<FakeAnswer> {
        if (!absl::StrContains(request.path, "old/name")) return std::nullopt;
        FakeAnswer answer;
        answer.status = 307;
        std::string path = request.path;
        path.replace(path.find("old/name"), 8, kRepository);
        answer.headers = {"Location: " + path};
        return answer;
      });
  const absl::StatusOr<Pulled> pulled = PullName("old/name");
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(ReadAll(pulled->model.path), content_);
}

TEST_F(HubTest, RedirectsEndAndStayOnTheWeb) {
  for (const char* location : {"/resolve/again", "file:///etc/passwd",
                               "ftp://127.0.0.1/x", "gopher://127.0.0.1/"}) {
    fake_.SetIntercept([=](const FakeRequest&) -> std::optional<FakeAnswer> {
      return FakeAnswer{302, {absl::StrCat("Location: ", location)}, "", -1};
    });
    ExpectRefused(kRepository, absl::StatusCode::kDataLoss);
  }
}

TEST_F(HubTest, AWrongChecksumLeavesNothing) {
  std::string wrong = content_;
  wrong[1000] ^= 1;
  fake_.SetIntercept(
      [=](const FakeRequest& request) -> std::optional<FakeAnswer> {
        if (!IsContent(request)) return std::nullopt;
        FakeAnswer answer = FakeHub::Content(request, wrong);
        answer.headers.clear();
        return answer;
      });
  const std::string message =
      ExpectRefused(kRepository, absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(message, "wrong checksum"));
  EXPECT_TRUE(Parts().empty());
}

TEST_F(HubTest, ADamagedPartIsFetchedAnew) {
  LeaveAPart(1000);
  std::fstream part(Parts()[0], std::ios::in | std::ios::out);
  part.put('?');
  part.close();
  ExpectPulled(kRepository, content_);
  EXPECT_TRUE(absl::StrContains(notices_, "once more")) << notices_;
}

TEST_F(HubTest, SizesThatAreNotAsPromisedAreRefused) {
  // More than was promised, without a length that would tell before.
  fake_.SetIntercept(
      [this](const FakeRequest& request) -> std::optional<FakeAnswer> {
        if (!IsContent(request)) return std::nullopt;
        FakeAnswer answer;
        answer.body = content_ + "more";
        return answer;
      });
  ExpectRefused(kRepository, absl::StatusCode::kAborted);
  fake_.SetIntercept(
      [this](const FakeRequest& request) -> std::optional<FakeAnswer> {
        if (!IsContent(request)) return std::nullopt;
        FakeAnswer answer;
        answer.status = 206;
        answer.headers = {"Content-Range: bytes 5-9/10"};
        answer.body = content_;
        return answer;
      });
  ExpectRefused(kRepository, absl::StatusCode::kDataLoss);
}

TEST_F(HubTest, AnswersOfRefusalSayWhatToDo) {
  const struct {
    int status;
    absl::StatusCode code;
    const char* words;
  } cases[] = {
      {401, absl::StatusCode::kPermissionDenied, "HF_TOKEN"},
      {403, absl::StatusCode::kPermissionDenied, "accept its terms"},
      {404, absl::StatusCode::kNotFound, "does not have it"},
      {410, absl::StatusCode::kUnavailable, "answers 410"},
  };
  for (const auto& c : cases) {
    fake_.SetIntercept(
        [status = c.status](const FakeRequest&) -> std::optional<FakeAnswer> {
          return FakeAnswer{status, {"X-Error-Message: why"}, "<html>", -1};
        });
    const std::string message = ExpectRefused(kRepository, c.code);
    EXPECT_TRUE(absl::StrContains(message, c.words)) << message;
    EXPECT_TRUE(absl::StrContains(message, "(why)")) << message;
  }
}

TEST_F(HubTest, WhatPassesIsWaitedFor) {
  for (const int status : {429, 500, 503, 408}) {
    fs::remove_all(store_->folder());
    auto failures = std::make_shared<std::atomic<int>>(3);
    fake_.SetIntercept([=](const FakeRequest&) -> std::optional<FakeAnswer> {
      if ((*failures)-- <= 0) return std::nullopt;
      return FakeAnswer{status, {}, "later", -1};
    });
    ExpectPulled(kRepository, content_);
  }
  EXPECT_TRUE(absl::StrContains(notices_, "trying again")) << notices_;
}

TEST_F(HubTest, RetryAfterIsObeyedAndNotForever) {
  auto failures = std::make_shared<std::atomic<int>>(1);
  fake_.SetIntercept([=](const FakeRequest&) -> std::optional<FakeAnswer> {
    if ((*failures)-- <= 0) return std::nullopt;
    return FakeAnswer{429, {"Retry-After: 1"}, "", -1};
  });
  ExpectPulled(kRepository, content_);
  EXPECT_TRUE(absl::StrContains(notices_, "in 1s")) << notices_;
  fs::remove_all(store_->folder());
  fake_.SetIntercept([](const FakeRequest&) -> std::optional<FakeAnswer> {
    return FakeAnswer{429, {"Retry-After: 86400"}, "", -1};
  });
  const std::string message =
      ExpectRefused(kRepository, absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(message, "86400 s")) << message;
}

TEST_F(HubTest, ThereIsAnEndToTrying) {
  fake_.SetIntercept([](const FakeRequest&) -> std::optional<FakeAnswer> {
    return FakeAnswer{500, {}, "", -1};
  });
  ExpectRefused(kRepository, absl::StatusCode::kUnavailable);
  EXPECT_EQ(fake_.requests().size(), 5u);
}

TEST_F(HubTest, HostileNamesAreNoFiles) {
  fake_.SetIntercept(
      [this](const FakeRequest& request) -> std::optional<FakeAnswer> {
        if (!absl::StrContains(request.path, "/api/")) return std::nullopt;
        FakeAnswer answer;
        answer.body = absl::StrCat(
            R"([{"type":"file","path":"../../x-Q4_K_M.gguf","size":1},)",
            R"({"type":"file","path":"/tmp/x-Q4_K_M.gguf","size":1},)",
            R"({"type":"file","path":"a\u0000b-Q4_K_M.gguf","size":1},)",
            R"({"type":"file","path":"a\n-Q4_K_M.gguf","size":1},)",
            R"({"type":"file","path":["x"],"size":"y"},17,null,)",
            R"({"type":"file","path":"good-Q8_0.gguf","size":)",
            content_.size(), "}]");
        return answer;
      });
  fake_.Add(kRepository, "good-Q8_0.gguf", content_);
  ExpectPulled(kRepository, content_);
  EXPECT_TRUE(absl::StrContains(notices_, "5 files have names")) << notices_;
  EXPECT_FALSE(PullName("owner/name:Q4_K_M").ok());
}

TEST_F(HubTest, ListsThatAreNoneAreRefused) {
  std::string endless = "[";
  while (endless.size() < (9 << 20)) endless += R"({"type":"file"},)";
  for (const std::string& body :
       {std::string(), std::string("<html>"), std::string("{}"),
        std::string("[1"), std::string(100000, '['), endless}) {
    fake_.SetIntercept([=](const FakeRequest&) -> std::optional<FakeAnswer> {
      FakeAnswer answer;
      answer.body = body;
      return answer;
    });
    ExpectRefused(kRepository, absl::StatusCode::kDataLoss);
  }
}

TEST_F(HubTest, PagesOfAListAreFollowedAndEnd) {
  fake_.SetIntercept(
      [this](const FakeRequest& request) -> std::optional<FakeAnswer> {
        if (!absl::StrContains(request.path, "/api/")) return std::nullopt;
        if (absl::StrContains(request.path, "cursor")) {
          FakeRequest whole = request;
          FakeAnswer answer;
          answer.body = absl::StrCat(R"([{"type":"file","path":")", kFile,
                                     R"(","size":)", content_.size(), "}]");
          return answer;
        }
        FakeAnswer answer;
        answer.body = "[]";
        answer.headers = {absl::StrCat("Link: <", fake_.url(),
                                       "/api/x?cursor=1>; rel=\"next\"")};
        return answer;
      });
  ExpectPulled(kRepository, content_);
  fs::remove_all(store_->folder());
  fake_.SetIntercept([this](const FakeRequest&) -> std::optional<FakeAnswer> {
    FakeAnswer answer;
    answer.body = "[]";
    answer.headers = {
        absl::StrCat("Link: <", fake_.url(), "/api/x>; rel=\"next\"")};
    return answer;
  });
  ExpectRefused(kRepository, absl::StatusCode::kDataLoss);
}

TEST_F(HubTest, AFileThatTheDiskCannotHoldIsNotBegun) {
  fake_.SetIntercept(
      [](const FakeRequest& request) -> std::optional<FakeAnswer> {
        if (!absl::StrContains(request.path, "/api/")) return std::nullopt;
        FakeAnswer answer;
        answer.body =
            absl::StrCat(R"([{"type":"file","path":"x-Q4_K_M.gguf","size":)",
                         int64_t{1} << 49, R"(,"lfs":{"oid":")",
                         std::string(64, 'a'), R"("}}])");
        return answer;
      });
  const std::string message =
      ExpectRefused(kRepository, absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(message, "563 TB")) << message;
  for (const FakeRequest& request : fake_.requests()) {
    EXPECT_FALSE(IsContent(request));
  }
}

TEST_F(HubTest, AHubWithoutChecksumsIsTold) {
  fake_.SetShortLists(true);
  fake_.SetIntercept(
      [this](const FakeRequest& request) -> std::optional<FakeAnswer> {
        if (absl::StrContains(request.path, "/api/")) return std::nullopt;
        FakeAnswer answer = FakeHub::Content(request, content_);
        answer.headers[0] = "ETag: \"1\"";
        return answer;
      });
  ExpectPulled(kRepository, content_);
  EXPECT_TRUE(absl::StrContains(notices_, "the hub gives no checksum"))
      << notices_;
}

TEST_F(HubTest, WhatIsNoModelIsRemoved) {
  fake_.Add(kRepository, kFile, "<html>" + content_);
  EXPECT_TRUE(
      absl::StrContains(ExpectRefused(kRepository, absl::StatusCode::kDataLoss),
                        "what the hub sent is a web page"));
}

TEST_F(HubTest, SplitModelsComeWithAllParts) {
  std::vector<std::string> contents;
  for (int part = 1; part <= 3; ++part) {
    contents.push_back(RandomBytes(1000 * part, part));
    fake_.Add("a/split", absl::StrCat("Q8_0/m-0000", part, "-of-00003.gguf"),
              contents.back());
  }
  const absl::StatusOr<Pulled> pulled = PullName("a/split:Q8_0");
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  ASSERT_EQ(pulled->model.model.files.size(), 3u);
  for (int part = 0; part < 3; ++part) {
    EXPECT_EQ(ReadAll(store_->PathOf("a/split",
                                     pulled->model.model.files[part].path)),
              contents[part]);
  }
  EXPECT_EQ(store_->List().size(), 1u);
  ASSERT_TRUE(store_->Remove({"a/split", "Q8_0"}).ok());
  EXPECT_TRUE(store_->List().empty());
  EXPECT_FALSE(fs::exists(store_->folder() + "/models/a"));
}

TEST_F(HubTest, TwoPullsOfAFileAreOneDownload) {
  // The first waits in the middle until the second has met it.
  std::atomic<bool> waits{false};
  auto count = std::make_shared<std::atomic<int>>(0);
  fake_.SetIntercept(
      [&, count](const FakeRequest& request) -> std::optional<FakeAnswer> {
        if (!IsContent(request)) return std::nullopt;
        ++*count;
        while (!waits) std::this_thread::yield();
        return FakeHub::Content(request, content_);
      });
  absl::StatusOr<Pulled> first, second;
  std::thread other([&] { first = PullName(kRepository); });
  while (*count == 0) std::this_thread::yield();
  HubOptions options = options_;
  options.notice = [&](const std::string& line) {
    EXPECT_TRUE(absl::StrContains(line, "another process")) << line;
    waits = true;
  };
  absl::StatusOr<std::unique_ptr<Hub>> hub = Hub::Create(options);
  second = Pull(hub->get(), *store_, *ParseHubName(kRepository), {});
  other.join();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*count, 1);
  EXPECT_EQ(ReadAll(second->model.path), content_);
}

TEST_F(HubTest, NobodyThereIsToldAtOnce) {
  options_.endpoint = "http://127.0.0.1:1";
  const std::string message =
      ExpectRefused(kRepository, absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(message, "127.0.0.1:1")) << message;
  for (const char* endpoint : {"", "huggingface.co", "file:///x", "http://"}) {
    options_.endpoint = endpoint;
    ExpectRefused(kRepository, absl::StatusCode::kInvalidArgument);
  }
  options_.endpoint = fake_.url();
  options_.token = "a\r\nX: y";
  ExpectRefused(kRepository, absl::StatusCode::kInvalidArgument);
}

TEST_F(HubTest, WhatIsUnfinishedIsRemovedToo) {
  LeaveAPart(1000);
  EXPECT_TRUE(store_->List().empty());
  const absl::StatusOr<int64_t> bytes = store_->Remove({kRepository, ""});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, 1000);
  EXPECT_TRUE(Parts().empty());
  EXPECT_EQ(store_->Remove({kRepository, ""}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Origin, IsSchemeHostAndPort) {
  EXPECT_EQ(OriginOf("https://A.b/c?d"), "https://a.b:443");
  EXPECT_EQ(OriginOf("http://a:80"), "http://a:80");
  EXPECT_EQ(OriginOf("http://a/x"), "http://a:80");
  EXPECT_EQ(OriginOf("https://hub@evil/x"), "https://evil:443");
  EXPECT_EQ(OriginOf("https://evil\\@hub/x"), "https://evil:443");
  EXPECT_EQ(OriginOf("http://[::1]/x"), "http://[::1]:80");
  EXPECT_EQ(OriginOf("http://[::1]:8/x"), "http://[::1]:8");
  EXPECT_EQ(OriginOf("file:///x"), "");
  EXPECT_EQ(OriginOf("https://"), "");
}

TEST(ModelStore, LiesWhereTheEnvironmentSays) {
  const auto folder = [] {
    const absl::StatusOr<ModelStore> store = ModelStore::FromEnvironment();
    return store.ok() ? store->folder() : std::string("none");
  };
  for (const char* name : {"WEFT_CACHE", "WEFT_HOME", "XDG_CACHE_HOME"}) {
    unsetenv(name);
  }
  setenv("HOME", "/h", 1);
  EXPECT_EQ(folder(), "/h/.cache/weft");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(folder(), "/h/.cache/weft");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(folder(), "/x/weft");
  setenv("WEFT_HOME", "/w", 1);
  EXPECT_EQ(folder(), "/w");
  setenv("WEFT_CACHE", "/c", 1);
  EXPECT_EQ(folder(), "/c");
  for (const char* name :
       {"WEFT_CACHE", "WEFT_HOME", "XDG_CACHE_HOME", "HOME"}) {
    unsetenv(name);
  }
  EXPECT_EQ(folder(), "none");
}

TEST(ModelStore, HoldsWhatLiesBelow) {
  const ModelStore store(testing::TempDir() + "/holds");
  fs::create_directories(store.folder() + "/models/a/b");
  const std::string path = store.PathOf("a/b", "x.gguf");
  std::ofstream(path) << "x";
  EXPECT_TRUE(store.Holds(path));
  EXPECT_TRUE(store.Holds(store.folder() + "/models/a/../a/b/x.gguf"));
  EXPECT_FALSE(store.Holds(store.folder() + "/x.gguf"));
  EXPECT_FALSE(store.Holds("/etc/passwd"));
  EXPECT_FALSE(store.Holds(""));
  const std::string link = testing::TempDir() + "/link.gguf";
  fs::remove(link);
  fs::create_symlink(path, link);
  EXPECT_TRUE(store.Holds(link));
}

}  // namespace
}  // namespace weft
