// weft replay: runs the requests of a server's log (serve/request_log.h) again
// and compares: the same model gives the same tokens, whatever ran beside them
// then, on whatever machine. Each line names its model's file; MODEL goes
// before.
#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/serve.h"
#include "runtime/api/completion.h"
#include "serve/json_fields.h"
#include "serve/request_log.h"
#include "text/printable.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

struct Flags : ServedModelFlags {
  std::string file;
  bool json = false;
  const CLI::Option* names_model = nullptr;
};

struct Line {
  int64_t number = 0;
  std::string text;
};

struct Comparison {
  int64_t tokens = 0;      // that were compared
  std::string difference;  // empty: none
  int64_t context = 0;     // of the server; 0: the line does not say
};

// An answer of the log and what came out now. Of one that was cut off then the
// beginning is compared.
Comparison Compare(const json& logged, bool complete, const ChoiceResult& now) {
  Comparison result;
  std::vector<int32_t> tokens;
  const json* list = JsonFields(logged, "").Find("tokens");
  if (list == nullptr || !ReadTokenIds(*list, "tokens", &tokens).ok()) {
    result.difference = "the line has no tokens";
    return result;
  }
  result.tokens = static_cast<int64_t>(tokens.size());
  const size_t both = std::min(tokens.size(), now.tokens.size());
  for (size_t i = 0; i < both; ++i) {
    if (tokens[i] == now.tokens[i].id) continue;
    result.difference = absl::StrCat("token ", i, " is ", now.tokens[i].id,
                                     ", was ", tokens[i]);
    return result;
  }
  const bool same_length = tokens.size() == now.tokens.size() ||
                           (!complete && tokens.size() < now.tokens.size());
  if (!same_length) {
    result.difference =
        absl::StrCat(now.tokens.size(), " tokens, were ", tokens.size());
  } else if (complete && logged.value("text", "") != now.text) {
    result.difference = "the text differs";
  } else if (complete && logged.value("finish", "") != Name(now.reason)) {
    result.difference = absl::StrCat("the end is ", Name(now.reason), ", was ",
                                     logged.value("finish", ""));
  }
  return result;
}

absl::StatusOr<Comparison> Replay(const ServedModel& model,
                                  const std::string& line) {
  WEFT_ASSIGN_OR_RETURN(const json logged, ParseJson(line));
  JsonFields fields(logged, "");
  const json* request = fields.Find("request");
  const json* answers = fields.Find("answers");
  if (request == nullptr || answers == nullptr || !answers->is_array()) {
    return absl::InvalidArgumentError("is no line of a request log");
  }
  bool complete = true;
  fields.Bool("complete", &complete);
  RequestLimits limits;
  limits.choices = kMaxChoices;
  WEFT_ASSIGN_OR_RETURN(Job job, ReadJob(*request, limits));
  job.forms = model.customs.forms;
  if (request->contains("marked")) job.marker_tokens = model.marker_tokens;
  if (static_cast<int64_t>(answers->size()) != job.choices()) {
    return absl::InvalidArgumentError("has not an answer for each choice");
  }
  Comparison all;
  const json* const context = fields.Find("capacity");
  if (context != nullptr && context->is_number_unsigned()) {
    all.context = context->get<int64_t>();
  }
  size_t index = 0;
  for (const std::vector<int32_t>& prompt : job.prompts) {
    WEFT_ASSIGN_OR_RETURN(Request asked, MakeRequest(model, job, prompt));
    WEFT_ASSIGN_OR_RETURN(const Completion now,
                          Complete(*model.scheduler, std::move(asked)));
    for (const ChoiceResult& choice : now.choices) {
      const Comparison one = Compare((*answers)[index], complete, choice);
      all.tokens += one.tokens;
      if (all.difference.empty() && !one.difference.empty()) {
        all.difference = absl::StrCat("choice ", index, ": ", one.difference);
      }
      ++index;
    }
  }
  return all;
}

absl::Status CannotReplay(const Flags& flags, const Line& line,
                          absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot replay: ", flags.file, ":", line.number, ": ", why));
}

// The file of the model that answered then; empty: the embedded one.
absl::StatusOr<std::string> ModelFileOf(const Line& line, const Flags& flags) {
  const absl::StatusOr<json> logged = ParseJson(line.text);
  if (!logged.ok()) return CannotReplay(flags, line, logged.status().message());
  const json* const file = JsonFields(*logged, "").Find("file");
  if (file != nullptr && file->is_string()) return file->get<std::string>();
  return CannotReplay(flags, line,
                      absl::StrCat("it does not name its model's file: name "
                                   "it: weft replay ",
                                   flags.file, " MODEL"));
}

// The lines of each model; where MODEL was named, all are its.
absl::StatusOr<std::map<std::string, std::vector<Line>>> LinesByModel(
    const std::string& text, const Flags& flags) {
  std::map<std::string, std::vector<Line>> lines;
  std::istringstream stream(text);
  Line line;
  while (std::getline(stream, line.text)) {
    ++line.number;
    if (line.text.empty()) continue;
    std::string model = flags.model;
    if (flags.names_model->count() == 0) {
      WEFT_ASSIGN_OR_RETURN(model, ModelFileOf(line, flags));
    }
    lines[model].push_back(line);
  }
  return lines;
}

struct Results {
  std::vector<std::string> models;
  std::map<int64_t, Comparison> lines;  // by number
};

absl::Status ReplayModel(const Flags& flags, const std::vector<Line>& lines,
                         const std::string& chat_template,
                         const CommonFlags& common, Results* results) {
  absl::StatusOr<ServedModel> model =
      LoadServedModel(flags, chat_template, common);
  if (!model.ok() && flags.names_model->count() == 0) {
    return CannotReplay(flags, lines.front(),
                        absl::StrCat("its model: ", model.status().message(),
                                     ": if it is elsewhere now: weft replay ",
                                     flags.file, " MODEL"));
  }
  WEFT_RETURN_IF_ERROR(model.status());
  results->models.push_back(model->id);
  bool told = false;
  for (const Line& line : lines) {
    absl::StatusOr<Comparison> compared = Replay(*model, line.text);
    if (!compared.ok()) {
      return CannotReplay(flags, line, compared.status().message());
    }
    // Where texts end or are shifted depends on it.
    if (!told && compared->context > 0 &&
        compared->context != model->capacity()) {
      told = true;
      PrintWarnings(common, {absl::StrCat(flags.file, ":", line.number,
                                          ": the server's context was ",
                                          compared->context, ", here it is ",
                                          model->capacity(), ": --context ",
                                          compared->context, " is the same")});
    }
    results->lines[line.number] = *std::move(compared);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Run(const Flags& flags, const CommonFlags& common) {
  WEFT_ASSIGN_OR_RETURN(const std::string source, flags.chat_template.Source());
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(flags.file));
  WEFT_ASSIGN_OR_RETURN(const auto lines, LinesByModel(text, flags));
  Results results;
  for (const auto& [model, its] : lines) {
    Flags one = flags;
    one.model = model;
    WEFT_RETURN_IF_ERROR(ReplayModel(one, its, source, common, &results));
  }
  int64_t tokens = 0, different = 0;
  json list = json::array();
  for (const auto& [number, compared] : results.lines) {
    tokens += compared.tokens;
    different += !compared.difference.empty();
    if (flags.json) {
      list.push_back({{"line", number},
                      {"tokens", compared.tokens},
                      {"same", compared.difference.empty()},
                      {"difference", compared.difference}});
    } else if (!compared.difference.empty()) {
      std::cout << "line " << number << ": " << compared.difference << "\n";
    }
  }
  const std::string models = absl::StrJoin(results.models, ", ");
  if (flags.json) {
    PrintJson({{"model", models},
               {"requests", results.lines.size()},
               {"tokens", tokens},
               {"different", different},
               {"lines", std::move(list)}});
  } else {
    std::cout << results.lines.size() << " requests, " << tokens << " tokens"
              << (models.empty() ? "" : " of " + PrintableLine(models)) << ": "
              << (different == 0 ? "all the same"
                                 : absl::StrCat(different, " differ"))
              << "\n";
  }
  return different == 0 ? kExitOk : kExitFailure;
}

}  // namespace

void AddReplay(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "replay",
      "Runs the requests of a server's log again and compares the answers");
  command
      ->add_option("FILE", flags->file, "the log of weft serve --log-requests")
      ->required();
  flags->names_model =
      command->add_option("MODEL", flags->model,
                          "a .gguf or .weft file for all lines (default: for "
                          "each the file that it names)");
  command->add_flag("--json", flags->json, "the result as JSON");
  flags->chat_template.AddTo(*command);
  flags->text.AddTo(*command);
  flags->compile.AddTo(*command);
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return Run(*flags, common); };
  });
}

}  // namespace weft
