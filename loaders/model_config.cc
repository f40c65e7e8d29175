#include "loaders/model_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "loaders/utf8.h"

namespace weft {
namespace {

constexpr uint64_t kMaxDimension = uint64_t{1} << 24;
constexpr uint64_t kMaxContext = uint64_t{1} << 40;
constexpr uint64_t kMaxWindow = uint64_t{1} << 31;  // no context is as long
constexpr uint64_t kMaxBlocks = uint64_t{1} << 16;
constexpr uint64_t kMaxExperts = 1024;
// A number between these has an inverse that is finite too.
constexpr double kMinPositive = 1e-30;
constexpr double kMaxPositive = 1e30;
// Beyond it, more than the longest context would be one original token.
constexpr double kMaxYarnFactor = 1 << 20;
constexpr char kArchitecture[] = "general.architecture";
constexpr char kTokens[] = "tokenizer.ggml.tokens";

// Keys that change the result, with the values that mean "as if absent".
struct ChangesResult {
  absl::string_view key;
  double neutral;
  double also_neutral;
};
constexpr ChangesResult kChangesResult[] = {
    {"attention.causal", 1, 1},
    {"attention.clamp_kqv", 0, 0},
    {"attention.max_alibi_bias", 0, 0},
    {"attention.scale", 0, 0},
    {"attn_logit_softcapping", 0, 0},
    {"embedding_scale", 0, 1},
    {"expert_count", 0, 0},
    {"expert_gating_func", 0, 1},
    {"expert_group_count", 0, 1},
    {"expert_weights_scale", 0, 1},
    {"final_logit_softcapping", 0, 0},
    {"logit_scale", 0, 1},
    {"residual_scale", 0, 1},
    {"rope.scaling.yarn_log_multiplier", 0, 0},
    {"use_parallel_residual", 0, 0},
};

class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, const ModelTraits& traits,
               std::string architecture)
      : file_(file), traits_(traits) {
    config_.architecture = std::move(architecture);
  }

  absl::StatusOr<ModelConfig> Run() {
    for (auto step : {&ConfigReader::ReadName, &ConfigReader::RefuseUnhandled,
                      &ConfigReader::ReadDimensions, &ConfigReader::ReadHeads,
                      &ConfigReader::ReadContext, &ConfigReader::ReadEpsilon,
                      &ConfigReader::ReadRope, &ConfigReader::ReadExperts,
                      &ConfigReader::ReadEncoder, &ConfigReader::ReadOwnKeys,
                      &ConfigReader::ReadVocabularySize}) {
      const absl::Status status = (this->*step)();
      if (!status.ok()) return status;
    }
    return std::move(config_);
  }

 private:
  std::string Key(absl::string_view name) const {
    return absl::StrCat(config_.architecture, ".", name);
  }

  bool Handles(absl::string_view name) const {
    return std::find(traits_.handled_keys.begin(), traits_.handled_keys.end(),
                     name) != traits_.handled_keys.end() ||
           std::any_of(traits_.keys.begin(), traits_.keys.end(),
                       [&](const ModelKey& key) { return key.name == name; });
  }

  absl::Status ReadName() {
    auto name = file_.OptionalString("general.name");
    if (!name.ok()) return name.status();
    config_.name = name->value_or("");
    if (!IsValidUtf8(config_.name)) {
      return file_.BadValue("general.name", QuoteForMessage(config_.name),
                            "UTF-8 text");
    }
    return absl::OkStatus();
  }

  absl::Status RefuseUnhandled() {
    for (const ChangesResult& row : kChangesResult) {
      const std::string key = Key(row.key);
      const GgufValue* value = file_.FindValue(key);
      if (value == nullptr || Handles(row.key)) continue;
      std::optional<double> number = value->ToDouble();
      if (const auto flag = value->ToBool(); flag.has_value()) number = *flag;
      if (number == row.neutral || number == row.also_neutral) continue;
      if (row.key == "expert_count") {
        return file_.BadValue(key, value->Print(),
                              "0: mixture of experts (MoE) is not supported "
                              "for this architecture");
      }
      return file_.BadValue(key, value->Print(),
                            "no such key: what it asks for is not supported "
                            "for this architecture");
    }
    return absl::OkStatus();
  }

  // An integer from `min` to `max`. With `per_block` the file may also hold an
  // array with one number per block, if all are equal.
  absl::StatusOr<std::optional<int64_t>> OptionalInRange(
      absl::string_view name, uint64_t min, uint64_t max,
      bool per_block = false) const {
    const std::string key = Key(name);
    const std::string range = absl::StrCat(min, " to ", max);
    const GgufValue* value = file_.FindValue(key);
    uint64_t number = 0;
    if (per_block && value != nullptr && value->is_array()) {
      auto elements = file_.GetInts(key);
      if (!elements.ok()) return elements.status();
      if (static_cast<int64_t>(elements->size()) != config_.block_count) {
        return file_.BadValue(key,
                              absl::StrCat("an array of ", elements->size()),
                              absl::StrCat("one number, or one per block (",
                                           config_.block_count, ")"));
      }
      const int64_t first = elements->front();
      for (int64_t element : *elements) {
        if (element != first) {
          return file_.BadValue(
              key, absl::StrCat("an array with ", first, " and ", element),
              "the same number for all blocks: blocks of different sizes are "
              "not supported");
        }
      }
      if (first < 0) return file_.BadValue(key, absl::StrCat(first), range);
      number = static_cast<uint64_t>(first);
    } else {
      auto scalar = file_.OptionalUint(key);
      if (!scalar.ok()) return scalar.status();
      if (!scalar->has_value()) return std::optional<int64_t>();
      number = **scalar;
    }
    if (number < min || number > max) {
      return file_.BadValue(key, absl::StrCat(number), range);
    }
    return std::optional<int64_t>(static_cast<int64_t>(number));
  }

  absl::Status InRange(absl::string_view name, uint64_t min, uint64_t max,
                       bool per_block, int64_t* out) const {
    auto value = OptionalInRange(name, min, max, per_block);
    if (!value.ok()) return value.status();
    if (!value->has_value()) {
      return file_.MissingKey(Key(name), absl::StrCat(min, " to ", max));
    }
    *out = **value;
    return absl::OkStatus();
  }

  absl::Status ReadDimensions() {
    absl::Status status = InRange("embedding_length", 1, kMaxDimension, false,
                                  &config_.embedding_length);
    if (!status.ok()) return status;
    // Every block has tensors, so this bounds loops over blocks by the file.
    uint64_t max_blocks = kMaxBlocks;
    if (!file_.tensors().empty()) {
      max_blocks = std::min<uint64_t>(max_blocks, file_.tensors().size());
    }
    status = InRange("block_count", 1, max_blocks, false, &config_.block_count);
    if (!status.ok()) return status;
    return InRange("feed_forward_length", 1, kMaxDimension, true,
                   &config_.feed_forward_length);
  }

  absl::Status ReadHeads() {
    constexpr char kHeads[] = "attention.head_count";
    constexpr char kHeadsKv[] = "attention.head_count_kv";
    absl::Status status =
        InRange(kHeads, 1, kMaxDimension, true, &config_.head_count);
    if (!status.ok()) return status;

    auto kv = OptionalInRange(kHeadsKv, 1, config_.head_count, true);
    if (!kv.ok()) return kv.status();
    config_.head_count_kv = kv->value_or(config_.head_count);
    if (config_.head_count % config_.head_count_kv != 0) {
      return file_.BadValue(Key(kHeadsKv), absl::StrCat(config_.head_count_kv),
                            absl::StrCat("a divisor of ", Key(kHeads), " (",
                                         config_.head_count, ")"));
    }
    status = HeadLength("attention.key_length", &config_.key_length);
    if (!status.ok()) return status;
    return HeadLength("attention.value_length", &config_.value_length);
  }

  absl::Status HeadLength(absl::string_view name, int64_t* out) const {
    auto length = OptionalInRange(name, 1, kMaxDimension);
    if (!length.ok()) return length.status();
    if (length->has_value()) {
      *out = **length;
      return absl::OkStatus();
    }
    if (config_.embedding_length % config_.head_count != 0) {
      return file_.BadValue(
          Key("attention.head_count"), absl::StrCat(config_.head_count),
          absl::StrCat("a divisor of ", Key("embedding_length"), " (",
                       config_.embedding_length, "), or a key ", Key(name)));
    }
    *out = config_.embedding_length / config_.head_count;
    return absl::OkStatus();
  }

  absl::Status ReadContext() {
    constexpr char kWindow[] = "attention.sliding_window";
    const absl::Status status = InRange("context_length", 1, kMaxContext, false,
                                        &config_.trained_context_length);
    if (!status.ok()) return status;
    config_.context_length = config_.trained_context_length;
    // Converters write 0 for "none", or what no text reaches.
    auto window = file_.OptionalUint(Key(kWindow));
    if (!window.ok()) return window.status();
    const uint64_t tokens = window->value_or(0);
    if (tokens < kMaxWindow &&
        tokens < static_cast<uint64_t>(config_.trained_context_length)) {
      config_.sliding_window = static_cast<int64_t>(tokens);
    }
    if (config_.sliding_window > 0 && !Handles(kWindow)) {
      config_.context_length =
          std::min(config_.context_length, config_.sliding_window);
    }
    return absl::OkStatus();
  }

  absl::Status ReadEpsilon() {
    const std::string key = Key(traits_.norm == ModelTraits::Norm::kRms
                                    ? "attention.layer_norm_rms_epsilon"
                                    : "attention.layer_norm_epsilon");
    auto epsilon = file_.GetFloat(key);
    if (!epsilon.ok()) return epsilon.status();
    // As float, so that what underflows to 0 is refused too.
    config_.norm_epsilon = std::abs(*epsilon) <= 1
                               ? static_cast<float>(*epsilon)
                               : std::numeric_limits<float>::quiet_NaN();
    if (!(config_.norm_epsilon > 0)) {
      return file_.BadValue(key, absl::StrCat(*epsilon),
                            "a number above 0 and at most 1");
    }
    return absl::OkStatus();
  }

  absl::Status ReadRope() {
    if (!traits_.rope) return absl::OkStatus();
    constexpr char kDimensions[] = "rope.dimension_count";
    auto dimensions = OptionalInRange(kDimensions, 2, config_.key_length);
    if (!dimensions.ok()) return dimensions.status();
    config_.rope_dimension_count = dimensions->value_or(config_.key_length);
    if (config_.rope_dimension_count % 2 != 0) {
      return file_.BadValue(
          Key(dimensions->has_value() ? kDimensions : "attention.key_length"),
          absl::StrCat(config_.rope_dimension_count),
          "an even number, since RoPE turns pairs");
    }
    constexpr char kBase[] = "rope.freq_base";
    auto base = OptionalPositive(kBase, /*zero_is_absent=*/false);
    if (!base.ok()) return base.status();
    config_.rope_freq_base = base->value_or(config_.rope_freq_base);
    // Up to 1, later pairs would turn no slower than the first.
    if (!(config_.rope_freq_base > 1)) {
      return file_.BadValue(Key(kBase), absl::StrCat(config_.rope_freq_base),
                            "a number above 1");
    }
    return ReadRopeScaling();
  }

  absl::Status ReadRopeScaling() {
    const std::string type_key = Key("rope.scaling.type");
    auto type = file_.OptionalString(type_key);
    if (!type.ok()) return type.status();
    // A factor without a type is linear, as files of 2023 have it. Longrope
    // has its factors in tensors.
    const std::string name = type->value_or("linear");
    if (name != "linear" && name != "none" && name != "yarn" &&
        name != "longrope") {
      return file_.BadValue(type_key, QuoteForMessage(name),
                            "'linear', 'yarn', 'longrope' or 'none': other "
                            "kinds of RoPE scaling are not supported");
    }
    config_.longrope = name == "longrope";
    if (config_.longrope && !traits_.longrope) {
      return file_.BadValue(type_key, QuoteForMessage(name),
                            "'linear', 'yarn' or 'none': this architecture "
                            "has no place for the factors of longrope");
    }
    for (absl::string_view factor_name :
         {"rope.scaling.factor", "rope.scale_linear"}) {
      auto factor = OptionalPositive(factor_name, /*zero_is_absent=*/true);
      if (!factor.ok()) return factor.status();
      if (!factor->has_value()) continue;
      if (name == "yarn" && !(**factor >= 1 && **factor <= kMaxYarnFactor)) {
        return file_.BadValue(
            Key(factor_name), absl::StrCat(**factor),
            absl::StrCat("a number from 1 to ", kMaxYarnFactor));
      }
      if (name == "linear" || name == "yarn") {
        config_.rope_position_scale = 1.0f / **factor;
      }
      break;
    }
    auto original =
        OptionalInRange("rope.scaling.original_context_length", 0, kMaxContext);
    if (!original.ok()) return original.status();
    config_.original_context_length = original->value_or(0);
    for (absl::string_view magnitude_name :
         {"rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor"}) {
      auto magnitude =
          OptionalPositive(magnitude_name, /*zero_is_absent=*/true);
      if (!magnitude.ok()) return magnitude.status();
      config_.rope_magnitude *= magnitude->value_or(1.0f);
      // Each is in range, their product need not be.
      if (!(config_.rope_magnitude >= kMinPositive &&
            config_.rope_magnitude <= kMaxPositive)) {
        return file_.BadValue(Key(magnitude_name),
                              absl::StrCat(magnitude->value_or(1.0f)),
                              absl::StrCat("a number nearer to 1: with ",
                                           Key("rope.scaling.attn_factor"),
                                           " it is out of range"));
      }
    }
    const absl::Status status = RefuseExtrapolation(name == "yarn");
    if (!status.ok()) return status;
    return name == "yarn" ? SetYarn() : absl::OkStatus();
  }

  // How much of the ramp there is: all of it with YaRN, nothing without, and
  // below 0 for that default.
  absl::Status RefuseExtrapolation(bool yarn) const {
    const std::string key = Key("rope.scaling.yarn_ext_factor");
    auto mix = file_.OptionalFloat(key);
    if (!mix.ok()) return mix.status();
    const double usual = yarn ? 1 : 0;
    if (!mix->has_value() || **mix < 0 || **mix == usual) {
      return absl::OkStatus();
    }
    return file_.BadValue(key, absl::StrCat(**mix),
                          absl::StrCat(usual, ": others are not supported"));
  }

  // The ramp between `fast` turns and `slow` within the original context, and
  // the paper's fit for the size of what is rotated.
  absl::Status SetYarn() {
    constexpr double kTurn = 2 * 3.14159265358979323846;
    constexpr char kFast[] = "rope.scaling.yarn_beta_fast";
    constexpr char kSlow[] = "rope.scaling.yarn_beta_slow";
    auto fast = OptionalPositive(kFast, /*zero_is_absent=*/false);
    if (!fast.ok()) return fast.status();
    auto slow = OptionalPositive(kSlow, /*zero_is_absent=*/false);
    if (!slow.ok()) return slow.status();
    const double fast_turns = fast->value_or(32.0f);
    const double slow_turns = slow->value_or(1.0f);
    if (slow_turns > fast_turns) {
      return file_.BadValue(
          Key(slow->has_value() ? kSlow : kFast),
          absl::StrCat(slow->has_value() ? slow_turns : fast_turns),
          absl::StrCat(Key(kSlow), " (", slow_turns, ") to be at most ",
                       Key(kFast), " (", fast_turns, ")"));
    }
    if (config_.original_context_length == 0) {
      config_.original_context_length = config_.trained_context_length;
    }
    const double dims = static_cast<double>(config_.rope_dimension_count);
    const auto pair_that_turns = [&](double times) {
      const double original =
          static_cast<double>(config_.original_context_length);
      return dims * std::log(original / (times * kTurn)) /
             (2 * std::log(static_cast<double>(config_.rope_freq_base)));
    };
    config_.rope_ramp.begin =
        std::max(0.0, std::floor(pair_that_turns(fast_turns)));
    config_.rope_ramp.end =
        std::max(config_.rope_ramp.begin + 0.001,
                 std::min(dims - 1, std::ceil(pair_that_turns(slow_turns))));
    config_.rope_magnitude *= static_cast<float>(
        1 - 0.1 * std::log(static_cast<double>(config_.rope_position_scale)));
    return absl::OkStatus();
  }

  // A number above 0 whose inverse is finite too.
  absl::StatusOr<std::optional<float>> OptionalPositive(
      absl::string_view name, bool zero_is_absent) const {
    const std::string key = Key(name);
    auto value = file_.OptionalFloat(key);
    if (!value.ok()) return value.status();
    if (!value->has_value() || (zero_is_absent && **value == 0)) {
      return std::optional<float>();
    }
    if (!(**value >= kMinPositive && **value <= kMaxPositive)) {
      return file_.BadValue(key, absl::StrCat(**value),
                            "a number above 0, not infinite");
    }
    return std::optional<float>(static_cast<float>(**value));
  }

  absl::Status ReadExperts() {
    auto count = OptionalInRange("expert_count", 0, kMaxExperts);
    if (!count.ok()) return count.status();
    config_.expert_count = count->value_or(0);
    if (config_.expert_count == 0) return absl::OkStatus();
    absl::Status status = InRange("expert_used_count", 1, config_.expert_count,
                                  false, &config_.expert_used_count);
    if (!status.ok()) return status;
    auto own = OptionalInRange("expert_feed_forward_length", 1, kMaxDimension);
    if (!own.ok()) return own.status();
    config_.expert_feed_forward_length =
        own->value_or(config_.feed_forward_length);
    auto shared =
        OptionalInRange("expert_shared_feed_forward_length", 0, kMaxDimension);
    if (!shared.ok()) return shared.status();
    config_.shared_feed_forward_length = shared->value_or(0);
    const std::string key = Key("expert_weights_norm");
    if (const GgufValue* value = file_.FindValue(key)) {
      config_.expert_weights_norm = value->ToBool();
      if (!config_.expert_weights_norm.has_value()) {
        return file_.BadValue(key, value->Print(), "true or false");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadEncoder() {
    config_.encoder = traits_.encoder;
    const std::string causal_key = Key("attention.causal");
    auto causal = file_.OptionalBool(causal_key);
    if (!causal.ok()) return causal.status();
    if (causal->value_or(!config_.encoder) == config_.encoder) {
      return file_.BadValue(causal_key, config_.encoder ? "true" : "false",
                            config_.encoder ? "false" : "true");
    }
    constexpr char kPooling[] = "pooling_type";
    auto pooling = OptionalInRange(kPooling, 0, 4);
    if (!pooling.ok()) return pooling.status();
    const int64_t kind = pooling->value_or(0);
    if (kind > static_cast<int64_t>(Pooling::kLast)) {
      return file_.BadValue(Key(kPooling), absl::StrCat(kind),
                            "0 (none), 1 (mean), 2 (first) or 3 (last): "
                            "ranking is not supported");
    }
    config_.pooling = static_cast<Pooling>(kind);
    auto types = file_.OptionalUint("tokenizer.ggml.token_type_count");
    if (!types.ok()) return types.status();
    config_.token_type_count =
        static_cast<int64_t>(std::min(types->value_or(0), kMaxDimension));
    return absl::OkStatus();
  }

  absl::Status ReadOwnKeys() {
    for (const ModelKey& own : traits_.keys) {
      const std::string key = Key(own.name);
      double number = own.otherwise;
      if (const GgufValue* value = file_.FindValue(key)) {
        std::optional<double> read = value->ToDouble();
        if (const auto flag = value->ToBool(); flag.has_value()) read = *flag;
        if (!read.has_value() || !(*read >= own.least && *read <= own.most)) {
          return file_.BadValue(
              key, value->Print(),
              absl::StrCat("a number from ", own.least, " to ", own.most));
        }
        number = *read;
      }
      config_.numbers.emplace(own.name, number);
    }
    return absl::OkStatus();
  }

  absl::Status ReadVocabularySize() {
    const GgufValue* tokens = file_.FindValue(kTokens);
    if (tokens != nullptr) {
      if (!tokens->is_array() || tokens->count() < 1 ||
          tokens->count() > kMaxDimension) {
        return file_.BadValue(
            kTokens, tokens->TypeText(),
            absl::StrCat("an array of 1 to ", kMaxDimension, " strings"));
      }
      config_.vocabulary_size = static_cast<int64_t>(tokens->count());
      return absl::OkStatus();
    }
    auto size = OptionalInRange("vocab_size", 1, kMaxDimension);
    if (!size.ok()) return size.status();
    const GgufTensor* embedding = file_.FindTensor("token_embd.weight");
    if (size->has_value()) {
      config_.vocabulary_size = **size;
    } else if (embedding != nullptr && embedding->dims.size() == 2) {
      config_.vocabulary_size = embedding->dims[1];
    } else {
      return file_.MissingKey(kTokens, "the vocabulary");
    }
    return absl::OkStatus();
  }

  const GgufFile& file_;
  const ModelTraits& traits_;
  ModelConfig config_;
};

}  // namespace

absl::StatusOr<std::string> ReadArchitecture(const GgufFile& file) {
  auto architecture = file.GetString(kArchitecture);
  if (!architecture.ok()) return architecture.status();
  // It is the prefix of all further keys and stands in messages.
  constexpr size_t kMaxLength = 64;
  const bool plain = std::all_of(
      architecture->begin(), architecture->end(), [](unsigned char c) {
        return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
      });
  if (architecture->empty() || architecture->size() > kMaxLength || !plain) {
    return file.BadValue(kArchitecture, QuoteForMessage(*architecture),
                         "a name of up to 64 letters, digits and dashes");
  }
  return architecture;
}

absl::StatusOr<ModelConfig> ReadModelConfig(const GgufFile& file,
                                            const ModelTraits& traits) {
  auto architecture = ReadArchitecture(file);
  if (!architecture.ok()) return architecture.status();
  return ConfigReader(file, traits, *std::move(architecture)).Run();
}

}  // namespace weft
