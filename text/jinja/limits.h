// What a template may cost, since templates and values come from strangers.
//
// Work is counted in units of about one character: copying a character is one,
// evaluating a node sixteen. A template that works on its input a fixed number
// of times stays far below the allowance; loops that build ever longer strings
// do not. The memory held follows: at most a few bytes per unit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::jinja {

// Allowed work: kBaseWork + kWorkPerCharacter times the characters of template
// and values + kWorkPerPair for each pair of messages (or of what else is a
// list), up to kMostPairs: many templates look at all messages at each of them.
inline constexpr int64_t kBaseWork = 8 << 20;
inline constexpr int64_t kWorkPerPair = 64;
inline constexpr int64_t kMostPairs = 4 << 20;
inline constexpr int64_t kWorkPerCharacter = 64;
inline constexpr int64_t kWorkPerNode = 16;
// Bytes of a template.
inline constexpr size_t kMaxSource = 1 << 20;
// Nesting of a template's expressions and statements together.
inline constexpr int kMaxParseDepth = 200;
// Nested evaluations, each some hundred bytes of the C++ stack; a call of a
// macro takes about ten.
inline constexpr int kMaxEvaluationDepth = 1000;
// Nesting of lists and mappings, in the input and as a template builds them.
inline constexpr int kMaxValueDepth = 100;
// As the sandbox of Jinja has it.
inline constexpr int64_t kMaxRange = 100000;

}  // namespace weft::jinja
