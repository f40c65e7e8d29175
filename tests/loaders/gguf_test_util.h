// Writes small GGUF files, damages them and opens them again. For tests.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "loaders/gguf_writer.h"

namespace weft {

inline std::string TempPath(const std::string& name) {
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "-", name);
}

inline std::string ReadBytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(stream)), {});
}

inline void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline absl::StatusOr<GgufFile> WriteAndOpen(const GgufWriter& writer,
                                             const std::string& name) {
  const std::string path = TempPath(name);
  const absl::Status status = writer.WriteTo(path);
  if (!status.ok()) return status;
  auto file = GgufFile::Open(path);
  unlink(path.c_str());
  return file;
}

inline std::string ErrorOf(const absl::Status& status) {
  return std::string(status.message());
}

inline std::vector<uint8_t> Bytes(size_t count, uint8_t first) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(first + i);
  return bytes;
}

// Replaces the only place where `from` stands.
inline std::string Replaced(std::string bytes, const std::string& from,
                            const std::string& to) {
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(bytes.find(from, at + 1), std::string::npos);
  return bytes.replace(at, from.size(), to);
}

template <typename T>
inline std::string Raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace weft
