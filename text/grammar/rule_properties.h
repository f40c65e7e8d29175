// What must hold of a grammar's rules before it is compiled.
#pragma once

#include "absl/status/status.h"
#include "text/grammar/syntax.h"

namespace weft::grammar {

// Every rule is there once, "root" too; every rule can end; no rule calls
// itself before it has consumed something (left recursion), by way of others or
// not. Errors read "grammar: rule 'x': <why>".
absl::Status CheckRules(const Syntax& syntax);

// Takes out the rules, choices and repetitions that no text can come of. False,
// and nothing is taken out, where none can come of "root". Requires that every
// rule is there once, "root" too.
bool LeaveOutImpossible(Syntax* syntax);

}  // namespace weft::grammar
