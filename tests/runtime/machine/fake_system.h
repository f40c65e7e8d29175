// A folder that stands for the root of a system: tests write the files of /proc
// and /sys that they need.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace weft {

class FakeSystem {
 public:
  FakeSystem() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = ::testing::TempDir() + "/system_" + test->test_suite_name() + "_" +
            test->name();
    std::filesystem::remove_all(root_);
  }
  ~FakeSystem() { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace weft
