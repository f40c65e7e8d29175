#include "loaders/importance_matrix.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string TempPath(const std::string& name) {
  return testing::TempDir() + "/" + name;
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

template <class T>
std::string Raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// The older form: a mean of 0.5 and 2 after three calls.
std::string OlderFile() {
  const std::string name = "blk.0.attn_q.weight", text = "a text";
  return Raw(uint32_t{1}) + Raw(static_cast<uint32_t>(name.size())) + name +
         Raw(uint32_t{3}) + Raw(uint32_t{2}) + Raw(1.5f) + Raw(6.0f) +
         Raw(uint32_t{3}) + Raw(static_cast<uint32_t>(text.size())) + text;
}

TEST(ImportanceMatrix, IsReadAsWritten) {
  ImportanceMatrix matrix;
  matrix.datasets = {"one", "two"};
  matrix.chunks = 7;
  matrix.chunk_size = 512;
  matrix.tensors["blk.0.attn_q.weight"] = {{2.0, 8.0}, {4.0}};
  // The second of two experts was never chosen.
  matrix.tensors["blk.0.ffn_up_exps.weight"] = {{3.0, 6.0, 0.0, 0.0},
                                                {3.0, 0.0}};
  const std::string path = TempPath("imatrix.gguf");
  ASSERT_TRUE(matrix.Write(path).ok());
  const auto read = ImportanceMatrix::Read(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->datasets, matrix.datasets);
  EXPECT_EQ(read->chunks, 7);
  EXPECT_EQ(read->chunk_size, 512);
  EXPECT_THAT(*read->Means("blk.0.attn_q.weight", 2, 1),
              ElementsAre(0.5f, 2.0f));
  EXPECT_THAT(*read->Means("blk.0.ffn_up_exps.weight", 2, 2),
              ElementsAre(1.0f, 2.0f, 1.0f, 1.0f));
  EXPECT_THAT(*read->Means("blk.0.attn_k.weight", 2, 1), IsEmpty());
  EXPECT_THAT(
      std::string(read->Means("blk.0.attn_q.weight", 4, 1).status().message()),
      HasSubstr("blk.0.attn_q.weight"));
}

TEST(ImportanceMatrix, OfTheOlderFormIsDividedByItsCalls) {
  const std::string path = TempPath("imatrix.dat");
  WriteBytes(path, OlderFile());
  const auto read = ImportanceMatrix::Read(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read->Means("blk.0.attn_q.weight", 2, 1),
              ElementsAre(0.5f, 2.0f));
  EXPECT_EQ(read->chunks, 3);
  EXPECT_THAT(read->datasets, ElementsAre("a text"));
}

TEST(ImportanceMatrix, CutAnywhereIsAnError) {
  const std::string whole = OlderFile(), path = TempPath("cut.dat");
  // Behind the entries it is whole, as the oldest files are.
  const size_t entries = whole.size() - 4 - 4 - 6;
  for (size_t size = 0; size < whole.size(); ++size) {
    WriteBytes(path, whole.substr(0, size));
    EXPECT_EQ(ImportanceMatrix::Read(path).ok(), size == entries) << size;
  }
}

TEST(ImportanceMatrix, RefusesNumbersThatAreNoWeights) {
  for (float bad : {-1.0f, std::numeric_limits<float>::quiet_NaN(),
                    std::numeric_limits<float>::infinity()}) {
    std::string bytes = OlderFile();
    const size_t at = 4 + 4 + 19 + 4 + 4;
    bytes.replace(at, 4, Raw(bad));
    const std::string path = TempPath("bad.dat");
    WriteBytes(path, bytes);
    const auto read = ImportanceMatrix::Read(path);
    EXPECT_THAT(std::string(read.status().message()),
                HasSubstr("blk.0.attn_q.weight"))
        << bad;
  }
}

TEST(ImportanceMatrix, RefusesLengthsBeyondTheFile) {
  for (uint32_t length : {0xffffffffu, 0x40000000u, 1025u}) {
    const std::string path = TempPath("long.dat");
    WriteBytes(path, Raw(uint32_t{1}) + Raw(length) + "name");
    EXPECT_FALSE(ImportanceMatrix::Read(path).ok());
    WriteBytes(path, Raw(uint32_t{1}) + Raw(uint32_t{1}) + "n" +
                         Raw(uint32_t{1}) + Raw(length));
    EXPECT_FALSE(ImportanceMatrix::Read(path).ok());
  }
}

}  // namespace
}  // namespace weft
