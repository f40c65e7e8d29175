// Which type each tensor of a model gets, given one word.
//
// The word is a type (`Q4_0`, `Q6_K`, `BF16`: every matrix has it) or a mix
// (`Q4_K_M`, `IQ2_XXS`: a type with more bits where errors hurt most). The
// mixes are those that GGUF files carry by these names: attention values and
// the second FFN matrix weigh most, early and late layers more than middle
// ones, and the output matrix (the embedding, when the model has none) gets
// Q6_K. Vectors, routers and position tables always keep the type they have.
//
// Types are those of llama.cpp's quantiser of August 2026, but for two things:
// rows that Q2_K and Q3_K do not fit get IQ4_NL, as they did in 2025 (2026:
// Q4_0, of the same size and further off), and MXFP4_MOE makes MXFP4 of experts
// alone, not of all tensors with three dimensions (attn_k_b, attn_v_b).
//
// A row that is no multiple of the type's block gets the next type that fits
// and loses nothing:
//   Q2_K, Q3_K, IQ types -> IQ4_NL   Q4_K -> Q5_0   Q5_K -> Q5_1
//   Q6_K, NVFP4 -> Q8_0   TQ1_0, TQ2_0, Q1_0, Q2_0 -> Q4_0
//   any block of 32 -> F16
// (graph/quantized_types.h)
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/dtype.h"
#include "loaders/name_pattern.h"

namespace weft {

// A tensor as the rules see it.
struct TensorRole {
  absl::string_view name;
  absl::Span<const int64_t> dims;  // GGUF order, dims[0] the row length
};

// The how-manieth of its kind a tensor is, from 0, and of how many.
struct TensorPlace {
  int64_t ordinal = 0;
  int64_t count = 0;
};

// What the rules need to know of the whole model.
struct MixModel {
  int64_t block_count = 0;
  int64_t heads_per_kv_head = 1;
  int64_t experts = 0;
  bool tied_output = false;  // no output.weight: the embedding is the output
  bool is_falcon = false;  // of architecture "falcon", which has its own rules
  bool is_70b = false;     // 80 blocks of heads that share keys and values
  // By name: where each tensor stands among those of its kind (attention's
  // values; down, gate and up matrices), block by block, which is what "the
  // first layers" are in models of which not each block has one. A tensor that
  // is not here is taken for one of its kind in each block.
  std::map<std::string, TensorPlace, std::less<>> places;
};

// What metadata says of a model. Heads: of its first block.
struct MixMetadata {
  absl::string_view architecture;
  int64_t block_count = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t experts = 0;
};

MixModel DescribeMixModel(const MixMetadata& metadata,
                          absl::Span<const TensorRole> tensors);

struct TypeChoice {
  bool keep = false;  // leave the tensor as it is; the rest has no meaning
  DType type = DType::kF32;
  // What was asked for; differs from `type` when its blocks do not fit the
  // rows.
  DType wanted = DType::kF32;
  // By an override: no search may choose another.
  bool fixed = false;
};

// Tensors whose types were not those wanted, since their rows are no multiple
// of the blocks: one line for all that are alike.
class TypeFallbacks {
 public:
  // `row` is the length of the tensor's rows. Nothing where it got its type.
  void Add(const std::string& tensor, int64_t row, const TypeChoice& choice);
  std::vector<std::string> Lines() const;

 private:
  struct Alike {
    int64_t row;
    DType type;
    DType wanted;
    std::vector<std::string> tensors;
  };
  std::vector<Alike> groups_;
};

// The embedding and the output, whose inputs importance matrices seldom have.
bool IsEmbeddingOrOutput(absl::string_view tensor);

// Whether a tensor is of no use in a type without the importance of its
// columns: types of so few bits. Of IQ3_XXS the embedding and the output make
// do without.
bool NeedsImportance(DType type, absl::string_view tensor);
// The type for such a tensor that cannot have one: the smallest that makes do.
DType TypeWithoutImportance(DType type);
// The type itself, or the next that rows of so many elements are a multiple of.
DType FitToRows(DType type, int64_t row_elements);
// The block of a name such as "blk.12.attn_v.weight".
std::optional<int64_t> BlockOfTensor(absl::string_view name);
// What general.file_type says of a file most of whose weights have this type.
uint32_t FileTypeOf(DType type);

struct MixRules;  // a row of the table in quantization_mix.cc

class QuantizationMix {
 public:
  // `overrides` are PATTERN=TYPE (see name_pattern.h); the first that matches a
  // matrix wins over the mix. Errors: unknown word or type (the message lists
  // them), a bad pattern.
  static absl::StatusOr<QuantizationMix> Parse(
      absl::string_view word, absl::Span<const std::string> overrides);

  TypeChoice Choose(const TensorRole& tensor, const MixModel& model) const;

  // Names an override that matches none of the tensors: a typing error.
  absl::Status CheckOverrides(
      absl::Span<const absl::string_view> tensor_names) const;

  // For `general.file_type`, numbered as in llama.cpp's llama_ftype.
  uint32_t file_type() const;
  // Upper case, as in file names.
  const char* name() const;
  // Whether this tensor of the mix wants its importance: NeedsImportance, and
  // matrices of Q2_K in the mix that has fewer bits than Q2_K, the mix.
  bool NeedsImportanceOf(DType type, absl::string_view tensor) const;

 private:
  struct Override {
    NamePattern pattern;
    DType type;
  };

  explicit QuantizationMix(const MixRules* rules) : rules_(rules) {}

  const MixRules* rules_;
  std::vector<Override> overrides_;
};

}  // namespace weft
