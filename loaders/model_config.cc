#include "loaders/model_config.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "loaders/config_keys.h"
#include "loaders/rope_config.h"
#include "loaders/utf8.h"
#include "loaders/window_config.h"

namespace weft {
namespace {

constexpr uint64_t kMaxBlocks = uint64_t{1} << 16;
constexpr uint64_t kMaxExperts = 1024;
constexpr uint64_t kMaxLabels = 1 << 16;
constexpr char kArchitecture[] = "general.architecture";
constexpr char kTokens[] = "tokenizer.ggml.tokens";

// Keys that change the result, with the values that mean "as if absent".
struct ChangesResult {
  absl::string_view key;
  double neutral;
  double also_neutral;
};
constexpr ChangesResult kChangesResult[] = {
    {"attention.causal", 1, 1},          {"attention.clamp_kqv", 0, 0},
    {"attention.max_alibi_bias", 0, 0},  {"attention.kv_lora_rank", 0, 0},
    {"attention.output_scale", 0, 1},    {"attention.q_lora_rank", 0, 0},
    {"attention.scale", 0, 0},           {"attention.temperature_scale", 0, 0},
    {"attention.value_scale", 0, 1},     {"attn_logit_softcapping", 0, 0},
    {"embedding_scale", 0, 1},           {"expert_count", 0, 0},
    {"expert_gating_func", 0, 1},        {"expert_group_count", 0, 1},
    {"expert_weights_scale", 0, 1},      {"final_logit_softcapping", 0, 0},
    {"full_attention_interval", 0, 1},   {"interleave_moe_layer_step", 0, 0},
    {"leading_dense_block_count", 0, 0}, {"logit_scale", 0, 1},
    {"moe_every_n_layers", 0, 1},        {kNextTokenBlocks, 0, 0},
    {"no_rope_layer_interval", 0, 0},    {"residual_scale", 0, 1},
    {"swiglu_clamp_exp", 0, 0},
};

// Keys that change nothing where the reader does not ask for them: they repeat
// what tensors say, or belong to what the model does not have.
constexpr absl::string_view kChangesNothing[] = {
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window_pattern",  // the window bounds the context
    "expert_feed_forward_length",
    "expert_shared_count",
    "expert_shared_feed_forward_length",
    "expert_used_count",
    "expert_weights_norm",
    "n_deepstack_layers",  // pictures are added to so many blocks
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.finetuned",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_log_multiplier",
    "tensor_data_layout",
    "use_parallel_residual",  // the norms of a block say it
    "vocab_size",
};

// What begins the names of keys about parts that texts do not pass through.
constexpr absl::string_view kOtherParts[] = {"vision.", "mm.", "audio.",
                                             "clip."};

class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, const ModelTraits& traits,
               std::string architecture)
      : file_(file), traits_(traits), keys_(file, traits, architecture) {
    config_.architecture = std::move(architecture);
  }

  absl::StatusOr<ModelConfig> Run() {
    WEFT_RETURN_IF_ERROR(keys_.CheckOtherNames());
    for (auto step :
         {&ConfigReader::ReadName, &ConfigReader::ReadSuggestedSampling,
          &ConfigReader::RefuseUnhandled, &ConfigReader::ReadDimensions,
          &ConfigReader::ReadHeads, &ConfigReader::ReadRecurrentBlocks,
          &ConfigReader::ReadContext, &ConfigReader::ReadEpsilon,
          &ConfigReader::ReadRope, &ConfigReader::ReadExperts,
          &ConfigReader::ReadEncoder, &ConfigReader::ReadOwnKeys,
          &ConfigReader::ReadVocabularySize, &ConfigReader::ReadNextTokenBlocks,
          &ConfigReader::WarnOfUnread}) {
      const absl::Status status = (this->*step)();
      if (!status.ok()) return status;
    }
    return std::move(config_);
  }

 private:
  absl::Status ReadSuggestedSampling() {
    for (const GgufKeyValue& entry : file_.metadata()) {
      absl::string_view name = entry.key;
      if (!absl::ConsumePrefix(&name, "general.sampling.")) continue;
      const std::optional<double> number = entry.value.ToDouble();
      if (number.has_value() && !std::isfinite(*number)) {
        return file_.BadValue(entry.key, entry.value.Print(), "a number");
      }
      // The order of samplers is a text; weft has its own.
      if (number.has_value()) {
        config_.suggested_sampling.emplace(std::string(name), *number);
      }
    }
    return absl::OkStatus();
  }

  absl::Status WarnOfUnread() {
    for (absl::string_view name : kChangesNothing) keys_.Key(name);
    constexpr size_t kMostNamed = 8;
    std::vector<std::string> unread;
    size_t more = 0;
    bool other_part = false;
    for (const GgufKeyValue& entry : file_.metadata()) {
      absl::string_view name = entry.key;
      if (!absl::ConsumePrefix(&name, config_.architecture) ||
          !absl::ConsumePrefix(&name, ".") || keys_.WasRead(entry.key)) {
        continue;
      }
      if (std::any_of(std::begin(kOtherParts), std::end(kOtherParts),
                      [&](absl::string_view part) {
                        return absl::StartsWith(name, part);
                      })) {
        other_part = true;
        continue;
      }
      if (unread.size() == kMostNamed) {
        ++more;
      } else {
        unread.push_back(QuoteForMessage(entry.key));
      }
    }
    if (other_part) {
      config_.warnings.push_back(
          absl::StrCat("only texts are understood: ", file_.path(),
                       ": its part for pictures or sound is left out"));
    }
    if (unread.empty()) return absl::OkStatus();
    config_.warnings.push_back(absl::StrCat(
        "keys that weft does not know: ", file_.path(), ": ",
        absl::StrJoin(unread, ", "),
        more > 0 ? absl::StrCat(" and ", more, " more") : "",
        ": if they change what the model computes, its answers are not those "
        "of the model"));
    return absl::OkStatus();
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
      const std::string key = keys_.Key(row.key);
      const GgufValue* value = file_.FindValue(key);
      if (value == nullptr || keys_.Handles(row.key)) continue;
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

  // The same of each block: the file has one number for all, or an array of
  // one per block. `otherwise` where it has neither; 0: it must.
  absl::Status PerBlockInRange(absl::string_view name, uint64_t min,
                               uint64_t max, int64_t otherwise,
                               int64_t ModelConfig::PerBlock::*field,
                               int64_t* largest) {
    const std::string key = keys_.Key(name);
    const GgufValue* value = file_.FindValue(key);
    if (value == nullptr || !value->is_array()) {
      WEFT_ASSIGN_OR_RETURN(std::optional<int64_t> read,
                            keys_.OptionalInRange(name, min, max));
      if (!read.has_value() && otherwise == 0) {
        return file_.MissingKey(key, absl::StrCat(min, " to ", max));
      }
      const int64_t number = read.value_or(otherwise);
      for (ModelConfig::PerBlock& block : config_.blocks) block.*field = number;
      *largest = number;
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> numbers, file_.GetInts(key));
    WEFT_RETURN_IF_ERROR(
        keys_.CheckOnePerBlock(key, numbers.size(), config_.block_count));
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] < static_cast<int64_t>(min) ||
          numbers[i] > static_cast<int64_t>(max)) {
        return file_.BadValue(key, absl::StrCat(numbers[i], " for block ", i),
                              absl::StrCat(min, " to ", max));
      }
      config_.blocks[i].*field = numbers[i];
    }
    *largest = *std::max_element(numbers.begin(), numbers.end());
    return absl::OkStatus();
  }

  absl::Status ReadDimensions() {
    WEFT_RETURN_IF_ERROR(keys_.InRange("embedding_length", 1, kMaxDimension,
                                       &config_.embedding_length));
    // Every block has tensors, so this bounds loops over blocks by the file.
    uint64_t max_blocks = kMaxBlocks;
    if (!file_.tensors().empty()) {
      max_blocks = std::min<uint64_t>(max_blocks, file_.tensors().size());
    }
    WEFT_RETURN_IF_ERROR(
        keys_.InRange("block_count", 1, max_blocks, &config_.block_count));
    config_.blocks.resize(config_.block_count);
    const uint64_t least = traits_.blocks_without_feed_forward ? 0 : 1;
    return PerBlockInRange("feed_forward_length", least, kMaxDimension, 0,
                           &ModelConfig::PerBlock::feed_forward_length,
                           &config_.feed_forward_length);
  }

  absl::Status ReadHeads() {
    constexpr char kHeads[] = "attention.head_count";
    constexpr char kHeadsKv[] = "attention.head_count_kv";
    const uint64_t least = traits_.blocks_without_attention ? 0 : 1;
    WEFT_RETURN_IF_ERROR(PerBlockInRange(kHeads, least, kMaxDimension, 0,
                                         &ModelConfig::PerBlock::head_count,
                                         &config_.head_count));
    if (file_.FindValue(keys_.Key(kHeadsKv)) == nullptr) {
      for (auto& block : config_.blocks) block.head_count_kv = block.head_count;
      config_.head_count_kv = config_.head_count;
    } else {
      WEFT_RETURN_IF_ERROR(PerBlockInRange(
          kHeadsKv, least, config_.head_count, config_.head_count,
          &ModelConfig::PerBlock::head_count_kv, &config_.head_count_kv));
    }
    for (const ModelConfig::PerBlock& block : config_.blocks) {
      if (block.head_count_kv == 0 ||
          block.head_count % block.head_count_kv == 0) {
        continue;
      }
      return file_.BadValue(keys_.Key(kHeadsKv),
                            absl::StrCat(block.head_count_kv),
                            absl::StrCat("a divisor of ", keys_.Key(kHeads),
                                         " (", block.head_count, ")"));
    }
    WEFT_RETURN_IF_ERROR(
        HeadLength("attention.key_length", &config_.key_length));
    WEFT_RETURN_IF_ERROR(
        HeadLength("attention.value_length", &config_.value_length));
    for (ModelConfig::PerBlock& block : config_.blocks) {
      block.key_length = config_.key_length;
      block.value_length = config_.value_length;
    }
    return absl::OkStatus();
  }

  absl::Status HeadLength(absl::string_view name, int64_t* out) const {
    auto length = keys_.OptionalInRange(name, 1, kMaxDimension);
    if (!length.ok()) return length.status();
    if (length->has_value()) {
      *out = **length;
      return absl::OkStatus();
    }
    // No block has attention.
    if (config_.head_count == 0) return absl::OkStatus();
    if (config_.embedding_length % config_.head_count != 0) {
      return file_.BadValue(
          keys_.Key("attention.head_count"), absl::StrCat(config_.head_count),
          absl::StrCat("a divisor of ", keys_.Key("embedding_length"), " (",
                       config_.embedding_length, "), or a key ",
                       keys_.Key(name)));
    }
    *out = config_.embedding_length / config_.head_count;
    return absl::OkStatus();
  }

  absl::Status ReadRecurrentBlocks() {
    if (!traits_.blocks_without_attention) return absl::OkStatus();
    const std::string key = keys_.Key("attention.recurrent_layers");
    const GgufValue* value = file_.FindValue(key);
    if (value == nullptr) return absl::OkStatus();
    if (!value->is_array()) {
      return file_.BadValue(key, value->Print(), "an array, one per block");
    }
    config_.recurrent_blocks.resize(config_.block_count);
    return keys_.ReadFlags(key, *value, &config_.recurrent_blocks);
  }

  absl::Status ReadContext() {
    return ReadContextAndWindows(file_, traits_, keys_, &config_);
  }

  absl::Status ReadRope() {
    return weft::ReadRope(file_, traits_, keys_, &config_);
  }

  absl::Status ReadEpsilon() {
    const std::string key = keys_.Key(traits_.norm == ModelTraits::Norm::kRms
                                          ? "attention.layer_norm_rms_epsilon"
                                          : "attention.layer_norm_epsilon");
    double epsilon = traits_.default_epsilon;
    if (epsilon == 0 || file_.FindValue(key) != nullptr) {
      WEFT_ASSIGN_OR_RETURN(epsilon, file_.GetFloat(key));
    }
    // As float, so that what underflows to 0 is refused too.
    config_.norm_epsilon = std::abs(epsilon) <= 1
                               ? static_cast<float>(epsilon)
                               : std::numeric_limits<float>::quiet_NaN();
    if (!(config_.norm_epsilon > 0)) {
      return file_.BadValue(key, absl::StrCat(epsilon),
                            "a number above 0 and at most 1");
    }
    return absl::OkStatus();
  }

  absl::Status ReadExperts() {
    auto count = keys_.OptionalInRange("expert_count", 0, kMaxExperts);
    if (!count.ok()) return count.status();
    config_.expert_count = count->value_or(0);
    if (config_.expert_count == 0) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(keys_.InRange("expert_used_count", 1,
                                       config_.expert_count,
                                       &config_.expert_used_count));
    auto own =
        keys_.OptionalInRange("expert_feed_forward_length", 1, kMaxDimension);
    if (!own.ok()) return own.status();
    config_.expert_feed_forward_length =
        own->value_or(traits_.experts_share_length
                          ? std::max<int64_t>(1, config_.feed_forward_length /
                                                     config_.expert_used_count)
                          : config_.feed_forward_length);
    auto shared = keys_.OptionalInRange("expert_shared_feed_forward_length", 0,
                                        kMaxDimension);
    if (!shared.ok()) return shared.status();
    config_.shared_feed_forward_length = shared->value_or(0);
    WEFT_RETURN_IF_ERROR(ReadWeightsNorm());
    WEFT_RETURN_IF_ERROR(ReadRouter());
    return ReadBlocksWithExperts();
  }

  absl::Status ReadWeightsNorm() {
    std::optional<bool>& norm = config_.expert_weights_norm;
    norm = traits_.default_weights_norm;
    const std::string key = keys_.Key("expert_weights_norm");
    const GgufValue* value = file_.FindValue(key);
    if (value == nullptr) return absl::OkStatus();
    norm = value->ToBool();
    const std::optional<int64_t> number = value->ToInt();
    if (number == 0 || number == 1) norm = *number == 1;
    if (!norm.has_value()) {
      return file_.BadValue(key, value->Print(), "true or false");
    }
    const std::optional<bool> usual = traits_.default_weights_norm;
    if (traits_.fixed_router && usual.has_value() && norm != usual) {
      return file_.BadValue(key, value->Print(),
                            absl::StrCat(*usual ? "true" : "false",
                                         ": this architecture has no other"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadGating() {
    constexpr char kGating[] = "expert_gating_func";
    WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> read,
                          keys_.OptionalInRange(kGating, 0, 3));
    const Gating usual = traits_.default_gating;
    const Gating said = static_cast<Gating>(read.value_or(0));
    config_.expert_gating = said == Gating::kUnset ? usual : said;
    if (!traits_.fixed_router || config_.expert_gating == usual) {
      return absl::OkStatus();
    }
    return file_.BadValue(
        keys_.Key(kGating), absl::StrCat(*read),
        absl::StrCat(static_cast<int>(usual),
                     ": this architecture has a router of its own"));
  }

  absl::Status ReadRouter() {
    WEFT_ASSIGN_OR_RETURN(std::optional<float> scale,
                          keys_.OptionalPositive("expert_weights_scale", true));
    config_.expert_weights_scale = scale.value_or(1.0f);
    WEFT_RETURN_IF_ERROR(ReadGating());
    constexpr char kGroups[] = "expert_group_count";
    WEFT_ASSIGN_OR_RETURN(
        std::optional<int64_t> groups,
        keys_.OptionalInRange(kGroups, 0, config_.expert_count));
    config_.expert_group_count = std::max<int64_t>(1, groups.value_or(1));
    if (config_.expert_count % config_.expert_group_count != 0) {
      return file_.BadValue(
          keys_.Key(kGroups), absl::StrCat(config_.expert_group_count),
          absl::StrCat("a divisor of ", keys_.Key("expert_count"), " (",
                       config_.expert_count, ")"));
    }
    constexpr char kUsed[] = "expert_group_used_count";
    if (config_.expert_group_count > 1) {
      WEFT_RETURN_IF_ERROR(keys_.InRange(kUsed, 1, config_.expert_group_count,
                                         &config_.expert_group_used_count));
    } else {
      WEFT_RETURN_IF_ERROR(keys_.OptionalInRange(kUsed, 0, 1).status());
    }
    if (config_.expert_used_count > config_.expert_count /
                                        config_.expert_group_count *
                                        config_.expert_group_used_count) {
      return file_.BadValue(
          keys_.Key(kUsed), absl::StrCat(config_.expert_group_used_count),
          absl::StrCat("groups that have ", keys_.Key("expert_used_count"),
                       " (", config_.expert_used_count, ") experts"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadBlocksWithExperts() {
    WEFT_ASSIGN_OR_RETURN(
        std::optional<int64_t> shared,
        keys_.OptionalInRange("expert_shared_count", 0, kMaxExperts));
    config_.expert_shared_count = shared.value_or(0);
    WEFT_ASSIGN_OR_RETURN(std::optional<int64_t> dense,
                          keys_.OptionalInRange("leading_dense_block_count", 0,
                                                config_.block_count));
    config_.leading_dense_block_count = dense.value_or(0);
    WEFT_ASSIGN_OR_RETURN(
        std::optional<int64_t> interval,
        keys_.OptionalInRange("interleave_moe_layer_step", 0, kMaxBlocks));
    config_.expert_interval = std::max<int64_t>(1, interval.value_or(1));
    return absl::OkStatus();
  }

  absl::Status ReadEncoder() {
    config_.encoder = traits_.encoder;
    const std::string causal_key = keys_.Key("attention.causal");
    auto causal = file_.OptionalBool(causal_key);
    if (!causal.ok()) return causal.status();
    if (causal->value_or(!config_.encoder) == config_.encoder) {
      return file_.BadValue(causal_key, config_.encoder ? "true" : "false",
                            config_.encoder ? "false" : "true");
    }
    constexpr char kPooling[] = "pooling_type";
    auto pooling = keys_.OptionalInRange(kPooling, 0, 4);
    if (!pooling.ok()) return pooling.status();
    const int64_t kind = pooling->value_or(0);
    config_.ranks = kind == kRanks;
    if (!config_.ranks) {
      config_.pooling = static_cast<Pooling>(kind);
    } else if (config_.encoder) {
      config_.pooling = traits_.ranks_by;
    } else if (traits_.ranks) {
      config_.pooling = Pooling::kLast;
    } else {
      return file_.BadValue(keys_.Key(kPooling), absl::StrCat(kind),
                            "0 (none), 1 (mean), 2 (first) or 3 (last): "
                            "ranking is not supported for this architecture");
    }
    WEFT_RETURN_IF_ERROR(ReadLabels());
    constexpr char kActivation[] = "hidden_activation";
    if (keys_.Handles(kActivation)) {
      WEFT_ASSIGN_OR_RETURN(std::optional<std::string> activation,
                            file_.OptionalString(keys_.Key(kActivation)));
      config_.hidden_activation = activation.value_or("");
    }
    auto types = file_.OptionalUint("tokenizer.ggml.token_type_count");
    if (!types.ok()) return types.status();
    config_.token_type_count =
        static_cast<int64_t>(std::min(types->value_or(0), kMaxDimension));
    return absl::OkStatus();
  }

  // A number of scores for each label; one without.
  absl::Status ReadLabels() {
    if (!config_.ranks) return absl::OkStatus();
    constexpr char kLabels[] = "classifier.output_labels";
    WEFT_ASSIGN_OR_RETURN(auto labels,
                          file_.OptionalStrings(keys_.Key(kLabels)));
    if (!labels.has_value()) return absl::OkStatus();
    if (labels->empty() || labels->size() > kMaxLabels) {
      return file_.BadValue(keys_.Key(kLabels),
                            absl::StrCat(labels->size(), " labels"),
                            absl::StrCat("1 to ", kMaxLabels));
    }
    for (absl::string_view label : *labels) {
      config_.labels.emplace_back(label);
    }
    config_.score_count = static_cast<int64_t>(labels->size());
    return absl::OkStatus();
  }

  absl::Status ReadOwnKeys() {
    for (const ModelKey& own : traits_.keys) {
      const std::string key = keys_.Key(own.name);
      double number = own.otherwise;
      if (own.required && file_.FindValue(key) == nullptr) {
        return file_.MissingKey(
            key, absl::StrCat("a number from ", own.least, " to ", own.most));
      }
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

  absl::Status ReadNextTokenBlocks() {
    if (!keys_.Handles(kNextTokenBlocks)) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(
        std::optional<int64_t> count,
        keys_.OptionalInRange(kNextTokenBlocks, 0, config_.block_count - 1));
    config_.next_token_blocks = count.value_or(0);
    config_.block_count -= config_.next_token_blocks;
    config_.blocks_behind.assign(config_.blocks.begin() + config_.block_count,
                                 config_.blocks.end());
    config_.blocks.resize(config_.block_count);
    if (!config_.sliding_blocks.empty()) {
      config_.sliding_blocks.resize(config_.block_count);
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
    auto size = keys_.OptionalInRange("vocab_size", 1, kMaxDimension);
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
  const ConfigKeys keys_;
  ModelConfig config_;
};

}  // namespace

double AsWritten(float x) {
  char text[32];
  for (int digits = 6; digits <= 9; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, x);
    if (std::strtof(text, nullptr) == x) break;
  }
  return std::strtod(text, nullptr);
}

std::vector<std::pair<std::string, std::vector<double>>> DescribeConfig(
    const ModelConfig& config) {
  using PerBlock = ModelConfig::PerBlock;
  std::vector<std::pair<std::string, std::vector<double>>> all;
  const auto add = [&](std::string name, double number) {
    all.emplace_back(std::move(name), std::vector<double>{number});
  };
  const auto add_unless = [&](double usual, const char* name, double number) {
    if (number != usual) add(name, number);
  };
  const auto add_blocks = [&](const char* name, int64_t PerBlock::*field) {
    std::vector<double> numbers;
    for (const PerBlock& block : config.blocks) {
      numbers.push_back(static_cast<double>(block.*field));
    }
    if (std::count(numbers.begin(), numbers.end(), numbers.front()) ==
        static_cast<int64_t>(numbers.size())) {
      numbers.resize(1);
    }
    all.emplace_back(name, std::move(numbers));
  };
  add("block_count", static_cast<double>(config.block_count));
  add_unless(0, "next_token_blocks",
             static_cast<double>(config.next_token_blocks));
  add_blocks("feed_forward_length", &PerBlock::feed_forward_length);
  add_blocks("head_count", &PerBlock::head_count);
  add_blocks("head_count_kv", &PerBlock::head_count_kv);
  add_blocks("key_length", &PerBlock::key_length);
  add_blocks("value_length", &PerBlock::value_length);
  add("norm_epsilon", AsWritten(config.norm_epsilon));
  if (!config.sliding_blocks.empty()) {
    add("sliding_window", static_cast<double>(config.sliding_window));
    all.emplace_back("sliding_window_pattern",
                     std::vector<double>(config.sliding_blocks.begin(),
                                         config.sliding_blocks.end()));
  }
  if (config.rope_dimension_count > 0) {
    add("rope_dimension_count",
        static_cast<double>(config.rope_dimension_count));
    add("rope_freq_base", AsWritten(config.rope_freq_base));
    add_unless(1, "rope_position_scale", AsWritten(config.rope_position_scale));
    add_unless(1, "rope_magnitude", AsWritten(config.rope_magnitude));
    add_unless(1, "rope_score_factor", config.rope_score_factor);
    add_unless(0, "original_context_length",
               static_cast<double>(config.original_context_length));
  }
  if (config.expert_count > 0) {
    add("expert_count", static_cast<double>(config.expert_count));
    add("expert_used_count", static_cast<double>(config.expert_used_count));
    add("expert_feed_forward_length",
        static_cast<double>(config.expert_feed_forward_length));
  }
  for (const auto& [name, number] : config.numbers) {
    add(absl::StrReplaceAll(name, {{".", "_"}}), number);
  }
  return all;
}

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
