// Keys and tensors of rotary positions: see SetRope.
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "loaders/convert/family.h"

namespace weft {
namespace {

constexpr double kPi = 3.14159265358979323846;

absl::Status CheckPositive(const CheckpointConfig& config,
                           absl::string_view key, double value) {
  if (value > 0 && value < 1e12) return absl::OkStatus();
  return config.BadKey(key, "a number above 0");
}

absl::StatusOr<double> Positive(const CheckpointConfig& config,
                                absl::string_view key,
                                std::optional<double> otherwise) {
  WEFT_ASSIGN_OR_RETURN(const std::optional<double> found,
                        config.OptionalNumber(key));
  const std::optional<double> value = found.has_value() ? found : otherwise;
  if (!value.has_value()) return config.BadKey(key, "a number");
  WEFT_RETURN_IF_ERROR(CheckPositive(config, key, *value));
  return *value;
}

// LLaMA 3.1: frequencies below a wave length stay, those beyond another are
// divided by the factor, and between the two they are mixed (transformers,
// modeling_rope_utils.py, "llama3"). In float32, as there.
absl::Status SetLlama3(Conversion& c, double base, int64_t dimensions) {
  const CheckpointConfig& rope = c.config.rope();
  WEFT_ASSIGN_OR_RETURN(const double factor, Positive(rope, "factor", 8.0));
  WEFT_ASSIGN_OR_RETURN(const double low,
                        Positive(rope, "low_freq_factor", 1.0));
  WEFT_ASSIGN_OR_RETURN(const double high,
                        Positive(rope, "high_freq_factor", 4.0));
  WEFT_ASSIGN_OR_RETURN(
      const double original,
      Positive(rope, "original_max_position_embeddings", 8192.0));
  if (!(high > low)) {
    return rope.BadKey("high_freq_factor", "a number above low_freq_factor");
  }
  std::vector<float> factors;
  for (int64_t i = 0; i < dimensions; i += 2) {
    const float frequency =
        1.0f / std::pow(static_cast<float>(base),
                        static_cast<float>(i) / static_cast<float>(dimensions));
    const double wave = 2 * kPi / frequency;
    if (wave < original / high) {
      factors.push_back(1.0f);
    } else if (wave > original / low) {
      factors.push_back(static_cast<float>(factor));
    } else {
      const double smooth = (original / wave - low) / (high - low);
      factors.push_back(
          static_cast<float>(1.0 / ((1.0 - smooth) / factor + smooth)));
    }
  }
  c.AddVector("rope_freqs.weight", std::move(factors));
  return absl::OkStatus();
}

absl::Status SetYarn(Conversion& c, const RopeRules& rules) {
  const CheckpointConfig& rope = c.config.rope();
  WEFT_ASSIGN_OR_RETURN(const double factor,
                        Positive(rope, "factor", std::nullopt));
  WEFT_ASSIGN_OR_RETURN(const int64_t original,
                        rope.GetInt("original_max_position_embeddings"));
  c.writer.SetString(c.Key("rope.scaling.type"), "yarn");
  c.writer.SetFloat32(c.Key("rope.scaling.factor"), static_cast<float>(factor));
  c.writer.SetUint32(c.Key("rope.scaling.original_context_length"),
                     static_cast<uint32_t>(original));
  const std::pair<const char*, const char*> kOptional[] = {
      {"extrapolation_factor", "rope.scaling.yarn_ext_factor"},
      {"beta_fast", "rope.scaling.yarn_beta_fast"},
      {"beta_slow", "rope.scaling.yarn_beta_slow"},
  };
  for (const auto& [key, gguf] : kOptional) {
    WEFT_ASSIGN_OR_RETURN(const std::optional<double> value,
                          rope.OptionalNumber(key));
    if (!value.has_value()) continue;
    c.writer.SetFloat32(c.Key(gguf), static_cast<float>(*value));
  }
  // In place of the paper's size of what is rotated; files have what that is
  // multiplied with.
  constexpr char kSize[] = "attention_factor";
  if (rope.Find(kSize) != nullptr) {
    WEFT_ASSIGN_OR_RETURN(const double size,
                          Positive(rope, kSize, std::nullopt));
    const double usual = factor > 1 ? 1 + 0.1 * std::log(factor) : 1;
    c.writer.SetFloat32(c.Key("rope.scaling.yarn_attn_factor"),
                        static_cast<float>(size / usual));
  }
  if (rules.ignores_truncate) rope.Find("truncate");
  return absl::OkStatus();
}

// Ding et al. 2024, arXiv:2402.13753, as Phi-3 has it.
absl::Status SetLongrope(Conversion& c, int64_t dimensions) {
  const CheckpointConfig& rope = c.config.rope();
  constexpr char kOriginal[] = "original_max_position_embeddings";
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> outer,
                        c.config.OptionalInt(kOriginal));
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> inner,
                        rope.OptionalInt(kOriginal));
  WEFT_ASSIGN_OR_RETURN(const int64_t context,
                        c.config.GetInt("max_position_embeddings"));
  const int64_t original = outer.value_or(inner.value_or(0));
  if (original < 2) {
    return c.config.BadKey(kOriginal, "the context before it was stretched");
  }
  c.writer.SetUint32(c.Key("rope.scaling.original_context_length"),
                     static_cast<uint32_t>(original));
  const double scale =
      static_cast<double>(context) / static_cast<double>(original);
  double magnitude =
      scale > 1 ? std::sqrt(1 + std::log(scale) /
                                    std::log(static_cast<double>(original)))
                : 1.0;
  WEFT_ASSIGN_OR_RETURN(magnitude,
                        Positive(rope, "attention_factor", magnitude));
  c.writer.SetFloat32(c.Key("rope.scaling.attn_factor"),
                      static_cast<float>(magnitude));
  for (const auto& [key, tensor] :
       {std::pair<const char*, const char*>{"long_factor",
                                            "rope_factors_long.weight"},
        {"short_factor", "rope_factors_short.weight"}}) {
    WEFT_ASSIGN_OR_RETURN(const auto numbers, rope.OptionalNumbers(key));
    if (!numbers.has_value() ||
        static_cast<int64_t>(numbers->size()) != dimensions / 2) {
      return rope.BadKey(key, absl::StrCat("a list of ", dimensions / 2,
                                           " numbers, one for each pair"));
    }
    std::vector<float> factors;
    for (double number : *numbers) {
      factors.push_back(static_cast<float>(number));
    }
    c.AddVector(tensor, std::move(factors));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SetRope(Conversion& c, const RopeRules& rules) {
  const CheckpointConfig& rope = c.config.rope();
  WEFT_ASSIGN_OR_RETURN(std::optional<double> base,
                        rope.OptionalNumber("rope_theta"));
  WEFT_ASSIGN_OR_RETURN(const std::optional<double> outer_base,
                        c.config.OptionalNumber("rope_theta"));
  if (!base.has_value()) base = outer_base;
  if (base.has_value()) {
    if (!(*base > 1 && *base < 1e12)) {
      return c.config.BadKey("rope_theta", "a number above 1");
    }
    c.writer.SetFloat32(c.Key("rope.freq_base"), static_cast<float>(*base));
  }
  WEFT_ASSIGN_OR_RETURN(std::optional<double> partial,
                        rope.OptionalNumber("partial_rotary_factor"));
  WEFT_ASSIGN_OR_RETURN(const std::optional<double> outer_partial,
                        c.config.OptionalNumber("partial_rotary_factor"));
  if (!partial.has_value()) partial = outer_partial;
  const double share = partial.value_or(rules.partial);
  if (!(share > 0 && share <= 1)) {
    return c.config.BadKey("partial_rotary_factor", "a number from 0 to 1");
  }
  const int64_t dimensions =
      static_cast<int64_t>(share * static_cast<double>(c.head_length));
  if (rules.writes_dimensions || dimensions != c.head_length) {
    c.writer.SetUint32(c.Key("rope.dimension_count"),
                       static_cast<uint32_t>(dimensions));
  }
  WEFT_ASSIGN_OR_RETURN(std::optional<std::string> type,
                        rope.OptionalString("rope_type"));
  WEFT_ASSIGN_OR_RETURN(const std::optional<std::string> older,
                        rope.OptionalString("type"));
  const char* const type_key = type.has_value() ? "rope_type" : "type";
  if (!type.has_value()) type = older;
  const std::string kind = type.value_or("default");
  if (kind == "default" || kind == "mrope") return absl::OkStatus();
  if (kind == "linear") {
    WEFT_ASSIGN_OR_RETURN(const double factor,
                          Positive(rope, "factor", std::nullopt));
    c.writer.SetString(c.Key("rope.scaling.type"), "linear");
    c.writer.SetFloat32(c.Key("rope.scaling.factor"),
                        static_cast<float>(factor));
    return absl::OkStatus();
  }
  if (kind == "yarn") return SetYarn(c, rules);
  if (kind == "llama3") {
    return SetLlama3(c, base.value_or(10000.0), dimensions);
  }
  if ((kind == "longrope" || kind == "su") && rules.longrope) {
    return SetLongrope(c, dimensions);
  }
  return rope.BadKey(type_key,
                     "default, linear, llama3 or yarn: other kinds of RoPE "
                     "scaling are not supported for this kind of model");
}

}  // namespace weft
