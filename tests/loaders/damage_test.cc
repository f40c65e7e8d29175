// Whatever is done to a valid file, loading it succeeds or fails in order: it
// never reads outside (run it with --config=asan), and it never allocates much
// more than the file has bytes.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// The largest request since it was last set to 0.
size_t largest_allocation = 0;

void* Allocate(size_t size) {
  largest_allocation = std::max(largest_allocation, size);
  void* const memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace weft {
namespace {

constexpr char kFolder[] = "tests/data/malformed/";

// The hungriest legal array: a u8 element becomes an int64. Messages and the
// rest of the load take a little besides.
constexpr size_t kBytesPerFileByte = 8;
constexpr size_t kFixedBytes = 64 * 1024;

std::vector<uint8_t> ReadFile(const std::string& name) {
  std::ifstream stream(kFolder + name, std::ios::binary);
  return std::vector<uint8_t>((std::istreambuf_iterator<char>(stream)), {});
}

void Load(const std::vector<uint8_t>& bytes) {
  largest_allocation = 0;
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  EXPECT_LE(largest_allocation, kBytesPerFileByte * bytes.size() + kFixedBytes);
}

TEST(Damage, CasesOfTheManifestAllocateLittle) {
  std::ifstream stream(std::string(kFolder) + "manifest.json");
  for (const auto& entry : nlohmann::json::parse(stream)) {
    const std::string name = entry["file"];
    SCOPED_TRACE(name);
    const std::vector<uint8_t> bytes = ReadFile(name);
    EXPECT_EQ(bytes.size(), entry["bytes"]);
    Load(bytes);
  }
}

TEST(Damage, EveryByteMayBeFlipped) {
  const std::vector<uint8_t> valid = ReadFile("00b-valid-micro.gguf");
  ASSERT_FALSE(valid.empty());
  std::mt19937_64 random(1);
  std::vector<uint8_t> bytes = valid;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= static_cast<uint8_t>(1 + random() % 255);
    Load(bytes);
    bytes[i] = valid[i];
  }
}

TEST(Damage, RandomMutationsLoadOrFail) {
  const std::vector<uint8_t> valid = ReadFile("00b-valid-micro.gguf");
  ASSERT_FALSE(valid.empty());
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Load(Mutate(valid, seed));
  }
}

}  // namespace
}  // namespace weft
