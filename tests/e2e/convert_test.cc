// Folders of published models through the binary: as files, and in their place.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"
#include "tests/loaders/convert/published_folder.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr char kModel[] = "tests/data/golden/arch/llama-gqa.gguf";

class ConvertTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name =
        testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = TemporaryPath(name + "-model");
    cache_ = TemporaryPath(name + "-cache");
    fs::remove_all(cache_);
    PublishedOptions published;
    published.class_name = "LlamaForCausalLM";
    published.config = {{"hidden_act", "silu"}};
    published.pairs = true;
    published.parts = 2;
    WritePublishedFolder(kModel, folder_, published);
    options_.environment = {"WEFT_CACHE=" + cache_};
  }

  std::string LogitsOf(const std::string& model) const {
    const std::string path = TemporaryPath("logits.f32");
    fs::remove(path);
    WeftOut({"eval", model, "--tokens", "1,7,300,9", "--logits", path},
            options_);
    return ReadFile(path);
  }

  std::vector<std::string> Converted() const {
    std::vector<std::string> files;
    if (!fs::exists(cache_)) return files;
    for (const auto& entry : fs::recursive_directory_iterator(cache_)) {
      if (entry.path().extension() == ".gguf") files.push_back(entry.path());
    }
    return files;
  }

  std::string folder_, cache_;
  RunOptions options_;
};

TEST_F(ConvertTest, TheFileGivesTheBitsOfTheModelThatTheFolderIsMadeOf) {
  const std::string path = TemporaryPath("made.gguf");
  const std::string said = WeftOut({"convert", folder_, "-o", path});
  EXPECT_TRUE(absl::StartsWith(said, path)) << said;
  EXPECT_TRUE(absl::StrContains(said, "mostly F32")) << said;
  const std::string expected = LogitsOf(kModel);
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(LogitsOf(path), expected);
  const nlohmann::json model = WeftJson({"inspect", path, "--json"})["model"];
  EXPECT_EQ(model["architecture"], "llama");
  EXPECT_EQ(WeftOut({"tokenize", path, "ab"}), "1,260\n");
  const std::string half = TemporaryPath("half.gguf");
  WeftOut({"convert", folder_, "-o", half, "--type", "bf16", "--name", "tiny"});
  EXPECT_LT(fs::file_size(half), fs::file_size(path));
  EXPECT_EQ(WeftJson({"inspect", half, "--json"})["model"]["name"], "tiny");
}

TEST_F(ConvertTest, AFolderInPlaceOfAFileIsConvertedOnce) {
  const std::string expected = LogitsOf(kModel);
  const std::vector<std::string> run = {"run",           folder_, "-p", "ab",
                                        "--temperature", "0",     "-n", "4"};
  const RunResult first = Weft(run, options_);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(absl::StrContains(first.err, "converting " + folder_))
      << first.err;
  const std::vector<std::string> files = Converted();
  ASSERT_EQ(files.size(), 1u);
  const RunResult second = Weft(run, options_);
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
  EXPECT_FALSE(absl::StrContains(second.err, "converting")) << second.err;
  EXPECT_EQ(LogitsOf(folder_), expected);
  EXPECT_EQ(Converted(), files);
}

TEST_F(ConvertTest, AFolderThatChangedIsConvertedAnewAndTheOldFileGoes) {
  LogitsOf(folder_);
  const std::vector<std::string> before = Converted();
  ASSERT_EQ(before.size(), 1u);
  fs::last_write_time(folder_ + "/config.json",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  LogitsOf(folder_);
  const std::vector<std::string> after = Converted();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_NE(after, before);
}

TEST_F(ConvertTest, WhatWasConvertedIsListedAndRemoved) {
  LogitsOf(folder_);
  const nlohmann::json list = WeftJson({"list", "--json"}, options_);
  ASSERT_EQ(list.size(), 1u);
  const std::string name = list[0]["repository"];
  EXPECT_TRUE(absl::StartsWith(name, "local/")) << name;
  WeftOut({"rm", name}, options_);
  EXPECT_TRUE(Converted().empty());
}

TEST_F(ConvertTest, WhatWasConvertedIsRemovedByItsFolderToo) {
  LogitsOf(folder_);
  ASSERT_EQ(Converted().size(), 1u);
  WeftOut({"rm", folder_}, options_);
  EXPECT_TRUE(Converted().empty());
  EXPECT_TRUE(fs::exists(folder_ + "/config.json"));
  ExpectError(Weft({"rm", folder_}, options_), 1);
}

TEST_F(ConvertTest, AServedFolderHasItsOwnName) {
  setenv("WEFT_CACHE", cache_.c_str(), 1);
  const Server server({folder_});
  unsetenv("WEFT_CACHE");
  EXPECT_EQ(Get(server, "/v1/models").json["data"][0]["id"],
            fs::path(folder_).filename().string());
}

// Of another state of the folder, whose name nothing writes any more.
TEST_F(ConvertTest, WhatAKilledConversionLeftGoesWithTheNextOne) {
  LogitsOf(folder_);
  const std::string left = Converted().at(0) + ".tmp.0123456789abcdef";
  WriteTextFile(left, "half a model");
  fs::last_write_time(folder_ + "/config.json",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  LogitsOf(folder_);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_EQ(Converted().size(), 1u);
}

TEST_F(ConvertTest, MistakesAreToldAndNothingIsLeftBehind) {
  const std::string path = TemporaryPath("never.gguf");
  ExpectError(Weft({"convert", folder_}), 2);
  ExpectError(Weft({"convert", folder_, "-o", path, "--type", "Q4_K_M"}), 2);
  ExpectError(Weft({"convert", folder_, "-o", path, "--type", "Q8_0"}), 2);
  ExpectError(Weft({"convert", folder_, "-o", "/no-such-folder/x.gguf"}), 1);
  ExpectError(Weft({"convert", kModel, "-o", path}), 1);
  const std::string part = folder_ + "/model-1.safetensors";
  for (const RunResult& result :
       {Weft({"convert", part, "-o", path}), Weft({"run", part, "-p", "a"}),
        Weft({folder_ + "/config.json"})}) {
    ExpectError(result, 1);
    EXPECT_TRUE(absl::StrContains(result.err, "give the folder: " + folder_))
        << result.err;
  }
  fs::resize_file(folder_ + "/model-1.safetensors", 1000);
  ExpectError(Weft({"convert", folder_, "-o", path}), 1);
  ExpectError(Weft({"run", folder_, "-p", "ab"}, options_), 1);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(Converted().empty());
}

}  // namespace
}  // namespace weft
