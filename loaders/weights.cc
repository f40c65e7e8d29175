#include "loaders/weights.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace weft {
namespace {

// Of the encoder of pictures or sound that some files hold beside the language
// model: no text passes through it.
bool IsOfAnotherPart(absl::string_view name) {
  return absl::StartsWith(name, "v.") || absl::StartsWith(name, "a.") ||
         absl::StartsWith(name, "mm.");
}

bool FollowsFromMetadata(absl::string_view name) {
  absl::ConsumeSuffix(&name, ".weight");
  return absl::EndsWith(name, ".attn_rot_embd") ||
         absl::EndsWith(name, ".rotary_emb.inv_freq");
}

// Forms in which some converters write the same, joined or split, by what ends
// names of tensors.
struct OtherForm {
  absl::string_view tensor, instead;
};
constexpr OtherForm kOtherForms[] = {
    {"attn_q.weight", "attn_qkv.weight"},
    {"attn_k.weight", "attn_qkv.weight"},
    {"attn_v.weight", "attn_qkv.weight"},
    {"attn_kv_b.weight", "attn_v_b.weight"},
    {"attn_v_b.weight", "attn_kv_b.weight"},
    {"ffn_gate_exps.weight", "ffn_gate_up_exps.weight"},
    {"ffn_up_exps.weight", "ffn_gate_up_exps.weight"},
};

// The tensor that the file has in another's place, or empty.
std::string InsteadOf(const GgufFile& file, absl::string_view name) {
  for (const OtherForm& form : kOtherForms) {
    absl::string_view block = name;
    if (!absl::ConsumeSuffix(&block, form.tensor)) continue;
    if (!block.empty() && !absl::EndsWith(block, ".")) continue;
    std::string other = absl::StrCat(block, form.instead);
    if (file.FindTensor(other) != nullptr) return other;
  }
  return "";
}

absl::Span<const int64_t> WithoutTrailingOnes(absl::Span<const int64_t> dims) {
  while (!dims.empty() && dims.back() == 1) dims.remove_suffix(1);
  return dims;
}

}  // namespace

WeightReader::WeightReader(const GgufFile& file)
    : file_(file), used_(file.tensors().size(), false) {}

absl::StatusOr<const GgufTensor*> WeightReader::Optional(
    absl::string_view name, absl::Span<const int64_t> dims) {
  const GgufTensor* tensor = file_.FindTensor(name);
  if (tensor == nullptr) return tensor;
  if (WithoutTrailingOnes(dims) != WithoutTrailingOnes(tensor->dims)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "bad tensor ", QuoteForMessage(name), ": ", tensor->file->path(),
        ": its shape is ", tensor->ShapeText(), ", expected ",
        GgufShapeText(dims), ": make it agree with the metadata"));
  }
  used_[tensor - file_.tensors().data()] = true;
  return tensor;
}

absl::StatusOr<const GgufTensor*> WeightReader::Require(
    absl::string_view name, absl::Span<const int64_t> dims) {
  auto tensor = Optional(name, dims);
  if (tensor.ok() && *tensor == nullptr) {
    const std::string instead = InsteadOf(file_, name);
    if (!instead.empty()) {
      return absl::UnimplementedError(absl::StrCat(
          "no tensor ", QuoteForMessage(name), ": ", file_.path(), ": it has ",
          QuoteForMessage(instead),
          " in its place, a form that is not supported for this architecture: ",
          "convert the model to the usual form"));
    }
    return absl::NotFoundError(absl::StrCat(
        "missing tensor ", QuoteForMessage(name), ": ", file_.path(),
        ": expected shape ", GgufShapeText(dims), ": use a complete model"));
  }
  return tensor;
}

absl::StatusOr<const GgufTensor*> WeightReader::Require(
    absl::string_view name, std::initializer_list<int64_t> dims) {
  return Require(name, absl::MakeConstSpan(dims.begin(), dims.size()));
}

absl::StatusOr<const GgufTensor*> WeightReader::Optional(
    absl::string_view name, std::initializer_list<int64_t> dims) {
  return Optional(name, absl::MakeConstSpan(dims.begin(), dims.size()));
}

void WeightReader::LeaveOut(absl::string_view prefix) {
  for (size_t i = 0; i < used_.size(); ++i) {
    if (absl::StartsWith(file_.tensors()[i].name, prefix)) used_[i] = true;
  }
}

bool WeightReader::Has(absl::string_view name) const {
  return file_.FindTensor(name) != nullptr;
}

absl::Status WeightReader::CheckAllUsed() const {
  for (size_t i = 0; i < used_.size(); ++i) {
    const GgufTensor& tensor = file_.tensors()[i];
    if (used_[i] || FollowsFromMetadata(tensor.name) ||
        IsOfAnotherPart(tensor.name)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "unused tensor ", QuoteForMessage(tensor.name), ": ",
        tensor.file->path(), ": this architecture has no place for it: the ",
        "result would not be that of the model, so use one of a supported ",
        "kind"));
  }
  return absl::OkStatus();
}

}  // namespace weft
