#include "loaders/model_config.h"

#include <unistd.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf_writer.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Keys of a small model, and as many tensors as it has blocks at least.
GgufWriter ValidModel() {
  GgufWriter writer;
  writer.SetString("general.architecture", "llama");
  writer.SetString("general.name", "small");
  writer.SetUint32("llama.context_length", 2048);
  writer.SetUint32("llama.embedding_length", 64);
  writer.SetUint32("llama.block_count", 2);
  writer.SetUint32("llama.feed_forward_length", 172);
  writer.SetUint32("llama.attention.head_count", 8);
  writer.SetUint32("llama.attention.head_count_kv", 2);
  writer.SetFloat32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.SetStrings("tokenizer.ggml.tokens",
                    std::vector<std::string>{"a", "b", "c"});
  static const std::vector<uint8_t> data(4 * 64 * 3);
  writer.AddTensor("token_embd.weight", DType::kF32, {64, 3}, data);
  writer.AddTensor("other", DType::kF32, {3, 64}, data);
  return writer;
}

absl::StatusOr<ModelConfig> Read(const std::function<void(GgufWriter*)>& change,
                                 const ModelTraits& traits = {}) {
  GgufWriter writer = ValidModel();
  change(&writer);
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/", getpid(), "-config.gguf");
  const absl::Status status = writer.WriteTo(path);
  if (!status.ok()) return status;
  auto file = GgufFile::Open(path);
  unlink(path.c_str());
  if (!file.ok()) return file.status();
  return ReadModelConfig(*file, traits);
}

absl::StatusOr<ModelConfig> ReadWithUint(const std::string& key,
                                         uint64_t value) {
  return Read([&](GgufWriter* writer) { writer->SetUint64(key, value); });
}

absl::StatusOr<ModelConfig> ReadWithFloat(const std::string& key,
                                          double value) {
  return Read([&](GgufWriter* writer) { writer->SetFloat64(key, value); });
}

std::string ErrorOf(const absl::StatusOr<ModelConfig>& config) {
  return std::string(config.status().message());
}

TEST(ModelConfig, ReadsKeysAndDefaults) {
  auto config = Read([](GgufWriter*) {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->name, "small");
  EXPECT_EQ(config->context_length, 2048);
  EXPECT_EQ(config->trained_context_length, 2048);
  EXPECT_EQ(config->embedding_length, 64);
  EXPECT_EQ(config->block_count, 2);
  EXPECT_EQ(config->feed_forward_length, 172);
  EXPECT_EQ(config->head_count, 8);
  EXPECT_EQ(config->head_count_kv, 2);
  EXPECT_EQ(config->key_length, 8);
  EXPECT_EQ(config->value_length, 8);
  EXPECT_EQ(config->vocabulary_size, 3);
  EXPECT_EQ(config->norm_epsilon, 1e-5f);
  EXPECT_EQ(config->rope_dimension_count, 8);
  EXPECT_EQ(config->rope_freq_base, 10000.0f);
  EXPECT_EQ(config->rope_position_scale, 1.0f);
  EXPECT_EQ(config->expert_count, 0);
  EXPECT_EQ(config->sliding_window, 0);
}

TEST(ModelConfig, HeadsOfBlocksWithAWindowMayHaveAnotherLength) {
  ModelTraits traits;
  traits.handled_keys = {"attention.sliding_window"};
  const auto set = [](GgufWriter* writer) {
    writer->SetUint32("llama.attention.sliding_window", 128);
    writer->SetUint32("llama.attention.sliding_window_pattern", 2);
    writer->SetUint32("llama.attention.key_length", 24);
    writer->SetUint32("llama.attention.value_length", 20);
    writer->SetUint32("llama.attention.key_length_swa", 16);
  };
  auto config = Read(set, traits);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->key_length, 24);
  EXPECT_EQ(config->Block(0).key_length, 16);
  EXPECT_EQ(config->Block(0).value_length, 20);
  EXPECT_EQ(config->Block(1).key_length, 24);
  EXPECT_EQ(config->Block(1).value_length, 20);
  EXPECT_THAT(ErrorOf(Read(
                  [&](GgufWriter* writer) {
                    set(writer);
                    writer->SetUint32("llama.attention.value_length_swa", 0);
                  },
                  traits)),
              HasSubstr("llama.attention.value_length_swa is 0"));
}

TEST(ModelConfig, KnowsWhetherRotationHasSections) {
  for (const int32_t pairs : {0, 2}) {
    const auto config = Read([&](GgufWriter* writer) {
      writer->SetInt32s("llama.rope.dimension_sections", {pairs, pairs, 0, 0});
    });
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->rope_sections, pairs > 0);
    EXPECT_TRUE(config->warnings.empty());
  }
  EXPECT_THAT(ErrorOf(ReadWithUint("llama.rope.dimension_sections", 2)),
              HasSubstr("llama.rope.dimension_sections"));
}

TEST(ModelConfig, ReadsWhatTheFileSetsOtherwise) {
  auto config = Read([](GgufWriter* writer) {
    writer->SetUint16("llama.attention.key_length", 24);
    writer->SetInt64("llama.attention.value_length", 20);
    writer->SetUint8("llama.rope.dimension_count", 12);
    writer->SetFloat32("llama.rope.freq_base", 500000);
    writer->SetString("llama.rope.scaling.type", "linear");
    writer->SetFloat32("llama.rope.scaling.factor", 4);
    writer->Remove("llama.attention.head_count_kv");
  });
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->key_length, 24);
  EXPECT_EQ(config->value_length, 20);
  EXPECT_EQ(config->rope_dimension_count, 12);
  EXPECT_EQ(config->rope_freq_base, 500000.0f);
  EXPECT_EQ(config->rope_position_scale, 0.25f);
  EXPECT_EQ(config->head_count_kv, 8);
}

TEST(ModelConfig, EachRequiredKeyIsNamedWhenMissing) {
  for (const char* key :
       {"general.architecture", "llama.context_length",
        "llama.embedding_length", "llama.block_count",
        "llama.feed_forward_length", "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon"}) {
    EXPECT_THAT(ErrorOf(Read([&](GgufWriter* w) { w->Remove(key); })),
                HasSubstr(absl::StrCat("key ", key, " is not there")));
  }
}

TEST(ModelConfig, EachKeyIsNamedWhenOfTheWrongType) {
  for (const char* key :
       {"llama.context_length", "llama.embedding_length", "llama.block_count",
        "llama.feed_forward_length", "llama.attention.head_count",
        "llama.attention.head_count_kv", "llama.attention.key_length",
        "llama.attention.value_length", "llama.rope.dimension_count",
        "llama.rope.freq_base", "llama.rope.scaling.factor",
        "llama.rope.scale_linear", "llama.attention.sliding_window",
        "llama.expert_count", "llama.attention.layer_norm_rms_epsilon"}) {
    EXPECT_THAT(ErrorOf(Read([&](GgufWriter* w) { w->SetString(key, "8"); })),
                AllOf(HasSubstr(key), HasSubstr("8")));
  }
  EXPECT_THAT(ErrorOf(Read([](GgufWriter* w) {
                w->SetUint8("general.architecture", 1);
              })),
              HasSubstr("general.architecture is u8 1, expected a string"));
  EXPECT_THAT(ErrorOf(Read([](GgufWriter* w) {
                w->SetUint8("llama.rope.scaling.type", 1);
              })),
              HasSubstr("llama.rope.scaling.type is u8 1"));
}

TEST(ModelConfig, NumbersOutOfRangeAreErrors) {
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  for (const char* key :
       {"llama.context_length", "llama.embedding_length", "llama.block_count",
        "llama.feed_forward_length", "llama.attention.head_count",
        "llama.attention.head_count_kv", "llama.attention.key_length",
        "llama.attention.value_length", "llama.rope.dimension_count"}) {
    for (uint64_t value : {uint64_t{0}, uint64_t{1} << 41, kHuge}) {
      EXPECT_THAT(
          ErrorOf(ReadWithUint(key, value)),
          HasSubstr(absl::StrCat("key ", key, " is ", value, ", expected ")));
    }
    EXPECT_THAT(ErrorOf(Read([&](GgufWriter* w) { w->SetInt32(key, -1); })),
                HasSubstr(absl::StrCat("key ", key, " is i32 -1, expected ")));
  }
}

TEST(ModelConfig, BlocksAreBoundedByTensors) {
  EXPECT_THAT(ErrorOf(ReadWithUint("llama.block_count", 3)),
              HasSubstr("llama.block_count is 3, expected 1 to 2"));
}

TEST(ModelConfig, NumbersThatDoNotGoTogetherAreErrors) {
  EXPECT_THAT(ErrorOf(ReadWithUint("llama.attention.head_count", 6)),
              AllOf(HasSubstr("llama.attention.head_count is 6"),
                    HasSubstr("llama.embedding_length (64)")));
  EXPECT_THAT(ErrorOf(ReadWithUint("llama.attention.head_count_kv", 3)),
              HasSubstr("llama.attention.head_count_kv is 3, expected a "
                        "divisor of llama.attention.head_count (8)"));
  EXPECT_THAT(ErrorOf(ReadWithUint("llama.attention.head_count_kv", 16)),
              HasSubstr("head_count_kv is 16, expected 1 to 8"));
  EXPECT_THAT(ErrorOf(ReadWithUint("llama.rope.dimension_count", 7)),
              HasSubstr("llama.rope.dimension_count is 7, expected an even"));
  EXPECT_THAT(ErrorOf(ReadWithUint("llama.rope.dimension_count", 10)),
              HasSubstr("rope.dimension_count is 10, expected 2 to 8"));
  EXPECT_THAT(ErrorOf(ReadWithUint("llama.attention.key_length", 9)),
              HasSubstr("llama.attention.key_length is 9, expected an even"));
}

TEST(ModelConfig, UnusualHeadsNeedBothLengths) {
  auto config = Read([](GgufWriter* writer) {
    writer->SetUint32("llama.attention.head_count", 6);
    writer->SetUint32("llama.attention.key_length", 16);
    writer->SetUint32("llama.attention.value_length", 16);
  });
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->key_length, 16);
}

TEST(ModelConfig, BadEpsilonAndBadBaseAreErrors) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (double value : {0.0, -1e-5, 1.5, 1e-60, 1e300, kNan, kInfinity}) {
    EXPECT_THAT(
        ErrorOf(ReadWithFloat("llama.attention.layer_norm_rms_epsilon", value)),
        HasSubstr("layer_norm_rms_epsilon is"))
        << value;
  }
  for (double value :
       {0.0, -10000.0, 1e-300, 1e-40, 0.5, 1.0, 1e300, kNan, kInfinity}) {
    EXPECT_THAT(ErrorOf(ReadWithFloat("llama.rope.freq_base", value)),
                HasSubstr("llama.rope.freq_base is"))
        << value;
  }
  for (double value : {-4.0, 1e-300, kNan, kInfinity}) {
    EXPECT_THAT(ErrorOf(ReadWithFloat("llama.rope.scaling.factor", value)),
                HasSubstr("llama.rope.scaling.factor is"))
        << value;
  }
}

TEST(ModelConfig, BlocksMayDiffer) {
  for (const char* key :
       {"llama.feed_forward_length", "llama.attention.head_count",
        "llama.attention.head_count_kv"}) {
    auto config = Read([&](GgufWriter* w) { w->SetUint32s(key, {4, 4}); });
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(Read([&](GgufWriter* w) { w->SetUint32s(key, {4, 2}); }).ok());
    EXPECT_THAT(ErrorOf(Read([&](GgufWriter* w) {
                  w->SetUint32s(key, {4, 0});
                })),
                AllOf(HasSubstr(key), HasSubstr("0 for block 1")));
    EXPECT_THAT(ErrorOf(Read([&](GgufWriter* w) { w->SetUint32s(key, {4}); })),
                AllOf(HasSubstr(key), HasSubstr("an array of 1")));
    EXPECT_THAT(ErrorOf(Read([&](GgufWriter* w) { w->SetUint32s(key, {}); })),
                AllOf(HasSubstr(key), HasSubstr("an array of 0")));
    EXPECT_THAT(ErrorOf(Read([&](GgufWriter* w) {
                  w->SetInt32s(key, {-4, -4});
                })),
                AllOf(HasSubstr(key), HasSubstr("-4")));
    EXPECT_THAT(ErrorOf(Read([&](GgufWriter* w) {
                  w->SetFloat32s(key, {4, 4});
                })),
                AllOf(HasSubstr(key), HasSubstr("array of 2 f32")));
  }
  const auto config = Read([](GgufWriter* w) {
    w->SetUint32s("llama.feed_forward_length", {10, 20});
    w->SetUint32s("llama.attention.head_count", {8, 4});
    w->SetUint32s("llama.attention.head_count_kv", {2, 4});
  });
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->feed_forward_length, 20);
  EXPECT_EQ(config->head_count, 8);
  EXPECT_EQ(config->head_count_kv, 4);
  EXPECT_EQ(config->Block(0).feed_forward_length, 10);
  EXPECT_EQ(config->Block(0).head_count, 8);
  EXPECT_EQ(config->Block(0).head_count_kv, 2);
  EXPECT_EQ(config->Block(1).feed_forward_length, 20);
  EXPECT_EQ(config->Block(1).head_count, 4);
  EXPECT_EQ(config->Block(1).head_count_kv, 4);
  EXPECT_THAT(ErrorOf(Read([](GgufWriter* w) {
                w->SetUint32s("llama.attention.head_count_kv", {2, 3});
              })),
              HasSubstr("llama.attention.head_count_kv is 3"));
}

TEST(ModelConfig, BlocksHaveNoAttentionOnlyWhereTheFamilyKnows) {
  const auto some = [](GgufWriter* w) {
    w->SetUint32s("llama.attention.head_count_kv", {0, 2});
  };
  EXPECT_THAT(ErrorOf(Read(some)), HasSubstr("0 for block 0"));
  ModelTraits traits;
  traits.blocks_without_attention = true;
  const auto config = Read(some, traits);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->Block(0).head_count_kv, 0);
  EXPECT_EQ(config->Block(1).head_count_kv, 2);
}

std::vector<bool> Windows(const std::function<void(GgufWriter*)>& change,
                          int64_t period, bool expect_ok = true) {
  ModelTraits traits;
  traits.handled_keys = {"attention.sliding_window"};
  traits.window_period = period;
  const auto config = Read(
      [&](GgufWriter* w) {
        w->SetUint32("llama.attention.sliding_window", 128);
        change(w);
      },
      traits);
  EXPECT_EQ(config.ok(), expect_ok) << config.status();
  return config.ok() ? config->sliding_blocks : std::vector<bool>();
}

TEST(ModelConfig, AWindowsPatternIsTheFilesOrTheFamilys) {
  constexpr char kPattern[] = "llama.attention.sliding_window_pattern";
  using Blocks = std::vector<bool>;
  const auto none = [](GgufWriter*) {};
  EXPECT_EQ(Windows(none, 0), Blocks({true, true}));
  EXPECT_EQ(Windows(none, 1), Blocks({false, false}));
  EXPECT_EQ(Windows(none, 2), Blocks({true, false}));
  EXPECT_EQ(Windows(none, 6), Blocks({true, true}));
  const auto number = [&](uint32_t n) {
    return [=](GgufWriter* w) { w->SetUint32(kPattern, n); };
  };
  EXPECT_EQ(Windows(number(2), 6), Blocks({true, false}));
  EXPECT_EQ(Windows(number(0), 2), Blocks({true, true}));
  EXPECT_EQ(Windows(number(1), 2), Blocks({false, false}));
  const auto array = [&](std::vector<uint32_t> values) {
    return [=](GgufWriter* w) { w->SetUint32s(kPattern, values); };
  };
  EXPECT_EQ(Windows(array({0, 1}), 2), Blocks({false, true}));
  Windows(array({1}), 2, false);
  Windows(array({1, 1, 1}), 2, false);
  Windows(array({1, 2}), 2, false);
  Windows([&](GgufWriter* w) { w->SetString(kPattern, "2"); }, 2, false);
  EXPECT_TRUE(Windows(
                  [](GgufWriter* w) {
                    w->SetUint32("llama.attention.sliding_window", 0);
                  },
                  2)
                  .empty());
}

TEST(ModelConfig, AMissingWindowIsTheFamilys) {
  ModelTraits traits;
  traits.handled_keys = {"attention.sliding_window"};
  traits.default_window = [](const ModelConfig& c) {
    return c.trained_context_length / 2;
  };
  auto config = Read([](GgufWriter*) {}, traits);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->WindowOf(0), 1024);
  config = Read(
      [](GgufWriter* w) { w->SetUint32("llama.attention.sliding_window", 0); },
      traits);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->WindowOf(0), 0);
  EXPECT_FALSE(config->Slides(0));
}

TEST(ModelConfig, AFamilyMayNotDoWithoutAWindow) {
  ModelTraits traits;
  traits.handled_keys = {"attention.sliding_window"};
  traits.needs_window = true;
  const auto window = [&](uint32_t tokens) {
    return Read(
        [&](GgufWriter* w) {
          w->SetUint32("llama.attention.sliding_window", tokens);
        },
        traits);
  };
  EXPECT_THAT(ErrorOf(Read([](GgufWriter*) {}, traits)),
              HasSubstr("llama.attention.sliding_window is not there"));
  EXPECT_THAT(ErrorOf(window(0)),
              HasSubstr("llama.attention.sliding_window is 0, expected"));
  EXPECT_TRUE(window(5000).ok());
  // Nor without a number of blocks that have it.
  traits.window_period = ModelTraits::kFileSays;
  EXPECT_THAT(ErrorOf(window(9)),
              HasSubstr("attention.sliding_window_pattern is not there"));
}

TEST(ModelConfig, OtherConvertersNamesAreRead) {
  const std::string other = "llama.rope.global.freq_base";
  const auto config = ReadWithFloat(other, 5e5);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FLOAT_EQ(config->rope_freq_base, 5e5f);
  EXPECT_TRUE(config->warnings.empty());
  const auto both = [&](float base) {
    return Read([&](GgufWriter* w) {
      w->SetFloat32("llama.rope.freq_base", 5e5f);
      w->SetFloat32(other, base);
    });
  };
  EXPECT_TRUE(both(5e5f).ok());
  EXPECT_THAT(ErrorOf(both(1e4f)),
              AllOf(HasSubstr(other), HasSubstr("llama.rope.freq_base")));
  EXPECT_THAT(ErrorOf(ReadWithFloat(other, 0.5)), HasSubstr(other));
}

TEST(ModelConfig, KeysThatNobodyReadAreNamed) {
  auto config = ReadWithUint("llama.some.new.key", 1);
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->warnings.size(), 1);
  EXPECT_THAT(config->warnings[0], HasSubstr("'llama.some.new.key'"));
  // Another prefix is another's business.
  config = ReadWithUint("llamas.some.new.key", 1);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->warnings.empty());
  config = ReadWithUint("llama.vision.block_count", 1);
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->warnings.size(), 1);
  EXPECT_THAT(config->warnings[0], HasSubstr("only texts"));
  config = Read([](GgufWriter* w) {
    for (int i = 0; i < 100; ++i) {
      w->SetUint32(absl::StrCat("llama.new\n", i), 1);
    }
  });
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->warnings.size(), 1);
  EXPECT_THAT(config->warnings[0], HasSubstr("and 92 more"));
  EXPECT_EQ(config->warnings[0].find('\n'), std::string::npos);
  EXPECT_LT(config->warnings[0].size(), 1000);
}

TEST(ModelConfig, KeysOfWhatTheModelLacksAreNoWarning) {
  for (const char* key :
       {"llama.expert_used_count", "llama.vocab_size",
        "llama.use_parallel_residual", "llama.rope.scaling.finetuned"}) {
    const auto config = ReadWithUint(key, 1);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(config->warnings.empty()) << config->warnings[0];
  }
}

TEST(ModelConfig, RopeScalingIsLinearNoneOrAnError) {
  const auto scale_of = [](const char* type, const char* key, float factor) {
    auto config = Read([&](GgufWriter* writer) {
      if (type != nullptr) writer->SetString("llama.rope.scaling.type", type);
      writer->SetFloat32(key, factor);
    });
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? config->rope_position_scale : -1;
  };
  EXPECT_EQ(scale_of("linear", "llama.rope.scaling.factor", 8), 0.125f);
  EXPECT_EQ(scale_of(nullptr, "llama.rope.scaling.factor", 8), 0.125f);
  EXPECT_EQ(scale_of(nullptr, "llama.rope.scale_linear", 2), 0.5f);
  EXPECT_EQ(scale_of("none", "llama.rope.scaling.factor", 8), 1.0f);
  // Written by converters for "not scaled".
  EXPECT_EQ(scale_of("linear", "llama.rope.scaling.factor", 0), 1.0f);
  for (const char* type : {"dynamic", "", "LINEAR"}) {
    EXPECT_THAT(ErrorOf(Read([&](GgufWriter* w) {
                  w->SetString("llama.rope.scaling.type", type);
                })),
                AllOf(HasSubstr(absl::StrCat("scaling.type is '", type, "'")),
                      HasSubstr("not supported")));
  }
}

TEST(ModelConfig, LongropeNeedsAnArchitectureWithItsFactors) {
  const auto longrope = [](GgufWriter* writer) {
    writer->SetString("llama.rope.scaling.type", "longrope");
    writer->SetFloat32("llama.rope.scaling.factor", 32);
  };
  EXPECT_THAT(ErrorOf(Read(longrope)),
              HasSubstr("llama.rope.scaling.type is 'longrope', expected "));
  ModelTraits traits;
  traits.longrope = true;
  auto config = Read(longrope, traits);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->longrope);
  EXPECT_EQ(config->rope_position_scale, 1.0f);
}

// YaRN by a factor of 4 of 2048 positions and heads of 64, and one key more.
absl::StatusOr<ModelConfig> ReadYarn(const std::string& name, double value) {
  return Read([&](GgufWriter* writer) {
    writer->SetUint32("llama.attention.key_length", 64);
    writer->SetUint32("llama.attention.value_length", 64);
    writer->SetString("llama.rope.scaling.type", "yarn");
    writer->SetFloat32("llama.rope.scaling.factor", 4);
    writer->SetFloat64("llama.rope.scaling." + name, value);
  });
}

TEST(ModelConfig, YarnObeysItsKeys) {
  // 64 ln(2048 / (2 pi t)) / (2 ln 10000): 8.06 for 32 turns, 20.1 for one.
  auto config = ReadYarn("yarn_beta_fast", 32);
  ASSERT_TRUE(config.ok()) << config.status();
  const float magnitude = config->rope_magnitude;
  EXPECT_FLOAT_EQ(magnitude, 1 + 0.1f * std::log(4.0f));
  EXPECT_EQ(config->rope_ramp.begin, 8);
  EXPECT_EQ(config->rope_ramp.end, 21);
  // 10.5 for 16 turns, 17.7 for two.
  config = ReadYarn("yarn_beta_fast", 16);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_ramp.begin, 10);
  EXPECT_EQ(config->rope_ramp.end, 21);
  config = ReadYarn("yarn_beta_slow", 2);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_ramp.begin, 8);
  EXPECT_EQ(config->rope_ramp.end, 18);
  for (const char* name : {"attn_factor", "yarn_attn_factor"}) {
    config = ReadYarn(name, 0.5);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_FLOAT_EQ(config->rope_magnitude, magnitude / 2);
  }
}

TEST(ModelConfig, YarnThatCannotBeIsAnErrorByKey) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const char* name :
       {"yarn_beta_fast", "yarn_beta_slow", "yarn_attn_factor", "factor"}) {
    for (double value : {-1.0, 1e-40, 1e300, kNan, kInfinity}) {
      EXPECT_THAT(ErrorOf(ReadYarn(name, value)),
                  HasSubstr(absl::StrCat("llama.rope.scaling.", name, " is ")))
          << value;
    }
  }
  for (double factor : {0.5, 1e-20, 2e6, 1e20}) {
    EXPECT_THAT(ErrorOf(ReadYarn("factor", factor)),
                HasSubstr("llama.rope.scaling.factor is "));
  }
  EXPECT_THAT(ErrorOf(ReadYarn("yarn_beta_fast", 0.5)),
              HasSubstr("llama.rope.scaling.yarn_beta_fast is 0.5"));
  EXPECT_THAT(ErrorOf(ReadYarn("yarn_beta_slow", 33)),
              HasSubstr("llama.rope.scaling.yarn_beta_slow is 33"));
}

TEST(ModelConfig, YarnThatIsNotSupportedIsNotIgnored) {
  for (double usual : {1.0, -1.0}) {
    EXPECT_TRUE(ReadYarn("yarn_ext_factor", usual).ok());
  }
  for (double mix : {0.0, 0.5, std::nan("")}) {
    EXPECT_THAT(ErrorOf(ReadYarn("yarn_ext_factor", mix)),
                HasSubstr("llama.rope.scaling.yarn_ext_factor is "));
  }
  const std::string mix = "llama.rope.scaling.yarn_ext_factor";
  EXPECT_TRUE(ReadWithFloat(mix, 0).ok());
  EXPECT_THAT(ErrorOf(ReadWithFloat(mix, 1)), HasSubstr(mix + " is 1"));
}

TEST(ModelConfig, YarnsMultiplierTakesAShareOfTheMagnitude) {
  const double factor =
      std::log(1 / ReadYarn("yarn_ext_factor", 1)->rope_position_scale);
  for (double m : {0.0, 0.0707, 1.0, 2.0}) {
    const auto config = ReadYarn("yarn_log_multiplier", m);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_FLOAT_EQ(config->rope_magnitude,
                    (1 + 0.1 * factor) / (1 + 0.1 * m * factor));
  }
  for (double m : {-1.0, std::nan(""), 1e31}) {
    EXPECT_THAT(ErrorOf(ReadYarn("yarn_log_multiplier", m)),
                HasSubstr("llama.rope.scaling.yarn_log_multiplier is "));
  }
}

TEST(ModelConfig, AWindowOfTheContextOrMoreIsNone) {
  for (uint64_t window : {uint64_t{2048}, uint64_t{4294967295},
                          std::numeric_limits<uint64_t>::max()}) {
    auto config = ReadWithUint("llama.attention.sliding_window", window);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->sliding_window, 0);
    EXPECT_EQ(config->context_length, 2048);
  }
  auto config = ReadWithUint("llama.attention.sliding_window", 2047);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->sliding_window, 2047);
}

TEST(ModelConfig, ContextUpTo32BitsIsRead) {
  auto config = ReadWithUint("llama.context_length", 4294967295);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->context_length, 4294967295);
}

TEST(ModelConfig, AWindowThatNobodyHandlesBoundsTheContext) {
  auto config = ReadWithUint("llama.attention.sliding_window", 512);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->sliding_window, 512);
  EXPECT_EQ(config->context_length, 512);
  EXPECT_EQ(config->trained_context_length, 2048);

  ModelTraits traits;
  traits.handled_keys = {"attention.sliding_window"};
  config = Read(
      [](GgufWriter* w) {
        w->SetUint32("llama.attention.sliding_window", 512);
      },
      traits);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->context_length, 2048);

  config = ReadWithUint("llama.attention.sliding_window", 4096);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->context_length, 2048);
}

TEST(ModelConfig, BlocksThatPredictFurtherTokensAreCountedApart) {
  const auto read = [](int64_t blocks, bool handled) {
    ModelTraits traits;
    if (handled) traits.handled_keys = {kNextTokenBlocks};
    return Read(
        [blocks](GgufWriter* w) {
          w->SetUint32("llama.nextn_predict_layers", blocks);
        },
        traits);
  };
  const int64_t all = read(0, true)->block_count;
  const auto config = read(1, true);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->next_token_blocks, 1);
  EXPECT_EQ(config->block_count, all - 1);
  EXPECT_EQ(static_cast<int64_t>(config->blocks.size()), all - 1);
  EXPECT_THAT(ErrorOf(read(all, true)),
              HasSubstr(absl::StrCat("expected 0 to ", all - 1)));
  EXPECT_THAT(ErrorOf(read(1, false)), HasSubstr("not supported"));
}

TEST(ModelConfig, AnArchitectureMayRequireAKeyOfItsOwn) {
  ModelTraits traits;
  traits.keys = {{"attention.kv_lora_rank", 1, 64, 0, true}};
  EXPECT_THAT(ErrorOf(Read([](GgufWriter*) {}, traits)),
              AllOf(HasSubstr("llama.attention.kv_lora_rank"),
                    HasSubstr("a number from 1 to 64")));
  const auto config = Read(
      [](GgufWriter* w) { w->SetUint32("llama.attention.kv_lora_rank", 16); },
      traits);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->Number("attention.kv_lora_rank"), 16);
}

TEST(ModelConfig, YarnMayScaleScoresInPlaceOfWhatIsRotated) {
  ModelTraits traits;
  traits.yarn_scales_scores = true;
  const auto read = [&](double multiplier) {
    return Read(
        [multiplier](GgufWriter* w) {
          w->SetString("llama.rope.scaling.type", "yarn");
          w->SetFloat32("llama.rope.scaling.factor", 4);
          w->SetFloat64("llama.rope.scaling.yarn_log_multiplier", multiplier);
        },
        traits);
  };
  const auto config = read(0.1);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_magnitude, 1);
  EXPECT_NEAR(config->rope_score_factor, std::pow(1 + 0.1 * std::log(4), 2),
              1e-6);
  EXPECT_EQ(read(0)->rope_score_factor, 1);
  EXPECT_THAT(ErrorOf(read(1e20)), HasSubstr("nearer to 1"));
}

TEST(ModelConfig, KeysThatChangeTheModelAreNotIgnored) {
  EXPECT_THAT(ErrorOf(ReadWithUint("llama.expert_count", 8)),
              AllOf(HasSubstr("llama.expert_count is 8"), HasSubstr("MoE"),
                    HasSubstr("not supported")));
  EXPECT_TRUE(ReadWithUint("llama.expert_count", 0).ok());
  for (const char* name :
       {"attention.clamp_kqv", "attention.max_alibi_bias", "attention.scale",
        "attn_logit_softcapping", "final_logit_softcapping", "logit_scale",
        "residual_scale", "embedding_scale", "attention.temperature_scale",
        "no_rope_layer_interval", "attention.q_lora_rank"}) {
    const std::string key = absl::StrCat("llama.", name);
    EXPECT_THAT(ErrorOf(ReadWithFloat(key, 0.5)),
                AllOf(HasSubstr(key), HasSubstr("not supported")));
    EXPECT_TRUE(ReadWithFloat(key, 0).ok()) << key;
    ModelTraits traits;
    traits.handled_keys = {name};
    EXPECT_TRUE(
        Read([&](GgufWriter* w) { w->SetFloat32(key, 0.5); }, traits).ok());
  }
  EXPECT_FALSE(Read([](GgufWriter* w) {
                 w->SetBool("llama.attention.causal", false);
               }).ok());
  EXPECT_TRUE(Read([](GgufWriter* w) {
                w->SetBool("llama.attention.causal", true);
              }).ok());
}

TEST(ModelConfig, HandledExpertsAreRead) {
  ModelTraits traits;
  traits.handled_keys = {"expert_count"};
  const auto read = [&](uint32_t used) {
    return Read(
        [&](GgufWriter* writer) {
          writer->SetUint32("llama.expert_count", 8);
          writer->SetUint32("llama.expert_used_count", used);
        },
        traits);
  };
  auto config = read(2);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->expert_count, 8);
  EXPECT_EQ(config->expert_used_count, 2);
  EXPECT_EQ(config->expert_feed_forward_length, 172);
  EXPECT_EQ(config->shared_feed_forward_length, 0);
  EXPECT_EQ(config->expert_weights_norm, false);
  EXPECT_THAT(ErrorOf(read(0)), HasSubstr("expert_used_count is 0"));
  EXPECT_THAT(ErrorOf(read(9)), HasSubstr("expected 1 to 8"));

  const auto with = [&](const std::function<void(GgufWriter*)>& change) {
    return Read(
        [&](GgufWriter* writer) {
          writer->SetUint32("llama.expert_count", 8);
          writer->SetUint32("llama.expert_used_count", 2);
          change(writer);
        },
        traits);
  };
  config = with([](GgufWriter* w) {
    w->SetUint32("llama.expert_feed_forward_length", 32);
    w->SetUint32("llama.expert_shared_feed_forward_length", 64);
    w->SetBool("llama.expert_weights_norm", true);
  });
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->expert_feed_forward_length, 32);
  EXPECT_EQ(config->shared_feed_forward_length, 64);
  EXPECT_EQ(config->expert_weights_norm, true);
  EXPECT_THAT(ErrorOf(with([](GgufWriter* w) {
                w->SetUint32("llama.expert_weights_norm", 7);
              })),
              HasSubstr("expert_weights_norm is 7"));
  EXPECT_THAT(ErrorOf(with([](GgufWriter* w) {
                w->SetUint32("llama.expert_gating_func", 2);
              })),
              HasSubstr("expert_gating_func is 2"));
  EXPECT_THAT(ErrorOf(with([](GgufWriter* w) {
                w->SetUint32("llama.expert_count", 1025);
              })),
              HasSubstr("expert_count is 1025"));
}

TEST(ModelConfig, HandledRoutersAreRead) {
  ModelTraits traits;
  traits.handled_keys = {"expert_count",
                         "expert_gating_func",
                         "expert_group_count",
                         "expert_weights_scale",
                         "leading_dense_block_count",
                         "interleave_moe_layer_step"};
  const auto with = [&](const std::function<void(GgufWriter*)>& change) {
    return Read(
        [&](GgufWriter* writer) {
          writer->SetUint32("llama.expert_count", 8);
          writer->SetUint32("llama.expert_used_count", 3);
          change(writer);
        },
        traits);
  };
  auto config = with([](GgufWriter*) {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->expert_gating, Gating::kSoftmax);
  EXPECT_EQ(config->expert_weights_scale, 1);
  EXPECT_EQ(config->expert_group_count, 1);
  EXPECT_EQ(config->expert_group_used_count, 1);
  EXPECT_TRUE(config->HasExperts(0));
  config = with([](GgufWriter* w) {
    w->SetUint32("llama.expert_gating_func", 2);
    w->SetFloat32("llama.expert_weights_scale", 2.5f);
    w->SetUint32("llama.expert_group_count", 4);
    w->SetUint32("llama.expert_group_used_count", 2);
    w->SetUint32("llama.expert_shared_count", 2);
    w->SetUint32("llama.leading_dense_block_count", 1);
    w->SetUint32("llama.interleave_moe_layer_step", 2);
  });
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->expert_gating, Gating::kSigmoid);
  EXPECT_EQ(config->expert_weights_scale, 2.5f);
  EXPECT_EQ(config->expert_group_count, 4);
  EXPECT_EQ(config->expert_group_used_count, 2);
  EXPECT_EQ(config->expert_shared_count, 2);
  EXPECT_FALSE(config->HasExperts(0));
  EXPECT_TRUE(config->HasExperts(1));
  EXPECT_FALSE(config->HasExperts(2));
  EXPECT_THAT(ErrorOf(with([](GgufWriter* w) {
                w->SetUint32("llama.expert_group_count", 3);
              })),
              HasSubstr("expert_group_count is 3"));
  EXPECT_THAT(ErrorOf(with([](GgufWriter* w) {
                w->SetUint32("llama.expert_group_count", 4);
                w->SetUint32("llama.expert_group_used_count", 1);
              })),
              HasSubstr("expert_group_used_count is 1"));
  EXPECT_THAT(ErrorOf(with([](GgufWriter* w) {
                w->SetUint32("llama.expert_gating_func", 4);
              })),
              HasSubstr("expert_gating_func is 4"));
  // Of several groups a file must say how many are chosen from.
  EXPECT_THAT(ErrorOf(with([](GgufWriter* w) {
                w->SetUint32("llama.expert_group_count", 4);
              })),
              AllOf(HasSubstr("expert_group_used_count is not there"),
                    HasSubstr("1 to 4")));
  EXPECT_THAT(ErrorOf(with([](GgufWriter* w) {
                w->SetUint32("llama.expert_group_count", 4);
                w->SetUint32("llama.expert_group_used_count", 0);
              })),
              HasSubstr("expert_group_used_count is 0, expected 1 to 4"));
}

// What files leave out is the family's; what they say is theirs, but for a
// router that there is one of.
TEST(ModelConfig, AMissingRouterIsTheFamilys) {
  ModelTraits traits;
  traits.handled_keys = {"expert_count", "expert_gating_func"};
  traits.default_gating = Gating::kSigmoid;
  traits.default_weights_norm = true;
  const auto read = [&](std::optional<uint32_t> gating,
                        std::optional<bool> norm) {
    return Read(
        [&](GgufWriter* w) {
          w->SetUint32("llama.expert_count", 8);
          w->SetUint32("llama.expert_used_count", 3);
          if (gating) w->SetUint32("llama.expert_gating_func", *gating);
          if (norm) w->SetBool("llama.expert_weights_norm", *norm);
        },
        traits);
  };
  for (const bool fixed : {false, true}) {
    traits.fixed_router = fixed;
    for (const std::optional<uint32_t> gating :
         {std::optional<uint32_t>(), {0}, {2}}) {
      const auto config = read(gating, std::nullopt);
      ASSERT_TRUE(config.ok()) << config.status();
      EXPECT_EQ(config->expert_gating, Gating::kSigmoid);
      EXPECT_EQ(config->expert_weights_norm, true);
    }
  }
  EXPECT_THAT(ErrorOf(read(1, std::nullopt)),
              HasSubstr("expert_gating_func is 1, expected 2"));
  EXPECT_THAT(ErrorOf(read(2, false)),
              HasSubstr("expert_weights_norm is false, expected true"));
  traits.fixed_router = false;
  const auto config = read(1, false);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->expert_gating, Gating::kSoftmax);
  EXPECT_EQ(config->expert_weights_norm, false);
}

TEST(ModelConfig, EncodersLookBothWaysAndHavePooling) {
  ModelTraits traits;
  traits.encoder = true;
  traits.handled_keys = {"attention.causal"};
  const auto read = [&](bool causal, uint32_t pooling) {
    return Read(
        [&](GgufWriter* writer) {
          writer->SetBool("llama.attention.causal", causal);
          writer->SetUint32("llama.pooling_type", pooling);
        },
        traits);
  };
  auto config = read(false, 2);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->encoder);
  EXPECT_EQ(config->pooling, Pooling::kFirst);
  EXPECT_THAT(ErrorOf(read(true, 1)),
              HasSubstr("attention.causal is true, expected false"));
  config = read(false, 4);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->ranks);
  EXPECT_EQ(config->pooling, Pooling::kFirst);
  EXPECT_EQ(config->score_count, 1);
  EXPECT_THAT(ErrorOf(read(false, 5)), HasSubstr("expected 0 to 4"));
  config = Read([](GgufWriter*) {}, traits);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->pooling, Pooling::kNone);
}

TEST(ModelConfig, RankersHaveAScoreForEachLabel) {
  ModelTraits traits;
  const auto read = [&](const std::vector<std::string>& labels) {
    return Read(
        [&](GgufWriter* writer) {
          writer->SetUint32("llama.pooling_type", 4);
          writer->SetStrings("llama.classifier.output_labels", labels);
        },
        traits);
  };
  EXPECT_THAT(ErrorOf(read({"yes", "no"})),
              HasSubstr("ranking is not supported"));
  traits.ranks = true;
  auto config = read({"yes", "no"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->score_count, 2);
  EXPECT_EQ(config->labels, (std::vector<std::string>{"yes", "no"}));
  EXPECT_EQ(config->pooling, Pooling::kLast);
  EXPECT_THAT(ErrorOf(read({})), HasSubstr("0 labels"));
}

TEST(ModelConfig, WindowsToBothSidesCountOneSide) {
  ModelTraits traits;
  traits.handled_keys = {"attention.sliding_window"};
  traits.window_to_both_sides = true;
  traits.first_sees_all = true;
  traits.window_period = 2;
  const auto config = Read(
      [](GgufWriter* writer) {
        writer->SetUint32("llama.attention.sliding_window", 11);
      },
      traits);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->sliding_window, 6);
  EXPECT_FALSE(config->Slides(0));
  for (int64_t block = 1; block < config->block_count; ++block) {
    EXPECT_EQ(config->Slides(block), block % 2 == 1);
  }
}

TEST(ModelConfig, LayerNormArchitecturesHaveTheirOwnEpsilon) {
  ModelTraits traits;
  traits.norm = ModelTraits::Norm::kLayer;
  traits.rope = false;
  EXPECT_THAT(ErrorOf(Read([](GgufWriter*) {}, traits)),
              HasSubstr("llama.attention.layer_norm_epsilon is not there"));
  auto config = Read(
      [](GgufWriter* writer) {
        writer->SetFloat32("llama.attention.layer_norm_epsilon", 1e-12f);
        // Not looked at.
        writer->SetUint32("llama.rope.dimension_count", 7);
      },
      traits);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->norm_epsilon, 1e-12f);
  EXPECT_EQ(config->rope_dimension_count, 0);
}

TEST(ModelConfig, VocabularySizeComesFromTokensThenKeyThenEmbedding) {
  const auto size_of = [](const std::function<void(GgufWriter*)>& change) {
    auto config = Read(change);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? config->vocabulary_size : -1;
  };
  EXPECT_EQ(
      size_of([](GgufWriter* w) { w->SetUint32("llama.vocab_size", 99); }), 3);
  EXPECT_EQ(size_of([](GgufWriter* w) {
              w->Remove("tokenizer.ggml.tokens");
              w->SetUint32("llama.vocab_size", 99);
            }),
            99);
  EXPECT_EQ(size_of([](GgufWriter* w) { w->Remove("tokenizer.ggml.tokens"); }),
            3);
  EXPECT_THAT(ErrorOf(Read([](GgufWriter* w) {
                w->SetStrings("tokenizer.ggml.tokens",
                              std::vector<std::string>{});
              })),
              HasSubstr("tokenizer.ggml.tokens is array of 0 string"));
}

TEST(ModelConfig, OddArchitectureNamesAreErrors) {
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("x\n"),
        std::string(65, 'a'), std::string("\xff")}) {
    EXPECT_THAT(ErrorOf(Read([&](GgufWriter* w) {
                  w->SetString("general.architecture", name);
                })),
                HasSubstr("general.architecture is '"));
  }
}

}  // namespace
}  // namespace weft
