#include "loaders/gguf.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace weft {
namespace {

constexpr char kSplitNumber[] = "split.no";  // from 0
constexpr char kSplitCount[] = "split.count";
constexpr char kSplitTensors[] = "split.tensors.count";

std::string PartPath(absl::string_view prefix, uint64_t part, uint64_t count) {
  return absl::StrFormat("%s-%05d-of-%05d.gguf", prefix, part, count);
}

// "x" of "x-00002-of-00003.gguf"; empty when the name is not of that form or
// has another count.
std::string SplitPrefix(absl::string_view path, uint64_t count) {
  const std::string suffix = absl::StrFormat("-of-%05d.gguf", count);
  if (!absl::EndsWith(path, suffix)) return "";
  path.remove_suffix(suffix.size());
  size_t digits = 0;
  while (digits < path.size() &&
         absl::ascii_isdigit(path[path.size() - 1 - digits])) {
    ++digits;
  }
  if (digits < 5 || digits == path.size()) return "";
  path.remove_suffix(digits);
  if (!absl::ConsumeSuffix(&path, "-")) return "";
  return std::string(path);
}

absl::StatusOr<uint64_t> SplitCount(const GgufMetadata& metadata) {
  auto count = metadata.OptionalUint(kSplitCount);
  if (!count.ok()) return count.status();
  return count->value_or(1);
}

}  // namespace

GgufFile::GgufFile(GgufContents first_part)
    : GgufMetadata(std::move(first_part.metadata)),
      version_(first_part.version) {}

const GgufTensor* GgufFile::FindTensor(absl::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

absl::Status GgufFile::AddTensors(std::vector<GgufTensor> tensors) {
  for (GgufTensor& tensor : tensors) {
    if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "bad split model: ", tensor.file->path(), ": tensor ",
          QuoteForMessage(tensor.name),
          " is in an earlier part too: use parts of the same split"));
    }
    tensors_.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

absl::StatusOr<GgufFile> GgufFile::Open(const std::string& path) {
  auto mapped = MappedFile::Open(path);
  if (!mapped.ok()) return mapped.status();
  auto contents = ParseGguf(*mapped);
  if (!contents.ok()) return contents.status();
  auto count = SplitCount(contents->metadata);
  if (!count.ok()) return count.status();
  if (*count > 1) return OpenSplit(path, *count);
  return FromContents(*std::move(contents), **mapped);
}

absl::StatusOr<GgufFile> GgufFile::FromFile(
    std::shared_ptr<const MappedFile> file) {
  auto contents = ParseGguf(file);
  if (!contents.ok()) return contents.status();
  auto count = SplitCount(contents->metadata);
  if (!count.ok()) return count.status();
  if (*count > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("model is incomplete: ", file->path(), ": it is one of ",
                     *count, " parts: join the parts into one file"));
  }
  return FromContents(*std::move(contents), *file);
}

absl::StatusOr<GgufFile> GgufFile::FromContents(GgufContents contents,
                                                const MappedFile& file) {
  std::vector<GgufTensor> tensors = std::move(contents.tensors);
  GgufFile result(std::move(contents));
  result.file_bytes_ = static_cast<int64_t>(file.bytes().size());
  const absl::Status status = result.AddTensors(std::move(tensors));
  if (!status.ok()) return status;
  return result;
}

absl::StatusOr<GgufFile> GgufFile::OpenSplit(const std::string& path,
                                             uint64_t part_count) {
  const std::string prefix = SplitPrefix(path, part_count);
  if (prefix.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot find the parts of a split model: ", path, ": it is one of ",
        part_count, " parts: name it like ", PartPath("model", 1, part_count)));
  }
  std::vector<GgufContents> parts;
  int64_t file_bytes = 0;
  for (uint64_t part = 0; part < part_count; ++part) {
    const std::string part_path = PartPath(prefix, part + 1, part_count);
    auto mapped = MappedFile::Open(part_path);
    if (!mapped.ok()) {
      return absl::NotFoundError(absl::StrCat(
          "part ", part + 1, " of ", part_count,
          " of a split model cannot be opened: ", mapped.status().message(),
          ": put all parts in one folder"));
    }
    file_bytes += static_cast<int64_t>((*mapped)->bytes().size());
    auto contents = ParseGguf(*std::move(mapped));
    if (!contents.ok()) return contents.status();
    auto number = contents->metadata.GetUint(kSplitNumber);
    if (!number.ok()) return number.status();
    auto count = contents->metadata.GetUint(kSplitCount);
    if (!count.ok()) return count.status();
    if (*number != part || *count != part_count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "bad split model: ", part_path, ": it says part ", *number,
          " (from 0) of ", *count, ", expected part ", part, " of ", part_count,
          ": use parts of the same split with their own names"));
    }
    parts.push_back(*std::move(contents));
  }

  std::vector<std::vector<GgufTensor>> tensors;
  size_t tensor_count = 0;
  for (GgufContents& part : parts) {
    tensor_count += part.tensors.size();
    tensors.push_back(std::move(part.tensors));
  }
  GgufFile result(std::move(parts[0]));
  result.file_bytes_ = file_bytes;
  result.part_count_ = static_cast<int>(part_count);
  for (std::vector<GgufTensor>& part : tensors) {
    const absl::Status status = result.AddTensors(std::move(part));
    if (!status.ok()) return status;
  }
  auto announced = result.OptionalUint(kSplitTensors);
  if (!announced.ok()) return announced.status();
  if (announced->has_value() && **announced != tensor_count) {
    return result.BadValue(
        kSplitTensors, absl::StrCat(**announced),
        absl::StrCat("the ", tensor_count, " tensors of all parts"));
  }
  return result;
}

}  // namespace weft
