// Template source to a tree: Jinja as published chat templates use it.
//
// Statements: for (with if, else, break, continue), if, set and block set,
// macro, call, filter, with, raw, generation (HuggingFace's mark around what
// the assistant says; it prints as if it were not there). Expressions: all of
// Jinja's. Not supported, and refused by name: recursive loops; extends, block,
// include, import (a chat template is one file); autoescape, do, debug, trans.
//
// Idea: recursive descent over tokens. Nesting is bounded by kMaxParseDepth,
// chains (a + b + c, x | f | g) count as nesting, so nothing that walks the
// tree can exhaust the stack.
//
// Source of the grammar: Jinja's "Template Designer Documentation".
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "text/jinja/ast.h"

namespace weft::jinja {

// Errors read "line N: <why>".
absl::StatusOr<Block> ParseTemplate(absl::string_view source);

}  // namespace weft::jinja
