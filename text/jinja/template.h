// A template that can be rendered: the library's front.
//
// Small interpreter for the part of Jinja that chat templates use (parser.h,
// filters.h say which), safe with templates and values from strangers
// (limits.h). Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "text/jinja/ast.h"
#include "text/jinja/text.h"

namespace weft::jinja {

struct Variable {
  std::string name;
  nlohmann::ordered_json value;
  // Marks the characters of all strings in it, keys too (text.h).
  bool marked = false;
  // For messages: the value of an entry `role` is not marked where it is one
  // of these.
  absl::Span<const absl::string_view> trusted_roles;
};

class Template {
 public:
  // Errors read "line N: <why>".
  static absl::StatusOr<std::unique_ptr<const Template>> Parse(
      absl::string_view source);

  // `now`: for strftime_now. A later variable of the same name wins.
  absl::StatusOr<Text> Render(const std::vector<Variable>& variables,
                              absl::Time now) const;

 private:
  Template() = default;

  size_t source_size_ = 0;
  Block block_;
};

}  // namespace weft::jinja
