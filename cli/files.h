// What commands ask of the files that they read and write.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cli/command.h"

namespace weft {

// Where `-00001-of-00003` begins at the end of a name without its ending; its
// size: nowhere. `part`: the first number, as it is written.
size_t SplitMark(const std::string& stem, std::string* part);

// The file, or all that lie beside it as parts of the same split model.
std::vector<std::filesystem::path> PartsOf(const std::filesystem::path& file);

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
