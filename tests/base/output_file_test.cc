#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace weft {
namespace {

namespace fs = std::filesystem;

std::string NewFolder(const std::string& name) {
  const std::string path = ::testing::TempDir() + "/" + name;
  fs::remove_all(path);
  fs::create_directory(path);
  return path;
}

std::string Content(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(stream)), {});
}

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(OutputFile, PartsComeInAnyOrderAndTheRestIsZeros) {
  const std::string folder = NewFolder("parts");
  absl::StatusOr<OutputFile> file = OutputFile::Create(folder + "/out");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Resize(12).ok());
  const std::vector<uint8_t> late = {7, 8, 9}, early = {1, 2};
  ASSERT_TRUE(file->Write(9, late).ok());
  ASSERT_TRUE(file->Write(1, early).ok());
  EXPECT_FALSE(fs::exists(folder + "/out"));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Content(folder + "/out"),
            std::string("\0\1\2\0\0\0\0\0\0\7\x8\x9", 12));
  EXPECT_EQ(Names(folder), std::vector<std::string>{"out"});
}

TEST(OutputFile, WithoutCommitNothingIsLeft) {
  const std::string folder = NewFolder("abandoned");
  {
    const absl::StatusOr<OutputFile> file = OutputFile::Create(folder + "/out");
    ASSERT_TRUE(file.ok());
    EXPECT_FALSE(fs::is_empty(folder));
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(OutputFile, ALimitOfTheSystemIsAnErrorWithThePath) {
  const std::string folder = NewFolder("limited");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit = {4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  absl::Status s;
  {
    const absl::StatusOr<OutputFile> file = OutputFile::Create(folder + "/out");
    s = file.ok() ? file->Resize(8192) : file.status();
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(s.ok());
  EXPECT_NE(s.message().find(folder + "/out"), std::string::npos) << s;
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(OutputFile, WhatIsNoPlaceForAFileIsAnErrorThatNamesIt) {
  const absl::Status s = OutputFile::Create("/no/such/folder/out").status();
  EXPECT_NE(s.message().find("/no/such/folder:"), std::string::npos) << s;
  EXPECT_FALSE(OutputFile::Create(NewFolder("folder")).ok());
  EXPECT_FALSE(OutputFile::Create("/dev/null").ok());
}

// Two that write the same file at once, as containers do that share a folder:
// the later one wins, whole, and none meets the other's.
TEST(OutputFile, WritersOfOneFileDoNotMeet) {
  const std::string folder = NewFolder("two");
  absl::StatusOr<OutputFile> first = OutputFile::Create(folder + "/out");
  absl::StatusOr<OutputFile> second = OutputFile::Create(folder + "/out");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(Names(folder).size(), 2u);
  ASSERT_TRUE(second->Write(0, {1}).ok());
  ASSERT_TRUE(first->Write(0, {2, 2}).ok());
  ASSERT_TRUE(first->Commit().ok());
  EXPECT_EQ(Content(folder + "/out"), "\2\2");
  ASSERT_TRUE(second->Commit().ok());
  EXPECT_EQ(Content(folder + "/out"), "\1");
  EXPECT_EQ(Names(folder), std::vector<std::string>{"out"});
}

TEST(OutputFile, WhatADeadProcessLeftIsRemovedByTheNextWriter) {
  const std::string folder = NewFolder("stale");
  const pid_t child = fork();
  if (child == 0) {
    const absl::StatusOr<OutputFile> file = OutputFile::Create(folder + "/out");
    _exit(file.ok() && file->Write(0, {1, 2, 3}).ok() ? 0 : 1);
  }
  int code = -1;
  ASSERT_EQ(waitpid(child, &code, 0), child);
  ASSERT_EQ(code, 0);
  ASSERT_EQ(Names(folder).size(), 1u);
  ASSERT_TRUE(WriteFile(folder + "/other", "x").ok());
  EXPECT_EQ(Names(folder).size(), 2u);  // of another target: not ours to judge
  ASSERT_TRUE(WriteFile(folder + "/out", "y").ok());
  EXPECT_EQ(Names(folder).size(), 2u);
  EXPECT_EQ(Content(folder + "/out"), "y");
}

TEST(OutputFile, WhatOnlyLooksLikeOursStays) {
  const std::string folder = NewFolder("foreign");
  std::ofstream(folder + "/victim") << "precious";
  fs::create_symlink("victim", folder + "/out.tmp.0123456789abcdef");
  std::ofstream(folder + "/out.tmp.old") << "mine";
  ASSERT_TRUE(WriteFile(folder + "/out", "y").ok());
  EXPECT_EQ(Content(folder + "/victim"), "precious");
  EXPECT_TRUE(fs::is_symlink(folder + "/out.tmp.0123456789abcdef"));
  EXPECT_EQ(Content(folder + "/out.tmp.old"), "mine");
}

TEST(OutputFile, ALinkStaysALinkAndLongNamesHaveRoom) {
  const std::string folder = NewFolder("links");
  fs::create_symlink("target", folder + "/link");
  ASSERT_TRUE(WriteFile(folder + "/link", "y").ok());
  EXPECT_TRUE(fs::is_symlink(folder + "/link"));
  EXPECT_EQ(Content(folder + "/target"), "y");
  const std::string name(255, 'n');
  const absl::Status s = WriteFile(folder + "/" + name, "z");
  EXPECT_TRUE(s.ok()) << s;
  EXPECT_EQ(Content(folder + "/" + name), "z");
}

TEST(OutputFile, ASignalsHandlerRemovesWhatIsBeingWritten) {
  const std::string folder = NewFolder("signal");
  const absl::StatusOr<OutputFile> file = OutputFile::Create(folder + "/out");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(WriteFile(folder + "/done", "x").ok());
  RemoveTemporaryFiles();
  EXPECT_EQ(Names(folder), std::vector<std::string>{"done"});
}

TEST(WriteFile, ADeviceTakesTheBytes) {
  EXPECT_TRUE(CheckCanWrite("/dev/null").ok());
  EXPECT_TRUE(WriteFile("/dev/null", "x").ok());
  EXPECT_FALSE(WriteFile("/dev/full", "x").ok());
}

TEST(OutputFile, KeepsThePermissionsOfWhatItReplaces) {
  const std::string path = ::testing::TempDir() + "/private.txt";
  ASSERT_TRUE(WriteFile(path, "a").ok());
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(WriteFile(path, "b").ok());
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  unlink(path.c_str());
}

}  // namespace
}  // namespace weft
