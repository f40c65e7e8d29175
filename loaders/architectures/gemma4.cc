// Gemma 4 (Google DeepMind 2026), its language models: Gemma 3 whose blocks
// without a window have longer heads, fewer heads of keys and values, and
// rotate a part of each head.
//
// Scores are not scaled; values are normalised without a weight, and are the
// keys before their norm where one of these blocks has no matrix for them. Each
// block ends with a number that multiplies all of x. Norm weights are stored as
// they are used.
//
// E2B and E4B keep a table of a vector per token and block, which is added to a
// projection of the embedding and gates what a small network adds at the end of
// each block; rows of it are read where the file is mapped. Their last blocks
// write no keys and values of their own: they read those of the last block of
// their kind, with a window or without, that does.
//
// 26B-A4B has experts beside the network of each block. Their router reads x as
// it is between attention and network, normalised, times a vector and divided
// by the root of its length; norms stand before the experts, behind each of the
// two, and behind their sum.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"

namespace weft {
namespace {

constexpr char kLogitCap[] = "final_logit_softcapping";
constexpr char kLocalBase[] = "rope.freq_base_swa";
constexpr char kLocalDimensions[] = "rope.dimension_count_swa";
constexpr char kSharing[] = "attention.shared_kv_layers";
constexpr char kPerBlock[] = "embedding_length_per_layer_input";

int64_t Count(const ModelConfig& c, const char* key) {
  return static_cast<int64_t>(c.Number(key));
}

// f32[T, blocks * n]: what each block is told of the tokens; kNone: nothing.
ValueId TokensPerBlock(ModelBuilder& m, ValueId embedded) {
  const ModelConfig& c = m.config;
  const int64_t n = Count(c, kPerBlock);
  if (n == 0) return kNone;
  const int64_t all = n * c.block_count;
  const ValueId table =
      m.Matrix("per_layer_token_embd", c.vocabulary_size, all);
  m.Name("per_layer_token_embd");
  const ValueId of_tokens = m.Scale(m.Embed(m.ids, table), std::sqrt(n));
  const ValueId projected = m.Scale(
      m.Linear("per_layer_model_proj", embedded, all, c.embedding_length),
      1 / std::sqrt(c.embedding_length));
  const ValueId of_context =
      NormByHead(m, "per_layer_proj_norm", projected, c.block_count, n);
  m.Name("per_layer_input");
  return m.Scale(m.Add(of_context, of_tokens), 1 / std::sqrt(2.0));
}

// What it adds at the end of a block.
ValueId AddTokensOfBlock(ModelBuilder& m, int64_t block, ValueId per_block,
                         ValueId x) {
  const std::string blk = BlockPrefix(block);
  const int64_t d = m.config.embedding_length;
  const int64_t n = Count(m.config, kPerBlock);
  const ValueId gate = m.Linear(blk + "inp_gate", x, n, d);
  m.Name(blk + "inp_act");
  const ValueId active = m.Gelu(gate, GeluApproximation::kTanh);
  m.Name(blk + "inp_gated");
  const ValueId gated = m.Mul(active, m.Slice(per_block, block * n, n));
  const ValueId added = m.Linear(blk + "proj", gated, d, n);
  return Residual(m, blk + "inp_residual", RmsNorm(m, blk + "post_norm", added),
                  x);
}

// Whether values of blocks without a window are their keys: all of these blocks
// have a matrix for values, or none.
bool ValuesAreKeys(const ModelBuilder& m) {
  for (int64_t block = 0; block < m.config.block_count; ++block) {
    if (m.config.Slides(block)) continue;
    return !m.HasTensor(BlockPrefix(block) + "attn_v.weight");
  }
  return false;
}

// Keys, and values or what stands for them, of the norm x.
Cache OwnCache(ModelBuilder& m, int64_t block, ValueId x,
               const RopeOptions& rope, bool values_are_keys) {
  const ModelConfig& c = m.config;
  const ModelConfig::PerBlock& b = c.Block(block);
  const std::string blk = BlockPrefix(block);
  const int64_t keys = b.head_count_kv * b.key_length;
  const int64_t values = b.head_count_kv * b.value_length;
  Heads heads;
  heads.k = heads.v = m.Linear(blk + "attn_k", x, keys, c.embedding_length);
  if (!values_are_keys) {
    heads.v = m.Linear(blk + "attn_v", x, values, c.embedding_length);
  }
  heads.k = NormByHead(m, blk + "attn_k_norm", heads.k, b.head_count_kv,
                       b.key_length);
  m.Name(blk + "rope_k");
  heads.k = m.Rope(heads.k, m.positions, rope);
  m.Name(blk + "attn_v_norm");
  heads.v =
      m.RmsNorm(heads.v, kNone, AsWritten(c.norm_epsilon), b.head_count_kv);
  return WriteCache(m, block, heads);
}

// Of blocks that read another's cache some files have them all the same.
void IgnoreOwnCache(ModelBuilder& m, int64_t block) {
  const ModelConfig::PerBlock& b = m.config.Block(block);
  const std::string blk = BlockPrefix(block);
  const int64_t d = m.config.embedding_length;
  m.Ignore(blk + "attn_k.weight", {d, b.head_count_kv * b.key_length});
  m.Ignore(blk + "attn_v.weight", {d, b.head_count_kv * b.value_length});
  m.Ignore(blk + "attn_k_norm.weight", {b.key_length});
}

ValueId FeedForward(ModelBuilder& m, int64_t block, ValueId x) {
  const ModelConfig& c = m.config;
  const std::string blk = BlockPrefix(block);
  const int64_t d = c.embedding_length;
  const ValueId fed = GatedFeedForward(
      m, block, RmsNorm(m, blk + "ffn_norm", x), Activation::kGeluTanh);
  if (c.expert_count == 0) return fed;
  const ValueId scale = m.Vector(blk + "ffn_gate_inp.scale", {d});
  m.Name(blk + "ffn_gate_inp_norm");
  ExpertOptions options = ExpertsOf(c);
  options.router_input =
      m.Scale(m.RmsNorm(x, scale, AsWritten(c.norm_epsilon)), 1 / std::sqrt(d));
  options.activation = Activation::kGeluTanh;
  const ValueId chosen =
      Experts(m, blk, RmsNorm(m, blk + "pre_ffw_norm_2", x), options);
  m.Name(blk + "ffn_all");
  return m.Add(RmsNorm(m, blk + "post_ffw_norm_1", fed),
               RmsNorm(m, blk + "post_ffw_norm_2", chosen));
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  RopeOptions global = m.RopeOf(RopeStyle::kHalves);
  // Which part of a head turns is in them.
  global.factors = m.RopeFactors("rope_freqs.weight");
  RopeOptions local = m.UnscaledRopeOf(RopeStyle::kHalves);
  local.base = c.Number(kLocalBase);
  AttentionOptions attention;
  const int64_t own_blocks = c.block_count - Count(c, kSharing);
  if (own_blocks < 1) {
    return m.RefuseKey(kSharing, Count(c, kSharing),
                       absl::StrCat("0 to ", c.block_count - 1));
  }
  Cache last[2] = {{kNone, kNone}, {kNone, kNone}};  // by kind of block
  const bool values_are_keys = ValuesAreKeys(m);

  ValueId x = m.Scale(EmbedTokens(m), std::sqrt(c.embedding_length));
  const ValueId per_block = TokensPerBlock(m, x);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ModelConfig::PerBlock& b = c.Block(block);
    const bool slides = c.Slides(block);
    if (slides) {
      local.head_dim = b.key_length;
      local.rope_dims = c.Number(kLocalDimensions) > 0
                            ? Count(c, kLocalDimensions)
                            : b.key_length;
    }
    attention.window = c.WindowOf(block);
    const RopeOptions& rope = slides ? local : global;
    const ValueId normed = RmsNorm(m, blk + "attn_norm", x);
    ValueId q = m.Linear(blk + "attn_q", normed, b.head_count * b.key_length,
                         c.embedding_length);
    q = NormByHead(m, blk + "attn_q_norm", q, b.head_count, b.key_length);
    m.Name(blk + "rope_q");
    q = m.Rope(q, m.positions, rope);
    if (block < own_blocks) {
      last[slides] =
          OwnCache(m, block, normed, rope, !slides && values_are_keys);
    } else if (last[slides].keys == kNone) {
      return m.RefuseKey(
          kSharing, Count(c, kSharing),
          absl::StrCat("so few that block ", block, " can share the keys of ",
                       "an earlier one ", slides ? "with" : "without",
                       " a window"));
    } else {
      IgnoreOwnCache(m, block);
    }
    const ValueId attended = Attend(m, block, q, last[slides], attention);
    x = Residual(m, blk + "attn_residual",
                 RmsNorm(m, blk + "post_attention_norm", attended), x);
    const ValueId fed = FeedForward(m, block, x);
    x = Residual(m, blk + "ffn_residual",
                 RmsNorm(m, blk + "post_ffw_norm", fed), x);
    if (per_block != kNone) x = AddTokensOfBlock(m, block, per_block, x);
    const double scale = m.OptionalNumber(blk + "layer_output_scale.weight", 1);
    if (scale != 1) x = m.Scale(x, scale);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  ValueId logits = Logits(m, x);
  if (c.Number(kLogitCap) > 0) logits = m.Softcap(logits, c.Number(kLogitCap));
  m.graph().AddOutput("logits", logits);
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.handled_keys = {"attention.sliding_window", "expert_count"};
  traits.default_weights_norm = true;
  traits.needs_window = true;
  traits.window_period = ModelTraits::kFileSays;
  traits.default_epsilon = 1e-6;
  traits.default_freq_base = 1e6;
  traits.keys = {{kLogitCap, 0, 1e6, 30},
                 {kLocalBase, 1, 1e9, 10000},
                 {kLocalDimensions, 0, 1 << 24, 0},
                 {kSharing, 0, 1 << 16, 0},
                 {kPerBlock, 0, 1 << 24, 0}};
  return traits;
}

}  // namespace

const Architecture kGemma4 = {"gemma4", Traits(), Build};

}  // namespace weft
