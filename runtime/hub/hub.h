// A hub of models: what a repository has, and its files, by the API that
// Hugging Face's hub has (huggingface.co/docs/hub/api) and others speak.
//
// What it answers is untrusted: lists are bounded, names are plain paths,
// sizes and ranges are compared with what was promised, and the content with
// its SHA-256 where the hub knows it. The token goes to the hub's own scheme,
// host and port alone, never to where it redirects.
//
// Waits and tries again where that may help: connections that are cut or stand
// still, answers 408, 429 (as long as Retry-After says) and 5xx.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/hub/http_client.h"
#include "runtime/hub/hub_name.h"

namespace weft {

struct HubOptions {
  std::string endpoint = "https://huggingface.co";
  std::string token;  // empty: none
  // Before the second try; doubled for each that follows.
  absl::Duration first_wait = absl::Seconds(1);
  // Told of what takes longer than it should, a line each.
  std::function<void(const std::string& line)> notice = nullptr;
};

// HF_ENDPOINT and HF_TOKEN.
HubOptions HubOptionsFromEnvironment();

class Hub {
 public:
  // Errors: an endpoint that is no URL, a token that is none, no libcurl.
  static absl::StatusOr<std::unique_ptr<Hub>> Create(HubOptions options);

  // All files of the repository's main branch whose names are plain paths.
  // kNotFound, kPermissionDenied: as the hub says.
  absl::StatusOr<std::vector<HubFile>> ListFiles(const std::string& repository);

  // Size and checksum where the list has none. kNotFound; and
  // kFailedPrecondition where the hub does not tell the size.
  absl::Status Complete(const std::string& repository, HubFile* file);

  // The file, whole and checked, at `target`, whose folder is there; goes on
  // from what an earlier call left. `progress` is told the bytes that are
  // there. Returns its SHA-256. kAborted: the hub has another content by now.
  absl::StatusOr<std::string> Download(
      const std::string& repository, const HubFile& file,
      const std::string& target,
      const std::function<void(int64_t bytes)>& progress = nullptr);

  const std::string& endpoint() const { return options_.endpoint; }

 private:
  class Patience;

  Hub() = default;

  std::string FileUrl(const std::string& repository,
                      const std::string& path) const;
  // One try of a request, and of where it leads. `own`, if given, gets the last
  // answer of the hub itself. With `stay`, an answer that leads elsewhere is
  // the result.
  absl::StatusOr<HttpAnswer> Follow(HttpRequest request, bool stay,
                                    const BodyReader& body,
                                    HttpAnswer* own = nullptr);
  // With more tries, for answers that are small.
  absl::StatusOr<HttpAnswer> Ask(const HttpRequest& request, std::string* body);
  // Errors of an answer that is no success.
  absl::Status Refusal(const HttpAnswer& answer, const std::string& what) const;
  absl::StatusOr<std::vector<HubFile>> ListTree(const std::string& repository);
  absl::StatusOr<std::vector<HubFile>> ListSiblings(
      const std::string& repository);
  absl::Status Fetch(const std::string& repository, const HubFile& file,
                     class PartFile* part,
                     const std::function<void(int64_t bytes)>& progress);

  HubOptions options_;
  std::string origin_;
  std::unique_ptr<HttpClient> client_;
  bool reached_ = false;  // there was an answer
};

}  // namespace weft
