// Damaged and hostile plan files: each is refused or runs, and nothing crashes.
// MUTATIONS of each kind (BUILD.bazel): some in every run, many in the long
// one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "runtime/api/model.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/mutate_message.h"
#include "tests/runtime/plan/plan_bytes.h"

namespace weft {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr char kTiny[] = "tests/data/malformed/00b-valid-micro.gguf";

// The bytes of a plan file of a tiny model, made once.
const Bytes& TinyPlan() {
  static const Bytes* bytes = [] {
    const std::string path = ::testing::TempDir() + "/tiny.weft";
    ModelOptions options;
    options.compile.isa = DetectIsa();
    options.compile.buckets = {1, 8};
    absl::StatusOr<GgufFile> file = OpenModel(kTiny);
    EXPECT_TRUE(file.ok()) << file.status();
    absl::StatusOr<Plan> plan = CompileModel(*file, options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    const absl::Status s = SavePlan(*plan, path, **ThreadPool::Create(1));
    EXPECT_TRUE(s.ok()) << s;
    std::ifstream stream(path, std::ios::binary);
    return new Bytes((std::istreambuf_iterator<char>(stream)), {});
  }();
  return *bytes;
}

uint64_t Number(size_t at) {
  uint64_t number;
  std::memcpy(&number, TinyPlan().data() + at, sizeof(number));
  return number;
}

TEST(Mutations, FlippedBitsInTheHeaderNeverCrash) {
  std::mt19937_64 random(1);
  const uint64_t header = Number(16);
  for (int i = 0; i < MUTATIONS; ++i) {
    Bytes bytes = TinyPlan();
    const uint64_t at = random() % (48 + header);
    bytes[at] ^= static_cast<uint8_t>(1 << random() % 8);
    EXPECT_FALSE(LoadAndRun(bytes).ok()) << "byte " << at;
    // Past the checksum; what is still sound is run.
    FixAllChecksums(&bytes);
    LoadAndRun(bytes).IgnoreError();
  }
}

TEST(Mutations, DamagedFilesNeverCrash) {
  for (uint64_t seed = 0; seed < MUTATIONS; ++seed) {
    Bytes bytes = Mutate(TinyPlan(), seed);
    LoadAndRun(bytes).IgnoreError();
    FixAllChecksums(&bytes);
    LoadAndRun(bytes).IgnoreError();
  }
}

TEST(Mutations, ChangedFieldsNeverCrash) {
  int sound = 0;
  for (uint64_t seed = 0; seed < 3 * MUTATIONS; ++seed) {
    std::mt19937_64 random(seed);
    const Bytes bytes = WithHeader(TinyPlan(), [&](PlanProto* header) {
      const uint64_t steps = 1 + random() % 3;
      for (uint64_t step = 0; step < steps; ++step) {
        MutateMessage(header, "Vocabulary", &random);
      }
    });
    sound += LoadAndRun(bytes).ok();
  }
  // Names, places with room, and the like may change.
  EXPECT_GT(sound, 0);
  EXPECT_LT(sound, 3 * MUTATIONS);
}

// Cut off at, and around, every border of the file's parts: the fields of its
// beginning, the header, the gap behind it, each weight.
TEST(Mutations, FilesCutAtBordersAreRefused) {
  const Bytes& whole = TinyPlan();
  PlanProto header;
  ASSERT_TRUE(
      header.ParseFromArray(whole.data() + 48, static_cast<int>(Number(16))));
  std::set<uint64_t> borders = {0, 8, 12, 16, 24, 32, 40, 48, 48 + Number(16)};
  const uint64_t start = Number(24);
  borders.insert(start);
  for (const WeightProto& weight : header.weights()) {
    borders.insert(start + weight.offset());
    borders.insert(start + weight.offset() + weight.bytes());
  }
  EXPECT_GT(borders.size(), 15u);
  for (const uint64_t border : borders) {
    for (const int64_t by : {-1, 0, 1}) {
      const int64_t size = static_cast<int64_t>(border) + by;
      if (size < 0 || size >= static_cast<int64_t>(whole.size())) continue;
      Bytes cut(whole.begin(), whole.begin() + size);
      EXPECT_FALSE(LoadAndRun(cut).ok()) << size;
      if (cut.size() < 48) continue;
      // And with a beginning that agrees with what is left.
      const uint64_t left =
          cut.size() > start ? cut.size() - start : uint64_t{0};
      std::memcpy(cut.data() + 32, &left, sizeof(left));
      FixAllChecksums(&cut);
      const absl::Status s = LoadAndRun(cut);
      EXPECT_FALSE(s.ok()) << size;
    }
  }
}

}  // namespace
}  // namespace weft
