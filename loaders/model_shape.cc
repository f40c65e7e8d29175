// The JSON reader, of files and of the known shapes (published_shapes.json).

#include "loaders/model_shape.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "loaders/published_shapes.inc"
#include "nlohmann/json.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr int64_t kControlAndByteTokens = 259;
constexpr int64_t kMaxDimension = int64_t{1} << 24;
constexpr int64_t kMaxMatrix = int64_t{1} << 38;
constexpr int64_t kMaxExperts = 1024;
constexpr int64_t kMaxLayers = int64_t{1} << 12;

absl::Status ShapeError(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("bad model shape: ", where, ": ", what));
}

// Reads one JSON object; an unknown key is an error, so that a typing mistake
// cannot pass for a default.
class ShapeReader {
 public:
  ShapeReader(const std::string& path, const Json& json)
      : path_(path), json_(json) {}

  absl::StatusOr<ModelShape> Run() {
    if (!json_.is_object()) {
      return ShapeError(path_,
                        "it holds no JSON object: write { \"key\": ... }");
    }
    shape_.name = path_;
    Text("name", &shape_.name);
    Text("architecture", &shape_.architecture);
    Integer("embedding_length", &shape_.embedding_length);
    Integer("block_count", &shape_.block_count);
    Integer("feed_forward_length", &shape_.feed_forward_length);
    Integer("head_count", &shape_.head_count);
    Integer("head_count_kv", &shape_.head_count_kv);
    Integer("key_length", &shape_.key_length);
    Integer("vocabulary_size", &shape_.vocabulary_size);
    Integer("context_length", &shape_.context_length);
    Number("rope_freq_base", &shape_.rope_freq_base);
    Number("norm_epsilon", &shape_.norm_epsilon);
    Integer("rope_dimension_count", &shape_.rope_dimension_count);
    Keys("keys");
    Texts("optional_tensors", &shape_.optional_tensors);
    if (const Json* value = Take("tied_output")) {
      if (value->is_boolean()) {
        shape_.tied_output = value->get<bool>();
      } else {
        Fail("tied_output", "true or false");
      }
    }
    if (status_.ok() && taken_ != json_.size()) {
      return ShapeError(
          path_, absl::StrCat("it has a key beside ", keys_, ": remove it"));
    }
    if (!status_.ok()) return status_;
    return shape_;
  }

 private:
  const Json* Take(const char* key) {
    absl::StrAppend(&keys_, keys_.empty() ? "" : " ", key);
    const auto found = json_.find(key);
    if (found == json_.end()) return nullptr;
    ++taken_;
    return &*found;
  }
  void Fail(const char* key, const char* expected) {
    if (status_.ok()) {
      status_ = ShapeError(path_, absl::StrCat(key, ": write ", expected));
    }
  }
  void Text(const char* key, std::string* out) {
    const Json* value = Take(key);
    if (value == nullptr) return;
    if (!value->is_string()) return Fail(key, "a string");
    *out = value->get<std::string>();
  }
  void Integer(const char* key, int64_t* out) {
    const Json* value = Take(key);
    if (value == nullptr) return;
    if (!value->is_number_integer()) return Fail(key, "a whole number");
    *out = value->get<int64_t>();
  }
  void Number(const char* key, double* out) {
    const Json* value = Take(key);
    if (value == nullptr) return;
    if (!value->is_number()) return Fail(key, "a number");
    *out = value->get<double>();
  }

  void Keys(const char* key) {
    constexpr char kExpected[] =
        "an object of numbers, or arrays of whole ones for the blocks";
    const Json* value = Take(key);
    if (value == nullptr) return;
    if (!value->is_object()) return Fail(key, kExpected);
    for (const auto& [name, number] : value->items()) {
      if (number.is_number()) {
        shape_.keys[name] = number.get<double>();
        continue;
      }
      if (!number.is_array()) return Fail(key, kExpected);
      for (const Json& one : number) {
        if (!one.is_number_integer()) return Fail(key, kExpected);
        shape_.block_keys[name].push_back(one.get<int64_t>());
      }
    }
  }
  void Texts(const char* key, std::vector<std::string>* out) {
    const Json* value = Take(key);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail(key, "an array of strings");
    for (const Json& text : *value) {
      if (!text.is_string()) return Fail(key, "an array of strings");
      out->push_back(text.get<std::string>());
    }
  }

  const std::string path_;
  const Json& json_;
  ModelShape shape_;
  absl::Status status_;
  std::string keys_;
  size_t taken_ = 0;
};

absl::StatusOr<ModelShape> ReadShape(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": no such file: check the path"));
  }
  std::stringstream text;
  text << file.rdbuf();
  const Json json =
      Json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return ShapeError(path, "it is not JSON: mend its syntax");
  }
  return ShapeReader(path, json).Run();
}

// In the order of published_shapes.json.
const std::vector<ModelShape>& Shapes() {
  static const auto* shapes = [] {
    auto* all = new std::vector<ModelShape>;
    for (const Json& json : Json::parse(kPublishedShapes)) {
      // What it holds is ours, and tests read all of it.
      all->push_back(*ShapeReader("published_shapes.json", json).Run());
    }
    return all;
  }();
  return *shapes;
}

absl::Status CheckRange(absl::string_view where, const char* key, int64_t value,
                        int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return ShapeError(
      where, absl::StrCat(key, " is ", value, ": use ", low, " to ", high));
}

// The numbers that sizes of experts' tensors come from.
absl::Status CheckExperts(absl::string_view where, const ModelShape& shape) {
  const auto found = shape.keys.find("expert_count");
  if (found == shape.keys.end()) return absl::OkStatus();
  const struct {
    const char* key;
    int64_t otherwise, low, high;
  } ranges[] = {
      {"expert_count", 0, 0, kMaxExperts},
      {"expert_used_count", 0, 1, kMaxExperts},
      {"expert_feed_forward_length", shape.feed_forward_length, 1,
       kMaxDimension},
      {"expert_shared_feed_forward_length", 0, 0, kMaxDimension},
  };
  double largest = 1;
  for (const auto& range : ranges) {
    const auto key = shape.keys.find(range.key);
    const double value = key == shape.keys.end()
                             ? static_cast<double>(range.otherwise)
                             : key->second;
    if (!(value >= static_cast<double>(range.low) &&
          value <= static_cast<double>(range.high)) ||
        value != std::floor(value)) {
      return ShapeError(where, absl::StrCat(range.key, " is ", value, ": use ",
                                            range.low, " to ", range.high));
    }
    largest = std::max(largest, value);
  }
  if (shape.keys.at("expert_used_count") > found->second) {
    return ShapeError(where, "expert_used_count is above expert_count");
  }
  if (static_cast<double>(shape.embedding_length) * found->second * largest >
      static_cast<double>(kMaxMatrix)) {
    return ShapeError(where,
                      "experts have more than 2^38 elements: shrink "
                      "them");
  }
  return absl::OkStatus();
}

absl::Status CheckShape(absl::string_view where, ModelShape* shape) {
  if (shape->head_count_kv == 0) shape->head_count_kv = shape->head_count;
  const struct {
    const char* key;
    int64_t value, low, high;
  } ranges[] = {
      {"embedding_length", shape->embedding_length, 1, kMaxDimension},
      {"block_count", shape->block_count, 1, kMaxLayers},
      {"feed_forward_length", shape->feed_forward_length, 1, kMaxDimension},
      {"head_count", shape->head_count, 1, 1 << 12},
      {"head_count_kv", shape->head_count_kv, 1, shape->head_count},
      {"vocabulary_size", shape->vocabulary_size, kControlAndByteTokens,
       kMaxDimension},
      {"context_length", shape->context_length, 1, kMaxDimension},
  };
  for (const auto& range : ranges) {
    const absl::Status status =
        CheckRange(where, range.key, range.value, range.low, range.high);
    if (!status.ok()) return status;
  }
  if (shape->head_count % shape->head_count_kv != 0) {
    return ShapeError(where, "head_count_kv must divide head_count");
  }
  if (shape->key_length == 0) {
    if (shape->embedding_length % shape->head_count != 0) {
      return ShapeError(
          where, "head_count must divide embedding_length: or give key_length");
    }
    shape->key_length = shape->embedding_length / shape->head_count;
  }
  const absl::Status status =
      CheckRange(where, "key_length", shape->key_length, 2, 1 << 12);
  if (!status.ok()) return status;
  if (shape->key_length % 2 != 0) {
    return ShapeError(where, "key_length must be even: RoPE turns pairs");
  }
  if (shape->rope_dimension_count == 0) {
    shape->rope_dimension_count = shape->key_length;
  }
  if (shape->rope_dimension_count < 2 ||
      shape->rope_dimension_count > shape->key_length ||
      shape->rope_dimension_count % 2 != 0) {
    return ShapeError(
        where, "rope_dimension_count must be even and at most key_length");
  }
  if (shape->embedding_length *
          std::max(shape->vocabulary_size,
                   std::max(shape->feed_forward_length,
                            shape->head_count * shape->key_length)) >
      kMaxMatrix) {
    return ShapeError(where, "a matrix has more than 2^38 elements: shrink it");
  }
  WEFT_RETURN_IF_ERROR(CheckExperts(where, *shape));
  for (const auto& [key, numbers] : shape->block_keys) {
    if (static_cast<int64_t>(numbers.size()) != shape->block_count) {
      return ShapeError(where, absl::StrCat(key, " has ", numbers.size(),
                                            " numbers: give one per block"));
    }
    for (int64_t number : numbers) {
      WEFT_RETURN_IF_ERROR(
          CheckRange(where, key.c_str(), number, 0, kMaxDimension));
    }
  }
  if (!(shape->rope_freq_base > 1.0) || !(shape->rope_freq_base < 1e30) ||
      !(shape->norm_epsilon > 0.0) || !(shape->norm_epsilon < 1.0)) {
    return ShapeError(where,
                      "rope_freq_base must be above 1, norm_epsilon small and "
                      "positive");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> ModelShapeNames() {
  std::vector<std::string> names;
  for (const ModelShape& shape : Shapes()) names.push_back(shape.name);
  return names;
}

absl::StatusOr<ModelShape> FindModelShape(absl::string_view name_or_path) {
  ModelShape shape;
  if (absl::EndsWith(name_or_path, ".json")) {
    WEFT_ASSIGN_OR_RETURN(ModelShape read,
                          ReadShape(std::string(name_or_path)));
    shape = std::move(read);
  } else {
    for (const ModelShape& known : Shapes()) {
      if (known.name == name_or_path) shape = known;
    }
    if (shape.name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown shape: \"", name_or_path, "\": use ",
                       absl::StrJoin(ModelShapeNames(), " "),
                       " or a file that ends in .json"));
    }
  }
  const absl::Status status = CheckShape(name_or_path, &shape);
  if (!status.ok()) return status;
  return shape;
}

}  // namespace weft
