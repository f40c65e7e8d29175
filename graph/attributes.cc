#include "graph/attributes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/attribute_text.h"

namespace weft {
namespace {

absl::Status Wrong(absl::string_view op, absl::string_view name,
                   absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(op, " attribute ", name, ": ", what));
}

// Which alternative of AttributeValue it is.
size_t Alternative(AttributeType type) {
  switch (type) {
    case AttributeType::kInteger:
    case AttributeType::kFlag:
      return 0;
    case AttributeType::kNumber:
      return 1;
    case AttributeType::kText:
    case AttributeType::kChoice:
      break;
  }
  return 2;
}

}  // namespace

std::string AttributeSchema::Wanted() const {
  switch (type) {
    case AttributeType::kFlag:
      return "0 or 1";
    case AttributeType::kText:
      return "a text in quotes";
    case AttributeType::kChoice:
      return absl::StrCat(
          "\"", absl::StrJoin(names, names + name_count, "\" or \""), "\"");
    case AttributeType::kNumber:
      if (lowest == std::numeric_limits<double>::lowest()) {
        return "a finite number";
      }
      return absl::StrCat("a finite number ",
                          above_lowest ? absl::StrCat("above ", lowest)
                                       : absl::StrCat("of at least ", lowest));
    case AttributeType::kInteger:
      break;
  }
  if (least == std::numeric_limits<int64_t>::min()) return "an integer";
  if (most == std::numeric_limits<int64_t>::max()) {
    return absl::StrCat("an integer of at least ", least);
  }
  return absl::StrCat("an integer from ", least, " to ", most);
}

absl::Status AttributeSchema::Check(absl::string_view op,
                                    const AttributeValue& value) const {
  bool good = value.index() == Alternative(type);
  if (good) {
    switch (type) {
      case AttributeType::kInteger:
        good = std::get<int64_t>(value) >= least &&
               std::get<int64_t>(value) <= most;
        break;
      case AttributeType::kFlag:
        good = std::get<int64_t>(value) == 0 || std::get<int64_t>(value) == 1;
        break;
      case AttributeType::kNumber: {
        const double number = std::get<double>(value);
        good = std::isfinite(number) &&
               (above_lowest ? number > lowest : number >= lowest);
        break;
      }
      case AttributeType::kChoice:
        good = std::find(names, names + name_count,
                         std::get<std::string>(value)) != names + name_count;
        break;
      case AttributeType::kText:
        break;
    }
  }
  if (good) return absl::OkStatus();
  return Wrong(op, name,
               absl::StrCat("is ", ToText(value), ", want ", Wanted()));
}

absl::Status Attributes::Set(absl::string_view op, absl::string_view name,
                             AttributeValue value) {
  for (size_t i = 0; i < schema_.size(); ++i) {
    const AttributeSchema& schema = schema_[i];
    if (name != schema.name) continue;
    if (values_[i]) return Wrong(op, name, "stands there twice");
    // Text has one form for whole numbers of either type.
    if (schema.type == AttributeType::kNumber) {
      if (const int64_t* integer = std::get_if<int64_t>(&value)) {
        value = static_cast<double>(*integer);
      }
    }
    if (value.index() != Alternative(schema.type)) {
      return Wrong(
          op, name,
          absl::StrCat("is ", ToText(value), ", want ", schema.Wanted()));
    }
    if (schema.required || schema.otherwise(schema) != value) {
      values_[i] = std::move(value);
    }
    return absl::OkStatus();
  }
  const auto name_of = [](std::string* out, const AttributeSchema& schema) {
    absl::StrAppend(out, schema.name);
  };
  return Wrong(op, name,
               schema_.empty()
                   ? "there is no such attribute: the op has none"
                   : absl::StrCat("there is no such attribute: the op has ",
                                  absl::StrJoin(schema_, ", ", name_of)));
}

absl::Status Attributes::Replace(absl::string_view op, absl::string_view name,
                                 AttributeValue value) {
  for (size_t i = 0; i < schema_.size(); ++i) {
    if (name == schema_[i].name) values_[i] = std::nullopt;
  }
  return Set(op, name, std::move(value));
}

absl::Status Attributes::Check(absl::string_view op) const {
  for (size_t i = 0; i < schema_.size(); ++i) {
    if (values_[i]) {
      absl::Status status = schema_[i].Check(op, *values_[i]);
      if (!status.ok()) return status;
    } else if (schema_[i].required) {
      return Wrong(op, schema_[i].name,
                   absl::StrCat("is missing, want ", schema_[i].Wanted()));
    }
  }
  return absl::OkStatus();
}

void Attributes::ForEach(
    const std::function<void(absl::string_view name,
                             const AttributeValue& value)>& call) const {
  std::vector<size_t> order;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i]) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [this](size_t a, size_t b) {
    return absl::string_view(schema_[a].name) < schema_[b].name;
  });
  for (size_t i : order) call(schema_[i].name, *values_[i]);
}

bool Attributes::operator==(const Attributes& other) const {
  if (schema_.data() == other.schema_.data()) return values_ == other.values_;
  // Lists of ops that nobody knows are made anew for each node.
  const auto all = [](const Attributes& attributes) {
    std::vector<std::pair<std::string, AttributeValue>> list;
    attributes.ForEach(
        [&](absl::string_view name, const AttributeValue& value) {
          list.emplace_back(name, value);
        });
    return list;
  };
  return all(*this) == all(other);
}

void Attributes::Load(const void* fields) {
  for (size_t i = 0; i < schema_.size(); ++i) {
    const AttributeSchema& schema = schema_[i];
    values_[i] = schema.load(schema, fields);
    if (!schema.required && values_[i] == schema.otherwise(schema)) {
      values_[i] = std::nullopt;
    }
  }
}

void Attributes::Store(void* fields) const {
  for (size_t i = 0; i < schema_.size(); ++i) {
    if (values_[i]) schema_[i].store(schema_[i], *values_[i], fields);
  }
}

void Attributes::CheckSchema(absl::Span<const AttributeSchema> schema) const {
  if (schema.data() == schema_.data()) return;
  // A fault of this program, not of any input: verified nodes have the
  // attributes of their op.
  std::fprintf(stderr, "weft: a node is read with another op's attributes\n");
  std::abort();
}

}  // namespace weft
