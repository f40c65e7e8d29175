// GBNF, the grammar format that llama.cpp's users write:
//
//   root  ::= greeting " " name "."?      # rules, literals, comments
//   name  ::= [A-Z] [a-z]{1,20}           # classes, repetitions
//   greeting ::= "Hello" | "Dear"         # choices
//
// Classes may be negated ([^...]) and have escapes; `.` is any character.
// Repetitions: * + ? {m} {m,} {m,n}. Escapes: \n \r \t \\ \" \[ \] \- \^ \xHH
// \uHHHH \UHHHHHHHH. A rule ends with its line, except inside parentheses and
// where the next line begins with |.
//
// The text may come from a stranger: its size and nesting are bounded.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "text/grammar/syntax.h"

namespace weft::grammar {

// Errors read "grammar: line N: <why>".
absl::StatusOr<Syntax> ParseGbnf(absl::string_view source);

}  // namespace weft::grammar
