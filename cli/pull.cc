// weft pull, list and rm: models from a hub, and those that are there.
//
// pull prints the path of the model's file; list a table, or JSON; rm what was
// removed. Where they lie: runtime/hub/model_store.h.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/converted_folder.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "loaders/convert/convert.h"
#include "runtime/hub/model_store.h"

namespace weft {
namespace {

constexpr char kNameHelp[] =
    "owner/name of the repository, or owner/name:TYPE: a type (Q4_K_M, Q8_0 "
    "...) or a file's name; or the address of one of these";

absl::StatusOr<HubName> NameOf(const std::string& text) {
  WEFT_ASSIGN_OR_RETURN(std::optional<HubName> name, HubNameOf(text));
  if (name) return *std::move(name);
  return UsageError(absl::StrCat("no name of a model: '", text,
                                 "': want owner/name or owner/name:TYPE"));
}

absl::StatusOr<int> RunPull(const std::string& text,
                            const CommonFlags& common) {
  WEFT_ASSIGN_OR_RETURN(const HubName name, NameOf(text));
  WEFT_ASSIGN_OR_RETURN(const Pulled pulled, PullModel(name, common));
  if (!common.quiet) {
    const std::string& title = pulled.model.name;
    if (pulled.was_there) {
      std::cerr << title << " is there already\n";
    } else {
      std::cerr << title << " is there: weft chat " << title << "\n";
    }
  }
  std::cout << pulled.model.path << "\n";
  return kExitOk;
}

// What tells models of a repository apart, behind the colon of their name.
std::string TypeOf(const StoredModel& model) {
  return model.name.substr(model.repository.size() + 1);
}

absl::StatusOr<int> RunList(bool json, const CommonFlags& common) {
  WEFT_ASSIGN_OR_RETURN(const ModelStore store, ModelStore::FromEnvironment());
  const std::vector<StoredModel> models = store.List();
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const StoredModel& model : models) {
      list.push_back(
          {{"name", model.name},
           {"repository", model.repository},
           {"type", model.model.type},
           {"path", model.path},
           {"files", model.model.files.size()},
           {"bytes", model.model.bytes()},
           {"plan_bytes", model.plan_bytes},
           {"sha256", model.model.files[0].sha256},
           {"pulled", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", model.pulled,
                                       absl::UTCTimeZone())}});
    }
    PrintJson(list);
    return kExitOk;
  }
  if (models.empty()) {
    if (!common.quiet) {
      std::cerr << "no models in " << store.folder()
                << ": weft pull owner/name fetches one\n";
    }
    return kExitOk;
  }
  int name_width = 4, type_width = 4;
  for (const StoredModel& model : models) {
    name_width =
        std::max(name_width, static_cast<int>(model.repository.size()));
    type_width = std::max(type_width, static_cast<int>(TypeOf(model).size()));
  }
  const auto print = [&](const std::string& name, const std::string& type,
                         const std::string& size, const std::string& plan,
                         const std::string& pulled) {
    std::cout << absl::StreamFormat("%-*s  %-*s  %7s  %7s  %s\n", name_width,
                                    name, type_width, type, size, plan, pulled);
  };
  print("NAME", "TYPE", "SIZE", "PLAN", "PULLED");
  for (const StoredModel& model : models) {
    print(model.repository, TypeOf(model), DescribeBytes(model.model.bytes()),
          model.plan_bytes > 0 ? DescribeBytes(model.plan_bytes) : "-",
          absl::FormatTime("%Y-%m-%d %H:%M", model.pulled,
                           absl::LocalTimeZone()));
  }
  return kExitOk;
}

absl::StatusOr<int> RunRemove(const std::string& text) {
  WEFT_ASSIGN_OR_RETURN(const ModelStore store, ModelStore::FromEnvironment());
  HubName name;
  // What was made of a folder, which itself stays; or has gone by now, or is
  // none of a published model any more.
  WEFT_ASSIGN_OR_RETURN(name.repository, RepositoryOfFolder(text));
  if (!store.Has(name.repository) && !IsConvertibleFolder(text)) {
    WEFT_ASSIGN_OR_RETURN(name, NameOf(text));
  }
  WEFT_ASSIGN_OR_RETURN(const int64_t bytes, store.Remove(name));
  std::cout << "removed " << name.ToString() << ": " << DescribeBytes(bytes)
            << " are free\n";
  return kExitOk;
}

}  // namespace

void AddPull(CLI::App& app, const CommonFlags& common, Action* action) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "pull",
      "Downloads a model from a hub (HF_ENDPOINT, HF_TOKEN) into the cache "
      "(WEFT_CACHE)");
  command->add_option("NAME", *name, kNameHelp)->required();
  command->callback([name, &common, action] {
    *action = [name, &common] { return RunPull(*name, common); };
  });
}

void AddList(CLI::App& app, const CommonFlags& common, Action* action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("list", "The models that were pulled");
  command->add_flag("--json", *json, "print one JSON list");
  command->callback([json, &common, action] {
    *action = [json, &common] { return RunList(*json, common); };
  });
}

void AddRm(CLI::App& app, const CommonFlags&, Action* action) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "rm", "Removes a model that was pulled, with its plans");
  command
      ->add_option("NAME", *name,
                   "as weft list has it: owner/name:TYPE, or owner/name for "
                   "all types of it; or a published folder, for the model that "
                   "was made of it (the folder stays)")
      ->required();
  command->callback(
      [name, action] { *action = [name] { return RunRemove(*name); }; });
}

}  // namespace weft
