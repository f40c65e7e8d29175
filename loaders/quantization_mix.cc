// Tables: the mixes with their rules, and the types to fall back on.

#include "loaders/quantization_mix.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace weft {
namespace {

// Where in the stack of layers a rule applies.
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
  kEightExpertsOuterAndEveryThird,
};

bool Applies(Layers layers, const TensorPlace& place, const MixModel& model) {
  const int64_t eighth = place.count / 8, layer = place.ordinal;
  const bool outer = layer < eighth || layer >= 7 * place.count / 8;
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
      return layer < place.count / 16;
    case Layers::kOuterAndEveryThird:
      return outer || (layer - eighth) % 3 == 2;
    case Layers::kMiddle:
      return !outer;
    case Layers::kSharedKeys:
      return model.heads_per_kv_head >= 4;
    case Layers::kSharedKeysOrExperts:
      return model.heads_per_kv_head >= 4 || model.experts >= 4;
    case Layers::kEightExperts:
      return model.experts == 8;
    case Layers::kEightExpertsOuterAndEveryThird:
      return model.experts == 8 && (outer || (layer - eighth) % 3 == 2);
  }
  return false;
}

// What tensors are, as far as rules ask; some bits together are several kinds.
enum Kind : unsigned {
  kNoKind = 0,
  kValues = 1,  // those of attention, and matrices that hold them with others
  kKeys = 2,
  kQueries = 4,
  kAttentionOutput = 8,
  kDown = 16,
  kGate = 32,
  kUp = 64,
};

// The first that is part of a tensor's name; experts, those for all tokens and
// plain networks have the same rules.
constexpr struct {
  const char* part;
  Kind kind;
} kKinds[] = {
    {"attn_qkv.weight", kValues},
    {"attn_kv_b.weight", kValues},
    {"attn_v.weight", kValues},
    {"attn_k.weight", kKeys},
    {"attn_q.weight", kQueries},
    {"attn_output.weight", kAttentionOutput},
    {"ffn_up", kUp},
    {"ffn_gate", kGate},
    {"ffn_down", kDown},
};

Kind KindOf(absl::string_view name) {
  for (const auto& row : kKinds) {
    if (absl::StrContains(name, row.part)) return row.kind;
  }
  return kNoKind;
}

struct Rule {
  unsigned kinds = kNoKind;
  Layers layers = Layers::kAll;
  DType type = DType::kF32;
};

// Small, or read one element at a time: nothing to gain.
bool IsKept(const TensorRole& tensor) {
  absl::Span<const int64_t> dims = tensor.dims;
  while (dims.size() > 1 && dims.back() == 1) dims.remove_suffix(1);
  if (dims.size() < 2) return true;
  if (!absl::EndsWith(tensor.name, ".weight")) return true;
  for (const char* part :
       {"ffn_gate_inp", "ffn_gate_tid2eid", "position_embd", "token_types",
        "per_layer_model_proj", "ssm_conv1d", "shortconv.conv.", "altup",
        "laurel", "indexer.k_proj.", "indexer.q_proj.", "attn_rel_b.",
        ".rel_pos", ".patch_embd", ".patch_merger"}) {
    if (absl::StrContains(tensor.name, part)) return true;
  }
  // The small ones of time mixing; its large ones are ".._key", ".._value",
  // ".._output" and so on.
  for (const char* part :
       {"first", "w0", "w1", "w2", "v0", "v1", "v2", "a0", "a1", "a2", "g1",
        "g2", "decay_w1", "decay_w2", "lerp_fused"}) {
    if (absl::EndsWith(tensor.name,
                       absl::StrCat("time_mix_", part, ".weight"))) {
      return true;
    }
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

bool IsStored(DType type) {
  return Info(type).gguf_id >= 0 && type != DType::kI32;
}

}  // namespace

std::optional<int64_t> BlockOfTensor(absl::string_view name) {
  int64_t block;
  if (!absl::ConsumePrefix(&name, "blk.")) return std::nullopt;
  const size_t dot = name.find('.');
  if (dot == absl::string_view::npos ||
      !absl::SimpleAtoi(name.substr(0, dot), &block)) {
    return std::nullopt;
  }
  return block;
}

DType FitToRows(DType type, int64_t row_elements) {
  while (row_elements % Info(type).block_elements != 0) {
    type = NextThatMayFit(type);
  }
  return type;
}

// What mixes of a kind have in common.
enum class MixKind {
  kPlain,    // a type for all
  kUsual,    // see TypeInMix
  kSmall,    // by ordinals alone, whatever the architecture
  kExperts,  // experts have a type of their own
};

struct MixRules {
  const char* name;
  MixKind kind;
  uint32_t file_type;
  DType base;
  DType output;
  // The first that applies wins; unused places have no kinds.
  Rule rules[7] = {};
  // Of an embedding that is not the output too; F32 where the base serves.
  DType embedding = DType::kF32;
  // Of Falcon, in place of those for down matrices and attention's output.
  Rule falcon[2] = {};
};

namespace {

using L = Layers;
constexpr MixKind kPlain = MixKind::kPlain, kUsual = MixKind::kUsual;
constexpr DType kQ3_K = DType::kQ3_K, kQ4_K = DType::kQ4_K,
                kQ5_K = DType::kQ5_K, kQ6_K = DType::kQ6_K;

constexpr DType kIQ2_XXS = DType::kIQ2_XXS, kIQ3_XXS = DType::kIQ3_XXS,
                kIQ3_S = DType::kIQ3_S, kQ2_K = DType::kQ2_K,
                kQ8_0 = DType::kQ8_0;

// What the smallest mixes have in common: `more` for what hurts most.
constexpr MixRules SmallMix(const char* name, uint32_t file_type, DType base,
                            DType more, DType attention_output,
                            DType embedding) {
  return MixRules{name,
                  MixKind::kSmall,
                  file_type,
                  base,
                  kQ5_K,
                  {{kValues, L::kSharedKeysOrExperts, kQ4_K},
                   {kValues, L::kAll, more},
                   {kKeys, L::kEightExperts, kQ4_K},
                   {kDown, L::kFirstEighth, more},
                   {kAttentionOutput, L::kEightExperts, kQ5_K},
                   {kAttentionOutput, L::kAll, attention_output}},
                  embedding};
}

constexpr Rule kOutputOfEight = {kAttentionOutput, L::kEightExperts, kQ5_K};

constexpr MixRules kMixes[] = {
    {"F32", kPlain, 0, DType::kF32, DType::kF32},
    {"F16", kPlain, 1, DType::kF16, DType::kF16},
    {"BF16", kPlain, 32, DType::kBF16, DType::kBF16},
    // By convention Q2_K is a mix, as the names of codebook and ternary types
    // are; all other names of types mean the plain type.
    {"Q2_K",
     kUsual,
     10,
     kQ2_K,
     kQ6_K,
     {kOutputOfEight,
      {kValues, L::kSharedKeys, kQ4_K},
      {kValues | kAttentionOutput | kDown, L::kAll, kQ3_K}},
     DType::kF32,
     {{kDown, L::kAll, kQ3_K}}},
    {"Q3_K_S", kUsual, 11, kQ3_K, kQ6_K, {kOutputOfEight}},
    {"Q3_K_M",
     kUsual,
     12,
     kQ3_K,
     kQ6_K,
     {kOutputOfEight,
      {kValues, L::kFirstTwo, kQ5_K},
      {kDown, L::kFirstSixteenth, kQ5_K},
      {kValues | kAttentionOutput | kDown, L::kAll, kQ4_K}},
     DType::kF32,
     {{kDown, L::kFirstSixteenth, kQ5_K},
      {kDown, L::kOuterAndEveryThird, kQ4_K}}},
    {"Q3_K_L",
     kUsual,
     13,
     kQ3_K,
     kQ6_K,
     {{kAttentionOutput, L::kEightExperts, kQ3_K},
      {kValues | kAttentionOutput | kDown, L::kAll, kQ5_K}},
     DType::kF32,
     {{kAttentionOutput | kDown, L::kAll, kQ4_K}}},
    {"Q4_K_S",
     kUsual,
     14,
     kQ4_K,
     kQ6_K,
     {kOutputOfEight,
      {kValues, L::kFirstFour, kQ5_K},
      {kDown, L::kFirstEighth, kQ5_K}}},
    {"Q4_K_M",
     kUsual,
     15,
     kQ4_K,
     kQ6_K,
     {kOutputOfEight, {kValues | kDown, L::kOuterAndEveryThird, kQ6_K}},
     DType::kF32,
     {{kDown, L::kFirstSixteenth, kQ6_K},
      {kDown, L::kOuterAndEveryThird, kQ5_K}}},
    {"Q5_K_S", kUsual, 16, kQ5_K, kQ6_K},
    {"Q5_K_M",
     kUsual,
     17,
     kQ5_K,
     kQ6_K,
     {{kValues | kDown, L::kOuterAndEveryThird, kQ6_K}},
     DType::kF32,
     {{kDown, L::kOuterAndEveryThird, kQ6_K}}},
    {"Q2_K_S",
     kUsual,
     21,
     kQ2_K,
     kQ6_K,
     {{kValues, L::kSharedKeys, kQ4_K}, {kDown, L::kFirstEighth, kQ4_K}},
     DType::kF32,
     {{kDown, L::kFirstEighth, kQ4_K}}},
    // By these names too files hold mixes; IQ2_S is mostly IQ2_XS.
    SmallMix("IQ1_S", 24, DType::kIQ1_S, kQ2_K, kIQ2_XXS, kQ2_K),
    SmallMix("IQ1_M", 31, DType::kIQ1_M, kQ2_K, kIQ2_XXS, kQ2_K),
    SmallMix("IQ2_XXS", 19, kIQ2_XXS, kQ2_K, kIQ2_XXS, kQ2_K),
    SmallMix("IQ2_XS", 20, DType::kIQ2_XS, kQ2_K, DType::kIQ2_XS, kQ2_K),
    SmallMix("IQ2_S", 28, DType::kIQ2_XS, kIQ3_S, kIQ3_S, kIQ3_S),
    SmallMix("IQ2_M", 29, DType::kIQ2_S, kIQ3_S, kIQ3_S, kIQ3_S),
    {"IQ3_XXS",
     kUsual,
     23,
     kIQ3_XXS,
     kQ5_K,
     {{kValues, L::kSharedKeys, kQ4_K},
      {kQueries | kKeys, L::kAll, DType::kIQ2_S},
      kOutputOfEight,
      {kAttentionOutput, L::kAll, kIQ3_S}},
     kIQ3_S},
    {"IQ3_XS",
     kUsual,
     22,
     kIQ3_S,
     kQ6_K,
     {{kValues, L::kSharedKeys, kQ4_K},
      {kQueries | kKeys, L::kAll, kIQ3_XXS},
      kOutputOfEight,
      {kGate | kUp, L::kMiddle, kIQ3_XXS}}},
    {"IQ3_S",
     kUsual,
     26,
     kIQ3_S,
     kQ6_K,
     {{kValues, L::kSharedKeys, kQ4_K}, kOutputOfEight}},
    {"IQ3_M",
     kUsual,
     27,
     kIQ3_S,
     kQ6_K,
     {kOutputOfEight,
      {kValues | kAttentionOutput, L::kAll, kQ4_K},
      {kDown, L::kFirstEighth, kQ4_K},
      {kDown, L::kEightExpertsOuterAndEveryThird, kQ4_K}},
     DType::kF32,
     {{kDown, L::kFirstEighth, kQ4_K}}},
    {"TQ1_0", kUsual, 36, DType::kTQ1_0, kQ6_K, {}, kQ4_K},
    {"TQ2_0", kUsual, 37, DType::kTQ2_0, kQ6_K, {}, kQ4_K},
    {"MXFP4_MOE", MixKind::kExperts, 38, kQ8_0, kQ8_0},
// Types that have no mixes of their own take the file type of their small
// mix (Q3_K to Q5_K).
#define WEFT_PLAIN(TYPE, NAME, ID, ELEMENTS, BYTES, FILE_TYPE, ...) \
  {#TYPE, kPlain, FILE_TYPE, DType::k##TYPE, DType::k##TYPE},
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

bool IsEmbedding(absl::string_view name) {
  return name == "token_embd.weight" || name == "per_layer_token_embd.weight";
}

DType OutputType(const MixRules& mix, const TensorRole& tensor,
                 const MixModel& model) {
  const bool rules = mix.kind == MixKind::kUsual || mix.kind == MixKind::kSmall;
  const bool fits = tensor.dims[0] % Info(mix.base).block_elements == 0;
  return rules && (model.is_falcon || !fits) ? kQ8_0 : mix.output;
}

// Where the tensor stands, for rules. The usual mixes of models with experts go
// by blocks, but for attention's values.
std::optional<TensorPlace> PlaceOf(const MixRules& mix, absl::string_view name,
                                   Kind kind, const MixModel& model) {
  const std::optional<int64_t> block = BlockOfTensor(name);
  const auto found = model.places.find(name);
  const bool by_block =
      mix.kind == MixKind::kUsual && model.experts > 1 && kind != kValues;
  if (found != model.places.end() && !(by_block && block.has_value())) {
    return found->second;
  }
  if (!block.has_value()) return std::nullopt;
  return TensorPlace{*block, model.block_count};
}

DType TypeByRules(const MixRules& mix, Kind kind, const TensorPlace& place,
                  const MixModel& model) {
  const bool falcon = model.is_falcon && mix.kind == MixKind::kUsual &&
                      (kind == kDown || kind == kAttentionOutput);
  const absl::Span<const Rule> rules =
      falcon ? absl::MakeConstSpan(mix.falcon) : absl::MakeConstSpan(mix.rules);
  for (const Rule& rule : rules) {
    if ((rule.kinds & kind) != 0 && Applies(rule.layers, place, model)) {
      return rule.type;
    }
  }
  return mix.base;
}

DType TypeInMix(const MixRules& mix, const TensorRole& tensor,
                const MixModel& model) {
  const bool embedding = IsEmbedding(tensor.name);
  if (tensor.name == "output.weight" || (embedding && model.tied_output)) {
    return OutputType(mix, tensor, model);
  }
  if (embedding) {
    return mix.embedding != DType::kF32 ? mix.embedding : mix.base;
  }
  const Kind kind = KindOf(tensor.name);
  switch (mix.kind) {
    case MixKind::kPlain:
      return mix.base;
    case MixKind::kExperts:
      return (kind & (kDown | kGate | kUp)) != 0 &&
                     absl::StrContains(tensor.name, "_exps.")
                 ? DType::kMXFP4
                 : mix.base;
    case MixKind::kUsual:
      // Of eight experts attention is so small a part that it costs little.
      if ((kind == kValues || kind == kKeys) && model.experts == 8) {
        return kQ8_0;
      }
      break;
    case MixKind::kSmall:
      break;
  }
  const std::optional<TensorPlace> place =
      PlaceOf(mix, tensor.name, kind, model);
  if (!place.has_value()) return mix.base;
  const DType type = TypeByRules(mix, kind, *place, model);
  // Eight query heads share what is an eighth of their size.
  const bool more = mix.kind == MixKind::kUsual && model.is_70b &&
                    kind == kValues && (type == kQ3_K || type == kQ4_K);
  return more ? kQ5_K : type;
}

using Places = std::map<std::string, TensorPlace, std::less<>>;

Places PlaceTensors(absl::Span<const TensorRole> tensors, int64_t block_count) {
  // By block, then by name; those of no block come first.
  std::map<Kind, std::set<std::pair<int64_t, std::string>>> alike;
  for (const TensorRole& tensor : tensors) {
    const Kind kind = KindOf(tensor.name);
    if (kind != kNoKind && !IsKept(tensor)) {
      alike[kind].emplace(BlockOfTensor(tensor.name).value_or(-1), tensor.name);
    }
  }
  Places places;
  for (const auto& [kind, of_kind] : alike) {
    // Of values there may be few, of the others one in each block or several.
    const int64_t count =
        kind == kValues ? static_cast<int64_t>(of_kind.size()) : block_count;
    int64_t ordinal = 0;
    for (const auto& [block, name] : of_kind) {
      places[name] = {ordinal++, count};
    }
  }
  return places;
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
  choice.wanted = TypeInMix(*rules_, tensor, model);
  for (const Override& rule : overrides_) {
    if (rule.pattern.Matches(tensor.name)) {
      choice.wanted = rule.type;
      choice.fixed = true;
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
bool QuantizationMix::NeedsImportanceOf(DType type,
                                        absl::string_view tensor) const {
  return NeedsImportance(type, tensor) ||
         (type == DType::kQ2_K && !IsEmbeddingOrOutput(tensor) &&
          absl::string_view(rules_->name) == "Q2_K_S");
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

MixModel DescribeMixModel(const MixMetadata& metadata,
                          absl::Span<const TensorRole> tensors) {
  MixModel model;
  model.block_count = metadata.block_count;
  model.heads_per_kv_head =
      metadata.kv_heads > 0 ? metadata.heads / metadata.kv_heads : 0;
  model.experts = metadata.experts;
  model.tied_output = std::none_of(
      tensors.begin(), tensors.end(),
      [](const TensorRole& tensor) { return tensor.name == "output.weight"; });
  model.is_falcon = metadata.architecture == "falcon";
  // Llama's of 80 blocks without shared keys is the 65B.
  model.is_70b =
      metadata.block_count == 80 && (metadata.architecture == "qwen2" ||
                                     (metadata.architecture == "llama" &&
                                      metadata.heads != metadata.kv_heads));
  model.places = PlaceTensors(tensors, metadata.block_count);
  return model;
}

bool IsEmbeddingOrOutput(absl::string_view tensor) {
  return IsEmbedding(tensor) || tensor == "output.weight";
}

bool NeedsImportance(DType type, absl::string_view tensor) {
  switch (type) {
    case DType::kIQ1_S:
    case DType::kIQ1_M:
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
      return true;
    case DType::kIQ3_XXS:
      return !IsEmbeddingOrOutput(tensor);
    default:
      return false;
  }
}

DType TypeWithoutImportance(DType type) {
  return type == DType::kIQ3_XXS || type == DType::kQ2_K ? DType::kIQ3_S
                                                         : DType::kQ2_K;
}

uint32_t FileTypeOf(DType type) {
  for (const MixRules& mix : kMixes) {
    if (mix.kind == MixKind::kPlain && mix.base == type) return mix.file_type;
  }
  return 0;
}

}  // namespace weft
