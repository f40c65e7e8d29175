// The attributes of ops, as structs (graph/attributes.h). What each may be is
// declared beside its op; `weft dump --list-ops` and ops/README.md list it.
// Lengths count elements, positions count tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "graph/attributes.h"

namespace weft {

// rms_norm, layer_norm, l2_norm (norm.cc)
struct NormAttributes {
  double eps = 0;
  int64_t heads = 1;  // equal parts of a row, each normalised by itself
  static absl::Span<const AttributeSchema> Schema();
};

// rms_norm_quantize, layer_norm_quantize (norm.cc)
struct NormQuantizeAttributes {
  double eps = 0;
  static absl::Span<const AttributeSchema> Schema();
};

// elementwise.cc
struct ScaleAttributes {
  double factor = 1;
  static absl::Span<const AttributeSchema> Schema();
};
struct SoftcapAttributes {
  double cap = 1;
  static absl::Span<const AttributeSchema> Schema();
};
enum class GeluApproximation : uint8_t { kNone, kTanh };
struct GeluAttributes {
  GeluApproximation approximation = GeluApproximation::kNone;
  static absl::Span<const AttributeSchema> Schema();
};
struct ClampedGateAttributes {
  double limit = 0;
  double slope = 1;
  static absl::Span<const AttributeSchema> Schema();
};

// rope, rope_kv_write (rope.cc; Su et al. 2021, arXiv:2104.09864; the ramp:
// Peng et al. 2023, arXiv:2309.00071)
enum class RopeStyle : uint8_t {
  kInterleaved,  // pairs are neighbours
  kHalves,       // half of the rotated dimensions apart
};
struct RopeAttributes {
  int64_t head_dim = 0;
  int64_t rope_dims = 0;  // of each head, from its beginning
  double base = 10000;
  double scale = 1;  // of positions
  RopeStyle style = RopeStyle::kInterleaved;
  double magnitude = 1;  // of sines and cosines
  // Where ramp_end is above 0: pairs up to ramp_begin are not scaled, those
  // from ramp_end on are, and in between more and more.
  double ramp_begin = 0;
  double ramp_end = 0;
  static absl::Span<const AttributeSchema> Schema();
};

// attention_scores, attention (attention.cc)
struct AttentionAttributes {
  int64_t heads = 0;
  double scale = 1;  // of scores
  // Positions that a row sees, its own the last; where it also looks ahead, as
  // many on the other side; 0: all.
  int64_t window = 0;
  double softcap = 0;  // scores become softcap * tanh(score / softcap); 0: not
  // Positions come in chunks of so many, from 0 on, and a row sees those of its
  // own; 0: all.
  int64_t chunk = 0;
  int64_t value_dim = 0;  // attention: as ValuesAttributes
  // Above 0: scores of a row at position p are multiplied by 1 + temperature *
  // ln(1 + floor((p + temperature_offset) / temperature_period)), before a cap
  // (Llama 4, Ministral 3).
  double temperature = 0;
  int64_t temperature_period = 1;
  int64_t temperature_offset = 0;
  // Above 0: scores become less by a slope of their head for each position that
  // lies between (ALiBi: Press et al. 2021, arXiv:2108.12409). The slopes of
  // 2^n heads are 2^(-alibi i / 2^n), i from 1 on; of other numbers of heads,
  // the first 2^n likewise, the rest every second slope of twice as many.
  double alibi = 0;
  static absl::Span<const AttributeSchema> Schema();
};

// attention_values (attention.cc)
struct ValuesAttributes {
  int64_t value_dim = 0;  // numbers of a key that are its value; 0: all
  static absl::Span<const AttributeSchema> Schema();
};

// head_matmul, concat_heads (heads.cc)
struct HeadAttributes {
  int64_t heads = 1;
  static absl::Span<const AttributeSchema> Schema();
};

// slice (embed.cc)
struct SliceAttributes {
  int64_t begin = 0;
  int64_t size = 0;
  static absl::Span<const AttributeSchema> Schema();
};

// experts.cc
struct TopKAttributes {
  int64_t k = 0;
  bool normalize = false;
  double least_sum = 0;  // what p is divided by is at least this
  // Columns stand in so many groups of equal size; only those of the
  // `groups_used` groups are chosen from whose `group_best` largest columns
  // have the largest sums.
  int64_t groups = 1;
  int64_t groups_used = 1;
  int64_t group_best = 1;
  // Above 0: see the op.
  double margin = 0;
  static absl::Span<const AttributeSchema> Schema();
};
struct ExpertMatmulAttributes {  // expert_add and expert_mul too
  int64_t experts = 0;
  static absl::Span<const AttributeSchema> Schema();
};

// recurrent.cc
enum class ConvActivation : uint8_t { kNone, kSilu };
struct ShortConvAttributes {
  ConvActivation activation = ConvActivation::kNone;
  static absl::Span<const AttributeSchema> Schema();
};
// Which of n heads of keys head h of H has: h / (H / n), or h modulo n.
enum class HeadOrder : uint8_t { kGrouped, kTiled };
struct DeltaRuleAttributes {
  double scale = 1;
  HeadOrder key_heads = HeadOrder::kGrouped;
  static absl::Span<const AttributeSchema> Schema();
};

// fused_matmul (matmul.cc); read and written as MatmulParts (fused_matmul.h).
enum class FusedNorm : uint8_t { kRms, kLayer };
enum class FusedEpilogue : uint8_t {
  kStore,
  kResidual,
  kSiluGate,
  kSiluGateQuantize,
  kGeluGate,
  kGeluGateQuantize,
  kClampedGate,
  kClampedGateQuantize,
};
struct FusedMatmulAttributes {
  std::optional<double> eps;  // there is a norm
  FusedNorm norm = FusedNorm::kRms;
  bool norm_bias = false;
  bool quantize = false;
  bool bias = false;
  FusedEpilogue epilogue = FusedEpilogue::kStore;
  double limit = 0;  // of clamped gates, as slope
  double slope = 0;
  static absl::Span<const AttributeSchema> Schema();
};

// fused_expert_matmul (experts.cc)
struct FusedExpertMatmulAttributes {
  int64_t experts = 0;
  FusedEpilogue epilogue = FusedEpilogue::kStore;
  double limit = 0;
  double slope = 0;
  static absl::Span<const AttributeSchema> Schema();
};

// lora_add (lora.cc)
struct LoraAddAttributes {
  std::string ranks;  // of each adapter, 0 where it has none: "8,0,16"
  static absl::Span<const AttributeSchema> Schema();
};

// all_gather (collectives.cc)
constexpr int64_t kMostRanksOfPlan = 1024;
struct AllGatherAttributes {
  int64_t rank = 0;
  int64_t ranks = 1;
  int64_t units = 1;
  int64_t parts = 1;
  int64_t columns = 0;
  static absl::Span<const AttributeSchema> Schema();
};

// slice_rows, transpose_rows (weights.cc)
struct SliceRowsAttributes {
  int64_t parts = 1;
  int64_t begin = 0;
  int64_t size = 0;
  static absl::Span<const AttributeSchema> Schema();
};

// pack_weight (weights.cc)
struct PackWeightAttributes {
  std::string layout;
  static absl::Span<const AttributeSchema> Schema();
};

}  // namespace weft
