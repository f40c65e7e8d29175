// EmbeddingGemma (Vera et al. 2025, arXiv:2509.20354): Gemma 3 that looks in
// both directions, with windows half of which lie to each side, and two
// products behind the mean, without biases or activations.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/encoder.h"
#include "loaders/architectures/gemma3.h"

namespace weft {
namespace {

constexpr char kFirstIn[] = "dense_2_feat_in";
constexpr char kFirstOut[] = "dense_2_feat_out";
constexpr char kSecondIn[] = "dense_3_feat_in";
constexpr char kSecondOut[] = "dense_3_feat_out";

ValueId Head(ModelBuilder& m, ValueId pooled) {
  const auto number = [&m](const char* key) {
    return static_cast<int64_t>(m.config.Number(key));
  };
  const ValueId x =
      m.Linear("dense_2", pooled, number(kFirstOut), number(kFirstIn));
  if (!m.HasTensor("dense_3.weight")) return x;
  return m.Linear("dense_3", x, number(kSecondOut), number(kSecondIn));
}

void Build(ModelBuilder& m) {
  const RopeOptions global = m.RopeOf(RopeStyle::kHalves);
  const ValueId x = Gemma3Blocks(m, global, DefaultAttention(m.config));
  GiveVectors(m, RmsNorm(m, "output_norm", x), Head);
}

ModelTraits Traits() {
  ModelTraits traits = EncoderTraits();
  traits.norm = ModelTraits::Norm::kRms;
  traits.rope = true;
  traits.default_epsilon = 1e-6;
  traits.default_freq_base = 1e6;
  traits.handled_keys.push_back("attention.sliding_window");
  traits.needs_window = true;
  traits.window_period = 6;
  traits.window_to_both_sides = true;
  constexpr double kMost = 1 << 24;
  traits.keys = {kGemma3LocalBase,
                 {kFirstIn, 1, kMost, 1},
                 {kFirstOut, 1, kMost, 1},
                 {kSecondIn, 1, kMost, 1},
                 {kSecondOut, 1, kMost, 1}};
  return traits;
}

}  // namespace

const Architecture kGemmaEmbedding = {"gemma-embedding", Traits(), Build};

}  // namespace weft
