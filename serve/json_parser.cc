// ParseJson: text to a value, in time and memory that the text's length and the
// bounds of serve/json_fields.h give.
//
// Idea: nlohmann's parser reports what it reads, and the tree is built here:
// counting what it takes before it is taken, and finding the fields of large
// objects by hash (the ordered object of nlohmann looks along all of them for
// each that is added).
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "serve/json_fields.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

// About what a value takes in its list or object while that grows, what a list
// or object does beside, and what a key or a string does beside its bytes.
constexpr int64_t kValueBytes = 2 * sizeof(json);
constexpr int64_t kContainerBytes = 48;
constexpr int64_t kTextBytes = 2 * sizeof(std::string);
// Objects with fewer fields are looked along.
constexpr size_t kFewFields = 16;

class TreeBuilder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Put(nullptr, 0); }
  bool boolean(bool value) override { return Put(value, 0); }
  bool number_integer(number_integer_t value) override { return Put(value, 0); }
  bool number_unsigned(number_unsigned_t value) override {
    return Put(value, 0);
  }
  bool number_float(number_float_t value, const string_t&) override {
    return Put(value, 0);
  }
  bool string(string_t& value) override {
    const int64_t bytes = kTextBytes + static_cast<int64_t>(value.size());
    return Put(std::move(value), bytes);
  }
  bool binary(binary_t&) override { return Fail("binary values are no JSON"); }

  bool start_object(size_t) override { return Open(json::object()); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    Level& level = open_.back();
    auto& fields = level.value->get_ref<json::object_t&>();
    if (!Spend(kTextBytes + static_cast<int64_t>(name.size()))) return false;
    if (fields.size() < kFewFields) {
      level.field = &fields[name];
      return true;
    }
    if (fields.size() >= static_cast<size_t>(kMaxJsonFields)) {
      return Fail(absl::StrCat("an object of the body has more than ",
                               kMaxJsonFields, " fields"));
    }
    if (level.index.empty()) {
      for (size_t i = 0; i < fields.size(); ++i) {
        level.index.emplace((fields.begin() + i)->first, i);
      }
    }
    const auto [found, added] = level.index.emplace(name, fields.size());
    // As a vector, which does not look for the name.
    using Fields = std::vector<std::pair<const std::string, json>>;
    Fields& list = fields;
    if (added) list.emplace_back(std::move(name), json());
    level.field = &list[found->second].second;
    return true;
  }

  bool parse_error(size_t at, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // Numbers have no end of their own.
    return Fail(
        dynamic_cast<const json::out_of_range*>(&error) != nullptr
            ? std::string("the body holds a number that is too large")
            : absl::StrCat("the body is no JSON in UTF-8: it breaks at byte ",
                           at));
  }

  absl::StatusOr<json> Take() {
    if (!status_.ok()) return status_;
    return std::move(root_);
  }

 private:
  // A list or object that has not ended.
  struct Level {
    json* value;
    json* field = nullptr;  // the one whose value comes next
    absl::flat_hash_map<std::string, size_t> index;  // of fields, when many
  };

  bool Fail(absl::string_view message) {
    if (status_.ok()) status_ = FieldError("", message);
    return false;
  }

  bool Spend(int64_t bytes) {
    bytes_ += bytes;
    return bytes_ <= kMaxJsonBytes ||
           Fail(absl::StrCat("the values of the body take more than ",
                             kMaxJsonBytes, " bytes"));
  }

  json* Place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = open_.back();
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      return &level.value->back();
    }
    *level.field = std::move(value);
    return level.field;
  }

  bool Put(json value, int64_t bytes) {
    if (!Spend(kValueBytes + bytes)) return false;
    Place(std::move(value));
    return true;
  }

  bool Open(json value) {
    if (open_.size() >= static_cast<size_t>(kMaxJsonDepth)) {
      return Fail(absl::StrCat("the body has more than ", kMaxJsonDepth,
                               " objects and lists within each other"));
    }
    if (!Spend(kValueBytes + kContainerBytes)) return false;
    Level level;
    level.value = Place(std::move(value));
    open_.push_back(std::move(level));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  json root_;
  std::vector<Level> open_;
  int64_t bytes_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<json> ParseJson(absl::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == absl::string_view::npos) {
    return FieldError("", "the body is empty: want a JSON object");
  }
  TreeBuilder builder;
  json::sax_parse(text.begin(), text.end(), &builder);
  return builder.Take();
}

}  // namespace weft
