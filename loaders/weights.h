// Takes the tensors of a model by name, with the shape that its
// hyper-parameters demand, and makes sure that none is left over.
//
// A builder asks for each weight through one WeightReader and calls
// CheckAllUsed at the end: a missing tensor, one of another shape and one that
// nobody asked for are errors, so a model never runs with less than its file
// holds. Not thread-safe (it keeps account of what was taken).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loaders/gguf.h"

namespace weft {

// Where the tensors of a model come from: a file, or (loaders/synthesize) the
// model itself, which says by asking what a file of it would have.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // `dims` in GGUF order, row length first; the tensor must have exactly these,
  // but for dimensions of 1 at the end.
  // Taking a tensor twice is fine (a tied embedding).
  virtual absl::StatusOr<const GgufTensor*> Require(
      absl::string_view name, absl::Span<const int64_t> dims) = 0;
  // Null when there is no such tensor; another shape is an error here too.
  virtual absl::StatusOr<const GgufTensor*> Optional(
      absl::string_view name, absl::Span<const int64_t> dims) = 0;
  // Counts tensors whose names begin so as taken: parts that are not run.
  virtual void LeaveOut(absl::string_view prefix) = 0;
  // Whether there is a tensor of this name, of whatever shape.
  virtual bool Has(absl::string_view name) const = 0;
  // An error when there are tensors that were never taken.
  virtual absl::Status CheckAllUsed() const = 0;
};

class WeightReader : public TensorSource {
 public:
  // `file` must outlive the reader and the pointers that it gives.
  explicit WeightReader(const GgufFile& file);

  absl::StatusOr<const GgufTensor*> Require(
      absl::string_view name, absl::Span<const int64_t> dims) override;
  absl::StatusOr<const GgufTensor*> Require(
      absl::string_view name, std::initializer_list<int64_t> dims);
  absl::StatusOr<const GgufTensor*> Optional(
      absl::string_view name, absl::Span<const int64_t> dims) override;
  absl::StatusOr<const GgufTensor*> Optional(
      absl::string_view name, std::initializer_list<int64_t> dims);

  void LeaveOut(absl::string_view prefix) override;
  bool Has(absl::string_view name) const override;

  // Names the first tensor of the file that was never taken. Tables of plain
  // RoPE frequencies that old converters stored in every block do not count
  // (`*.attn_rot_embd`, `*.rotary_emb.inv_freq`): they follow from the
  // metadata. Nor do those of an encoder of pictures or sound (`v.*`, `a.*`,
  // `mm.*`), which no text passes through.
  absl::Status CheckAllUsed() const override;

 private:
  const GgufFile& file_;
  std::vector<bool> used_;  // by index in file_.tensors()
};

}  // namespace weft
