#include "base/direct_file.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string Written(const std::string& name, int64_t bytes) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::string text(bytes, '\0');
  for (int64_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 7 >> 3);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

struct Room {
  explicit Room(int64_t bytes)
      : data(static_cast<uint8_t*>(std::aligned_alloc(
            DirectFile::kAlignment, DirectFile::RoomFor(bytes)))) {}
  ~Room() { std::free(data); }
  uint8_t* data;
};

TEST(DirectFileTest, ReadsFromAnywhereToTheEnd) {
  constexpr int64_t kBytes = 3 * 4096 + 100;
  const std::string path = Written("anywhere", kBytes);
  const auto mapped = MappedFile::Open(path);
  ASSERT_TRUE(mapped.ok());
  // The same file, also when its name is gone.
  unlink(path.c_str());
  const auto file = DirectFile::Open((*mapped)->DescriptorPath(), path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (const int64_t offset : {0, 64, 4095, 4096, 3 * 4096}) {
    for (const int64_t bytes : {int64_t{1}, int64_t{100}, kBytes - offset}) {
      const Room room(bytes);
      ASSERT_TRUE(file->Read(offset, bytes, room.data).ok()) << offset;
      EXPECT_EQ(std::memcmp(room.data + DirectFile::InRoom(offset),
                            (*mapped)->bytes().data() + offset, bytes),
                0)
          << offset << " " << bytes;
    }
  }
  EXPECT_GT(*file->MeasureRate(kBytes, 5000, 2), 0);
}

TEST(DirectFileTest, AFileThatEndsBeforeIsAnError) {
  const std::string path = Written("cut", 3 * 4096);
  const auto file = DirectFile::Open(path, "the plan");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(truncate(path.c_str(), 5000), 0);
  const Room room(3 * 4096);
  EXPECT_TRUE(file->Read(4096, 5000 - 4096, room.data).ok());
  for (const int64_t offset : {0, 4999, 8192}) {
    const absl::Status status = file->Read(offset, 5064, room.data);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("file is cut off: the plan"))
        << offset;
  }
  EXPECT_FALSE(file->MeasureRate(3 * 4096, 4096, 2).ok());
}

// Nothing is mapped at 0, so the system tells of an input/output error.
TEST(DirectFileTest, AnErrorOfTheDiskIsToldWithItsReason) {
  const auto file = DirectFile::Open("/proc/self/mem", "the plan");
  ASSERT_TRUE(file.ok()) << file.status();
  const Room room(100);
  EXPECT_THAT(std::string(file->Read(0, 100, room.data).message()),
              HasSubstr("cannot read file: the plan: 100 bytes at 0: Input/"
                        "output error"));
  EXPECT_FALSE(DirectFile::Open("/nowhere/at/all", "x").ok());
}

}  // namespace
}  // namespace weft
