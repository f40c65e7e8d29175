// The command line as people type it who come from elsewhere: a file alone,
// names of flags that llama.cpp has, words that are spelt almost right.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

struct CommandLine {
  std::vector<std::string> words;    // without the program's name
  std::vector<std::string> notices;  // what was left out, in one line each
};

// `words` with llama.cpp's names of flags turned into ours. `knows` says
// whether the command that was named has a flag: what it has is never touched,
// and what it does not have is not made. The value of -m is MODEL and goes
// where that stands; what weft always does, or never, is left out, with a
// notice. Words after "--" stay. Errors, which say what to write: what weft has
// another way, or not at all, and nobody should think that it was done.
absl::StatusOr<CommandLine> TranslateFlags(
    std::vector<std::string> words,
    absl::FunctionRef<bool(absl::string_view)> knows);

// Whether a word is llama.cpp's flag for the model: -m, --model, --model=FILE,
// or -hf and its like for one on a hub.
bool IsModelFlag(absl::string_view word);

// The word of `known` that was probably meant: at most two letters differ,
// fewer in short words; empty if there is none.
std::string DidYouMean(absl::string_view word,
                       const std::vector<std::string>& known);

}  // namespace weft
