#include "base/output_path.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr int kMostLinks = 40;

}  // namespace

absl::StatusOr<OutputPath> ResolveOutput(const std::string& path) {
  namespace fs = std::filesystem;
  OutputPath output;
  std::error_code error;
  // By hand, since the target of a link need not be there yet.
  fs::path target = path;
  for (int hops = 0; hops < kMostLinks && fs::is_symlink(target, error);
       ++hops) {
    const fs::path link = fs::read_symlink(target, error);
    target = link.is_absolute() ? link : target.parent_path() / link;
  }
  output.target = target.string();
  const fs::file_status status = fs::status(output.target, error);
  if (fs::is_directory(status)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot write file: ", path, ": is a directory, give a file"));
  }
  output.special = fs::exists(status) && !fs::is_regular_file(status);
  output.temporary = absl::StrCat(output.target, ".tmp.", getpid());
  return output;
}

absl::StatusOr<OutputPath> ResolveRegularOutput(const std::string& path) {
  absl::StatusOr<OutputPath> output = ResolveOutput(path);
  if (output.ok() && output->special) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write file: ", path,
                     ": is a device, pipe or socket: give the path of a file"));
  }
  return output;
}

}  // namespace weft
