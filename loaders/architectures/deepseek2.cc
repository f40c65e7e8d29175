// DeepSeek-V2 and V3 (DeepSeek-AI 2024, arXiv:2405.04434 and 2412.19437), and
// who took their form: R1, Kimi-K2, GLM-4.7-Flash, Mistral Large 3.
//
// Multi-head latent attention (latent_attention.h) and many small experts after
// the first blocks, with one or two that all tokens share. V2-Lite has no
// latent of queries and a softmax router. Where YaRN stretches the context, its
// magnitude is in the scale of scores; sines and cosines have none.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"
#include "loaders/architectures/latent_attention.h"

namespace weft {
namespace {

constexpr char kQueryRank[] = "attention.q_lora_rank";
constexpr char kRank[] = "attention.kv_lora_rank";
// Of heads, where key_length and value_length are those of the latent.
constexpr char kKeyLength[] = "attention.key_length_mla";
constexpr char kValueLength[] = "attention.value_length_mla";

LatentAttentionOptions OptionsOf(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const auto either = [&c](const char* of_heads, int64_t otherwise) {
    const int64_t length = static_cast<int64_t>(c.Number(of_heads));
    return length > 0 ? length : otherwise;
  };
  const int64_t query = either(kKeyLength, c.key_length);
  LatentAttentionOptions options;
  options.query_rank = static_cast<int64_t>(c.Number(kQueryRank));
  options.rank = static_cast<int64_t>(c.Number(kRank));
  options.rotated_length = c.rope_dimension_count;
  options.key_length = query - c.rope_dimension_count;
  options.value_length = either(kValueLength, c.value_length);
  options.scale = c.rope_score_factor / std::sqrt(static_cast<double>(query));
  options.rope = m.RopeOf(RopeStyle::kInterleaved);
  options.rope.head_dim = c.rope_dimension_count;
  if (options.key_length < 1) {
    m.Fail(absl::InvalidArgumentError(absl::StrCat(
        "bad metadata: ", c.architecture, ".rope.dimension_count is ",
        c.rope_dimension_count, ", expected less than the length of keys, ",
        query, ": use a file that was converted anew")));
  }
  return options;
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const LatentAttentionOptions attention = OptionsOf(m);
  const ExpertOptions experts = ExpertsOf(c);

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ValueId attended =
        LatentAttention(m, block, RmsNorm(m, blk + "attn_norm", x), attention);
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = FeedForwardOrExperts(
        m, block, RmsNorm(m, blk + "ffn_norm", x), experts);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits Traits() {
  constexpr double kMost = 1 << 24;
  ModelTraits traits;
  traits.handled_keys = ExpertKeys();
  traits.handled_keys.push_back(kNextTokenBlocks);
  traits.keys = {{kQueryRank, 0, kMost, 0},
                 {kRank, 1, kMost, 0, true},
                 {kKeyLength, 0, kMost, 0},
                 {kValueLength, 0, kMost, 0}};
  traits.yarn_scales_scores = true;
  return traits;
}

}  // namespace

const Architecture kDeepseek2 = {"deepseek2", Traits(), Build};

}  // namespace weft
