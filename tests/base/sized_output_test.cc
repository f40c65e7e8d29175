#include "base/sized_output.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace weft {
namespace {

std::string NewFolder(const std::string& name) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directory(path);
  return path;
}

TEST(SizedOutput, PartsComeInAnyOrderAndTheRestIsZeros) {
  const std::string folder = NewFolder("parts");
  absl::StatusOr<SizedOutput> file = SizedOutput::Create(folder + "/out", 12);
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<uint8_t> late = {7, 8, 9}, early = {1, 2};
  ASSERT_TRUE(file->Write(9, late).ok());
  ASSERT_TRUE(file->Write(1, early).ok());
  EXPECT_FALSE(std::filesystem::exists(folder + "/out"));
  ASSERT_TRUE(file->Commit().ok());
  std::ifstream stream(folder + "/out", std::ios::binary);
  const std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(stream)),
                                   {});
  EXPECT_EQ(bytes, (std::vector<uint8_t>{0, 1, 2, 0, 0, 0, 0, 0, 0, 7, 8, 9}));
}

TEST(SizedOutput, WithoutCommitNothingIsLeft) {
  const std::string folder = NewFolder("abandoned");
  {
    absl::StatusOr<SizedOutput> file =
        SizedOutput::Create(folder + "/out", 1 << 20);
    ASSERT_TRUE(file.ok());
    EXPECT_FALSE(std::filesystem::is_empty(folder));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(SizedOutput, ALimitOfTheSystemIsAnErrorWithThePath) {
  const std::string folder = NewFolder("limited");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit = {4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status s = SizedOutput::Create(folder + "/out", 8192).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(s.ok());
  EXPECT_NE(s.message().find(folder + "/out"), std::string::npos) << s;
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(SizedOutput, WhatIsNoPlaceForAFileIsAnError) {
  EXPECT_FALSE(SizedOutput::Create("/no/such/folder/out", 8).ok());
  EXPECT_FALSE(SizedOutput::Create(NewFolder("folder"), 8).ok());
}

}  // namespace
}  // namespace weft
