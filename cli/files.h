// What commands ask of the files that they read and write.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cli/command.h"

namespace weft {

// A usage error if what a command would write is one of the files that it
// reads, by whatever path: one of `inputs`, a further part of a model that is
// one of them, or a file of a folder that is. Empty paths and "-" are none.
absl::Status CheckOverwritesNoInput(absl::string_view command,
                                    const std::string& output,
                                    absl::Span<const std::string> inputs);

// The files that a command reads for a model: the model and adapters.
std::vector<std::string> FilesOfModel(const std::string& model,
                                      const CompileFlags& compile);

// 16 characters that tell texts apart.
std::string HashText(absl::string_view text);

}  // namespace weft
