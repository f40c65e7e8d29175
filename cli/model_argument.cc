#include "cli/model_argument.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cli/converted_folder.h"
#include "cli/output.h"
#include "loaders/convert/convert.h"
#include "runtime/hub/hub.h"
#include "runtime/hub/model_store.h"

namespace weft {
namespace {

// Of options that take a model.
constexpr const char* kModelOptions[] = {"MODEL", "IN", "--source"};
constexpr absl::string_view kPulling[] = {"run", "chat", "serve"};

// One line that changes; gone when nothing holds it any more.
class PullProgress {
 public:
  ~PullProgress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }

  void Show(int64_t done, int64_t total) {
    using Seconds = std::chrono::duration<double>;
    const Clock::time_point now = Clock::now();
    if (!shown_) {
      begin_ = now;
      there_ = done;
    } else if (Seconds(now - last_).count() < 0.2 && done < total) {
      return;
    }
    shown_ = true;
    last_ = now;
    const double rate =
        (done - there_) / std::max(Seconds(now - begin_).count(), 1e-3);
    std::string line =
        absl::StrFormat("%3d%%  %s of %s", total > 0 ? done * 100 / total : 100,
                        DescribeBytes(done), DescribeBytes(total));
    if (rate > 0) {
      const int64_t left = static_cast<int64_t>((total - done) / rate);
      absl::StrAppendFormat(&line, "  %s/s  %d:%02d left",
                            DescribeBytes(static_cast<int64_t>(rate)),
                            left / 60, left % 60);
    }
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool shown_ = false;
  Clock::time_point begin_, last_;
  int64_t there_ = 0;  // when it began
};

std::string Title(const HubName& name, const ModelChoice& chosen) {
  return absl::StrCat(name.repository, ":",
                      chosen.type.empty() ? chosen.files[0].path : chosen.type,
                      " (", DescribeBytes(chosen.bytes()),
                      chosen.files.size() > 1
                          ? absl::StrCat(", ", chosen.files.size(), " files")
                          : "",
                      ")");
}

// The path of what `text` names; `text` where that is no name of a hub.
absl::StatusOr<std::string> PathOf(const std::string& text, bool pulls,
                                   const CommonFlags& common) {
  std::error_code error;
  if (IsConvertibleFolder(text)) return ConvertedFolder(text, common);
  WEFT_RETURN_IF_ERROR(CheckPublished(text));
  if (std::filesystem::exists(text, error)) return text;
  WEFT_ASSIGN_OR_RETURN(const std::optional<HubName> name, HubNameOf(text));
  if (!name) return text;
  WEFT_ASSIGN_OR_RETURN(const ModelStore store, ModelStore::FromEnvironment());
  absl::StatusOr<StoredModel> stored = store.Find(*name);
  if (stored.ok()) return stored->path;
  if (!absl::IsNotFound(stored.status())) return stored.status();
  if (!pulls) {
    return absl::NotFoundError(absl::StrCat(
        "no such model: ", text, ": there is no such file, and it was not ",
        "pulled: weft pull ", text, " does it"));
  }
  absl::StatusOr<Pulled> pulled = PullModel(*name, common);
  if (pulled.ok()) return pulled->model.path;
  return absl::Status(
      pulled.status().code(),
      absl::StrCat(pulled.status().message(), "; nor is there a file ", text));
}

}  // namespace

absl::StatusOr<int> ResolveModels(CLI::App& command,
                                  const CommonFlags& common) {
  const bool pulls = absl::c_linear_search(kPulling, command.get_name());
  for (const char* name : kModelOptions) {
    CLI::Option* const option = command.get_option_no_throw(name);
    if (option == nullptr || option->count() != 1) continue;
    const std::string text = option->results()[0];
    WEFT_ASSIGN_OR_RETURN(std::string path, PathOf(text, pulls, common));
    if (path == text) continue;
    // As if it had been given.
    option->clear();
    option->add_result(std::move(path));
    option->run_callback();
  }
  return kExitOk;
}

absl::Status CheckPublished(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  constexpr char kWhatIsIn[] =
      "a published folder has config.json, tokenizer.json (or tokenizer.model) "
      "and model.safetensors, or its parts and model.safetensors.index.json";
  if (fs::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no model: ", path, ": is a directory without one: ", kWhatIsIn,
        "; of another, name its .gguf file"));
  }
  const fs::path file = path;
  const std::string name = file.filename().string();
  if (fs::is_regular_file(file, error) &&
      (file.extension() == ".safetensors" || name == "config.json" ||
       name == "tokenizer.json" || name == "model.safetensors.index.json")) {
    const std::string folder = file.parent_path().string();
    return absl::InvalidArgumentError(
        absl::StrCat("no model: ", path,
                     ": is one file of a published folder: "
                     "give the folder: ",
                     folder.empty() ? "." : folder, ": ", kWhatIsIn));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<HubName>> HubNameOf(const std::string& text) {
  if (!absl::StrContains(text, "://")) return ParseHubName(text);
  const std::string endpoint = HubOptionsFromEnvironment().endpoint;
  std::optional<HubName> name = ParseHubUrl(text, endpoint);
  if (name) return name;
  return UsageError(absl::StrCat(
      "no model: ", text, ": models are pulled from ", endpoint,
      " (HF_ENDPOINT names another hub): want owner/name, owner/name:TYPE, or "
      "the address of a repository or a .gguf file there"));
}

absl::StatusOr<Pulled> PullModel(const HubName& name,
                                 const CommonFlags& common) {
  WEFT_ASSIGN_OR_RETURN(const ModelStore store, ModelStore::FromEnvironment());
  HubOptions options = HubOptionsFromEnvironment();
  std::unique_ptr<PullProgress> progress;
  const auto notice = [&](const std::string& line) {
    progress.reset();  // else the line would stand behind it
    PrintWarnings(common, {line});
  };
  options.notice = notice;
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Hub> hub,
                        Hub::Create(std::move(options)));
  PullObserver observer;
  observer.notice = notice;
  observer.chosen = [&](const ModelChoice& chosen,
                        absl::Span<const ModelChoice> all) {
    if (common.quiet) return;
    std::vector<ModelChoice> others;
    absl::c_copy_if(all, std::back_inserter(others),
                    [&](const ModelChoice& each) {
                      return each.files[0].path != chosen.files[0].path;
                    });
    std::cerr << "pulling " << Title(name, chosen) << " from "
              << hub->endpoint() << "\n";
    if (name.type.empty() && !others.empty()) {
      std::cerr << "there is also " << Describe(others) << "\n";
    }
  };
  if (ShowsProgress(common)) {
    observer.progress = [&](int64_t done, int64_t total) {
      if (progress == nullptr) progress = std::make_unique<PullProgress>();
      progress->Show(done, total);
    };
  }
  return Pull(hub.get(), store, name, observer);
}

}  // namespace weft
