// A JSON schema with all that may be referred to in it: places by JSON pointer
// ("#/$defs/a", "#/anyOf/0"), anchors, and schemas inside it that have names of
// their own ($id; `id` of older drafts). Nothing outside of it is known.
//
// Names resolve against the nearest $id above (RFC 3986, without dots in
// paths).
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weft::grammar {

// A schema, and the one above it, or itself, that has a name.
struct SchemaPlace {
  const nlohmann::ordered_json* schema = nullptr;
  const nlohmann::ordered_json* resource = nullptr;
};

class SchemaDocument {
 public:
  // `schema` must outlive it. Too deep: `status`.
  explicit SchemaDocument(const nlohmann::ordered_json& schema);

  const absl::Status& status() const { return status_; }
  SchemaPlace root() const { return {&root_, &root_}; }
  // What is below `from`, at `schema`.
  static SchemaPlace Below(const SchemaPlace& from,
                           const nlohmann::ordered_json& schema);
  // How many $dynamicAnchor (of "#", $recursiveAnchor) there are of the name that
  // the fragment of a $dynamicRef has.
  int dynamic_anchors(const std::string& reference) const;
  // What a $ref at `from` names; no schema if that is not in the document.
  SchemaPlace Find(const SchemaPlace& from, const std::string& reference) const;

 private:
  void Note(const SchemaPlace& at, const std::string& base);
  SchemaPlace ByPointer(SchemaPlace at, absl::string_view pointer) const;

  const nlohmann::ordered_json& root_;
  absl::Status status_;
  std::map<const nlohmann::ordered_json*, std::string> bases_;  // of resources
  std::map<std::string, int> dynamic_;  // by name
  std::map<std::string, SchemaPlace> named_;  // by URI, perhaps with an anchor
};

}  // namespace weft::grammar
