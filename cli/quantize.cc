// weft quantize: a model file with its matrices in another type.
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/files.h"
#include "loaders/importance_matrix.h"
#include "loaders/quantization_mix.h"
#include "loaders/quantize_model.h"
#include "runtime/machine/cpus.h"

namespace weft {
namespace {

struct Flags {
  std::string source, result, importance;
  QuantizeOptions options;
};

void PrintChoices(const std::vector<QuantizeReport::Choice>& choices) {
  if (choices.empty()) return;
  std::cout << absl::StreamFormat("%-36s %-8s %6s %9s\n", "tensor", "type",
                                  "bits", "error");
  for (const QuantizeReport::Choice& choice : choices) {
    std::cout << absl::StreamFormat("%-36s %-8s %6.3f %9.6f\n", choice.tensor,
                                    UpperName(choice.type), choice.bits,
                                    choice.error);
  }
}

absl::StatusOr<int> Quantize(const Flags& flags, const CommonFlags& common) {
  QuantizeOptions options = flags.options;
  const bool searches = options.target_bits != 0.0;
  if (searches && !options.type.empty()) {
    return UsageError(absl::StrCat("quantize: both ", options.type,
                                   " and --target-bits: give one of them"));
  }
  if (searches &&
      !(options.target_bits >= 1.0 && options.target_bits <= 16.0)) {
    return UsageError("--target-bits: want a number from 1 to 16");
  }
  if (!searches && options.type.empty()) {
    return UsageError("quantize: give a TYPE, or --target-bits");
  }
  // What is kept as it is does not depend on the type.
  if (searches) options.type = "Q4_K_M";
  if (absl::Status s =
          QuantizationMix::Parse(options.type, options.tensor_types).status();
      !s.ok()) {
    return UsageError(s.message());
  }
  WEFT_RETURN_IF_ERROR(CheckOverwritesNoInput(
      "quantize", flags.result, {flags.source, flags.importance}));
  options.threads = common.threads > 0 ? common.threads : DefaultThreads();
  ImportanceMatrix importance;
  if (!flags.importance.empty()) {
    WEFT_ASSIGN_OR_RETURN(importance, ImportanceMatrix::Read(flags.importance));
    options.importance = &importance;
  }
  const Progress progress = MakeProgress(common, "quantising");
  options.progress = ByTensor(progress);
  absl::StatusOr<QuantizeReport> report =
      QuantizeModel(flags.source, flags.result, options);
  if (progress) progress(1.0);
  if (!report.ok()) return report.status();
  PrintWarnings(common, report->warnings);
  PrintChoices(report->choices);
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
  command->add_option("TYPE", flags->options.type,
                      "a type (Q4_0, Q8_0, Q6_K ...) or a mix (Q4_K_M, IQ3_XXS "
                      "...)");
  command
      ->add_option("--target-bits", flags->options.target_bits,
                   "in place of TYPE: bits per weight; each matrix gets the "
                   "type that loses least for its bytes, and the table is "
                   "printed")
      ->expected(1);
  command
      ->add_option("--imatrix", flags->importance,
                   "importance of columns, of weft imatrix; IQ1, IQ2 and "
                   "IQ3_XXS types and Q2_K_S need it, all gain by it")
      ->expected(1);
  command
      ->add_option("--tensor-type", flags->options.tensor_types,
                   "PATTERN=TYPE for the matrices whose names match: "
                   "'ffn_down=Q6_K', 'blk.0.*=Q8_0'; may come several times")
      ->allow_extra_args(false);
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return Quantize(*flags, common); };
  });
}

}  // namespace weft
