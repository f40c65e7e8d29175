#include "loaders/gguf_value.h"

#include <cstring>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "loaders/utf8.h"

namespace weft {
namespace {

struct TypeInfo {
  const char* name;
  // Bytes of a value; for strings and arrays the least they can take, which
  // bounds how many can follow.
  int min_bytes;
  bool fixed_size;
};

// Indexed by GgufType.
constexpr TypeInfo kTypes[] = {
    {"u8", 1, true},      {"i8", 1, true},   {"u16", 2, true},
    {"i16", 2, true},     {"u32", 4, true},  {"i32", 4, true},
    {"f32", 4, true},     {"bool", 1, true}, {"string", 8, false},
    {"array", 12, false}, {"u64", 8, true},  {"i64", 8, true},
    {"f64", 8, true},
};
constexpr uint32_t kTypeCount = sizeof(kTypes) / sizeof(kTypes[0]);

// A type tag (u32) and a count (u64) open every array.
constexpr int kArrayHeaderBytes = 12;

const TypeInfo& InfoOf(GgufType type) {
  return kTypes[static_cast<uint32_t>(type)];
}

absl::Status UnknownType(uint32_t type) {
  return absl::InvalidArgumentError(absl::StrCat(
      "value has unknown type number ", type, ", expected 0 to 12"));
}

}  // namespace

const char* GgufTypeName(GgufType type) { return InfoOf(type).name; }

std::string QuoteForMessage(absl::string_view text) {
  constexpr size_t kMaxShown = 80;
  const bool cut = text.size() > kMaxShown;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kMaxShown)),
                      cut ? "...'" : "'");
}

absl::StatusOr<GgufValue> GgufValue::Read(uint32_t type, ByteReader* reader) {
  return ReadNested(type, 0, reader);
}

absl::StatusOr<GgufValue> GgufValue::ReadNested(uint32_t type, int depth,
                                                ByteReader* reader) {
  if (type >= kTypeCount) return UnknownType(type);
  const uint64_t begin = reader->position();
  GgufValue value;
  value.type_ = static_cast<GgufType>(type);
  const TypeInfo& info = kTypes[type];
  if (value.type_ == GgufType::kString) {
    absl::string_view text;
    if (!reader->ReadString(&text)) {
      return absl::OutOfRangeError(absl::StrCat(
          "string at byte ", begin, " is longer than the rest of the file"));
    }
  } else if (value.type_ == GgufType::kArray) {
    if (depth == kMaxArrayDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat("array at byte ", begin, " is nested deeper than ",
                       kMaxArrayDepth, " levels"));
    }
    uint32_t element_type;
    if (!reader->Read(&element_type) || !reader->Read(&value.count_)) {
      return absl::OutOfRangeError(absl::StrCat(
          "array at byte ", begin, " runs past the end of the file"));
    }
    if (element_type >= kTypeCount) return UnknownType(element_type);
    value.element_type_ = static_cast<GgufType>(element_type);
    const TypeInfo& element = kTypes[element_type];
    // Division, since the product may wrap.
    if (value.count_ > reader->left() / element.min_bytes) {
      return absl::OutOfRangeError(
          absl::StrCat("array at byte ", begin, " says ", value.count_,
                       " elements of ", element.name, ", but only ",
                       reader->left(), " bytes are left in the file"));
    }
    if (element.fixed_size) {
      reader->Skip(value.count_ * element.min_bytes);
    } else {
      for (uint64_t i = 0; i < value.count_; ++i) {
        auto nested = ReadNested(element_type, depth + 1, reader);
        if (!nested.ok()) return nested.status();
      }
    }
  } else if (!reader->Skip(info.min_bytes)) {
    return absl::OutOfRangeError(absl::StrCat(
        info.name, " at byte ", begin, " runs past the end of the file"));
  }
  value.encoded_ = reader->Since(begin);
  return value;
}

template <typename T>
T GgufValue::Load() const {
  T value;
  std::memcpy(&value, encoded_.data(), sizeof(T));
  return value;
}

std::string GgufValue::TypeText() const {
  if (!is_array()) return GgufTypeName(type_);
  return absl::StrCat("array of ", count_, " ", GgufTypeName(element_type_));
}

std::optional<int64_t> GgufValue::ToInt() const {
  switch (type_) {
    case GgufType::kUint8:
      return Load<uint8_t>();
    case GgufType::kInt8:
      return Load<int8_t>();
    case GgufType::kUint16:
      return Load<uint16_t>();
    case GgufType::kInt16:
      return Load<int16_t>();
    case GgufType::kUint32:
      return Load<uint32_t>();
    case GgufType::kInt32:
      return Load<int32_t>();
    case GgufType::kInt64:
      return Load<int64_t>();
    case GgufType::kUint64: {
      const uint64_t value = Load<uint64_t>();
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return std::nullopt;
      }
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> GgufValue::ToUint() const {
  if (type_ == GgufType::kUint64) return Load<uint64_t>();
  const std::optional<int64_t> value = ToInt();
  if (!value.has_value() || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<double> GgufValue::ToDouble() const {
  if (type_ == GgufType::kFloat32) return Load<float>();
  if (type_ == GgufType::kFloat64) return Load<double>();
  if (type_ == GgufType::kUint64) {
    return static_cast<double>(Load<uint64_t>());
  }
  const std::optional<int64_t> value = ToInt();
  if (!value.has_value()) return std::nullopt;
  return static_cast<double>(*value);
}

std::optional<bool> GgufValue::ToBool() const {
  if (type_ != GgufType::kBool) return std::nullopt;
  const uint8_t value = Load<uint8_t>();
  if (value > 1) return std::nullopt;
  return value == 1;
}

std::optional<absl::string_view> GgufValue::ToString() const {
  if (type_ != GgufType::kString) return std::nullopt;
  absl::string_view text;
  ByteReader(encoded_).ReadString(&text);
  return text;
}

void GgufValue::ForEach(absl::FunctionRef<bool(const GgufValue&)> visit) const {
  if (!is_array()) return;
  ByteReader reader(encoded_);
  reader.Skip(kArrayHeaderBytes);
  for (uint64_t i = 0; i < count_; ++i) {
    auto element = Read(static_cast<uint32_t>(element_type_), &reader);
    if (!element.ok() || !visit(*element)) return;
  }
}

std::string GgufValue::Print(uint64_t max_elements) const {
  switch (type_) {
    case GgufType::kString:
      return absl::StrCat("\"",
                          IsValidUtf8(*ToString())
                              ? absl::Utf8SafeCHexEscape(*ToString())
                              : absl::CHexEscape(*ToString()),
                          "\"");
    case GgufType::kBool: {
      const std::optional<bool> value = ToBool();
      if (!value.has_value()) {
        return absl::StrCat("bool ", Load<uint8_t>());
      }
      return *value ? "true" : "false";
    }
    case GgufType::kFloat32:
      return absl::StrCat(Load<float>());
    case GgufType::kFloat64:
      return absl::StrCat(Load<double>());
    case GgufType::kUint64:
      return absl::StrCat(Load<uint64_t>());
    case GgufType::kArray: {
      std::string text = "[";
      uint64_t shown = 0;
      ForEach([&](const GgufValue& element) {
        if (shown == max_elements) return false;
        absl::StrAppend(&text, shown == 0 ? "" : ", ",
                        element.Print(max_elements));
        ++shown;
        return true;
      });
      if (shown < count_) {
        absl::StrAppend(&text, shown == 0 ? "" : ", ", "... ", count_,
                        " in all");
      }
      return text + "]";
    }
    default:
      return absl::StrCat(*ToInt());
  }
}

}  // namespace weft
