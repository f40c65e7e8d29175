// Adapters (LoRA; Hu et al. 2021, arXiv:2106.09685) in GGUF files: for some
// matrices W of a model two small ones, so that x W^T becomes
//
//   x W^T + scale * alpha / rank * (x A^T) B^T
//
// Format (ggml-org/llama.cpp, convert_lora_to_gguf.py and src/llama-adapter.cpp
// there): `general.type` is "adapter", `adapter.type` "lora",
// `general.architecture` the model's, `adapter.lora.alpha` a number (0: no
// factor alpha / rank). For a tensor NAME of the model there are `NAME.lora_a`,
// [K,rank] in GGUF order, and `NAME.lora_b`, [rank,N]; of experts, both with
// their number as third dimension. Of token_embd.weight [K,N], a table, it is
// lora_b that has K and lora_a that has N: [rank,N] and [rank,K].
//
// Files are untrusted. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mapped_file.h"
#include "graph/graph.h"
#include "loaders/gguf.h"

namespace weft {

class LoraAdapter {
 public:
  // What it adds to one tensor of the model: of each of `parts` matrices
  // [outputs,inputs] b^T a, with a row of a and b for each rank, part after
  // part. In f32 whatever the file has; b with the factor alpha / rank.
  struct Pair {
    std::string tensor;  // its full name in the model
    int64_t inputs = 0, outputs = 0, rank = 0, parts = 1;
    std::vector<float> a;  // [parts * rank][inputs]
    std::vector<float> b;  // [parts * rank][outputs]
  };

  // Errors: those of GgufFile; metadata that is not as above; an activated
  // adapter (aLoRA); a tensor that is no half of a pair or whose shape does not
  // fit the other half; numbers that are not finite; no pair at all.
  static absl::StatusOr<std::shared_ptr<const LoraAdapter>> Open(
      const std::string& path);
  static absl::StatusOr<std::shared_ptr<const LoraAdapter>> FromFile(
      const GgufFile& file);

  const std::string& path() const { return path_; }
  // The largest rank.
  int64_t rank() const { return rank_; }
  const std::string& architecture() const { return architecture_; }
  const std::vector<Pair>& pairs() const { return pairs_; }

  // An error unless the model is of the adapter's architecture and has its
  // tensors, in these shapes.
  absl::Status CheckFits(const GgufFile& model) const;

 private:
  LoraAdapter() = default;

  std::string path_, architecture_;
  int64_t rank_ = 0;
  std::vector<Pair> pairs_;
};

struct AdapterChoice {
  std::shared_ptr<const LoraAdapter> adapter;
  // Where a step does not say.
  float scale = 1;
};

std::vector<float> AdapterScales(absl::Span<const AdapterChoice> adapters);

// The largest scale of an adapter, of either sign: far above what is of use,
// and small enough to be counted with.
inline constexpr double kLargestAdapterScale = 1e6;

// "FILE" or "FILE=SCALE", opened; what follows the last = is part of the name
// where it is no number. Errors: a scale that is too large or no number; those
// of Open.
absl::StatusOr<AdapterChoice> OpenAdapter(const std::string& text);

// Attaches them to the weights of the plain graph of `model` (ops/lora.h), with
// the input of scales; nothing without any. The graph shares the adapters'
// memory. Errors: CheckFits; too many; a tensor that others than products read
// (tables of tokens, experts, heads): such an adapter can only be merged.
absl::Status AttachAdapters(absl::Span<const AdapterChoice> adapters,
                            const GgufFile& model, Graph* graph);

// Adds them, in order and by their scales, to the tensors, which keep their
// types: a tensor is widened, added to in double precision, and rounded once,
// F32, F16 and BF16 to the nearest, quantised types as their encoder does
// (ops/quantize.h). The changed tensors are held in memory. Errors: CheckFits;
// numbers beyond what the type can hold; then `model` may be changed in part.
absl::Status MergeAdapters(absl::Span<const AdapterChoice> adapters,
                           GgufFile* model);

}  // namespace weft
