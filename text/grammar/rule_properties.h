// What must hold of a grammar's rules before it is compiled.
#pragma once

#include "absl/status/status.h"
#include "text/grammar/syntax.h"

namespace weft::grammar {

// Every rule is there once, "root" too; every rule can end; no rule calls
// itself before it has consumed something (left recursion), by way of others or
// not. Errors read "grammar: rule 'x': <why>".
absl::Status CheckRules(const Syntax& syntax);

}  // namespace weft::grammar
