#include "loaders/safetensors/safetensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "loaders/gguf_value.h"
#include "loaders/safetensors/json_text.h"

namespace weft {
namespace {

using nlohmann::json;

constexpr char kSingle[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
// The format's own bound.
constexpr uint64_t kMaxHeader = 100 * 1000 * 1000;
// An entry has eight values, names included, and no model near this many
// tensors is known.
constexpr JsonLimits kHeaderLimits = {kMaxHeader, int64_t{1} << 23, 8};
constexpr JsonLimits kIndexLimits = {kMaxHeader, int64_t{1} << 22, 8};
constexpr int64_t kMaxElements = int64_t{1} << 40;
constexpr size_t kMaxDims = 8;

struct TypeBytes {
  absl::string_view name;
  int64_t bytes;
};
constexpr TypeBytes kTypes[] = {
    {"BOOL", 1}, {"U8", 1},      {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
    {"I16", 2},  {"U16", 2},     {"F16", 2}, {"BF16", 2},    {"I32", 4},
    {"U32", 4},  {"F32", 4},     {"F64", 8}, {"I64", 8},     {"U64", 8},
    {"C64", 8},  {"F8_E8M0", 1},
};

absl::Status BadFile(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "bad safetensors file: ", path, ": ", why, ": download it again"));
}

absl::Status BadTensor(const std::string& path, absl::string_view name,
                       absl::string_view why) {
  return BadFile(path,
                 absl::StrCat("tensor ", QuoteForMessage(name), ": ", why));
}

// A number of the header; -1: none, or none that may stand there.
int64_t Number(const json& value) {
  if (!value.is_number_unsigned()) return -1;
  const uint64_t number = value.get<uint64_t>();
  return number <= uint64_t{INT64_MAX} ? static_cast<int64_t>(number) : -1;
}

absl::StatusOr<SafetensorsTensor> ReadEntry(
    const std::shared_ptr<const MappedFile>& file, const std::string& name,
    const json& entry, absl::Span<const uint8_t> data) {
  const auto bad = [&](absl::string_view why) {
    return BadTensor(file->path(), name, why);
  };
  if (!entry.is_object()) return bad("its entry is no object");
  const auto type = entry.find("dtype");
  const auto shape = entry.find("shape");
  const auto place = entry.find("data_offsets");
  if (type == entry.end() || !type->is_string() || shape == entry.end() ||
      !shape->is_array() || place == entry.end() || !place->is_array() ||
      place->size() != 2) {
    return bad("its entry has no dtype, shape or data_offsets");
  }
  SafetensorsTensor tensor;
  tensor.name = name;
  tensor.type = type->get<std::string>();
  tensor.file = file;
  const int64_t type_bytes = SafetensorsTypeBytes(tensor.type);
  if (type_bytes == 0) {
    return bad(absl::StrCat("the type ", QuoteForMessage(tensor.type),
                            " is not known"));
  }
  if (shape->size() > kMaxDims) {
    return bad(absl::StrCat("it has more than ", kMaxDims, " dimensions"));
  }
  int64_t elements = 1;
  for (const json& dim : *shape) {
    const int64_t length = Number(dim);
    if (length < 0 || length > kMaxElements ||
        (length > 0 && elements > kMaxElements / length)) {
      return bad("a dimension of its shape is no number, or too large");
    }
    elements *= length;
    tensor.shape.push_back(length);
  }
  const int64_t begin = Number((*place)[0]);
  const int64_t end = Number((*place)[1]);
  if (begin < 0 || end < begin || end > static_cast<int64_t>(data.size())) {
    return bad(absl::StrCat("its bytes lie beyond the end: the file has ",
                            data.size(), " of tensors"));
  }
  if (end - begin != elements * type_bytes) {
    return bad(absl::StrCat("it has ", end - begin, " bytes, but ",
                            tensor.Describe(), " takes ",
                            elements * type_bytes));
  }
  tensor.data = data.subspan(begin, end - begin);
  return tensor;
}

// A name that cannot lead out of the folder.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' &&
         name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

int64_t SafetensorsTensor::elements() const {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  return count;
}

std::string SafetensorsTensor::Describe() const {
  return absl::StrCat(type, " [", absl::StrJoin(shape, ", "), "]");
}

int64_t SafetensorsTypeBytes(absl::string_view type) {
  for (const TypeBytes& row : kTypes) {
    if (row.name == type) return row.bytes;
  }
  return 0;
}

absl::StatusOr<std::vector<SafetensorsTensor>> ParseSafetensors(
    std::shared_ptr<const MappedFile> file) {
  const std::string& path = file->path();
  const absl::Span<const uint8_t> bytes = file->bytes();
  uint64_t header_bytes;
  if (bytes.size() < sizeof(header_bytes)) {
    return BadFile(path, "it is cut off before its header");
  }
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  if (header_bytes > kMaxHeader) {
    return BadFile(path, absl::StrCat("its header has ", header_bytes,
                                      " bytes, the most is ", kMaxHeader));
  }
  if (header_bytes > bytes.size() - sizeof(header_bytes)) {
    return BadFile(path, absl::StrCat("its header has ", header_bytes,
                                      " bytes, the file has ", bytes.size()));
  }
  const absl::string_view text(
      reinterpret_cast<const char*>(bytes.data()) + sizeof(header_bytes),
      header_bytes);
  WEFT_ASSIGN_OR_RETURN(
      const json header,
      ParseJsonObject(text, absl::StrCat(path, ": its header"), kHeaderLimits));
  const absl::Span<const uint8_t> data =
      bytes.subspan(sizeof(header_bytes) + header_bytes);
  std::vector<SafetensorsTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    WEFT_ASSIGN_OR_RETURN(SafetensorsTensor tensor,
                          ReadEntry(file, name, entry, data));
    tensors.push_back(std::move(tensor));
  }
  // Empty ones before what begins at the same byte.
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
                     if (a.data.data() != b.data.data()) {
                       return a.data.data() < b.data.data();
                     }
                     return a.data.size() < b.data.size();
                   });
  const uint8_t* end = data.data();
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.data.data() != end) {
      return BadTensor(path, tensor.name,
                       tensor.data.data() < end
                           ? "its bytes overlap those of another"
                           : "there is a hole before its bytes");
    }
    end = tensor.data.data() + tensor.data.size();
  }
  if (end != data.data() + data.size()) {
    return BadFile(path, absl::StrCat(data.data() + data.size() - end,
                                      " bytes at its end belong to no tensor"));
  }
  return tensors;
}

absl::Status SafetensorsFolder::AddFile(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                        MappedFile::Open(path));
  WEFT_ASSIGN_OR_RETURN(std::vector<SafetensorsTensor> tensors,
                        ParseSafetensors(file));
  for (SafetensorsTensor& tensor : tensors) {
    if (!part_of_.emplace(tensor.name, paths_.size()).second) {
      return BadTensor(path, tensor.name, "another part has it too");
    }
    tensors_.push_back(std::move(tensor));
  }
  paths_.push_back(path);
  return absl::OkStatus();
}

absl::StatusOr<SafetensorsFolder> SafetensorsFolder::Open(
    const std::string& folder) {
  SafetensorsFolder result;
  const std::string index_path = absl::StrCat(folder, "/", kIndex);
  const std::string single = absl::StrCat(folder, "/", kSingle);
  std::error_code error;
  if (!std::filesystem::exists(index_path, error)) {
    if (!std::filesystem::exists(single, error)) {
      return absl::NotFoundError(
          absl::StrCat("no safetensors: ", folder, ": it has neither ", kSingle,
                       " nor ", kIndex, ": download the folder of a model"));
    }
    WEFT_RETURN_IF_ERROR(result.AddFile(single));
    return result;
  }
  WEFT_ASSIGN_OR_RETURN(const json index,
                        ReadJsonFile(index_path, kIndexLimits));
  const auto bad = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "bad index: ", index_path, ": ", why, ": download it again"));
  };
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object()) {
    return bad("it has no object weight_map");
  }
  std::set<std::string> parts;
  for (const auto& [name, part] : map->items()) {
    if (!part.is_string() || !IsPlainName(part.get<std::string>()) ||
        !absl::EndsWith(part.get<std::string>(), ".safetensors")) {
      return bad(absl::StrCat("the part of tensor ", QuoteForMessage(name),
                              " is no name of a .safetensors file"));
    }
    parts.insert(part.get<std::string>());
  }
  std::vector<std::string> names;
  for (const std::string& part : parts) {
    WEFT_RETURN_IF_ERROR(result.AddFile(absl::StrCat(folder, "/", part)));
    names.push_back(part);
  }
  for (const auto& [name, part] : map->items()) {
    const auto found = result.part_of_.find(name);
    if (found == result.part_of_.end() ||
        names[found->second] != part.get_ref<const std::string&>()) {
      return bad(absl::StrCat("tensor ", QuoteForMessage(name), " is not in ",
                              part.get<std::string>()));
    }
  }
  if (map->size() != result.tensors_.size()) {
    return bad(absl::StrCat("the parts have ", result.tensors_.size(),
                            " tensors, it names ", map->size()));
  }
  result.paths_.push_back(index_path);
  return result;
}

}  // namespace weft
