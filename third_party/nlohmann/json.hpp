// nlohmann's JSON, whose ordered objects are destroyed here without memory: its
// own destructor (3.11) moves all children into a vector first, and where there
// is no memory for that, an error of one request ends the process.
#pragma once

#include_next <nlohmann/json.hpp>

template <>
inline void nlohmann::ordered_json::json_value::destroy(
    nlohmann::ordered_json::value_t type);

namespace weft {

// Nested calls; deeper values are rare, and are taken apart as nlohmann does.
constexpr int kMaxNestedDestroy = 128;

// Leaves an empty list or object of one that has children.
inline void EmptyJson(nlohmann::ordered_json* value, int depth) {
  using Json = nlohmann::ordered_json;
  if (!value->is_structured() || value->empty()) return;
  auto* const list = value->get_ptr<Json::array_t*>();
  auto* const object = value->get_ptr<Json::object_t*>();
  if (depth < kMaxNestedDestroy) {
    if (list != nullptr) {
      for (Json& child : *list) EmptyJson(&child, depth + 1);
      list->clear();
    } else {
      for (auto& child : *object) EmptyJson(&child.second, depth + 1);
      object->clear();
    }
    return;
  }
  std::vector<Json> rest;
  rest.push_back(std::move(*value));
  while (!rest.empty()) {
    Json item = std::move(rest.back());
    rest.pop_back();
    if (auto* const items = item.get_ptr<Json::array_t*>()) {
      for (Json& child : *items) rest.push_back(std::move(child));
      items->clear();
    } else if (auto* const fields = item.get_ptr<Json::object_t*>()) {
      for (auto& child : *fields) rest.push_back(std::move(child.second));
      fields->clear();
    }
  }
}

}  // namespace weft

template <>
inline void nlohmann::ordered_json::json_value::destroy(
    nlohmann::ordered_json::value_t type) {
  const auto free = [](auto* part) {
    using Part = std::remove_pointer_t<decltype(part)>;
    std::allocator<Part> allocator;
    std::allocator_traits<std::allocator<Part>>::destroy(allocator, part);
    allocator.deallocate(part, 1);
  };
  switch (type) {
    case value_t::object:
      for (auto& child : *object) weft::EmptyJson(&child.second, 1);
      return free(object);
    case value_t::array:
      for (auto& child : *array) weft::EmptyJson(&child, 1);
      return free(array);
    case value_t::string:
      return free(string);
    case value_t::binary:
      return free(binary);
    default:
      return;
  }
}
