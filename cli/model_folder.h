// The models of a folder, for weft serve --models.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/model_set.h"

namespace weft {

// The .gguf and .weft files of a folder, by name, each by its file's name
// without the ending; of a split model the first part, by the name that all
// parts have; and folders of published models in it, by theirs. Where there are
// several of one name it is the plan, or else the file.
// `aliases`: NAME=MODEL. Errors: no model, an alias that is no such text or of
// no model.
absl::StatusOr<std::vector<ModelSet::Source>> ModelsIn(
    const std::string& folder, const std::vector<std::string>& aliases);

// Moves the model of this name, or of this file, to the front. Error: none is.
absl::Status PutFirst(const std::string& model,
                      std::vector<ModelSet::Source>* sources);

// Of the files of a model of the folder as they lie there now: another text
// when one was written to, replaced, added or removed.
std::string FilesIdentity(const ModelSet::Source& source);

}  // namespace weft
