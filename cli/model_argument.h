// Models by their name on a hub, and folders of published ones, wherever a
// command takes a model's file.
//
// One place for all commands: what was given for MODEL is looked at between
// parsing and the command itself, and a name becomes the path of a file in the
// store (runtime/hub/model_store.h). A file of that name, if there is one, is
// meant. What talks, generates or serves fetches a model that is not there;
// what looks at one says how to get it. The folder of a published model becomes
// the file that is made of it (converted_folder.h). Other folders, and files of
// published ones, are refused with what would do.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/command.h"
#include "runtime/hub/hub_name.h"
#include "runtime/hub/pull.h"

namespace weft {

// Replaces names and folders among the models that `command` was given, and
// returns kExitOk.
absl::StatusOr<int> ResolveModels(CLI::App& command, const CommonFlags& common);

// A model's name, or the address of a page or file of the hub (HF_ENDPOINT);
// nothing for other texts. Usage error: an address that is none of the hub's.
absl::StatusOr<std::optional<HubName>> HubNameOf(const std::string& text);

// An error for folders that hold no published model, and for files that are
// only a part of one: it says what would do.
absl::Status CheckPublished(const std::string& path);

// Fetches a model; says which and how far it is.
absl::StatusOr<Pulled> PullModel(const HubName& name,
                                 const CommonFlags& common);

}  // namespace weft
