// Folders of published models wherever a command takes a model's file: made
// into a .gguf once, which lies where pulled models do
// (runtime/hub/model_store.h), as local/NAME-PLACE:
//
//   FOLDER/models/local/NAME-PLACE/STATE/NAME.gguf
//
// PLACE stands for the folder's path, STATE for the sizes and times of its
// files. So weft list and weft rm know it, a plan is kept beside it, and who
// serves it calls it by its name.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"

namespace weft {

// The path of the file made of `folder` (IsConvertibleFolder), which is made if
// it is not there, is cut off, or the folder was written to since; a line says
// so. Those of other states of the folder are removed.
absl::StatusOr<std::string> ConvertedFolder(const std::string& folder,
                                            const CommonFlags& common);

// What weft list calls it: local/NAME-PLACE. The folder need not be there any
// more. Errors: its path leads nowhere, such as links in a circle.
absl::StatusOr<std::string> RepositoryOfFolder(const std::string& folder);

}  // namespace weft
