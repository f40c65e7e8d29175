#include "loaders/rope_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "loaders/utf8.h"

namespace weft {
namespace {

// Beyond it, more than the longest context would be one original token.
constexpr double kMaxYarnFactor = 1 << 20;

class RopeReader {
 public:
  RopeReader(const GgufFile& file, const ModelTraits& traits,
             const ConfigKeys& keys, ModelConfig* config)
      : file_(file), traits_(traits), keys_(keys), config_(*config) {}

  absl::Status Run() {
    if (!traits_.rope) return absl::OkStatus();
    constexpr char kDimensions[] = "rope.dimension_count";
    auto dimensions = keys_.OptionalInRange(kDimensions, 2, config_.key_length);
    if (!dimensions.ok()) return dimensions.status();
    if (traits_.rotates_part && !dimensions->has_value()) {
      return file_.MissingKey(keys_.Key(kDimensions),
                              "how many elements of a head turn");
    }
    config_.rope_dimension_count = dimensions->value_or(config_.key_length);
    if (config_.rope_dimension_count % 2 != 0) {
      return file_.BadValue(
          keys_.Key(dimensions->has_value() ? kDimensions
                                            : "attention.key_length"),
          absl::StrCat(config_.rope_dimension_count),
          "an even number, since RoPE turns pairs");
    }
    constexpr char kBase[] = "rope.freq_base";
    auto base = keys_.OptionalPositive(kBase, /*zero_is_absent=*/false);
    if (!base.ok()) return base.status();
    config_.rope_freq_base =
        base->value_or(static_cast<float>(traits_.default_freq_base));
    // Up to 1, later pairs would turn no slower than the first.
    if (!(config_.rope_freq_base > 1)) {
      return file_.BadValue(keys_.Key(kBase),
                            absl::StrCat(config_.rope_freq_base),
                            "a number above 1");
    }
    WEFT_RETURN_IF_ERROR(CheckRopeSections());
    WEFT_RETURN_IF_ERROR(ReadRopeSections());
    return ReadRopeScaling();
  }

 private:
  // Of rotation by three coordinates, which are the same in a text: pair i
  // turns by the one that i % 3 says, as far as that one's section goes
  // (transformers, Qwen3-VL's interleaved M-RoPE). Where a pair is in no
  // section it would not turn.
  absl::Status CheckRopeSections() const {
    constexpr char kSections[] = "rope.dimension_sections";
    if (!keys_.Handles(kSections)) return absl::OkStatus();
    const std::string key = keys_.Key(kSections);
    const GgufValue* value = file_.FindValue(key);
    if (value == nullptr) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> sections, file_.GetInts(key));
    int64_t total = 0;
    bool good = sections.size() >= 3 && sections.size() <= 4;
    for (int64_t section : sections) {
      good = good && section >= 0 &&
             section <= static_cast<int64_t>(kMaxDimension);
      total += good ? section : 0;
    }
    good = good && total > 0;
    for (int64_t pair = 0; good && pair < config_.rope_dimension_count / 2;
         ++pair) {
      const int64_t i = pair % total;
      good = i < 3 * sections[i % 3];
    }
    if (good) return absl::OkStatus();
    return file_.BadValue(key, value->Print(),
                          "sections that all pairs belong to: others are not "
                          "supported");
  }

  absl::Status ReadRopeSections() {
    const std::string key = keys_.Key("rope.dimension_sections");
    if (file_.FindValue(key) == nullptr) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> sections,
                          file_.GetInts(key));
    config_.rope_sections =
        std::any_of(sections.begin(), sections.end(),
                    [](int64_t pairs) { return pairs > 0; });
    return absl::OkStatus();
  }

  absl::Status ReadRopeScaling() {
    const std::string type_key = keys_.Key("rope.scaling.type");
    config_.says_rope_scaling =
        file_.FindValue(type_key) != nullptr ||
        file_.FindValue(keys_.Key("rope.scaling.factor")) != nullptr ||
        file_.FindValue(keys_.Key("rope.scale_linear")) != nullptr;
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
      auto factor =
          keys_.OptionalPositive(factor_name, /*zero_is_absent=*/true);
      if (!factor.ok()) return factor.status();
      if (!factor->has_value()) continue;
      if (name == "yarn" && !(**factor >= 1 && **factor <= kMaxYarnFactor)) {
        return file_.BadValue(
            keys_.Key(factor_name), absl::StrCat(**factor),
            absl::StrCat("a number from 1 to ", kMaxYarnFactor));
      }
      if (name == "linear" || name == "yarn") {
        config_.rope_position_scale = 1.0f / **factor;
      }
      break;
    }
    auto original = keys_.OptionalInRange(
        "rope.scaling.original_context_length", 0, kMaxContext);
    if (!original.ok()) return original.status();
    config_.original_context_length = original->value_or(0);
    for (absl::string_view magnitude_name :
         {"rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor"}) {
      auto magnitude =
          keys_.OptionalPositive(magnitude_name, /*zero_is_absent=*/true);
      if (!magnitude.ok()) return magnitude.status();
      config_.rope_magnitude *= magnitude->value_or(1.0f);
      // Each is in range, their product need not be.
      if (!(config_.rope_magnitude >= kMinPositive &&
            config_.rope_magnitude <= kMaxPositive)) {
        return file_.BadValue(
            keys_.Key(magnitude_name), absl::StrCat(magnitude->value_or(1.0f)),
            absl::StrCat("a number nearer to 1: with ",
                         keys_.Key("rope.scaling.attn_factor"),
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
    const std::string key = keys_.Key("rope.scaling.yarn_ext_factor");
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
    auto fast = keys_.OptionalPositive(kFast, /*zero_is_absent=*/false);
    if (!fast.ok()) return fast.status();
    auto slow = keys_.OptionalPositive(kSlow, /*zero_is_absent=*/false);
    if (!slow.ok()) return slow.status();
    const double fast_turns = fast->value_or(32.0f);
    const double slow_turns = slow->value_or(1.0f);
    if (slow_turns > fast_turns) {
      return file_.BadValue(
          keys_.Key(slow->has_value() ? kSlow : kFast),
          absl::StrCat(slow->has_value() ? slow_turns : fast_turns),
          absl::StrCat(keys_.Key(kSlow), " (", slow_turns, ") to be at most ",
                       keys_.Key(kFast), " (", fast_turns, ")"));
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
    // Files that give a multiplier had their scores scaled by it in training:
    // what is left of the fit is a ratio (DeepSeek-V2, arXiv:2405.04434, and
    // transformers' mscale over mscale_all_dim, the first of which is 1).
    constexpr char kMultiplier[] = "rope.scaling.yarn_log_multiplier";
    WEFT_ASSIGN_OR_RETURN(std::optional<float> multiplier,
                          keys_.OptionalPositive(kMultiplier, true));
    const double log_factor =
        -std::log(static_cast<double>(config_.rope_position_scale));
    if (traits_.yarn_scales_scores) {
      const double size = 1 + multiplier.value_or(0) * log_factor;
      config_.rope_score_factor = size * size;
      if (config_.rope_score_factor <= kMaxPositive) return absl::OkStatus();
      return file_.BadValue(keys_.Key(kMultiplier), absl::StrCat(*multiplier),
                            "a number nearer to 1");
    }
    config_.rope_magnitude *=
        static_cast<float>((1 + 0.1 * log_factor) /
                           (1 + 0.1 * multiplier.value_or(0) * log_factor));
    if (!(config_.rope_magnitude >= kMinPositive)) {
      return file_.BadValue(keys_.Key(kMultiplier), absl::StrCat(*multiplier),
                            "a number nearer to 1");
    }
    return absl::OkStatus();
  }

  const GgufFile& file_;
  const ModelTraits& traits_;
  const ConfigKeys& keys_;
  ModelConfig& config_;
};

}  // namespace

absl::Status ReadRope(const GgufFile& file, const ModelTraits& traits,
                      const ConfigKeys& keys, ModelConfig* config) {
  return RopeReader(file, traits, keys, config).Run();
}

}  // namespace weft
