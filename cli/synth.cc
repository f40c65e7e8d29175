// weft synth: a model of a given shape with random weights.
#include <iostream>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/files.h"
#include "loaders/model_shape.h"
#include "loaders/quantization_mix.h"
#include "loaders/synthesize.h"

namespace weft {
namespace {

struct Flags {
  std::string output;
  SynthesizeOptions options;
};

absl::StatusOr<int> Synth(const Flags& flags, const CommonFlags& common) {
  const SynthesizeOptions& options = flags.options;
  if (absl::Status s =
          QuantizationMix::Parse(options.type, options.tensor_types).status();
      !s.ok()) {
    return UsageError(s.message());
  }
  // A name that is none is wrong usage; a file that is bad is a failure.
  if (absl::Status s = FindModelShape(options.shape).status();
      !s.ok() && !absl::EndsWith(options.shape, ".json")) {
    return UsageError(s.message());
  }
  WEFT_RETURN_IF_ERROR(
      CheckOverwritesNoInput("synth", flags.output, {options.shape}));
  WEFT_ASSIGN_OR_RETURN(SynthesizeReport report,
                        SynthesizeModel(options, flags.output));
  PrintWarnings(common, report.warnings);
  std::cout << absl::StreamFormat("%s: %d parameters, tensor data %d bytes\n",
                                  flags.output, report.parameters,
                                  report.tensor_bytes);
  return kExitOk;
}

}  // namespace

void AddSynth(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "synth",
      "Writes a model of a given shape with random weights, for benchmarks");
  command
      ->add_option("--shape", flags->options.shape,
                   absl::StrCat(absl::StrJoin(ModelShapeNames(), ", "),
                                ", or a .json file"))
      ->required();
  command
      ->add_option("--type", flags->options.type,
                   "a type (Q4_0, Q8_0, Q6_K ...) or a mix (Q4_K_M ...)")
      ->required();
  command
      ->add_option("--tensor-type", flags->options.tensor_types,
                   "PATTERN=TYPE for the matrices whose names match: "
                   "'ffn_down=Q6_K', 'blk.0.*=Q8_0'; may come several times")
      ->allow_extra_args(false);
  command->add_option("--seed", flags->options.seed, "of the random weights")
      ->capture_default_str();
  command->add_option("--blocks", flags->options.blocks,
                      "the first so many of the shape's, for a model that fits "
                      "a smaller machine");
  command->add_flag("--hollow", flags->options.hollow,
                    "zeros that take no disk in place of weights, to inspect "
                    "and dump a plan");
  command->add_option("-o", flags->output, "the file to write")->required();
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return Synth(*flags, common); };
  });
}

}  // namespace weft
