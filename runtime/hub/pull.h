// From a name on a hub to a file in the store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/hub/hub.h"
#include "runtime/hub/hub_name.h"
#include "runtime/hub/model_store.h"

namespace weft {

struct PullObserver {
  // What will be fetched, and all that there was to choose from. Not called
  // where the model is there already.
  std::function<void(const ModelChoice& chosen,
                     absl::Span<const ModelChoice> all)>
      chosen = nullptr;
  // Bytes of the model that are there, of all that it has.
  std::function<void(int64_t done, int64_t total)> progress = nullptr;
  // What people should know of the download, a line each.
  std::function<void(const std::string& line)> notice = nullptr;
};

struct Pulled {
  StoredModel model;
  bool was_there = false;
};

// Fetches what the name means unless it is there as the hub has it. Errors:
// those of the hub; kResourceExhausted: the disk has no room, told before
// anything is fetched; kDataLoss: what came is no GGUF file, and was removed.
absl::StatusOr<Pulled> Pull(Hub* hub, const ModelStore& store,
                            const HubName& name, const PullObserver& observer);

}  // namespace weft
