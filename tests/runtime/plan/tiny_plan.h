// A plan file of a tiny model, for tests of plan files.
#pragma once

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/api/engine.h"
#include "tests/runtime/plan/plan_bytes.h"

namespace weft {

using Bytes = std::vector<uint8_t>;

constexpr char kTiny[] = "tests/data/malformed/00b-valid-micro.gguf";
constexpr char kSmall[] = "tests/data/malformed/00-valid.gguf";

inline Bytes ReadBytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return Bytes((std::istreambuf_iterator<char>(stream)), {});
}

inline std::unique_ptr<ThreadPool> Threads(int threads = 2) {
  return *ThreadPool::Create(threads);
}

inline Plan CompileFile(const std::string& model,
                        const ModelOptions& options = DefaultModelOptions()) {
  absl::StatusOr<GgufFile> file = OpenModel(model);
  EXPECT_TRUE(file.ok()) << file.status();
  absl::StatusOr<Plan> plan = CompileModel(*file, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

// The bytes of a plan file of a tiny model, made once.
inline const Bytes& TinyPlan() {
  static const Bytes* bytes = [] {
    const std::string path = ::testing::TempDir() + "/tiny.weft";
    ModelOptions options = DefaultModelOptions();
    options.compile.buckets = {1, 8};
    const absl::Status s =
        SavePlan(CompileFile(kTiny, options), path, *Threads());
    EXPECT_TRUE(s.ok()) << s;
    return new Bytes(ReadBytes(path));
  }();
  return *bytes;
}

// Refused when it is loaded or run, with a message that says this.
inline void ExpectRefused(const Bytes& bytes, const std::string& why) {
  const absl::Status status = LoadAndRun(bytes);
  EXPECT_FALSE(status.ok()) << "not refused: " << why;
  EXPECT_NE(status.message().find(why), std::string::npos)
      << status << "\nwanted: " << why;
}

}  // namespace weft
