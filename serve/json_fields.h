// Reading a JSON object that a stranger wrote: every field by name, type and
// range.
//
// Idea: a reader holds one object and the first error; reading goes on after it
// without harm, so that a request is a list of fields, and the error is asked
// for once, at the end. null is the same as absent: the default stays. Fields
// that nobody reads are ignored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "nlohmann/json.hpp"
#include "text/json_tree.h"

namespace weft {

// The value that `text` is, within the bounds of text/json_tree.h; of a field
// that is there twice, the last. What is in "messages" and "tools", which
// models read, has its numbers as they are spelled there; half of a surrogate
// pair becomes U+FFFD. Errors: no JSON (with the place), beyond the bounds, a
// number that no double holds, bytes that are no UTF-8.
absl::StatusOr<nlohmann::ordered_json> ParseJson(absl::string_view text);

// As it goes over the wire (WriteJson): bytes that are no UTF-8 become U+FFFD.
std::string JsonText(const nlohmann::ordered_json& json);
// A value in a message: not all of a long one.
std::string JsonExcerpt(const nlohmann::ordered_json& value);

// An error of a request; `param` is the field's path and stands in the answer
// as such.
absl::Status FieldError(absl::string_view param, absl::string_view message);
// The path, empty where none was given.
std::string ErrorParam(const absl::Status& status);

class JsonFields {
 public:
  // `object` must outlive the reader; `path` names it in messages and is empty
  // for the body itself. What is no object is an error.
  JsonFields(const nlohmann::ordered_json& object, std::string path);

  // Each leaves `*value` as it is when the field is absent or wrong.
  void Bool(const char* name, bool* value);
  void Integer(const char* name, int64_t least, int64_t most, int64_t* value);
  void Integer(const char* name, int64_t least, int64_t most,
               absl::optional<int64_t>* value);
  void Number(const char* name, double least, double most, float* value);
  void Text(const char* name, std::string* value);
  // One string or a list of them; none empty, at most `most`.
  void Texts(const char* name, size_t most, std::vector<std::string>* value);

  // For fields with a shape of their own: the value, or nothing when absent.
  const nlohmann::ordered_json* Find(const char* name) const;
  bool Has(const char* name) const { return Find(name) != nullptr; }
  // The path of a field or, within a list, of an element.
  std::string Path(absl::string_view name) const;

  // Tells an error of this field; the first one stays.
  void Fail(absl::string_view name, absl::string_view message);
  void Keep(const absl::Status& status);
  // A field that may be there only with a value that changes nothing.
  void Refuse(const char* name, absl::string_view why);

  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
  const nlohmann::ordered_json* object_;
  const std::string path_;
};

}  // namespace weft
