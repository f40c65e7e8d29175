// The hyper-parameters of a model, read from a file's metadata and checked.
//
// Keys are those of the GGUF specification, `<architecture>.*`. After the
// checks every number may be used as a divisor, a dimension or a loop bound:
// dimensions are at most 2^24, so a product of two fits an int64 easily, and
// block_count is at most the number of tensors. Whether the tensors really have
// these dimensions is checked where they are taken (weights.h).
//
// A file may also hold keys that change what the model computes (soft-capping,
// ALiBi, experts, ...). A key of that kind that the architecture does not
// handle is an error: ignoring it would run another model. A key under the
// architecture's prefix that weft has never heard of may be of that kind too:
// it is named in a warning.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "loaders/gguf.h"
#include "ops/pooling.h"

namespace weft {

// A number that an architecture has beyond those that all have. Read into
// ModelConfig::numbers and obeyed by its builder.
struct ModelKey {
  absl::string_view name;  // without prefix: "attn_logit_softcapping"
  double least, most;      // anything else is an error; a flag is 0 or 1
  double otherwise;        // when the file does not have it
  bool required = false;   // it must have it
};

// Blocks behind the others that predict tokens further on, counted in
// "block_count". Of architectures that handle this key.
constexpr char kNextTokenBlocks[] = "nextn_predict_layers";

struct ModelConfig;

// How the scores of experts become weights, numbered as in files; kUnset: the
// file does not say.
enum class Gating { kUnset, kSoftmax, kSigmoid, kSoftmaxOfChosen };

// What an architecture wants read, and what it can do.
struct ModelTraits {
  enum class Norm { kRms, kLayer };
  Norm norm = Norm::kRms;
  bool rope = true;
  // Takes the factors of longrope from tensors.
  bool longrope = false;
  // Each token looks at those after it too, and what comes out are the tokens'
  // vectors.
  bool encoder = false;
  // Of encoders: what scores of a text are made of, where the file has a head
  // for them (pooling_type 4).
  Pooling ranks_by = Pooling::kFirst;
  // Of others: whether there may be such a head, on the last token.
  bool ranks = false;
  // Keys without the architecture's prefix, such as "expert_count" or
  // "attention.sliding_window", that its builder obeys. See kChangesResult in
  // model_config.cc for all of them.
  std::vector<absl::string_view> handled_keys;
  // Handled too, by name.
  std::vector<ModelKey> keys;

  // What the published models have where files leave it out. 0: a file must
  // say.
  double default_epsilon = 0;
  double default_freq_base = 10000;
  // Only some of a head's elements turn, and how many differs: a file must say.
  bool rotates_part = false;
  // Of those that handle "attention.sliding_window": the window of a file that
  // does not say, by what it says else; 0: none.
  int64_t (*default_window)(const ModelConfig&) = nullptr;
  // There is no such model without a window: a file that has none is refused.
  bool needs_window = false;
  // Every so many blocks the last (or the first) sees everything; 0: all have
  // the window; kFileSays: there is no usual number.
  static constexpr int64_t kFileSays = -1;
  int64_t window_period = 0;
  bool first_sees_all = false;
  // Half of what files have for the window lies to each side of a token. The
  // config has one side, the token itself with it.
  bool window_to_both_sides = false;
  // What YaRN makes of the size of what is rotated is in the scale of scores
  // (ModelConfig::rope_score_factor), not in sines and cosines.
  bool yarn_scales_scores = false;
  // Files without "expert_feed_forward_length": "feed_forward_length" is that
  // of all chosen experts together, not of each.
  bool experts_share_length = false;
  // What the published mixtures have where files leave it out; unset: the
  // builder knows.
  Gating default_gating = Gating::kSoftmax;
  std::optional<bool> default_weights_norm = false;
  // Their router is one of its own: a file that says another is refused.
  bool fixed_router = false;
  // Whether a block may have no heads of keys and values (or of queries), and
  // no attention; or feed_forward_length 0, and no such network.
  bool blocks_without_attention = false;
  bool blocks_without_feed_forward = false;
};

// YaRN (Peng et al. 2023, arXiv:2309.00071): which pairs of a head keep their
// frequency and which have it scaled. Pairs up to `begin` turn so often within
// the original context that they keep it, those from `end` on are scaled, and
// in between the two are mixed linearly.
struct RopeRamp {
  double begin = 0;
  double end = 0;  // 0: there is none, all pairs are scaled alike
};

struct ModelConfig {
  std::string architecture;  // `general.architecture`
  std::string name;          // `general.name`, or empty

  // Tokens the model may see at once. When there is a sliding window that the
  // architecture does not handle, this is at most the window: up to there,
  // attention with and without it are the same.
  int64_t context_length = 0;
  // As the file says.
  int64_t trained_context_length = 0;
  // Tokens; 0: none, or of the trained context or more.
  int64_t sliding_window = 0;
  // By block: whether it has a window, be it as long as the context; empty:
  // none has.
  std::vector<bool> sliding_blocks;
  bool Slides(int64_t block) const {
    return !sliding_blocks.empty() && sliding_blocks[block];
  }
  int64_t WindowOf(int64_t block) const {
    return Slides(block) ? sliding_window : 0;
  }

  int64_t embedding_length = 0;
  int64_t block_count = 0;
  // Behind them; no part of plain decoding, and not in `blocks`.
  int64_t next_token_blocks = 0;
  // Where blocks differ, these are the largest, and PerBlock has each.
  int64_t feed_forward_length = 0;
  int64_t head_count = 0;
  int64_t head_count_kv = 0;  // divides head_count; default head_count
  struct PerBlock {
    int64_t feed_forward_length, head_count, head_count_kv;
    int64_t key_length, value_length;
  };
  std::vector<PerBlock> blocks;         // block_count of them
  std::vector<PerBlock> blocks_behind;  // next_token_blocks of them
  const PerBlock& Block(int64_t block) const { return blocks[block]; }
  // By block: whether it is recurrent, where the file says
  // (`attention.recurrent_layers`); else empty.
  std::vector<bool> recurrent_blocks;
  // Elements per head; default embedding_length / head_count. Blocks with a
  // window may have others (PerBlock).
  int64_t key_length = 0;
  int64_t value_length = 0;
  // Entries of the vocabulary: those of the token list; without one,
  // `vocab_size`, and then the rows of the embedding.
  int64_t vocabulary_size = 0;

  float norm_epsilon = 0;  // of the norm that the traits name

  // Rotation (unset when the traits say there is none): the first
  // rope_dimension_count elements of a head turn, an even number, default
  // key_length. A position is multiplied by rope_position_scale (linear
  // scaling: 1 / factor) before it meets the frequencies; with a ramp, only for
  // some pairs. Sines and cosines are multiplied by rope_magnitude.
  int64_t rope_dimension_count = 0;
  float rope_freq_base = 10000;
  float rope_position_scale = 1;
  RopeRamp rope_ramp;
  float rope_magnitude = 1;
  // What scores are multiplied by; 1 unless traits say yarn_scales_scores.
  double rope_score_factor = 1;
  bool says_rope_scaling = false;  // whether the file has keys about it
  bool longrope = false;  // the frequencies are divided by factors in tensors
  // Pairs are cut into sections, each with a position of its own (M-RoPE: Wang
  // et al. 2024, arXiv:2409.12191). A token of text has the same position in
  // all, so that is plain rotation.
  bool rope_sections = false;
  // The context before it was stretched by another rotation; 0: it was not.
  int64_t original_context_length = 0;

  bool encoder = false;  // as the traits say
  Pooling pooling = Pooling::kNone;
  // Whether the file has a head that makes scores of what is pooled; how many,
  // and the names where it has them.
  bool ranks = false;
  int64_t score_count = 1;
  std::vector<std::string> labels;
  // Of architectures that handle this key: "gelu", "silu"; empty: not said.
  std::string hidden_activation;
  // Rows of the table of token types; 0: the file does not say.
  int64_t token_type_count = 0;

  // Mixture of experts: above 0 only when handled.
  int64_t expert_count = 0;
  int64_t expert_used_count = 0;  // 1 to expert_count
  // Rows of gate and up: of an expert, default feed_forward_length, and of the
  // expert that all tokens share, 0: the file does not say.
  int64_t expert_feed_forward_length = 0;
  int64_t shared_feed_forward_length = 0;
  // Whether the weights of the chosen experts are made to sum to 1, and how
  // they come of scores: by the file, or by the traits where it says nothing.
  std::optional<bool> expert_weights_norm;
  float expert_weights_scale = 1;
  Gating expert_gating = Gating::kUnset;
  int64_t expert_group_count = 1;       // divides expert_count
  int64_t expert_group_used_count = 1;  // 1 to that
  int64_t expert_shared_count = 0;
  // Blocks that have a plain network: the first so many, and of the others all
  // but each expert_interval-th (counted from the first of the model).
  int64_t leading_dense_block_count = 0;
  int64_t expert_interval = 1;
  bool HasExperts(int64_t block) const {
    return expert_count > 0 && block >= leading_dense_block_count &&
           (block + 1) % expert_interval == 0;
  }

  // `general.sampling.*`: what the model's authors suggest, by the rest of the
  // key ("temp", "top_k"), numbers that are not infinite.
  std::map<std::string, double> suggested_sampling;

  // One line each, for who runs the model: keys that nobody read, and values
  // that were put in the place of missing ones.
  std::vector<std::string> warnings;

  // The architecture's own (ModelTraits::keys): all of them are here.
  std::map<std::string, double, std::less<>> numbers;
  double Number(absl::string_view name) const {
    return numbers.find(name)->second;
  }
};

// The double that a float's shortest decimal names: 1e-05 for 1e-5f, so that
// dumps show what the file's author wrote. As a float it is the same number.
double AsWritten(float x);

// All of the above that describes the model, for those who only show it: names
// as files have them, with underscores, in order; one number, or one per block.
std::vector<std::pair<std::string, std::vector<double>>> DescribeConfig(
    const ModelConfig& config);

// `general.architecture`: which builder a file wants, before any other key is
// read.
absl::StatusOr<std::string> ReadArchitecture(const GgufFile& file);

// Errors name the key, what was found and what was expected.
absl::StatusOr<ModelConfig> ReadModelConfig(const GgufFile& file,
                                            const ModelTraits& traits = {});

}  // namespace weft
