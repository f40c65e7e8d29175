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

// The files that are read where this path is given.
std::vector<fs::path> FilesOf(const fs::path& input) {
  std::error_code error;
  if (!fs::is_directory(input, error)) return PartsOf(input);
  std::vector<fs::path> files;
  // Of a published model's folder no model file is read.
  for (const auto& entry : fs::directory_iterator(input, error)) {
    if (entry.path().extension() != ".gguf") files.push_back(entry.path());
  }
  return files;
}

}  // namespace

size_t SplitMark(const std::string& stem, std::string* part) {
  constexpr size_t kDigits = 5, kMark = 2 * kDigits + 5;
  if (stem.size() <= kMark) return stem.size();
  const size_t begin = stem.size() - kMark;
  const std::string mark = stem.substr(begin);
  for (size_t i = 0; i < kMark; ++i) {
    const char want = "-00000-of-00000"[i];
    if (want == '0' ? !absl::ascii_isdigit(mark[i]) : mark[i] != want) {
      return stem.size();
    }
  }
  *part = mark.substr(1, kDigits);
  return begin;
}

std::vector<fs::path> PartsOf(const fs::path& file) {
  std::string part;
  const std::string stem = file.stem().string();
  const size_t mark = SplitMark(stem, &part);
  if (part.empty()) return {file};
  std::vector<fs::path> parts;
  std::error_code error;
  const fs::path folder = file.parent_path();
  for (const auto& entry :
       fs::directory_iterator(folder.empty() ? fs::path(".") : folder, error)) {
    const std::string name = entry.path().stem().string();
    std::string other;
    if (entry.path().extension() == file.extension() &&
        SplitMark(name, &other) == mark && !other.empty() &&
        name.compare(0, mark, stem, 0, mark) == 0) {
      parts.push_back(entry.path());
    }
  }
  return parts;
}

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
