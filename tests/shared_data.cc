#include "tests/shared_data.h"

#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace weft {

std::string SharedFolder(const char* variable, const std::string& name,
                         const std::string& known) {
  if (const char* folder = std::getenv(variable)) return folder;
  const std::unique_ptr<char, decltype(&std::free)> real(
      realpath(known.c_str(), nullptr), std::free);
  if (real == nullptr) return "";
  return absl::StrCat(absl::StripSuffix(real.get(), known), "../shared/", name);
}

}  // namespace weft
