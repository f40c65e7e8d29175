// weft tokenize and weft detokenize: text to ids and back. A vocabulary is all
// they need: no graph is built.
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "loaders/vocabulary.h"
#include "text/utf8.h"

namespace weft {
namespace {

struct Flags {
  std::string model, text, file, ids, pre;
  bool has_text = false, has_file = false;
  bool no_special = false, no_bos = false, special = false, json = false;
  bool no_normalize = false;
};

absl::StatusOr<std::unique_ptr<const Tokenizer>> OpenTokenizer(
    const Flags& flags, const CommonFlags& common) {
  const std::string& path = flags.model;
  if (IsPlanFile(path)) {
    if (!flags.pre.empty()) {
      return UsageError(absl::StrCat("--pre: ", path,
                                     " is a plan, which keeps the one that it "
                                     "was compiled with"));
    }
    ModelOptions options = DefaultModelOptions();
    options.reads_weights = false;
    WEFT_ASSIGN_OR_RETURN(Plan plan, LoadPlan(path, options));
    return Tokenizer::Create(std::move(plan.vocabulary));
  }
  WEFT_ASSIGN_OR_RETURN(GgufFile file, OpenModel(path));
  VocabularyOptions options;
  options.pre = flags.pre;
  if (!common.quiet) options.warn = PrintNotice;
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabulary(file, options));
  return Tokenizer::Create(std::move(vocabulary));
}

// A token's text, or the array of its bytes where they are no whole characters.
nlohmann::ordered_json PieceJson(absl::string_view bytes) {
  if (ValidUtf8Prefix(bytes) == bytes.size()) return std::string(bytes);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return list;
}

absl::StatusOr<int> Tokenize(const Flags& flags, const CommonFlags& common) {
  if (flags.has_text == flags.has_file) {
    return UsageError("tokenize: give either TEXT or -f FILE");
  }
  std::string text = flags.text;
  if (flags.has_file) {
    WEFT_ASSIGN_OR_RETURN(std::string content, ReadTextFile(flags.file));
    text = std::move(content);
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<const Tokenizer> tokenizer,
                        OpenTokenizer(flags, common));
  EncodeOptions options;
  options.add_special = !flags.no_bos;
  options.parse_special = !flags.no_special;
  options.normalize = !flags.no_normalize;
  bool bos_in_text = false;
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                        tokenizer->Encode(text, options, &bos_in_text));
  if (bos_in_text && !common.quiet) {
    std::cerr << "weft: the text begins with BOS itself: no second one was "
                 "added\n";
  }
  if (!flags.json) {
    std::cout << absl::StrJoin(ids, ",") << "\n";
    return kExitOk;
  }
  nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
  for (int32_t id : ids) {
    pieces.push_back(PieceJson(tokenizer->TokenToBytes(id)));
  }
  PrintJson({{"tokens", ids}, {"pieces", std::move(pieces)}});
  return kExitOk;
}

absl::StatusOr<int> Detokenize(const Flags& flags, const CommonFlags& common) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<const Tokenizer> tokenizer,
                        OpenTokenizer(flags, common));
  std::vector<int32_t> ids;
  if (!flags.ids.empty()) {
    WEFT_ASSIGN_OR_RETURN(
        std::vector<int64_t> numbers,
        ParseNumbers(flags.ids, "IDS", tokenizer->vocabulary_size() - 1));
    ids.assign(numbers.begin(), numbers.end());
  }
  DecodeOptions options;
  options.skip_special = !flags.special;
  WEFT_ASSIGN_OR_RETURN(std::string bytes,
                        tokenizer->DecodeBytes(ids, options));
  std::cout << bytes << "\n";
  return kExitOk;
}

}  // namespace

void AddTokenize(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "tokenize", "The ids of a text, exactly as it is given");
  command
      ->add_option(
          "MODEL", flags->model,
          absl::StrCat(
              "a .gguf file, of which a vocabulary suffices, or a .weft file ",
              kEmbeddedByName))
      ->required();
  CLI::Option* text = command->add_option(
      "TEXT", flags->text, "the text (after -- if it begins with a dash)");
  CLI::Option* file = command->add_option("-f,--file", flags->file,
                                          "the text of this file; - is stdin");
  command->add_flag("--no-special", flags->no_special,
                    "what looks like a control token stays text");
  command->add_flag("--no-normalize", flags->no_normalize,
                    "the text as it is, where the model's tokeniser puts it "
                    "into NFC");
  AddPreFlag(*command, &flags->pre);
  command->add_flag("--no-bos", flags->no_bos, "add no BOS and no EOS");
  command->add_flag("--json", flags->json,
                    "print one JSON object with ids and pieces");
  command->callback([flags, text, file, &common, action] {
    flags->has_text = text->count() > 0;
    flags->has_file = file->count() > 0;
    *action = [flags, &common] { return Tokenize(*flags, common); };
  });
}

void AddDetokenize(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "detokenize", "The text of ids: the tokens' bytes, and a newline");
  command
      ->add_option(
          "MODEL", flags->model,
          absl::StrCat(
              "a .gguf file, of which a vocabulary suffices, or a .weft file ",
              kEmbeddedByName))
      ->required();
  command->add_option("IDS", flags->ids, "as 1,2,3")->required();
  command->add_flag("--special", flags->special, "print control tokens too");
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return Detokenize(*flags, common); };
  });
}

}  // namespace weft
