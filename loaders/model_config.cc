#include "loaders/model_config.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "loaders/utf8.h"

namespace weft {
namespace {

constexpr uint64_t kMaxDimension = uint64_t{1} << 24;
constexpr uint64_t kMaxContext = uint64_t{1} << 40;
constexpr uint64_t kMaxWindow = uint64_t{1} << 31;  // no context is as long
constexpr uint64_t kMaxBlocks = uint64_t{1} << 16;
constexpr uint64_t kMaxExperts = 1024;
constexpr uint64_t kMaxLabels = 1 << 16;
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

// Files by other converters have other names for these.
struct OtherName {
  absl::string_view name, other;
};
constexpr OtherName kOtherNames[] = {
    {"rope.freq_base", "rope.global.freq_base"},
    {"rope.freq_base_swa", "rope.local.freq_base"},
};

// What begins the names of keys about parts that texts do not pass through.
constexpr absl::string_view kOtherParts[] = {"vision.", "mm.", "audio.",
                                             "clip."};

class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, const ModelTraits& traits,
               std::string architecture)
      : file_(file), traits_(traits) {
    config_.architecture = std::move(architecture);
  }

  absl::StatusOr<ModelConfig> Run() {
    for (auto step :
         {&ConfigReader::ReadName, &ConfigReader::ReadSuggestedSampling,
          &ConfigReader::CheckOtherNames, &ConfigReader::RefuseUnhandled,
          &ConfigReader::ReadDimensions, &ConfigReader::ReadHeads,
          &ConfigReader::ReadRecurrentBlocks, &ConfigReader::ReadContext,
          &ConfigReader::ReadWindows, &ConfigReader::ReadHeadsOfWindows,
          &ConfigReader::ReadEpsilon, &ConfigReader::ReadRope,
          &ConfigReader::ReadExperts, &ConfigReader::ReadEncoder,
          &ConfigReader::ReadOwnKeys, &ConfigReader::ReadVocabularySize,
          &ConfigReader::ReadNextTokenBlocks, &ConfigReader::WarnOfUnread}) {
      const absl::Status status = (this->*step)();
      if (!status.ok()) return status;
    }
    return std::move(config_);
  }

 private:
  // The full name of a key that is about to be read: the other one, where the
  // file has that.
  std::string Key(absl::string_view name) const {
    const std::string key = absl::StrCat(config_.architecture, ".", name);
    read_.insert(key);
    for (const OtherName& row : kOtherNames) {
      if (row.name != name) continue;
      std::string other = absl::StrCat(config_.architecture, ".", row.other);
      read_.insert(other);
      if (file_.FindValue(key) == nullptr &&
          file_.FindValue(other) != nullptr) {
        return other;
      }
    }
    return key;
  }

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

  absl::Status CheckOtherNames() {
    for (const OtherName& row : kOtherNames) {
      const std::string key = absl::StrCat(config_.architecture, ".", row.name);
      const std::string other =
          absl::StrCat(config_.architecture, ".", row.other);
      const GgufValue* first = file_.FindValue(key);
      const GgufValue* second = file_.FindValue(other);
      if (first != nullptr && second != nullptr &&
          first->Print() != second->Print()) {
        return file_.BadValue(
            other, second->Print(),
            absl::StrCat("what ", key, " says, ", first->Print(),
                         ": they are names for one thing"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status WarnOfUnread() {
    for (absl::string_view name : kChangesNothing) Key(name);
    constexpr size_t kMostNamed = 8;
    std::vector<std::string> unread;
    size_t more = 0;
    bool other_part = false;
    for (const GgufKeyValue& entry : file_.metadata()) {
      absl::string_view name = entry.key;
      if (!absl::ConsumePrefix(&name, config_.architecture) ||
          !absl::ConsumePrefix(&name, ".") || read_.contains(entry.key)) {
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

  // An integer from `min` to `max`.
  absl::StatusOr<std::optional<int64_t>> OptionalInRange(absl::string_view name,
                                                         uint64_t min,
                                                         uint64_t max) const {
    const std::string key = Key(name);
    WEFT_ASSIGN_OR_RETURN(std::optional<uint64_t> number,
                          file_.OptionalUint(key));
    if (!number.has_value()) return std::optional<int64_t>();
    if (*number < min || *number > max) {
      return file_.BadValue(key, absl::StrCat(*number),
                            absl::StrCat(min, " to ", max));
    }
    return std::optional<int64_t>(static_cast<int64_t>(*number));
  }

  absl::Status InRange(absl::string_view name, uint64_t min, uint64_t max,
                       int64_t* out) const {
    WEFT_ASSIGN_OR_RETURN(std::optional<int64_t> value,
                          OptionalInRange(name, min, max));
    if (!value.has_value()) {
      return file_.MissingKey(Key(name), absl::StrCat(min, " to ", max));
    }
    *out = *value;
    return absl::OkStatus();
  }

  // The same of each block: the file has one number for all, or an array of
  // one per block. `otherwise` where it has neither; 0: it must.
  absl::Status PerBlockInRange(absl::string_view name, uint64_t min,
                               uint64_t max, int64_t otherwise,
                               int64_t ModelConfig::PerBlock::*field,
                               int64_t* largest) {
    const std::string key = Key(name);
    const GgufValue* value = file_.FindValue(key);
    if (value == nullptr || !value->is_array()) {
      WEFT_ASSIGN_OR_RETURN(std::optional<int64_t> read,
                            OptionalInRange(name, min, max));
      if (!read.has_value() && otherwise == 0) {
        return file_.MissingKey(key, absl::StrCat(min, " to ", max));
      }
      const int64_t number = read.value_or(otherwise);
      for (ModelConfig::PerBlock& block : config_.blocks) block.*field = number;
      *largest = number;
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> numbers, file_.GetInts(key));
    WEFT_RETURN_IF_ERROR(CheckOnePerBlock(key, numbers.size()));
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

  absl::Status CheckOnePerBlock(const std::string& key, size_t count) const {
    if (static_cast<int64_t>(count) == config_.block_count) {
      return absl::OkStatus();
    }
    return file_.BadValue(key, absl::StrCat("an array of ", count),
                          absl::StrCat("one number, or one per block (",
                                       config_.block_count, ")"));
  }

  absl::Status ReadDimensions() {
    WEFT_RETURN_IF_ERROR(InRange("embedding_length", 1, kMaxDimension,
                                 &config_.embedding_length));
    // Every block has tensors, so this bounds loops over blocks by the file.
    uint64_t max_blocks = kMaxBlocks;
    if (!file_.tensors().empty()) {
      max_blocks = std::min<uint64_t>(max_blocks, file_.tensors().size());
    }
    WEFT_RETURN_IF_ERROR(
        InRange("block_count", 1, max_blocks, &config_.block_count));
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
    if (file_.FindValue(Key(kHeadsKv)) == nullptr) {
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
      return file_.BadValue(Key(kHeadsKv), absl::StrCat(block.head_count_kv),
                            absl::StrCat("a divisor of ", Key(kHeads), " (",
                                         block.head_count, ")"));
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

  // Blocks with a window may have heads of another length.
  absl::Status ReadHeadsOfWindows() {
    if (config_.sliding_blocks.empty()) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(
        const std::optional<int64_t> keys,
        OptionalInRange("attention.key_length_swa", 1, kMaxDimension));
    WEFT_ASSIGN_OR_RETURN(
        const std::optional<int64_t> values,
        OptionalInRange("attention.value_length_swa", 1, kMaxDimension));
    for (int64_t i = 0; i < config_.block_count; ++i) {
      if (!config_.sliding_blocks[i]) continue;
      ModelConfig::PerBlock& block = config_.blocks[i];
      block.key_length = keys.value_or(block.key_length);
      block.value_length = values.value_or(block.value_length);
    }
    return absl::OkStatus();
  }

  absl::Status HeadLength(absl::string_view name, int64_t* out) const {
    auto length = OptionalInRange(name, 1, kMaxDimension);
    if (!length.ok()) return length.status();
    if (length->has_value()) {
      *out = **length;
      return absl::OkStatus();
    }
    // No block has attention.
    if (config_.head_count == 0) return absl::OkStatus();
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
    WEFT_RETURN_IF_ERROR(InRange("context_length", 1, kMaxContext,
                                 &config_.trained_context_length));
    config_.context_length = config_.trained_context_length;
    // Converters write 0 for "none", or what no text reaches.
    WEFT_ASSIGN_OR_RETURN(std::optional<uint64_t> window,
                          file_.OptionalUint(Key(kWindow)));
    if (!window.has_value() && traits_.default_window != nullptr) {
      window = static_cast<uint64_t>(traits_.default_window(config_));
    }
    uint64_t tokens = window.value_or(0);
    if (traits_.window_to_both_sides && tokens > 0) tokens = tokens / 2 + 1;
    if (Handles(kWindow) && tokens > 0) {
      config_.sliding_blocks.assign(config_.block_count, true);
    }
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

  // Which blocks have the window: as the file says, by a number (the last of
  // every so many has none; 0: all have it) or an array (true: it has), else as
  // the family does.
  absl::Status ReadWindows() {
    if (config_.sliding_blocks.empty()) return absl::OkStatus();
    const std::string key = Key("attention.sliding_window_pattern");
    uint64_t period = traits_.window_period;
    if (const GgufValue* value = file_.FindValue(key)) {
      if (value->is_array()) return ReadWindowArray(key, *value);
      WEFT_ASSIGN_OR_RETURN(period, file_.GetUint(key));
    }
    if (period == 0) return absl::OkStatus();
    for (int64_t block = 0; block < config_.block_count; ++block) {
      config_.sliding_blocks[block] =
          block % period != (traits_.first_sees_all ? 0 : period - 1);
    }
    return absl::OkStatus();
  }

  absl::Status ReadWindowArray(const std::string& key, const GgufValue& array) {
    return ReadFlags(key, array, &config_.sliding_blocks);
  }

  absl::Status ReadRecurrentBlocks() {
    if (!traits_.blocks_without_attention) return absl::OkStatus();
    const std::string key = Key("attention.recurrent_layers");
    const GgufValue* value = file_.FindValue(key);
    if (value == nullptr) return absl::OkStatus();
    if (!value->is_array()) {
      return file_.BadValue(key, value->Print(), "an array, one per block");
    }
    config_.recurrent_blocks.resize(config_.block_count);
    return ReadFlags(key, *value, &config_.recurrent_blocks);
  }

  // An array of true or false, one for each block.
  absl::Status ReadFlags(const std::string& key, const GgufValue& array,
                         std::vector<bool>* flags) const {
    WEFT_RETURN_IF_ERROR(CheckOnePerBlock(key, array.count()));
    int64_t block = 0;
    bool good = true;
    array.ForEach([&](const GgufValue& element) {
      std::optional<bool> slides = element.ToBool();
      const std::optional<int64_t> number = element.ToInt();
      if (number == 0 || number == 1) slides = *number == 1;
      good = slides.has_value();
      if (good) (*flags)[block++] = *slides;
      return good;
    });
    if (good) return absl::OkStatus();
    return file_.BadValue(key, array.Print(), "true or false for each block");
  }

  absl::Status ReadEpsilon() {
    const std::string key = Key(traits_.norm == ModelTraits::Norm::kRms
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
    config_.rope_freq_base =
        base->value_or(static_cast<float>(traits_.default_freq_base));
    // Up to 1, later pairs would turn no slower than the first.
    if (!(config_.rope_freq_base > 1)) {
      return file_.BadValue(Key(kBase), absl::StrCat(config_.rope_freq_base),
                            "a number above 1");
    }
    WEFT_RETURN_IF_ERROR(CheckRopeSections());
    WEFT_RETURN_IF_ERROR(ReadRopeSections());
    return ReadRopeScaling();
  }

  // Of rotation by three coordinates, which are the same in a text: pair i
  // turns by the one that i % 3 says, as far as that one's section goes
  // (transformers, Qwen3-VL's interleaved M-RoPE). Where a pair is in no
  // section it would not turn.
  absl::Status CheckRopeSections() const {
    constexpr char kSections[] = "rope.dimension_sections";
    if (!Handles(kSections)) return absl::OkStatus();
    const std::string key = Key(kSections);
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
    const std::string key = Key("rope.dimension_sections");
    if (file_.FindValue(key) == nullptr) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> sections,
                          file_.GetInts(key));
    config_.rope_sections =
        std::any_of(sections.begin(), sections.end(),
                    [](int64_t pairs) { return pairs > 0; });
    return absl::OkStatus();
  }

  absl::Status ReadRopeScaling() {
    const std::string type_key = Key("rope.scaling.type");
    config_.says_rope_scaling =
        file_.FindValue(type_key) != nullptr ||
        file_.FindValue(Key("rope.scaling.factor")) != nullptr ||
        file_.FindValue(Key("rope.scale_linear")) != nullptr;
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
    // Files that give a multiplier had their scores scaled by it in training:
    // what is left of the fit is a ratio (DeepSeek-V2, arXiv:2405.04434, and
    // transformers' mscale over mscale_all_dim, the first of which is 1).
    constexpr char kMultiplier[] = "rope.scaling.yarn_log_multiplier";
    WEFT_ASSIGN_OR_RETURN(std::optional<float> multiplier,
                          OptionalPositive(kMultiplier, true));
    const double log_factor =
        -std::log(static_cast<double>(config_.rope_position_scale));
    if (traits_.yarn_scales_scores) {
      const double size = 1 + multiplier.value_or(0) * log_factor;
      config_.rope_score_factor = size * size;
      if (config_.rope_score_factor <= kMaxPositive) return absl::OkStatus();
      return file_.BadValue(Key(kMultiplier), absl::StrCat(*multiplier),
                            "a number nearer to 1");
    }
    config_.rope_magnitude *=
        static_cast<float>((1 + 0.1 * log_factor) /
                           (1 + 0.1 * multiplier.value_or(0) * log_factor));
    if (!(config_.rope_magnitude >= kMinPositive)) {
      return file_.BadValue(Key(kMultiplier), absl::StrCat(*multiplier),
                            "a number nearer to 1");
    }
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
    WEFT_RETURN_IF_ERROR(InRange("expert_used_count", 1, config_.expert_count,
                                 &config_.expert_used_count));
    auto own = OptionalInRange("expert_feed_forward_length", 1, kMaxDimension);
    if (!own.ok()) return own.status();
    config_.expert_feed_forward_length =
        own->value_or(traits_.experts_share_length
                          ? std::max<int64_t>(1, config_.feed_forward_length /
                                                     config_.expert_used_count)
                          : config_.feed_forward_length);
    auto shared =
        OptionalInRange("expert_shared_feed_forward_length", 0, kMaxDimension);
    if (!shared.ok()) return shared.status();
    config_.shared_feed_forward_length = shared->value_or(0);
    const std::string key = Key("expert_weights_norm");
    if (const GgufValue* value = file_.FindValue(key)) {
      config_.expert_weights_norm = value->ToBool();
      const std::optional<int64_t> number = value->ToInt();
      if (number == 0 || number == 1) {
        config_.expert_weights_norm = *number == 1;
      }
      if (!config_.expert_weights_norm.has_value()) {
        return file_.BadValue(key, value->Print(), "true or false");
      }
    }
    WEFT_RETURN_IF_ERROR(ReadRouter());
    return ReadBlocksWithExperts();
  }

  absl::Status ReadRouter() {
    WEFT_ASSIGN_OR_RETURN(std::optional<float> scale,
                          OptionalPositive("expert_weights_scale", true));
    config_.expert_weights_scale = scale.value_or(1.0f);
    WEFT_ASSIGN_OR_RETURN(std::optional<int64_t> gating,
                          OptionalInRange("expert_gating_func", 0, 3));
    config_.expert_gating =
        static_cast<ModelConfig::Gating>(gating.value_or(0));
    constexpr char kGroups[] = "expert_group_count";
    WEFT_ASSIGN_OR_RETURN(std::optional<int64_t> groups,
                          OptionalInRange(kGroups, 0, config_.expert_count));
    config_.expert_group_count = std::max<int64_t>(1, groups.value_or(1));
    if (config_.expert_count % config_.expert_group_count != 0) {
      return file_.BadValue(Key(kGroups),
                            absl::StrCat(config_.expert_group_count),
                            absl::StrCat("a divisor of ", Key("expert_count"),
                                         " (", config_.expert_count, ")"));
    }
    constexpr char kUsed[] = "expert_group_used_count";
    WEFT_ASSIGN_OR_RETURN(
        std::optional<int64_t> used,
        OptionalInRange(kUsed, 0, config_.expert_group_count));
    config_.expert_group_used_count =
        used.value_or(0) > 0 ? *used : config_.expert_group_count;
    if (config_.expert_used_count > config_.expert_count /
                                        config_.expert_group_count *
                                        config_.expert_group_used_count) {
      return file_.BadValue(
          Key(kUsed), absl::StrCat(config_.expert_group_used_count),
          absl::StrCat("groups that have ", Key("expert_used_count"), " (",
                       config_.expert_used_count, ") experts"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadBlocksWithExperts() {
    WEFT_ASSIGN_OR_RETURN(
        std::optional<int64_t> shared,
        OptionalInRange("expert_shared_count", 0, kMaxExperts));
    config_.expert_shared_count = shared.value_or(0);
    WEFT_ASSIGN_OR_RETURN(
        std::optional<int64_t> dense,
        OptionalInRange("leading_dense_block_count", 0, config_.block_count));
    config_.leading_dense_block_count = dense.value_or(0);
    WEFT_ASSIGN_OR_RETURN(
        std::optional<int64_t> interval,
        OptionalInRange("interleave_moe_layer_step", 0, kMaxBlocks));
    config_.expert_interval = std::max<int64_t>(1, interval.value_or(1));
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
    config_.ranks = kind == kRanks;
    if (!config_.ranks) {
      config_.pooling = static_cast<Pooling>(kind);
    } else if (config_.encoder) {
      config_.pooling = traits_.ranks_by;
    } else if (traits_.ranks) {
      config_.pooling = Pooling::kLast;
    } else {
      return file_.BadValue(Key(kPooling), absl::StrCat(kind),
                            "0 (none), 1 (mean), 2 (first) or 3 (last): "
                            "ranking is not supported for this architecture");
    }
    WEFT_RETURN_IF_ERROR(ReadLabels());
    constexpr char kActivation[] = "hidden_activation";
    if (Handles(kActivation)) {
      WEFT_ASSIGN_OR_RETURN(std::optional<std::string> activation,
                            file_.OptionalString(Key(kActivation)));
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
    WEFT_ASSIGN_OR_RETURN(auto labels, file_.OptionalStrings(Key(kLabels)));
    if (!labels.has_value()) return absl::OkStatus();
    if (labels->empty() || labels->size() > kMaxLabels) {
      return file_.BadValue(Key(kLabels),
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
      const std::string key = Key(own.name);
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
    if (!Handles(kNextTokenBlocks)) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(
        std::optional<int64_t> count,
        OptionalInRange(kNextTokenBlocks, 0, config_.block_count - 1));
    config_.next_token_blocks = count.value_or(0);
    config_.block_count -= config_.next_token_blocks;
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
  mutable absl::flat_hash_set<std::string> read_;  // keys, by their full names
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
