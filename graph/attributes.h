// Named constants of a node: integers, floats (kept as double) and strings.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"

namespace weft {

using Attribute = std::variant<int64_t, double, std::string>;

class Attributes {
 public:
  using Map = std::map<std::string, Attribute, std::less<>>;

  void Set(absl::string_view name, Attribute value) {
    map_[std::string(name)] = std::move(value);
  }
  void Erase(absl::string_view name) { map_.erase(std::string(name)); }
  bool Has(absl::string_view name) const {
    return map_.find(std::string(name)) != map_.end();
  }

  // The value, or `otherwise` when it is absent or of another type (the op's
  // rule has checked the types of what it needs).
  int64_t Int(absl::string_view name, int64_t otherwise = 0) const {
    return Get<int64_t>(name, otherwise);
  }
  double Float(absl::string_view name, double otherwise = 0) const {
    return Get<double>(name, otherwise);
  }
  std::string String(absl::string_view name, std::string otherwise = "") const {
    return Get<std::string>(name, std::move(otherwise));
  }

  // In order of name.
  const Map& map() const { return map_; }
  bool operator==(const Attributes& other) const { return map_ == other.map_; }

 private:
  template <typename T>
  T Get(absl::string_view name, T otherwise) const {
    const auto it = map_.find(std::string(name));
    if (it == map_.end()) return otherwise;
    const T* value = std::get_if<T>(&it->second);
    return value != nullptr ? *value : otherwise;
  }

  Map map_;
};

}  // namespace weft
