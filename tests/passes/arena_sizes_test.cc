// The arenas of real models: published shapes, with holes in place of weights
// (passes read none). Prints the table that it checks.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "loaders/architectures/architecture.h"
#include "loaders/model_shape.h"
#include "loaders/synthesize.h"
#include "runtime/model.h"

namespace weft {
namespace {

struct Case {
  const char* shape;
  const char* type;
};

bool IsKnown(const std::string& architecture) {
  for (const Architecture* known : AllArchitectures()) {
    if (architecture == known->name) return true;
  }
  return false;
}

// The shape's name, or a file with its sizes as a llama if no builder knows its
// architecture.
std::string ShapeToSynthesize(const std::string& name) {
  const absl::StatusOr<ModelShape> shape = FindModelShape(name);
  EXPECT_TRUE(shape.ok()) << shape.status();
  if (IsKnown(shape->architecture)) return name;
  const std::string path = ::testing::TempDir() + "/" + name + ".json";
  std::ofstream(path) << "{\"embedding_length\": " << shape->embedding_length
                      << ", \"block_count\": " << shape->block_count
                      << ", \"feed_forward_length\": "
                      << shape->feed_forward_length
                      << ", \"head_count\": " << shape->head_count
                      << ", \"head_count_kv\": " << shape->head_count_kv
                      << ", \"key_length\": " << shape->key_length
                      << ", \"vocabulary_size\": " << shape->vocabulary_size
                      << ", \"tied_output\": "
                      << (shape->tied_output ? "true" : "false") << "}";
  return path;
}

class ArenaSizes : public ::testing::TestWithParam<Case> {};

TEST_P(ArenaSizes, AreWithinTwoPercentOfTheLowerBound) {
  SynthesizeOptions synthesize;
  synthesize.shape = ShapeToSynthesize(GetParam().shape);
  synthesize.type = GetParam().type;
  synthesize.hollow = true;
  const std::string path = ::testing::TempDir() + "/hollow.gguf";
  const auto report = SynthesizeModel(synthesize, path);
  ASSERT_TRUE(report.ok()) << report.status();
  absl::StatusOr<GgufFile> file = OpenModel(path);
  ASSERT_TRUE(file.ok()) << file.status();

  std::printf(
      "%-15s %-6s isa         tokens      arena      bound   ratio  "
      "          sum\n",
      "", "");
  for (const Isa isa : {Isa::kRef, Isa::kAvx2, Isa::kAvx512Vnni}) {
    if (!Includes(DetectIsa(), isa)) continue;
    ModelOptions options;
    options.compile.isa = isa;
    options.compile.buckets = {1, 8, 64, 256, 512};
    const absl::StatusOr<Plan> plan = CompileModel(*file, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const Graph& graph : plan->buckets) {
      const ArenaPlan& arena = graph.arena;
      const double ratio = static_cast<double>(arena.bytes) /
                           static_cast<double>(arena.lower_bound);
      std::printf("%-15s %-6s %-10s  %6d %10lld %10lld  %.4f  %12lld\n",
                  GetParam().shape, GetParam().type, Name(isa),
                  static_cast<int>(graph.bounds.tokens),
                  static_cast<long long>(arena.bytes),
                  static_cast<long long>(arena.lower_bound), ratio,
                  static_cast<long long>(arena.sum_of_intermediates));
      ASSERT_GT(arena.lower_bound, 0);
      EXPECT_GE(arena.bytes, arena.lower_bound);
      EXPECT_LE(ratio, 1.02);
      // Of float weights, normed rows and the gate are floats: 9.5 MiB.
      if (std::string(GetParam().shape) == "tinyllama-1.1b" &&
          graph.bounds.tokens == 256 && GetParam().type[0] == 'Q') {
        EXPECT_LE(arena.bytes, 9 << 20);
      }
    }
  }
  std::remove(path.c_str());
}

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  std::string name = std::string(info.param.shape) + "_" + info.param.type;
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Shapes, ArenaSizes,
                         ::testing::Values(Case{"tinyllama-1.1b", "Q4_0"},
                                           Case{"tinyllama-1.1b", "Q4_K_M"},
                                           Case{"tinyllama-1.1b", "F16"},
                                           Case{"llama-3.2-1b", "Q4_0"},
                                           Case{"llama-3-8b", "Q4_0"},
                                           Case{"qwen2-0.5b", "Q4_0"},
                                           Case{"smollm-135m", "Q4_0"},
                                           Case{"smollm-135m", "F32"}),
                         CaseName);

}  // namespace
}  // namespace weft
