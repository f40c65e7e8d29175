// Named constants of a node, declared once: an op says which it has (name,
// type, range, default), and a node keeps their values in that order.
//
// An op's attributes are a plain struct, and a list that describes its fields:
//
//   struct NormAttributes {
//     double eps = 0;
//     int64_t heads = 1;
//     static absl::Span<const AttributeSchema> Schema();
//   };
//   constexpr AttributeSchema kNormAttributes[] = {
//       Field<&NormAttributes::eps>("eps", "added to the variance").AtLeast(0),
//       Field<&NormAttributes::heads>("heads", "parts of a row").Optional()
//           .From(1, 65536)};
//
// Code reads and writes the struct (a misspelt name does not compile); text,
// files, checks and documentation go by the list.
//
// Thread-safe for readers.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Integers and flags (0 or 1), numbers, and texts; a choice among names is a
// text.
using AttributeValue = std::variant<int64_t, double, std::string>;

enum class AttributeType : uint8_t { kInteger, kNumber, kFlag, kText, kChoice };

// One attribute. Made by Field; the functions behind it narrow what is allowed.
struct AttributeSchema {
  const char* name = "";
  const char* meaning = "";
  AttributeType type = AttributeType::kInteger;
  // Must stand at every node. Others have the struct's value where they do not.
  bool required = true;
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
  // Of numbers, which are finite: least, or what they are above.
  double lowest = std::numeric_limits<double>::lowest();
  bool above_lowest = false;
  // Of a choice: its names, in the order of the enum's values.
  const char* const* names = nullptr;
  int name_count = 0;

  // The field of a struct, from a value of the right type, and back (empty:
  // a field that need not have a value has none).
  void (*store)(const AttributeSchema& schema, const AttributeValue& value,
                void* fields) = nullptr;
  std::optional<AttributeValue> (*load)(const AttributeSchema& schema,
                                        const void* fields) = nullptr;
  std::optional<AttributeValue> (*otherwise)(const AttributeSchema& schema) =
      nullptr;

  constexpr AttributeSchema Optional() const {
    AttributeSchema copy = *this;
    copy.required = false;
    return copy;
  }
  constexpr AttributeSchema From(int64_t first, int64_t last) const {
    AttributeSchema copy = *this;
    copy.least = first;
    copy.most = last;
    return copy;
  }
  constexpr AttributeSchema AtLeast(double value) const {
    AttributeSchema copy = *this;
    copy.lowest = value;
    return copy;
  }
  constexpr AttributeSchema Above(double value) const {
    AttributeSchema copy = AtLeast(value);
    copy.above_lowest = true;
    return copy;
  }
  template <size_t n>
  constexpr AttributeSchema OneOf(const char* const (&list)[n]) const {
    AttributeSchema copy = *this;
    copy.names = list;
    copy.name_count = n;
    return copy;
  }

  // What it may be, for people: "an integer from 1 to 65536".
  std::string Wanted() const;
  // Of the right type and in range, or what is wrong with it.
  absl::Status Check(absl::string_view op, const AttributeValue& value) const;
};

namespace internal {

template <typename T>
struct MemberOf;
template <typename Class, typename T>
struct MemberOf<T Class::*> {
  using Struct = Class;
  using Type = T;
};

template <typename T>
constexpr AttributeType TypeOf() {
  if constexpr (std::is_same_v<T, bool>) return AttributeType::kFlag;
  if constexpr (std::is_enum_v<T>) return AttributeType::kChoice;
  if constexpr (std::is_integral_v<T>) return AttributeType::kInteger;
  if constexpr (std::is_same_v<T, std::string>) return AttributeType::kText;
  return AttributeType::kNumber;  // double, or one that may be absent
}

template <typename T>
void StoreField(const AttributeSchema& schema, const AttributeValue& value,
                T* field) {
  if constexpr (std::is_enum_v<T>) {
    const std::string& text = std::get<std::string>(value);
    for (int i = 0; i < schema.name_count; ++i) {
      if (text == schema.names[i]) *field = static_cast<T>(i);
    }
  } else if constexpr (std::is_same_v<T, std::string>) {
    *field = std::get<std::string>(value);
  } else if constexpr (std::is_integral_v<T>) {
    *field = static_cast<T>(std::get<int64_t>(value));
  } else {
    *field = std::get<double>(value);
  }
}

template <typename T>
std::optional<AttributeValue> LoadField(const AttributeSchema& schema,
                                        const T& field) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(schema.names[static_cast<int>(field)]);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return field;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<int64_t>(field);
  } else if constexpr (std::is_same_v<T, double>) {
    return field;
  } else {
    return field ? std::optional<AttributeValue>(*field) : std::nullopt;
  }
}

}  // namespace internal

// The attribute that is a struct's field: int64_t, bool, double,
// std::optional<double>, std::string or an enum (with OneOf).
template <auto member>
constexpr AttributeSchema Field(const char* name, const char* meaning) {
  using Struct = typename internal::MemberOf<decltype(member)>::Struct;
  using Type = typename internal::MemberOf<decltype(member)>::Type;
  AttributeSchema schema;
  schema.name = name;
  schema.meaning = meaning;
  schema.type = internal::TypeOf<Type>();
  schema.store = [](const AttributeSchema& self, const AttributeValue& value,
                    void* fields) {
    internal::StoreField(self, value, &(static_cast<Struct*>(fields)->*member));
  };
  schema.load = [](const AttributeSchema& self, const void* fields) {
    return internal::LoadField(self,
                               static_cast<const Struct*>(fields)->*member);
  };
  schema.otherwise = [](const AttributeSchema& self) {
    return internal::LoadField(self, Struct().*member);
  };
  return schema;
}

class Attributes {
 public:
  // Of an op without any.
  Attributes() = default;
  // All absent.
  explicit Attributes(absl::Span<const AttributeSchema> schema)
      : schema_(schema), values_(schema.size()) {}
  // Of a struct; what has its default is absent.
  template <typename Fields,
            typename = decltype(std::declval<Fields>().Schema())>
  Attributes(const Fields& fields) : Attributes(Fields::Schema()) {
    Load(&fields);
  }

  // The struct; requires attributes that are its own (the verifier sees to it
  // that a node has those of its op).
  template <typename Fields>
  Fields As() const {
    Fields fields;
    CheckSchema(Fields::Schema());
    Store(&fields);
    return fields;
  }
  template <typename Fields>
  bool Are() const {
    return schema_.data() == Fields::Schema().data();
  }

  absl::Span<const AttributeSchema> schema() const { return schema_; }

  // The value that stands at the node; null when it is absent.
  const AttributeValue* Find(absl::string_view name) const {
    for (size_t i = 0; i < schema_.size(); ++i) {
      if (name == schema_[i].name && values_[i]) return &*values_[i];
    }
    return nullptr;
  }

  // Errors name the op, the attribute and what it may be: one that the op does
  // not have, one that is set already, a wrong type. Ranges are the verifier's.
  absl::Status Set(absl::string_view op, absl::string_view name,
                   AttributeValue value);
  // A value in place of the one that is there, or none; the rest as Set.
  absl::Status Replace(absl::string_view op, absl::string_view name,
                       AttributeValue value);
  // What is absent and must not be, or out of range.
  absl::Status Check(absl::string_view op) const;

  // Those that are not absent, in order of name.
  void ForEach(
      const std::function<void(absl::string_view name,
                               const AttributeValue& value)>& call) const;

  bool operator==(const Attributes& other) const;
  bool operator<(const Attributes& other) const {
    if (schema_.data() != other.schema_.data()) {
      return std::less<>()(schema_.data(), other.schema_.data());
    }
    return values_ < other.values_;
  }

 private:
  void Load(const void* fields);
  void Store(void* fields) const;
  void CheckSchema(absl::Span<const AttributeSchema> schema) const;

  absl::Span<const AttributeSchema> schema_;
  std::vector<std::optional<AttributeValue>> values_;  // as schema_
};

}  // namespace weft
