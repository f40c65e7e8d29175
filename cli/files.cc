#include "cli/files.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/plan/weight_checksum.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// What stands before the number of a part, "x-" of "x-00002-of-00003.gguf", and
// behind it; empty where the name is of no part.
struct PartName {
  std::string before, behind;
};

PartName PartNameOf(const std::string& name) {
  const size_t of = name.rfind("-of-");
  if (of == std::string::npos || !absl::EndsWith(name, ".gguf")) return {};
  size_t digits = 0;
  while (digits < of && absl::ascii_isdigit(name[of - 1 - digits])) ++digits;
  if (digits == 0) return {};
  return {name.substr(0, of - digits), name.substr(of)};
}

// The files that are read where this path is given.
std::vector<fs::path> FilesOf(const fs::path& input) {
  std::vector<fs::path> files = {input};
  std::error_code error;
  const bool is_folder = fs::is_directory(input, error);
  const PartName part = PartNameOf(input.filename().string());
  if (!is_folder && part.behind.empty()) return files;
  const fs::path folder = is_folder ? input : input.parent_path();
  for (const auto& entry :
       fs::directory_iterator(folder.empty() ? fs::path(".") : folder, error)) {
    const std::string name = entry.path().filename().string();
    // Of a published model's folder no model file is read.
    if (is_folder ? entry.path().extension() != ".gguf"
                  : absl::StartsWith(name, part.before) &&
                        absl::EndsWith(name, part.behind)) {
      files.push_back(entry.path());
    }
  }
  return files;
}

}  // namespace

absl::Status CheckOverwritesNoInput(absl::string_view command,
                                    const std::string& output,
                                    absl::Span<const std::string> inputs) {
  if (output.empty() || output == "-") return absl::OkStatus();
  for (const std::string& input : inputs) {
    if (input.empty() || input == "-") continue;
    for (const fs::path& file : FilesOf(input)) {
      std::error_code error;
      // A pipe may be both.
      if (!fs::is_regular_file(file, error) ||
          !fs::equivalent(file, output, error)) {
        continue;
      }
      return UsageError(absl::StrCat(command, ": ", output, " is read too, as ",
                                     file.string(),
                                     ": give another file to write"));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> FilesOfModel(const std::string& model,
                                      const CompileFlags& compile) {
  std::vector<std::string> files = {model};
  for (const std::string& adapter : compile.lora) {
    files.push_back(adapter);
    files.push_back(adapter.substr(0, adapter.rfind('=')));  // FILE=SCALE
  }
  return files;
}

std::string HashText(absl::string_view text) {
  return absl::StrFormat(
      "%016x",
      WeightChecksum(absl::MakeConstSpan(
          reinterpret_cast<const uint8_t*>(text.data()), text.size())));
}

}  // namespace weft
