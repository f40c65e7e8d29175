#include "graph/shape.h"

#include "absl/strings/str_cat.h"

namespace weft {

int64_t Dim::Resolve(const Bounds& bounds) const {
  switch (symbol) {
    case kTokens:
      return bounds.tokens;
    case kRows:
      return bounds.rows;
    case kContext:
      return bounds.context;
    case kNumber:
      break;
  }
  return value;
}

std::string Dim::ToString() const {
  switch (symbol) {
    case kTokens:
      return "T";
    case kRows:
      return "R";
    case kContext:
      return "S";
    case kNumber:
      break;
  }
  return absl::StrCat(value);
}

Shape::Shape(std::initializer_list<Dim> dims) {
  for (const Dim& dim : dims) Append(dim);
}

void Shape::Append(Dim dim) { dims_[rank_++] = dim; }

int64_t Shape::Elements(const Bounds& bounds) const {
  int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= dims_[i].Resolve(bounds);
  return n;
}

int64_t Shape::RowElements(const Bounds& bounds) const {
  int64_t n = 1;
  for (int i = 1; i < rank_; ++i) n *= dims_[i].Resolve(bounds);
  return n;
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    absl::StrAppend(&text, i > 0 ? "," : "", dims_[i].ToString());
  }
  return text + "]";
}

bool Shape::operator==(const Shape& other) const {
  if (rank_ != other.rank_) return false;
  for (int i = 0; i < rank_; ++i) {
    if (dims_[i] != other.dims_[i]) return false;
  }
  return true;
}

}  // namespace weft
