// weft convert: the folder of a published model as a GGUF file.
#include "loaders/convert/convert.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/output_file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/model_argument.h"
#include "graph/dtype.h"

namespace weft {
namespace {

struct Flags {
  std::string folder, result;
  std::string type = "auto";
  ConvertOptions options;
};

absl::StatusOr<int> Convert(const Flags& flags, const CommonFlags& common) {
  ConvertOptions options = flags.options;
  const std::string type = absl::AsciiStrToUpper(flags.type);
  if (type != "AUTO") {
    if (type != "F32" && type != "F16" && type != "BF16") {
      return UsageError(absl::StrCat(
          "--type ", flags.type,
          ": want auto, F32, F16 or BF16; weft quantize makes other types of "
          "the result"));
    }
    options.type = DTypeFromName(type);
  }
  std::error_code error;
  if (!std::filesystem::is_directory(flags.folder, error)) {
    WEFT_RETURN_IF_ERROR(CheckPublished(flags.folder));
  }
  WEFT_RETURN_IF_ERROR(
      CheckOverwritesNoInput("convert", flags.result, {flags.folder}));
  WEFT_RETURN_IF_ERROR(CheckCanWrite(flags.result));
  const Progress progress = MakeProgress(common, "converting");
  options.progress = ByTensor(progress);
  const absl::StatusOr<ConvertReport> report =
      ConvertFolder(flags.folder, flags.result, options);
  if (progress) progress(1.0);
  if (!report.ok()) return report.status();
  PrintWarnings(common, report->warnings);
  std::cout << absl::StreamFormat(
      "%s: %s, %d parameters, tensor data %d bytes, mostly %s\n", flags.result,
      report->architecture, report->parameters, report->tensor_bytes,
      UpperName(report->type));
  return kExitOk;
}

}  // namespace

void AddConvert(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "convert", "Writes the folder of a published model as a .gguf file");
  command
      ->add_option("FOLDER", flags->folder,
                   "a folder with config.json, tokenizer.json and "
                   "model.safetensors, or its parts and their index")
      ->required();
  command->add_option("-o,--output", flags->result, "the file to write")
      ->required()
      ->expected(1);
  command
      ->add_option("--type", flags->type,
                   "of the matrices: auto (as they are stored), F32, F16 or "
                   "BF16; what is small and matters is F32")
      ->capture_default_str()
      ->expected(1);
  command
      ->add_option("--name", flags->options.name,
                   "the model's name (default: the folder's)")
      ->expected(1);
  AddPreFlag(*command, &flags->options.pre);
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return Convert(*flags, common); };
  });
}

}  // namespace weft
