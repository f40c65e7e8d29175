#include "runtime/hub/hub_name.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace weft {
namespace {

constexpr size_t kLongestName = 96;
// A part's temporary name has to fit, too.
constexpr size_t kLongestPart = 180;
constexpr size_t kLongestPath = 500;
constexpr size_t kMostNamed = 24;
constexpr uint32_t kMostParts = 99999;

// What is taken where nothing was asked for, best first.
constexpr absl::string_view kPreferred[] = {
    "Q4_K_M", "Q4_0",   "Q8_0", "Q5_K_M", "Q6_K", "Q4_K_S",
    "Q5_K_S", "IQ4_XS", "Q4_1", "IQ4_NL", "Q5_0", "Q3_K_M",
    "Q2_K",   "MXFP4",  "BF16", "F16",    "F32"};
// Of one maker, who mixes types by the model; they stand for the plain ones.
constexpr absl::string_view kDynamic = "UD-";

bool IsNamePart(absl::string_view part) {
  return !part.empty() && part.size() <= kLongestName && part[0] != '.' &&
         part[0] != '-' && !absl::StrContains(part, "..") &&
         absl::c_all_of(part, [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

// Where `word` stands at the beginning: "Q4_K_M" of "Q4_K_M-00001".
size_t TypeLength(absl::string_view text) {
  for (absl::string_view word :
       {"MXFP4_MOE", "MXFP4", "NVFP4", "BF16", "FP16", "F16", "F32"}) {
    if (absl::StartsWith(text, word)) return word.size();
  }
  size_t at = 0;
  if (!text.empty() && (text[0] == 'I' || text[0] == 'T')) ++at;
  if (at == text.size() || text[at] != 'Q') return 0;
  const size_t digits = ++at;
  while (at < text.size() && absl::ascii_isdigit(text[at])) ++at;
  if (at == digits) return 0;
  while (at < text.size() && (absl::ascii_isalnum(text[at]) ||
                              (text[at] == '_' && at + 1 < text.size()))) {
    ++at;
  }
  return at;
}

// The last type that stands between separators in a file's name.
std::string TypeIn(absl::string_view name) {
  const std::string text = absl::AsciiStrToUpper(name);
  const absl::string_view view = text;
  const auto separates = [](char c) { return c == '-' || c == '.'; };
  for (size_t at = view.size(); at-- > 0;) {
    if (at > 0 && !separates(view[at - 1]) && view[at - 1] != '_') continue;
    const size_t length = TypeLength(view.substr(at));
    const size_t end = at + length;
    if (length == 0 || (end < view.size() && !separates(view[end]))) continue;
    const bool dynamic =
        at >= kDynamic.size() &&
        view.substr(at - kDynamic.size(), kDynamic.size()) == kDynamic;
    return absl::StrCat(dynamic ? kDynamic : "", view.substr(at, length));
  }
  return "";
}

struct Part {
  std::string model;  // the path without ending and number
  uint32_t number = 1, count = 1;
};

// "x-00002-of-00003" is a part of "x".
Part PartOf(absl::string_view path) {
  path.remove_suffix(std::min<size_t>(path.size(), 5));  // ".gguf"
  Part part;
  part.model = std::string(path);
  constexpr size_t kTail = 15;  // "-00002-of-00003"
  if (path.size() <= kTail) return part;
  const absl::string_view tail = path.substr(path.size() - kTail);
  uint32_t number, count;
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" ||
      !absl::c_all_of(tail.substr(1, 5), absl::ascii_isdigit) ||
      !absl::c_all_of(tail.substr(10), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(tail.substr(1, 5), &number) ||
      !absl::SimpleAtoi(tail.substr(10), &count) || number < 1 ||
      number > count || count > kMostParts) {
    return part;
  }
  part.model = std::string(path.substr(0, path.size() - kTail));
  part.number = number;
  part.count = count;
  return part;
}

absl::string_view FileName(absl::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool IsLanguageModel(absl::string_view path) {
  const std::string name = absl::AsciiStrToLower(FileName(path));
  return absl::EndsWith(name, ".gguf") && name.size() > 5 &&
         !absl::StartsWith(name, "mmproj") &&
         !absl::StrContains(name, "-mmproj") &&
         !absl::StrContains(name, "imatrix");
}

std::string WithoutDynamic(const std::string& type) {
  return absl::StartsWith(type, kDynamic) ? type.substr(kDynamic.size()) : type;
}

bool HasPath(const ModelChoice& choice, absl::string_view path) {
  return absl::c_any_of(
      choice.files, [path](const HubFile& file) { return file.path == path; });
}

bool HasFileName(const ModelChoice& choice, absl::string_view name) {
  return absl::c_any_of(choice.files, [name](const HubFile& file) {
    return FileName(file.path) == name;
  });
}

}  // namespace

std::string HubName::ToString() const {
  return type.empty() ? repository : absl::StrCat(repository, ":", type);
}

std::optional<HubName> ParseHubName(absl::string_view text) {
  HubName name;
  const size_t colon = text.find(':');
  const absl::string_view repository = text.substr(0, colon);
  const std::vector<absl::string_view> parts = absl::StrSplit(repository, '/');
  if (parts.size() != 2 || !IsNamePart(parts[0]) || !IsNamePart(parts[1]) ||
      absl::EndsWith(repository, ".gguf") ||
      absl::EndsWith(repository, ".weft")) {
    return std::nullopt;
  }
  name.repository = std::string(repository);
  if (colon == absl::string_view::npos) return name;
  name.type = std::string(text.substr(colon + 1));
  if (!IsPlainPath(name.type)) return std::nullopt;
  return name;
}

std::optional<HubName> ParseHubUrl(absl::string_view url,
                                   absl::string_view endpoint) {
  url = url.substr(0, url.find_first_of("?#"));
  if (!absl::ConsumePrefix(&url, absl::StripSuffix(endpoint, "/")) ||
      !absl::ConsumePrefix(&url, "/")) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> parts =
      absl::StrSplit(absl::StripSuffix(url, "/"), '/');
  if (parts.size() < 2) return std::nullopt;
  const std::string repository = absl::StrCat(parts[0], "/", parts[1]);
  if (parts.size() == 2) return ParseHubName(repository);
  if (parts.size() < 4 || parts[3] != "main") return std::nullopt;
  if (parts[2] == "tree" && parts.size() == 4) return ParseHubName(repository);
  if (parts[2] != "resolve" && parts[2] != "blob") return std::nullopt;
  return ParseHubName(absl::StrCat(
      repository, ":", absl::StrJoin(parts.begin() + 4, parts.end(), "/")));
}

bool IsPlainPath(absl::string_view path) {
  if (path.empty() || path.size() > kLongestPath) return false;
  if (!absl::c_all_of(path, [](char c) {
        return absl::ascii_isprint(c) && c != '\\' && c != ':';
      })) {
    return false;
  }
  for (absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty() || part[0] == '.' || part.size() > kLongestPart) {
      return false;
    }
  }
  return true;
}

int64_t ModelChoice::bytes() const {
  int64_t sum = 0;
  for (const HubFile& file : files) {
    if (file.bytes < 0) return -1;
    sum += file.bytes;
  }
  return sum;
}

namespace {

// By path and number of parts, then by the part's number.
std::map<std::pair<std::string, uint32_t>, std::map<uint32_t, HubFile>> PartsOf(
    absl::Span<const HubFile> files) {
  std::map<std::pair<std::string, uint32_t>, std::map<uint32_t, HubFile>>
      models;
  for (const HubFile& file : files) {
    if (!IsPlainPath(file.path) || !IsLanguageModel(file.path)) continue;
    const Part part = PartOf(file.path);
    models[{part.model, part.count}][part.number] = file;
  }
  return models;
}

// "; of x.gguf 2 of 3 parts are missing: 00001, 00003", of each such model.
std::string DescribeIncomplete(absl::Span<const HubFile> files) {
  std::string text;
  size_t named = 0;
  for (const auto& [key, parts] : PartsOf(files)) {
    const auto& [path, count] = key;
    if (parts.size() == count) continue;
    if (++named > kMostNamed) return text + "; and of others";
    std::vector<std::string> missing;
    for (uint32_t number = 1; number <= count; ++number) {
      if (parts.count(number) > 0) continue;
      if (missing.size() == kMostNamed) {
        missing.push_back("...");
        break;
      }
      missing.push_back(absl::StrFormat("%05d", number));
    }
    const size_t absent = count - parts.size();
    absl::StrAppend(
        &text, "; of ", path, ".gguf ", absent, " of ", count,
        absent == 1 ? " parts is missing: " : " parts are missing: ",
        absl::StrJoin(missing, ", "));
  }
  return text;
}

}  // namespace

std::vector<ModelChoice> ChoicesOf(absl::Span<const HubFile> files) {
  auto models = PartsOf(files);
  std::vector<ModelChoice> choices;
  for (auto& [key, parts] : models) {
    const auto& [path, count] = key;
    if (parts.size() != count) continue;
    ModelChoice choice;
    choice.type = TypeIn(FileName(path));
    // "Q8_0/model-00001-of-00004.gguf".
    if (choice.type.empty() && absl::StrContains(path, '/')) {
      choice.type =
          TypeIn(FileName(absl::string_view(path).substr(0, path.rfind('/'))));
    }
    for (auto& [number, file] : parts) choice.files.push_back(std::move(file));
    choices.push_back(std::move(choice));
  }
  absl::c_stable_sort(choices, [](const ModelChoice& a, const ModelChoice& b) {
    return a.type < b.type;
  });
  return choices;
}

absl::StatusOr<ModelChoice> Choose(absl::Span<const ModelChoice> choices,
                                   const HubName& name) {
  std::vector<ModelChoice> found;
  const auto take = [&](auto&& fits) {
    if (!found.empty()) return;
    absl::c_copy_if(choices, std::back_inserter(found), fits);
  };
  if (name.type.empty()) {
    if (choices.size() == 1) return choices[0];
    for (absl::string_view type : kPreferred) {
      take([&](const ModelChoice& c) { return c.type == type; });
      take(
          [&](const ModelChoice& c) { return WithoutDynamic(c.type) == type; });
    }
    // Types that nobody prefers: any is better than none.
    if (found.empty() && !choices.empty()) {
      take([&](const ModelChoice& c) { return c.type == choices[0].type; });
    }
  } else {
    const std::string type = absl::AsciiStrToUpper(name.type);
    take([&](const ModelChoice& c) { return HasPath(c, name.type); });
    take([&](const ModelChoice& c) { return HasFileName(c, name.type); });
    take([&](const ModelChoice& c) { return c.type == type; });
    take([&](const ModelChoice& c) { return WithoutDynamic(c.type) == type; });
  }
  if (found.size() == 1) return std::move(found[0]);
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(
        name.type.empty() ? "no GGUF file there: "
                          : absl::StrCat("no ", name.type, " there: "),
        name.repository, choices.empty() ? ": it has none" : ": it has ",
        Describe(choices)));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "more than one file is meant: ", name.ToString(), ": choose one: ",
      absl::StrJoin(
          found, ", ", [&](std::string* out, const ModelChoice& choice) {
            absl::StrAppend(out, name.repository, ":", choice.files[0].path);
          })));
}

absl::StatusOr<ModelChoice> ChooseAmong(absl::Span<const HubFile> files,
                                        const HubName& name) {
  absl::StatusOr<ModelChoice> chosen = Choose(ChoicesOf(files), name);
  if (!absl::IsNotFound(chosen.status())) return chosen;
  return absl::NotFoundError(
      absl::StrCat(chosen.status().message(), DescribeIncomplete(files)));
}

std::string Describe(absl::Span<const ModelChoice> choices) {
  std::vector<std::string> texts;
  for (const ModelChoice& choice : choices) {
    if (texts.size() == kMostNamed) {
      texts.push_back("...");
      break;
    }
    std::string text = choice.type.empty() ? choice.files[0].path : choice.type;
    if (choice.bytes() >= 0) {
      absl::StrAppend(&text, " ", DescribeBytes(choice.bytes()));
    }
    texts.push_back(std::move(text));
  }
  return absl::StrJoin(texts, ", ");
}

std::string DescribeBytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%d B", bytes)
                   : absl::StrFormat("%.*f %s", value < 9.95 ? 1 : 0, value,
                                     kUnits[unit]);
}

}  // namespace weft
