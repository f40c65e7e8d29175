// The folder where pulled models lie, and what is in it.
//
//   FOLDER/models/OWNER/NAME/          a repository, its files at their paths:
//     x-Q4_K_M.gguf                    a model that is whole and was checked
//     x-Q4_K_M.gguf.sha256             its checksum, as sha256sum writes it
//     x-Q4_K_M.gguf.HASH.part          what there is of an unfinished download
//     x-Q4_K_M.gguf.KEY.weft           the model, compiled, for the next start
//
// There is no index: what is there, the names say. So a model can be copied in
// or removed by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/hub/hub_name.h"

namespace weft {

struct StoredModel {
  std::string repository;
  ModelChoice model;  // with checksums where they are written down
  std::string path;   // of the (first) file
  absl::Time pulled;
  int64_t plan_bytes = 0;

  // What names it: "owner/name:Q4_K_M", or with the file where types are not
  // enough.
  std::string name;
};

class ModelStore {
 public:
  // In WEFT_CACHE or WEFT_HOME, or else in `weft` in the user's folder for
  // caches (XDG Base Directory Specification). Need not be there. Errors: no
  // folder of a user.
  static absl::StatusOr<ModelStore> FromEnvironment();
  explicit ModelStore(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  std::string PathOf(const std::string& repository,
                     absl::string_view file) const;
  // Whether the file is one of the store's, whatever path leads to it.
  bool Holds(const std::string& path) const;

  // Whole models, by name.
  std::vector<StoredModel> List() const;
  // Errors: as Choose.
  absl::StatusOr<StoredModel> Find(const HubName& name) const;
  // Whether anything of the repository is there.
  bool Has(const std::string& repository) const;

  // The model, its plans and what is unfinished of it; without a type, all that
  // the store has of the repository. Returns the bytes that are free now.
  // kNotFound: there was nothing.
  absl::StatusOr<int64_t> Remove(const HubName& name) const;

 private:
  std::string RepositoryFolder(const std::string& repository) const;
  std::vector<HubFile> FilesOf(const std::string& repository) const;
  StoredModel Describe(const std::string& repository, ModelChoice model) const;

  std::string folder_;
};

// Plans of a model that is in a store, which stand beside it.
std::string PlanPathOf(const std::string& model_path, absl::string_view key);
std::vector<std::string> PlansOf(const std::string& model_path);

// The checksum that is written down beside a file; empty: none.
std::string ReadChecksum(const std::string& path);
absl::Status WriteChecksum(const std::string& path, absl::string_view sha256);

}  // namespace weft
