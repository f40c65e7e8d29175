// Tables: the mixes with their rules, and the types to fall back on.

#include "loaders/quantization_mix.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace weft {
namespace {

// Where in the stack of `count` layers a rule applies.
enum class Layers {
  kAll,
  kFirstTwo,
  kFirstFour,
  kFirstEighth,
  kFirstSixteenth,
  kOuterAndEveryThird,   // first and last eighth, and every third layer between
  kMiddle,               // without the first and last eighth
  kSharedKeys,           // all, when four or more query heads share a KV head
  kSharedKeysOrExperts,  // these, or models with four or more experts
  kEightExperts,         // all, of models with eight experts
};

bool Applies(Layers layers, int64_t layer, const MixModel& model) {
  const int64_t eighth = model.block_count / 8;
  switch (layers) {
    case Layers::kAll:
      return true;
    case Layers::kFirstTwo:
      return layer < 2;
    case Layers::kFirstFour:
      return layer < 4;
    case Layers::kFirstEighth:
      return layer < eighth;
    case Layers::kFirstSixteenth:
      return layer < model.block_count / 16;
    case Layers::kOuterAndEveryThird:
      return layer < eighth || layer >= 7 * model.block_count / 8 ||
             (layer - eighth) % 3 == 2;
    case Layers::kMiddle:
      return layer >= eighth && layer < 7 * model.block_count / 8;
    case Layers::kSharedKeys:
      return model.heads_per_kv_head >= 4;
    case Layers::kSharedKeysOrExperts:
      return model.heads_per_kv_head >= 4 || model.experts >= 4;
    case Layers::kEightExperts:
      return model.experts == 8;
  }
  return false;
}

struct Rule {
  const char* tensors;  // "attn_v|ffn_down": blk.N.attn_v.weight and the other
  Layers layers;
  DType type;
};

// What a name such as "blk.12.attn_v.weight" says.
struct LayerTensor {
  int64_t layer;
  absl::string_view tensor;
};

std::optional<LayerTensor> ParseLayerTensor(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "blk.") ||
      !absl::ConsumeSuffix(&name, ".weight")) {
    return std::nullopt;
  }
  const size_t dot = name.find('.');
  LayerTensor result;
  if (dot == absl::string_view::npos ||
      !absl::SimpleAtoi(name.substr(0, dot), &result.layer)) {
    return std::nullopt;
  }
  result.tensor = name.substr(dot + 1);
  return result;
}

// Small, or read one element at a time: nothing to gain.
bool IsKept(const TensorRole& tensor) {
  if (tensor.dims.size() < 2) return true;
  if (!absl::EndsWith(tensor.name, ".weight")) return true;
  for (const char* part :
       {"ffn_gate_inp", "position_embd", "token_types", "per_layer_model_proj",
        "ssm_conv1d", "shortconv.conv."}) {
    if (absl::StrContains(tensor.name, part)) return true;
  }
  return absl::StrContains(tensor.name, "_norm.");
}

DType NextThatMayFit(DType type) {
  switch (type) {
#define WEFT_FALLBACK(TYPE, NAME, ID, ELEMENTS, BYTES, FILE_TYPE, FALLBACK) \
  case DType::k##TYPE:                                                      \
    return DType::k##FALLBACK;
    WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_FALLBACK)
#undef WEFT_FALLBACK
    default:
      return DType::kF16;
  }
}

DType FitToRows(DType type, int64_t row_elements) {
  while (row_elements % Info(type).block_elements != 0) {
    type = NextThatMayFit(type);
  }
  return type;
}

bool IsStored(DType type) {
  return Info(type).gguf_id >= 0 && type != DType::kI32;
}

}  // namespace

struct MixRules {
  const char* name;
  uint32_t file_type;
  DType base;
  DType output;
  // The first that applies wins; unused places have no tensor.
  Rule rules[7];
  // Of an embedding that is not the output too; F32 where the base serves.
  DType embedding = DType::kF32;
};

namespace {

using L = Layers;
constexpr DType kQ3_K = DType::kQ3_K, kQ4_K = DType::kQ4_K,
                kQ5_K = DType::kQ5_K, kQ6_K = DType::kQ6_K;

constexpr DType kIQ2_XXS = DType::kIQ2_XXS, kIQ3_XXS = DType::kIQ3_XXS,
                kIQ3_S = DType::kIQ3_S, kQ2_K = DType::kQ2_K,
                kQ8_0 = DType::kQ8_0;

// What the smallest mixes have in common: `more` for what hurts most.
constexpr MixRules SmallMix(const char* name, uint32_t file_type, DType base,
                            DType more, DType attention_output,
                            DType embedding) {
  return {name,
          file_type,
          base,
          kQ5_K,
          {{"attn_v", L::kSharedKeysOrExperts, kQ4_K},
           {"attn_v", L::kAll, more},
           {"attn_k", L::kEightExperts, kQ4_K},
           {"ffn_down", L::kFirstEighth, more},
           {"attn_output", L::kEightExperts, kQ5_K},
           {"attn_output", L::kAll, attention_output}},
          embedding};
}

// Of eight experts attention is so small a part that it costs little.
constexpr Rule kKeysAndValuesOfEight = {"attn_v|attn_k", L::kEightExperts,
                                        kQ8_0};
constexpr Rule kOutputOfEight = {"attn_output", L::kEightExperts, kQ5_K};

constexpr MixRules kMixes[] = {
    {"F32", 0, DType::kF32, DType::kF32, {}},
    {"F16", 1, DType::kF16, DType::kF16, {}},
    {"BF16", 32, DType::kBF16, DType::kBF16, {}},
    // By convention Q2_K is a mix, as the names of codebook and ternary types
    // are; all other names of types mean the plain type.
    {"Q2_K",
     10,
     DType::kQ2_K,
     kQ6_K,
     {kKeysAndValuesOfEight,
      kOutputOfEight,
      {"attn_v", L::kSharedKeys, kQ4_K},
      {"attn_v", L::kAll, kQ3_K},
      {"attn_output", L::kAll, kQ3_K},
      {"ffn_down", L::kAll, kQ3_K}}},
    {"Q3_K_S", 11, kQ3_K, kQ6_K, {kKeysAndValuesOfEight, kOutputOfEight}},
    {"Q3_K_M",
     12,
     kQ3_K,
     kQ6_K,
     {kKeysAndValuesOfEight,
      kOutputOfEight,
      {"attn_v", L::kFirstTwo, kQ5_K},
      {"ffn_down", L::kFirstSixteenth, kQ5_K},
      {"attn_v|attn_qkv|attn_output|ffn_down", L::kAll, kQ4_K}}},
    {"Q3_K_L",
     13,
     kQ3_K,
     kQ6_K,
     {kKeysAndValuesOfEight,
      {"attn_output", L::kEightExperts, kQ3_K},
      {"attn_v|attn_output|ffn_down", L::kAll, kQ5_K},
      {"attn_qkv", L::kAll, kQ4_K}}},
    {"Q4_K_S",
     14,
     kQ4_K,
     kQ6_K,
     {kKeysAndValuesOfEight,
      kOutputOfEight,
      {"attn_v", L::kFirstFour, kQ5_K},
      {"ffn_down", L::kFirstEighth, kQ5_K}}},
    {"Q4_K_M",
     15,
     kQ4_K,
     kQ6_K,
     {kKeysAndValuesOfEight,
      kOutputOfEight,
      {"attn_v|ffn_down", L::kOuterAndEveryThird, kQ6_K},
      {"attn_qkv", L::kAll, kQ5_K}}},
    {"Q5_K_S", 16, kQ5_K, kQ6_K, {kKeysAndValuesOfEight}},
    {"Q5_K_M",
     17,
     kQ5_K,
     kQ6_K,
     {kKeysAndValuesOfEight,
      {"attn_v|ffn_down", L::kOuterAndEveryThird, kQ6_K},
      {"attn_qkv", L::kAll, kQ6_K}}},
    {"Q2_K_S",
     21,
     kQ2_K,
     kQ6_K,
     {kKeysAndValuesOfEight,
      {"attn_v", L::kSharedKeys, kQ4_K},
      {"ffn_down", L::kFirstEighth, kQ4_K}}},
    // By these names too files hold mixes; IQ2_S is mostly IQ2_XS.
    SmallMix("IQ1_S", 24, DType::kIQ1_S, kQ2_K, kIQ2_XXS, kQ2_K),
    SmallMix("IQ1_M", 31, DType::kIQ1_M, kQ2_K, kIQ2_XXS, kQ2_K),
    SmallMix("IQ2_XXS", 19, kIQ2_XXS, kQ2_K, kIQ2_XXS, kQ2_K),
    SmallMix("IQ2_XS", 20, DType::kIQ2_XS, kQ2_K, DType::kIQ2_XS, kQ2_K),
    SmallMix("IQ2_S", 28, DType::kIQ2_XS, kIQ3_S, kIQ3_S, kIQ3_S),
    SmallMix("IQ2_M", 29, DType::kIQ2_S, kIQ3_S, kIQ3_S, kIQ3_S),
    {"IQ3_XXS",
     23,
     kIQ3_XXS,
     kQ5_K,
     {kKeysAndValuesOfEight,
      {"attn_v", L::kSharedKeys, kQ4_K},
      {"attn_q|attn_k", L::kAll, DType::kIQ2_S},
      kOutputOfEight,
      {"attn_output", L::kAll, kIQ3_S}},
     kIQ3_S},
    {"IQ3_XS",
     22,
     kIQ3_S,
     kQ6_K,
     {kKeysAndValuesOfEight,
      {"attn_v", L::kSharedKeys, kQ4_K},
      {"attn_q|attn_k", L::kAll, kIQ3_XXS},
      kOutputOfEight,
      {"ffn_gate|ffn_up", L::kMiddle, kIQ3_XXS}}},
    {"IQ3_S",
     26,
     kIQ3_S,
     kQ6_K,
     {kKeysAndValuesOfEight,
      {"attn_v", L::kSharedKeys, kQ4_K},
      kOutputOfEight}},
    {"IQ3_M",
     27,
     kIQ3_S,
     kQ6_K,
     {kKeysAndValuesOfEight,
      {"attn_v", L::kAll, kQ4_K},
      {"ffn_down", L::kFirstEighth, kQ4_K},
      kOutputOfEight,
      {"attn_output|attn_qkv", L::kAll, kQ4_K}}},
    {"TQ1_0", 36, DType::kTQ1_0, kQ6_K, {}, kQ4_K},
    {"TQ2_0", 37, DType::kTQ2_0, kQ6_K, {}, kQ4_K},
    {"MXFP4_MOE",
     38,
     DType::kQ8_0,
     DType::kQ8_0,
     {{"ffn_gate_exps|ffn_up_exps|ffn_down_exps|ffn_gate_up_exps", L::kAll,
       DType::kMXFP4}}},
// Types that have no mixes of their own take the file type of their small
// mix (Q3_K to Q5_K).
#define WEFT_PLAIN(TYPE, NAME, ID, ELEMENTS, BYTES, FILE_TYPE, ...) \
  {#TYPE, FILE_TYPE, DType::k##TYPE, DType::k##TYPE, {}},
    WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_PLAIN)
#undef WEFT_PLAIN
};

const MixRules* FindMix(absl::string_view word) {
  for (const MixRules& mix : kMixes) {
    if (absl::EqualsIgnoreCase(mix.name, word)) return &mix;
  }
  return nullptr;
}

std::string MixNames() {
  std::vector<absl::string_view> names;
  for (const MixRules& mix : kMixes) {
    if (FindMix(mix.name) == &mix) names.push_back(mix.name);
  }
  return absl::StrJoin(names, " ");
}

bool NamesTensor(const Rule& rule, absl::string_view tensor) {
  if (rule.tensors == nullptr) return false;
  // The same matrix of every expert, or of those for all tokens; a rule may
  // also name that alone.
  const absl::string_view plain =
      absl::StripSuffix(absl::StripSuffix(tensor, "_exps"), "_shexp");
  for (absl::string_view name : absl::StrSplit(rule.tensors, '|')) {
    if (name == tensor || name == plain) return true;
  }
  return false;
}

DType TypeInMix(const MixRules& mix, absl::string_view name,
                const MixModel& model) {
  if (name == "output.weight" ||
      (name == "token_embd.weight" && model.tied_output)) {
    return mix.output;
  }
  if (name == "token_embd.weight" && mix.embedding != DType::kF32) {
    return mix.embedding;
  }
  const std::optional<LayerTensor> place = ParseLayerTensor(name);
  if (place.has_value()) {
    for (const Rule& rule : mix.rules) {
      if (NamesTensor(rule, place->tensor) &&
          Applies(rule.layers, place->layer, model)) {
        return rule.type;
      }
    }
  }
  return mix.base;
}

}  // namespace

absl::StatusOr<QuantizationMix> QuantizationMix::Parse(
    absl::string_view word, absl::Span<const std::string> overrides) {
  const MixRules* rules = FindMix(word);
  if (rules == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown type: \"", word, "\": use one of ", MixNames()));
  }
  QuantizationMix mix(rules);
  for (const std::string& text : overrides) {
    // Types have no '=', expressions may.
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor type: \"", text, "\": write PATTERN=TYPE"));
    }
    const std::string type_name = text.substr(equals + 1);
    const std::optional<DType> type = DTypeFromName(type_name);
    if (!type.has_value() || !IsStored(*type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor type: \"", type_name, "\" in \"", text,
                       "\": use a plain type such as Q8_0 or F16"));
    }
    WEFT_ASSIGN_OR_RETURN(NamePattern pattern,
                          NamePattern::Parse(text.substr(0, equals)));
    mix.overrides_.push_back({std::move(pattern), *type});
  }
  return mix;
}

TypeChoice QuantizationMix::Choose(const TensorRole& tensor,
                                   const MixModel& model) const {
  TypeChoice choice;
  if (IsKept(tensor)) {
    choice.keep = true;
    return choice;
  }
  choice.wanted = TypeInMix(*rules_, tensor.name, model);
  for (const Override& rule : overrides_) {
    if (rule.pattern.Matches(tensor.name)) {
      choice.wanted = rule.type;
      break;
    }
  }
  choice.type = FitToRows(choice.wanted, tensor.dims[0]);
  return choice;
}

absl::Status QuantizationMix::CheckOverrides(
    absl::Span<const absl::string_view> tensor_names) const {
  for (const Override& rule : overrides_) {
    bool found = false;
    for (absl::string_view name : tensor_names) {
      found = found || rule.pattern.Matches(name);
    }
    if (!found) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor type: no tensor matches \"", rule.pattern.text(),
                       "\": weft inspect lists the names"));
    }
  }
  return absl::OkStatus();
}

uint32_t QuantizationMix::file_type() const { return rules_->file_type; }
const char* QuantizationMix::name() const { return rules_->name; }
// Q2_K where Q2_K, the mix, has more bits.
bool QuantizationMix::needs_importance() const {
  return absl::string_view(rules_->name) == "Q2_K_S";
}

void TypeFallbacks::Add(const std::string& tensor, int64_t row,
                        const TypeChoice& choice) {
  if (choice.keep || choice.type == choice.wanted) return;
  for (Alike& group : groups_) {
    if (group.row == row && group.type == choice.type &&
        group.wanted == choice.wanted) {
      return group.tensors.push_back(tensor);
    }
  }
  groups_.push_back({row, choice.type, choice.wanted, {tensor}});
}

std::vector<std::string> TypeFallbacks::Lines() const {
  std::vector<std::string> lines;
  for (const Alike& group : groups_) {
    const size_t count = group.tensors.size();
    const std::string which =
        count == 1 ? absl::StrCat("tensor ", group.tensors[0])
                   : absl::StrCat(count, " tensors (", group.tensors[0],
                                  count == 2 ? " and " : " to ",
                                  group.tensors.back(), ")");
    lines.push_back(absl::StrCat(
        which, ": rows of ", group.row, " are no multiple of the ",
        Info(group.wanted).block_elements, " of ", UpperName(group.wanted),
        ": stored as ", UpperName(group.type)));
  }
  return lines;
}

bool NeedsImportance(DType type) {
  switch (type) {
    case DType::kIQ1_S:
    case DType::kIQ1_M:
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
      return true;
    default:
      return false;
  }
}

}  // namespace weft
