#include "runtime/hub/hub.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "runtime/hub/part_file.h"

namespace weft {
namespace {

using json = nlohmann::json;

constexpr size_t kMostListBytes = 8 << 20;
constexpr int kMostPages = 64;
constexpr int kDeepestList = 8;
constexpr int64_t kMostFileBytes = int64_t{1} << 50;
constexpr int kMostRedirects = 8;
// One after the other without any progress.
constexpr int kMostTries = 5;
constexpr absl::Duration kLongestWait = absl::Seconds(30);
constexpr int64_t kLongestAskedWait = 300;
constexpr size_t kMostReason = 200;

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool IsSha256(absl::string_view text) {
  return text.size() == 64 && absl::c_all_of(text, absl::ascii_isxdigit);
}

// Without quotes and mark of weakness.
std::string EtagOf(const HttpAnswer& answer, const char* header) {
  const std::string text = answer.Header(header);
  absl::string_view etag = text;
  absl::ConsumePrefix(&etag, "W/");
  absl::ConsumePrefix(&etag, "\"");
  absl::ConsumeSuffix(&etag, "\"");
  return std::string(etag);
}

// Of an answer of the hub itself.
std::string ContentEtag(const HttpAnswer& answer) {
  std::string etag = EtagOf(answer, "x-linked-etag");
  // The ETag of a redirect is not that of the content.
  if (etag.empty() && answer.status / 100 == 2) etag = EtagOf(answer, "etag");
  return etag;
}

// -1: none, or no size of a file.
int64_t SizeIn(const std::string& text) {
  int64_t size;
  return absl::SimpleAtoi(text, &size) && size >= 0 && size <= kMostFileBytes
             ? size
             : -1;
}

std::string EscapedPath(absl::string_view path) {
  std::string out;
  for (const char c : path) {
    if (absl::ascii_isalnum(c) || absl::StrContains("-._~/", c)) {
      out.push_back(c);
    } else {
      absl::StrAppend(
          &out, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return out;
}

bool IsRedirect(const HttpAnswer& answer) {
  return answer.status / 100 == 3 && !answer.redirect.empty();
}

bool MayPass(int status) {
  return status == 408 || status == 429 || status / 100 == 5;
}

// Discarded: no JSON, or too deep.
json ParseList(const std::string& text) {
  bool too_deep = false;
  json list = json::parse(
      text,
      [&too_deep](int depth, json::parse_event_t, json&) {
        too_deep = too_deep || depth > kDeepestList;
        return !too_deep;
      },
      /*allow_exceptions=*/false);
  return too_deep ? json(json::value_t::discarded) : list;
}

std::string TextIn(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : "";
}

int64_t SizeIn(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return -1;
  const uint64_t size = found->get<uint64_t>();
  return size <= kMostFileBytes ? static_cast<int64_t>(size) : -1;
}

// The next page of a list: Link: <URL>; rel="next".
std::string NextPage(const HttpAnswer& answer) {
  for (absl::string_view link : absl::StrSplit(answer.Header("link"), ',')) {
    if (!absl::StrContains(link, "rel=\"next\"")) continue;
    const size_t begin = link.find('<'), end = link.find('>');
    if (begin < end && end != absl::string_view::npos) {
      return std::string(link.substr(begin + 1, end - begin - 1));
    }
  }
  return "";
}

absl::Status Changed(const std::string& path) {
  return absl::AbortedError(absl::StrCat(
      "file changed on the hub meanwhile: ", path, ": pull it again"));
}

absl::Status BadAnswer(const std::string& url, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("bad answer: ", OriginOf(url), ": ",
                                          what, ": is HF_ENDPOINT a hub?"));
}

// Whether what begins to come is what was asked for.
absl::Status CheckBeginning(const HttpAnswer& answer, const HubFile& file,
                            PartFile* part) {
  if (answer.status == 200) {
    const std::string length = answer.Header("content-length");
    if (!length.empty() && SizeIn(length) != file.bytes) {
      return Changed(file.path);
    }
    return part->bytes() > 0 ? part->Restart() : absl::OkStatus();
  }
  const std::string range = answer.Header("content-range");
  absl::string_view rest = range;
  const std::vector<absl::string_view> sides =
      absl::ConsumePrefix(&rest, "bytes ")
          ? std::vector<absl::string_view>(absl::StrSplit(rest, '/'))
          : std::vector<absl::string_view>();
  if (answer.status != 206 || sides.size() != 2 ||
      SizeIn(std::string(sides[0].substr(0, sides[0].find('-')))) !=
          part->bytes()) {
    return absl::DataLossError(absl::StrCat(
        "bad answer: ", file.path, ": it begins elsewhere than asked for"));
  }
  if (sides[1] != "*" && SizeIn(std::string(sides[1])) != file.bytes) {
    return Changed(file.path);
  }
  return absl::OkStatus();
}

}  // namespace

HubOptions HubOptionsFromEnvironment() {
  HubOptions options;
  if (std::string endpoint = FromEnvironment("HF_ENDPOINT");
      !endpoint.empty()) {
    options.endpoint = std::move(endpoint);
  }
  options.token = FromEnvironment("HF_TOKEN");
  return options;
}

// How often something is tried, and how long it is waited in between.
class Hub::Patience {
 public:
  explicit Patience(const HubOptions& options) : options_(options) {}

  void Progress() { tries_ = 0; }

  // Before another try after `why`; `why` when that was the last.
  absl::Status Wait(const absl::Status& why, int64_t asked_seconds = 0) {
    if (asked_seconds > kLongestAskedWait) {
      return absl::UnavailableError(absl::StrCat(
          why.message(), ": it asks to come back in ", asked_seconds, " s"));
    }
    if (++tries_ >= kMostTries) return why;
    absl::Duration wait = absl::Seconds(asked_seconds);
    if (asked_seconds <= 0) {
      wait = std::min(kLongestWait, options_.first_wait * (1 << (tries_ - 1)));
    }
    if (options_.notice) {
      options_.notice(absl::StrCat(why.message(), ": trying again in ",
                                   absl::FormatDuration(wait)));
    }
    absl::SleepFor(wait);
    return absl::OkStatus();
  }

 private:
  const HubOptions& options_;
  int tries_ = 0;
};

absl::StatusOr<std::unique_ptr<Hub>> Hub::Create(HubOptions options) {
  std::unique_ptr<Hub> hub(new Hub);
  while (absl::EndsWith(options.endpoint, "/")) options.endpoint.pop_back();
  hub->origin_ = OriginOf(options.endpoint);
  if (hub->origin_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no address of a hub: HF_ENDPOINT: '", options.endpoint,
                     "': want one like https://huggingface.co"));
  }
  if (!absl::c_all_of(options.token,
                      [](char c) { return c > ' ' && c < 0x7f; })) {
    return absl::InvalidArgumentError(
        "no token: HF_TOKEN: it has spaces or control characters: give the "
        "token alone");
  }
  hub->options_ = std::move(options);
  WEFT_ASSIGN_OR_RETURN(hub->client_, HttpClient::Create());
  return hub;
}

std::string Hub::FileUrl(const std::string& repository,
                         const std::string& path) const {
  return absl::StrCat(options_.endpoint, "/", repository, "/resolve/main/",
                      EscapedPath(path));
}

absl::StatusOr<HttpAnswer> Hub::Follow(HttpRequest request, bool stay,
                                       const BodyReader& body,
                                       HttpAnswer* own) {
  const std::vector<std::string> headers = std::move(request.headers);
  for (int i = 0; i <= kMostRedirects; ++i) {
    const bool is_own = OriginOf(request.url) == origin_;
    request.headers = headers;
    if (is_own && !options_.token.empty()) {
      request.headers.push_back(
          absl::StrCat("Authorization: Bearer ", options_.token));
    }
    WEFT_ASSIGN_OR_RETURN(HttpAnswer answer, client_->Send(request, body));
    reached_ = true;
    if (is_own && own != nullptr) *own = answer;
    if (!IsRedirect(answer)) return answer;
    const std::string next = OriginOf(answer.redirect);
    if (stay && next != origin_) return answer;
    // Never from what is encrypted to what is not.
    if (next.empty() || (absl::StartsWith(request.url, "https:") &&
                         !absl::StartsWith(next, "https:"))) {
      return BadAnswer(request.url,
                       "it leads to where nothing is fetched from");
    }
    request.url = answer.redirect;
  }
  return BadAnswer(request.url, "it leads on and on");
}

absl::Status Hub::Refusal(const HttpAnswer& answer,
                          const std::string& what) const {
  // In its own words, if it has any. Others look after control characters.
  std::string reason = answer.Header("x-error-message").substr(0, kMostReason);
  if (!reason.empty()) reason = absl::StrCat(" (", reason, ")");
  const std::string where = absl::StrCat(what, ": ", origin_);
  switch (answer.status) {
    case 401:
      if (options_.token.empty()) {
        return absl::PermissionDeniedError(absl::StrCat(
            "not to be had: ", where, " has no such repository, or not for ",
            "everyone", reason, ": look at its name, or set HF_TOKEN"));
      }
      return absl::PermissionDeniedError(
          absl::StrCat("not to be had: ", where, " does not take the token",
                       reason, ": look at the name, and at HF_TOKEN"));
    case 403:
      return absl::PermissionDeniedError(absl::StrCat(
          "not to be had: ", where, " refuses it", reason,
          ": accept its terms there, and set HF_TOKEN to a token that may"));
    case 404:
      return absl::NotFoundError(absl::StrCat("not found: ", where,
                                              " does not have it", reason,
                                              ": look at its name"));
    case 429:
      return absl::UnavailableError(
          absl::StrCat("too many requests: ", where, reason, ": wait a while"));
    default:
      return absl::UnavailableError(absl::StrCat("no success: ", where,
                                                 " answers ", answer.status,
                                                 reason, ": try again later"));
  }
}

absl::StatusOr<HttpAnswer> Hub::Ask(const HttpRequest& request,
                                    std::string* body) {
  Patience patience(options_);
  for (;;) {
    body->clear();
    absl::StatusOr<HttpAnswer> answer =
        Follow(request, /*stay=*/request.head,
               [&](const HttpAnswer&, absl::string_view part) {
                 if (body->size() + part.size() > kMostListBytes) {
                   return BadAnswer(request.url, "it does not end");
                 }
                 body->append(part.data(), part.size());
                 return absl::OkStatus();
               });
    if (answer.ok() && !MayPass(answer->status)) return answer;
    // Where nobody has answered yet, nobody is there: that is told at once.
    if (!answer.ok() && (!reached_ || !absl::IsUnavailable(answer.status()))) {
      return answer;
    }
    WEFT_RETURN_IF_ERROR(
        answer.ok()
            ? patience.Wait(Refusal(*answer, request.url), answer->retry_after)
            : patience.Wait(answer.status()));
  }
}

absl::StatusOr<std::vector<HubFile>> Hub::ListFiles(
    const std::string& repository) {
  absl::StatusOr<std::vector<HubFile>> files = ListTree(repository);
  // Hubs without that list have the shorter one.
  if (absl::IsNotFound(files.status())) return ListSiblings(repository);
  return files;
}

absl::StatusOr<std::vector<HubFile>> Hub::ListTree(
    const std::string& repository) {
  std::vector<HubFile> files;
  int left_out = 0;
  std::string url = absl::StrCat(options_.endpoint, "/api/models/", repository,
                                 "/tree/main?recursive=true");
  for (int page = 0; !url.empty(); ++page) {
    std::string body;
    if (page == kMostPages || OriginOf(url) != origin_) {
      return BadAnswer(url, "its list of files does not end");
    }
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer,
                          Ask({url, /*head=*/false, {}}, &body));
    if (answer.status != 200) return Refusal(answer, repository);
    const json list = ParseList(body);
    if (!list.is_array()) return BadAnswer(url, "it is no list of files");
    for (const json& entry : list) {
      if (!entry.is_object() || TextIn(entry, "type") != "file") continue;
      HubFile file;
      file.path = TextIn(entry, "path");
      file.bytes = SizeIn(entry, "size");
      if (const auto lfs = entry.find("lfs");
          lfs != entry.end() && lfs->is_object()) {
        file.sha256 = absl::AsciiStrToLower(TextIn(*lfs, "oid"));
        absl::string_view digits = file.sha256;
        if (absl::ConsumePrefix(&digits, "sha256:")) {
          file.sha256 = std::string(digits);
        }
        if (!IsSha256(file.sha256)) file.sha256.clear();
        if (const int64_t size = SizeIn(*lfs, "size"); size >= 0) {
          file.bytes = size;
        }
      }
      if (IsPlainPath(file.path)) {
        files.push_back(std::move(file));
      } else if (!absl::StartsWith(file.path, ".git")) {
        ++left_out;
      }
    }
    url = NextPage(answer);
  }
  if (left_out > 0 && options_.notice) {
    options_.notice(absl::StrCat(repository, ": ", left_out,
                                 " files have names that no file here may "
                                 "have: they are left out"));
  }
  return files;
}

absl::StatusOr<std::vector<HubFile>> Hub::ListSiblings(
    const std::string& repository) {
  const std::string url =
      absl::StrCat(options_.endpoint, "/api/models/", repository);
  std::string body;
  WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer,
                        Ask({url, /*head=*/false, {}}, &body));
  if (answer.status != 200) return Refusal(answer, repository);
  const json model = ParseList(body);
  const auto siblings =
      model.is_object() ? model.find("siblings") : model.end();
  if (!model.is_object() || siblings == model.end() || !siblings->is_array()) {
    return BadAnswer(url, "it has no list of files");
  }
  std::vector<HubFile> files;
  for (const json& entry : *siblings) {
    if (!entry.is_object()) continue;
    HubFile file;
    file.path = TextIn(entry, "rfilename");
    if (IsPlainPath(file.path)) files.push_back(std::move(file));
  }
  return files;
}

absl::Status Hub::Complete(const std::string& repository, HubFile* file) {
  if (file->bytes >= 0 && !file->sha256.empty()) return absl::OkStatus();
  HttpRequest request;
  request.url = FileUrl(repository, file->path);
  request.head = true;
  std::string body;
  WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, Ask(request, &body));
  if (answer.status / 100 != 2 && !IsRedirect(answer)) {
    return Refusal(answer, absl::StrCat(repository, "/", file->path));
  }
  int64_t bytes = SizeIn(answer.Header("x-linked-size"));
  if (bytes < 0 && answer.status == 200) {
    bytes = SizeIn(answer.Header("content-length"));
  }
  if (bytes < 0 || (file->bytes >= 0 && file->bytes != bytes)) {
    return absl::FailedPreconditionError(
        absl::StrCat("no size: ", request.url,
                     ": the hub does not say how large the file is, or says "
                     "two things: fetch it by other means"));
  }
  file->bytes = bytes;
  file->etag = ContentEtag(answer);
  if (IsSha256(file->etag)) file->sha256 = absl::AsciiStrToLower(file->etag);
  return absl::OkStatus();
}

absl::Status Hub::Fetch(const std::string& repository, const HubFile& file,
                        PartFile* part,
                        const std::function<void(int64_t bytes)>& progress) {
  Patience patience(options_);
  std::string served_etag;  // by whoever sends the bytes, while this runs
  while (part->bytes() < file.bytes) {
    HttpRequest request;
    request.url = FileUrl(repository, file.path);
    if (part->bytes() > 0) {
      request.headers.push_back(
          absl::StrCat("Range: bytes=", part->bytes(), "-"));
      if (!served_etag.empty()) {
        request.headers.push_back(absl::StrCat("If-Range: ", served_etag));
      }
    }
    const int64_t before = part->bytes();
    bool begun = false;
    HttpAnswer own;
    const absl::StatusOr<HttpAnswer> answer = Follow(
        request, /*stay=*/false,
        [&](const HttpAnswer& head, absl::string_view bytes) {
          if (!std::exchange(begun, true)) {
            WEFT_RETURN_IF_ERROR(CheckBeginning(head, file, part));
            const std::string etag = head.Header("etag");
            served_etag = absl::StartsWith(etag, "\"") ? etag : "";
          }
          if (static_cast<int64_t>(bytes.size()) > file.bytes - part->bytes()) {
            return absl::Status(absl::DataLossError(
                absl::StrCat("bad answer: ", file.path, ": more comes than ",
                             file.bytes, " bytes: pull it again")));
          }
          WEFT_RETURN_IF_ERROR(part->Append(bytes));
          if (progress) progress(part->bytes());
          return absl::OkStatus();
        },
        &own);
    // Before what came is taken for the file's: another content.
    const std::string& known = file.sha256.empty() ? file.etag : file.sha256;
    const std::string now = ContentEtag(own);
    if (!now.empty() && !known.empty() &&
        (file.sha256.empty() || IsSha256(now)) &&
        !absl::EqualsIgnoreCase(now, known)) {
      WEFT_RETURN_IF_ERROR(part->Restart());
      return Changed(file.path);
    }
    if (!answer.ok() && !absl::IsUnavailable(answer.status())) {
      return answer.status();
    }
    if (part->bytes() == file.bytes) break;
    if (part->bytes() > before) {
      // Cut off: there is no better moment than now.
      patience.Progress();
    } else if (!answer.ok()) {
      WEFT_RETURN_IF_ERROR(patience.Wait(answer.status()));
    } else if (answer->status == 416) {
      // The part goes on where the file has nothing.
      WEFT_RETURN_IF_ERROR(part->Restart());
      WEFT_RETURN_IF_ERROR(patience.Wait(
          Refusal(*answer, absl::StrCat(repository, "/", file.path))));
    } else if (MayPass(answer->status) || answer->status / 100 == 2) {
      WEFT_RETURN_IF_ERROR(patience.Wait(
          Refusal(*answer, absl::StrCat(repository, "/", file.path)),
          answer->retry_after));
    } else {
      return Refusal(*answer, absl::StrCat(repository, "/", file.path));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Hub::Download(
    const std::string& repository, const HubFile& file,
    const std::string& target,
    const std::function<void(int64_t bytes)>& progress) {
  if (file.bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("no size: ", file.path, ": ask the hub first (Complete)"));
  }
  const std::string& identity = file.sha256.empty() ? file.etag : file.sha256;
  // What an earlier process left may be damaged: then once more from the
  // beginning.
  for (int tries = 0;; ++tries) {
    WEFT_ASSIGN_OR_RETURN(
        PartFile part, PartFile::Open(target, identity, [&] {
          if (options_.notice) {
            options_.notice(absl::StrCat("another process downloads ", target,
                                         ": waiting for it"));
          }
        }));
    if (part.bytes() > file.bytes) WEFT_RETURN_IF_ERROR(part.Restart());
    const bool resumed = part.bytes() > 0;
    if (progress) progress(part.bytes());
    WEFT_RETURN_IF_ERROR(Fetch(repository, file, &part, progress));
    absl::StatusOr<std::string> sha256 = part.Commit(file.sha256);
    if (sha256.ok() || !absl::IsDataLoss(sha256.status())) return sha256;
    part.Discard();
    if (!resumed || tries > 0) {
      return absl::DataLossError(absl::StrCat(
          sha256.status().message(), ": it was removed: pull it again"));
    }
    if (options_.notice) {
      options_.notice(absl::StrCat(sha256.status().message(),
                                   ": once more from the beginning"));
    }
  }
}

}  // namespace weft
