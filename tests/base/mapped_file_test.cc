// Files that are written to while they are mapped.
#include "base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weft {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/mapped-" + std::to_string(getpid());
    Write("some bytes");
    const auto file = MappedFile::Open(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *file;
    EXPECT_TRUE(file_->CheckUnchanged().ok());
  }
  void TearDown() override { unlink(path_.c_str()); }

  // In place. The clock that file systems write down ticks slowly, so the time
  // is set.
  void Write(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    struct stat info;
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    const timespec times[] = {info.st_atim,
                              {info.st_mtim.tv_sec + ++writes_, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  }

  std::string path_;
  int writes_ = 0;
  std::shared_ptr<const MappedFile> file_;
};

TEST_F(MappedFileTest, WritingInPlaceIsFound) {
  Write("SOME bytes");
  const absl::Status status = file_->CheckUnchanged();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_NE(status.message().find(path_), absl::string_view::npos);
}

TEST_F(MappedFileTest, AnotherSizeIsFoundWhateverTheTimeSays) {
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  ASSERT_EQ(truncate(path_.c_str(), 4), 0);
  const timespec times[] = {info.st_atim, info.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  EXPECT_FALSE(file_->CheckUnchanged().ok());
}

TEST_F(MappedFileTest, AFileThatTakesItsPlaceIsAnother) {
  const std::string next = path_ + ".next";
  std::ofstream(next) << "others";
  std::filesystem::rename(next, path_);
  EXPECT_TRUE(file_->CheckUnchanged().ok());
  ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  EXPECT_TRUE(file_->CheckUnchanged().ok());
  unlink(path_.c_str());
  EXPECT_TRUE(file_->CheckUnchanged().ok());
}

TEST_F(MappedFileTest, MemoryDoesNotChange) {
  static constexpr uint8_t kBytes[] = {1, 2};
  EXPECT_TRUE(MappedFile::FromStatic(kBytes, "two")->CheckUnchanged().ok());
}

}  // namespace
}  // namespace weft
