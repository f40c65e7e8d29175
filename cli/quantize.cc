// weft quantize: a model file with its matrices in another type.
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/command.h"
#include "loaders/quantization_mix.h"
#include "loaders/quantize_model.h"
#include "runtime/machine/cpus.h"

namespace weft {
namespace {

struct Flags {
  std::string source, result;
  QuantizeOptions options;
};

absl::StatusOr<int> Quantize(const Flags& flags, const CommonFlags& common) {
  QuantizeOptions options = flags.options;
  if (absl::Status s =
          QuantizationMix::Parse(options.type, options.tensor_types).status();
      !s.ok()) {
    return UsageError(s.message());
  }
  options.threads = common.threads > 0 ? common.threads : DefaultThreads();
  const Progress progress = MakeProgress(common, "quantising");
  if (progress) {
    options.progress = [&](const std::string&, int done, int total) {
      progress(static_cast<double>(done) / total);
    };
  }
  std::error_code error;
  if (std::filesystem::equivalent(flags.source, flags.result, error)) {
    return UsageError(absl::StrCat("quantize: ", flags.result,
                                   ": is the source: give another file"));
  }
  absl::StatusOr<QuantizeReport> report =
      QuantizeModel(flags.source, flags.result, options);
  if (progress) progress(1.0);
  if (!report.ok()) return report.status();
  PrintWarnings(common, report->warnings);
  std::cout << absl::StreamFormat("%s: tensor data %d -> %d bytes\n",
                                  flags.result, report->source_bytes,
                                  report->result_bytes);
  return kExitOk;
}

}  // namespace

void AddQuantize(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "quantize", "Writes a model with its matrices in another type");
  command->add_option("IN", flags->source, "a .gguf file of F32, F16 or BF16")
      ->required();
  command->add_option("OUT", flags->result, "the file to write")->required();
  command
      ->add_option("TYPE", flags->options.type,
                   "a type (Q4_0, Q8_0, Q6_K ...) or a mix (Q4_K_M ...)")
      ->required();
  command
      ->add_option("--tensor-type", flags->options.tensor_types,
                   "PATTERN=TYPE for the matrices whose names match: "
                   "'ffn_down=Q6_K', 'blk.0.*=Q8_0'; may come several times")
      ->expected(1)
      ->take_all();
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return Quantize(*flags, common); };
  });
}

}  // namespace weft
