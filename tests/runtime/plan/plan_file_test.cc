#include "runtime/plan/plan_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "graph/text_format.h"
#include "runtime/api/engine.h"
#include "tests/runtime/plan/plan_bytes.h"
#include "tests/runtime/plan/tiny_plan.h"

namespace weft {
namespace {

std::string TempPath(const std::string& file) {
  std::string test =
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::replace(test.begin(), test.end(), '/', '-');
  return ::testing::TempDir() + "/" + test + "-" + file;
}

void WriteBytes(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

std::vector<float> Logits(const std::string& model,
                          const ModelOptions& options = DefaultModelOptions()) {
  EngineOptions engine_options;
  engine_options.model = options;
  engine_options.threads = 2;
  engine_options.force = true;
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Load(model, engine_options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  if (!engine.ok()) return {};
  std::vector<int32_t> tokens;
  std::vector<int64_t> positions;
  for (int i = 0; i < 11; ++i) {
    tokens.push_back(
        static_cast<int32_t>(i * 7 % (*engine)->plan().model.vocabulary_size));
    positions.push_back(i);
  }
  std::vector<float> logits;
  const absl::Status s = (*engine)->Evaluate(
      tokens, positions, 4, [&](int64_t, absl::Span<const float> row) {
        logits.insert(logits.end(), row.begin(), row.end());
        return absl::OkStatus();
      });
  EXPECT_TRUE(s.ok()) << s;
  return logits;
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

// ----------------------------------------------------------------------------

class RoundTrip : public ::testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, GivesTheSameLogits) {
  const std::string model = GetParam();
  const std::string path = TempPath("plan.weft");
  ASSERT_TRUE(SavePlan(CompileFile(model), path, *Threads()).ok());
  EXPECT_TRUE(IsPlanFile(path));
  ExpectSameBits(Logits(model), Logits(path));
  EXPECT_TRUE(CheckPlanFile(path).ok());
}

TEST_P(RoundTrip, KeepsGraphsAndModel) {
  const std::string path = TempPath("plan.weft");
  const Plan plan = CompileFile(GetParam());
  ASSERT_TRUE(SavePlan(plan, path, *Threads()).ok());
  absl::StatusOr<PlanFile> file = LoadPlanFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const Plan& loaded = file->plan;
  ASSERT_EQ(loaded.buckets.size(), plan.buckets.size());
  for (size_t i = 0; i < plan.buckets.size(); ++i) {
    EXPECT_EQ(Dump(loaded.buckets[i]), Dump(plan.buckets[i]));
    EXPECT_EQ(loaded.buckets[i].arena.lower_bound,
              plan.buckets[i].arena.lower_bound);
  }
  EXPECT_EQ(loaded.model.architecture, plan.model.architecture);
  EXPECT_EQ(loaded.model.parameters, plan.model.parameters);
  ASSERT_EQ(loaded.model.tensors.size(), plan.model.tensors.size());
  EXPECT_EQ(loaded.model.tensors.back().name, plan.model.tensors.back().name);
  EXPECT_EQ(loaded.model.tensors.back().shape, plan.model.tensors.back().shape);
  EXPECT_EQ(loaded.vocabulary.SerializeAsString(),
            plan.vocabulary.SerializeAsString());
  EXPECT_EQ(loaded.nodes_before, plan.nodes_before);
  ASSERT_EQ(loaded.passes.size(), plan.passes.size());
  EXPECT_EQ(loaded.passes[3].name, plan.passes[3].name);
  EXPECT_EQ(loaded.passes[3].nodes_after, plan.passes[3].nodes_after);
}

std::string ModelName(const ::testing::TestParamInfo<std::string>& info) {
  static const char* const kNames[] = {"Default", "Tiny", "Small"};
  return kNames[info.index];
}

INSTANTIATE_TEST_SUITE_P(Models, RoundTrip,
                         ::testing::Values("", kTiny, kSmall), ModelName);

TEST(PlanFile, OptionsOfThePlanStand) {
  ModelOptions options = DefaultModelOptions();
  options.graph.kv_type = DType::kF32;
  options.graph.context = 16;
  options.compile.isa = Isa::kRef;
  options.compile.disabled_passes = {"fuse-attention", "pack-weights"};
  options.compile.planner = PlanStrategy::kFirstUse;
  options.compile.buckets = {2, 3};
  const std::string path = TempPath("plan.weft");
  ASSERT_TRUE(SavePlan(CompileFile(kTiny, options), path, *Threads()).ok());
  absl::StatusOr<Plan> plan = LoadPlan(path, DefaultModelOptions());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->options.isa, Isa::kRef);
  EXPECT_EQ(plan->options.disabled_passes, options.compile.disabled_passes);
  EXPECT_EQ(plan->options.planner, PlanStrategy::kFirstUse);
  EXPECT_EQ(plan->options.buckets, options.compile.buckets);
  EXPECT_EQ(plan->context(), 16);
  ExpectSameBits(Logits(kTiny, options), Logits(path));
}

TEST(PlanFile, SameModelGivesSameBytes) {
  const std::string a = TempPath("a.weft"), b = TempPath("b.weft");
  ASSERT_TRUE(SavePlan(CompileFile(kSmall), a, *Threads(1)).ok());
  ASSERT_TRUE(SavePlan(CompileFile(kSmall), b, *Threads(2)).ok());
  EXPECT_EQ(ReadBytes(a), ReadBytes(b));
}

TEST(PlanFile, SavingALoadedPlanGivesTheSameBytes) {
  const std::string a = TempPath("a.weft"), b = TempPath("b.weft");
  ASSERT_TRUE(SavePlan(CompileFile(kSmall), a, *Threads()).ok());
  absl::StatusOr<PlanFile> file = LoadPlanFile(a);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(SavePlan(file->plan, b, *Threads()).ok());
  EXPECT_EQ(ReadBytes(a), ReadBytes(b));
}

TEST(PlanFile, WeightsLieInTheFileAtMultiplesOf64) {
  const AlignedPlan memory(TinyPlan());
  absl::StatusOr<PlanFile> file = LoadPlanFile(memory.file());
  ASSERT_TRUE(file.ok()) << file.status();
  const Graph& graph = file->plan.buckets.front();
  int weights = 0;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (!graph.IsWeight(id)) continue;
    ++weights;
    const auto& bytes = graph.value(id).data.bytes;
    EXPECT_GE(bytes.data(), memory.file()->bytes().data());
    EXPECT_LE(bytes.data() + bytes.size(),
              memory.file()->bytes().data() + TinyPlan().size());
    EXPECT_EQ((bytes.data() - memory.file()->bytes().data()) % 64, 0);
  }
  EXPECT_GT(weights, 5);
}

// Pages of the weights stay the file's own, none becomes a copy: what several
// processes map is in memory once.
TEST(PlanFile, WeightsAreSharedPages) {
  const std::string path = TempPath("shared.weft");
  ASSERT_TRUE(SavePlan(CompileFile(""), path, *Threads()).ok());
  EngineOptions options;
  options.threads = 1;
  options.force = true;
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load(path, options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  const std::vector<int32_t> tokens = {1, 2, 3};
  ASSERT_TRUE((*engine)
                  ->Evaluate(tokens, {0}, 0,
                             [](int64_t, absl::Span<const float>) {
                               return absl::OkStatus();
                             })
                  .ok());
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  int64_t resident = 0, copied = 0;
  while (std::getline(smaps, line)) {
    int64_t kib = 0;
    // A mapping's first line has addresses and a path, others a colon.
    if (line.find('-') < line.find(' ')) {
      inside = line.find("-shared.weft") != std::string::npos;
    } else if (inside && std::sscanf(line.c_str(), "Rss: %ld", &kib) == 1) {
      resident += kib;
    } else if (inside && std::sscanf(line.c_str(), "Anonymous: %ld", &kib)) {
      copied += kib;
    }
  }
  EXPECT_GT(resident, 3 << 10);
  EXPECT_EQ(copied, 0);
}

TEST(PlanFile, FailedSaveLeavesNothing) {
  const Plan plan = CompileFile(kTiny);
  const std::string path = TempPath("no-such-folder") + "/plan.weft";
  const absl::Status s = SavePlan(plan, path, *Threads());
  EXPECT_FALSE(s.ok());
  EXPECT_NE(s.message().find(path), std::string::npos);
  EXPECT_FALSE(Exists(path));
  // A folder stands where the file would go.
  const std::string folder = TempPath("folder");
  ASSERT_TRUE(mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST);
  EXPECT_FALSE(SavePlan(plan, folder, *Threads()).ok());
  EXPECT_FALSE(
      Exists(folder + ".tmp" + std::to_string(static_cast<int>(getpid()))));
}

TEST(PlanFile, OnlyPlanFilesAreTakenForThem) {
  EXPECT_FALSE(IsPlanFile(kTiny));
  EXPECT_FALSE(IsPlanFile("no/such/file.weft"));
  EXPECT_FALSE(IsPlanFile(::testing::TempDir()));
  EXPECT_FALSE(IsPlanFile(""));
}

// ----------------------------------------------------------------------------

TEST(Reference, CompilesAgainFromTheModelFile) {
  const std::string model = TempPath("m.gguf"), path = TempPath("r.weft");
  WriteBytes(model, ReadBytes(kSmall));
  ModelOptions options = DefaultModelOptions();
  options.graph.kv_type = DType::kQ8_0;
  options.graph.context = 32;
  absl::StatusOr<GgufFile> file = OpenModel(model);
  ASSERT_TRUE(file.ok());
  absl::StatusOr<Plan> plan = CompileModel(*file, options);
  if (!plan.ok()) {  // heads that q8_0 cannot hold
    options.graph.kv_type = DType::kBF16;
    plan = CompileModel(*file, options);
  }
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(SaveModelReference(*plan, *file, model, options, path).ok());
  EXPECT_LT(ReadBytes(path).size(), ReadBytes(model).size());
  ExpectSameBits(Logits(model, options), Logits(path));
  EXPECT_TRUE(CheckPlanFile(path).ok());

  // Other weights matter to those who read them.
  Bytes changed = ReadBytes(model);
  changed.back() ^= 1;
  WriteBytes(model, changed);
  EXPECT_FALSE(LoadPlan(path, options).ok());
  ModelOptions looks = options;
  looks.reads_weights = false;
  EXPECT_TRUE(LoadPlan(path, looks).ok());
  changed.back() ^= 1;

  // One byte of metadata is another.
  const std::string text(changed.begin(), changed.end());
  const size_t at = text.find("general.architecture");
  ASSERT_NE(at, std::string::npos);
  changed[at] ^= 0x20;
  WriteBytes(model, changed);
  absl::Status s = LoadPlan(path, options).status();
  EXPECT_FALSE(s.ok());
  EXPECT_FALSE(LoadPlan(path, looks).ok());

  Bytes longer = ReadBytes(kSmall);
  longer.push_back(0);
  WriteBytes(model, longer);
  s = LoadPlan(path, options).status();
  EXPECT_NE(s.message().find("not the one"), std::string::npos) << s;

  std::remove(model.c_str());
  s = LoadPlan(path, options).status();
  EXPECT_NE(s.message().find("needs its model file"), std::string::npos) << s;
  EXPECT_NE(s.message().find("m.gguf"), std::string::npos) << s;
}

TEST(Reference, TheEmbeddedModelHasNoFile) {
  absl::StatusOr<GgufFile> file = OpenModel("");
  ASSERT_TRUE(file.ok());
  const Plan plan = CompileFile("");
  EXPECT_FALSE(SaveModelReference(plan, *file, "", DefaultModelOptions(),
                                  TempPath("r.weft"))
                   .ok());
}

// ----------------------------------------------------------------------------

TEST(Damaged, OtherVersionsAreNamed) {
  Bytes bytes = TinyPlan();
  for (const int version : {0, 1, 77}) {
    bytes[8] = static_cast<uint8_t>(version);
    ExpectRefused(bytes, "version " + std::to_string(version) + ", this weft");
  }
}

// A plan of the tiny model for a CPU that this machine is not.
Bytes PlanForAnotherCpu() {
  const char* other = Includes(DetectIsa(), Isa::kNeon) ? "avx2" : "neondot";
  return WithHeader(TinyPlan(), [&](PlanProto* header) {
    header->mutable_options()->set_isa(other);
    for (GraphProto& graph : *header->mutable_buckets()) {
      for (NodeProto& node : *graph.mutable_nodes()) {
        for (AttributeProto& a : *node.mutable_attributes()) {
          if (a.name() == "kernel") a.set_text(std::string("gemm_") + other);
        }
      }
    }
  });
}

TEST(OtherCpu, BothAreNamed) {
  const char* other = Includes(DetectIsa(), Isa::kNeon) ? "avx2" : "neondot";
  ExpectRefused(PlanForAnotherCpu(), std::string("compiled for ") + other);
  ExpectRefused(PlanForAnotherCpu(),
                std::string("machine has ") + Name(DetectIsa()));
}

TEST(OtherCpu, ALowerLevelRefusesWhatItLacks) {
  if (!Includes(DetectIsa(), kLeastIsa) || kLeastIsa == Isa::kRef) GTEST_SKIP();
  const AlignedPlan memory(TinyPlan());
  EXPECT_TRUE(LoadPlanFile(memory.file(), DetectIsa()).ok());
  const absl::Status s = LoadPlanFile(memory.file(), Isa::kRef).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(s)) << s;
  EXPECT_NE(s.message().find(std::string("compiled for ") + Name(DetectIsa()) +
                             ", this machine has ref"),
            std::string::npos)
      << s;
}

TEST(OtherCpu, AnUnknownOneIsNamed) {
  const Bytes bytes = WithHeader(TinyPlan(), [](PlanProto* header) {
    header->mutable_options()->set_isa("avx1024");
  });
  ExpectRefused(bytes, "'avx1024', this machine has");
}

TEST(OtherCpu, TheModelFileBesideThePlanIsCompiledAgain) {
  const std::string folder = TempPath("other-cpu");
  ASSERT_TRUE(mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST);
  const std::string path = folder + "/plan.weft";
  const std::string model = folder + "/00b-valid-micro.gguf";
  WriteBytes(path, PlanForAnotherCpu());
  std::remove(model.c_str());
  std::vector<std::string> warnings;
  ModelOptions options = DefaultModelOptions();
  options.warn = [&](const std::string& w) { warnings.push_back(w); };

  absl::Status s = LoadPlan(path, options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(s)) << s;
  EXPECT_NE(s.message().find("put 00b-valid-micro.gguf beside it"),
            std::string::npos)
      << s;
  EXPECT_TRUE(warnings.empty());

  // Another model of that name is not taken for it.
  WriteBytes(model, ReadBytes(kSmall));
  EXPECT_FALSE(LoadPlan(path, options).ok());

  WriteBytes(model, ReadBytes(kTiny));
  absl::StatusOr<Plan> plan = LoadPlan(path, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->options.isa, DetectIsa());
  EXPECT_EQ(plan->buckets.size(), 2u);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("compiled from " + model), std::string::npos)
      << warnings[0];
  options.compile.buckets = {1, 8};
  ExpectSameBits(Logits(kTiny, options), Logits(path));
}

TEST(Damaged, LayoutsOfAnotherLibraryVersionAreNamed) {
  const Bytes bytes = WithHeader(TinyPlan(), [](PlanProto* header) {
    for (GraphProto& graph : *header->mutable_buckets()) {
      for (SourceProto& source : *graph.mutable_sources()) {
        TypeProto* type = source.mutable_type();
        if (!type->layout().empty() && type->layout()[0] == 'p') {
          type->set_layout("onednn_bf16_9.9.9");
        }
      }
    }
  });
  ExpectRefused(bytes, "layout onednn_bf16_9.9.9, which this one does not");
}

TEST(Damaged, HeaderChecksumIsAlwaysCompared) {
  Bytes bytes = TinyPlan();
  bytes[60] ^= 1;
  ExpectRefused(bytes, "checksum of its header");
  bytes = TinyPlan();
  bytes[32] ^= 64;  // length of the weights
  ExpectRefused(bytes, "checksum of its header");
}

TEST(Damaged, WeightChecksumsAreComparedWhenAsked) {
  const std::string path = TempPath("plan.weft");
  Bytes bytes = TinyPlan();
  bytes[bytes.size() - 100] ^= 1;
  WriteBytes(path, bytes);
  EXPECT_TRUE(LoadPlanFile(path).ok());
  const absl::Status s = CheckPlanFile(path);
  EXPECT_NE(s.message().find("checksum of weight"), std::string::npos) << s;
}

// Weights are compared by the first step that reads them, in whichever bucket
// that is.
TEST(Damaged, WeightChecksumsAreComparedAtFirstUse) {
  const AlignedPlan whole(TinyPlan());
  absl::StatusOr<PlanFile> file = LoadPlanFile(whole.file());
  ASSERT_TRUE(file.ok()) << file.status();
  const Graph& graph = file->plan.buckets.front();
  int weights = 0;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (!graph.IsWeight(id)) continue;
    const auto place = graph.value(id).data.bytes;
    for (size_t at : {size_t{0}, place.size() - 1}) {
      Bytes bytes = TinyPlan();
      bytes[place.data() - whole.file()->bytes().data() + at] ^= 1;
      const absl::Status s = LoadAndRun(bytes);
      EXPECT_NE(s.message().find("weight " + graph.value(id).name + ": its"),
                std::string::npos)
          << s;
    }
    ++weights;
  }
  EXPECT_GT(weights, 5);
}

TEST(Damaged, EveryCutIsRefused) {
  const Bytes& whole = TinyPlan();
  for (size_t size = 0; size < whole.size(); size += size < 64 ? 1 : 997) {
    const Bytes cut(whole.begin(), whole.begin() + size);
    EXPECT_FALSE(LoadAndRun(cut).ok()) << size;
  }
  Bytes longer = whole;
  longer.push_back(0);
  EXPECT_FALSE(LoadAndRun(longer).ok());
}

}  // namespace
}  // namespace weft
