// What a family of published models is called in its folders and in GGUF files:
// tables of keys and tensors, and a function for what tables cannot say.
//
// A family is a file here and a line in family_list.h. Sources of names: the
// modelling files of transformers (keys of config.json, names of tensors), and
// the constants of gguf-py and the converters of llama.cpp (names in GGUF, and
// what is done to weights).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "loaders/convert/checkpoint_config.h"
#include "loaders/gguf_writer.h"

namespace weft {

// A key of config.json that becomes one of the file.
struct KeyRule {
  enum class Kind { kUint, kFloat, kBool };
  absl::string_view key;
  absl::string_view gguf;  // behind the architecture
  Kind kind = Kind::kUint;
  // Where config.json leaves it out, what transformers takes; unset: it is left
  // out here, too.
  std::optional<double> otherwise = std::nullopt;
  bool required = false;
};

// Which rows of a published tensor stand where. Rows are the last dimension but
// one, or the elements of a bias.
enum class Rows {
  kAll,
  // Of each head of queries (keys), those that turn together lie half a head
  // apart; here they become neighbours.
  kPairsOfQueries,
  kPairsOfKeys,
  kFirstHalf,
  kSecondHalf,
  kEven,
  kOdd,
  kFromThird,  // without the first two
};

// What is done to each number.
enum class Numbers { kAsStored, kPlusOne, kMinusExp };

struct TensorRule {
  // Name in the folder; {b} stands for a block, {e} for an expert (or a head):
  // tensors that differ in {e} are stacked in its order.
  absl::string_view from;
  // Name in the file, with {b}; empty: what texts do not need.
  absl::string_view to;
  Rows rows = Rows::kAll;
  Numbers numbers = Numbers::kAsStored;
  // Rows become columns first, in the last two dimensions.
  bool transposed = false;
  // Blocks of MXFP4 in bytes (0), and their scales (1).
  enum class Packed { kNo, kBlocks, kScales };
  Packed packed = Packed::kNo;
};

// A conversion while it is under way, for the functions of families.
class Conversion {
 public:
  Conversion(const CheckpointConfig& config, std::string architecture,
             GgufWriter* writer, std::vector<std::string>* warnings)
      : config(config),
        architecture(std::move(architecture)),
        writer(*writer),
        warnings(*warnings) {}

  const CheckpointConfig& config;
  const std::string architecture;  // `general.architecture`
  GgufWriter& writer;
  std::vector<std::string>& warnings;

  // Read before anything else: what nearly every rule depends on.
  int64_t blocks = 0, embedding = 0, heads = 0, heads_kv = 0, head_length = 0;

  // A key with the architecture before it.
  std::string Key(absl::string_view name) const;

  // Tensors of a vector that config.json gives, as F32.
  void AddVector(std::string name, std::vector<float> values);
  struct Vector {
    std::string name;
    std::vector<float> values;
  };
  std::vector<Vector> vectors;
};

struct Family {
  // "architectures" of config.json.
  std::vector<absl::string_view> names;
  absl::string_view architecture;  // `general.architecture`
  // As config.json calls them, and where it leaves them out; 0: it must not
  // (or, of heads_kv, as many as heads, and of head_length, the embedding's
  // share).
  struct Dimensions {
    absl::string_view blocks = "num_hidden_layers";
    absl::string_view embedding = "hidden_size";
    absl::string_view heads = "num_attention_heads";
    absl::string_view heads_kv = "num_key_value_heads";
    absl::string_view head_length = "head_dim";
    int64_t usual_heads = 0, usual_heads_kv = 0, usual_head_length = 0;
  } dimensions;
  std::vector<KeyRule> keys;
  std::vector<TensorRule> tensors;
  // Names that `hidden_act` or `hidden_activation` may have.
  std::vector<absl::string_view> activations = {"silu"};
  // Sets what tables cannot say and refuses what cannot be said; may be null.
  absl::Status (*finish)(Conversion& conversion) = nullptr;
  // Where several pre-tokenisers cut alike: the name in files of this family.
  absl::string_view pretokenizer = "";
  // Whether texts are turned into vectors: then how they are pooled is read.
  bool encoder = false;
};

// The published family of this "architectures"; null: none is known.
const Family* FindFamily(absl::string_view name);
// All names, in order.
std::vector<std::string> FamilyNames();

// What most decoders have: context, network, norms, vocabulary.
std::vector<KeyRule> DecoderKeys();
// Embedding, the usual norms before attention and network, separate
// projections, a gated network, output.
std::vector<TensorRule> DecoderTensors();
// The same with other names for the norms of a block.
std::vector<TensorRule> DecoderTensorsWithoutNorms();

std::vector<KeyRule> Joined(std::vector<KeyRule> a, std::vector<KeyRule> b);
// Rules of `b` take the place of those of `a` with the same source.
std::vector<TensorRule> Joined(std::vector<TensorRule> a,
                               std::vector<TensorRule> b);

// Rotation: base, part of a head that turns, and how it is stretched. For the
// `finish` of families; `partial` is what share of a head turns where
// config.json does not say.
struct RopeRules {
  double partial = 1.0;
  // Always writes how much of a head turns.
  bool writes_dimensions = false;
  // The factors of longrope go into tensors.
  bool longrope = false;
  // Files of this family are stretched with whole numbers of pairs at the
  // ends of the ramp, whatever "truncate" says.
  bool ignores_truncate = false;
};
absl::Status SetRope(Conversion& conversion, const RopeRules& rules = {});

// That config.json's "layer_types", if any, alternate so that of each `period`
// blocks the last (or the first) sees everything and all others have a window;
// period 1: that none has one.
absl::Status CheckWindows(const Conversion& conversion, int64_t period,
                          bool first_sees_all = false);

}  // namespace weft
