// A hub of models on this machine, that does what a test wants to see survived.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace weft {

struct FakeRequest {
  std::string method, path;                    // with the query
  std::map<std::string, std::string> headers;  // names in small letters
};

struct FakeAnswer {
  int status = 200;
  std::vector<std::string> headers;
  std::string body;
  // Of the body that is sent before the connection is cut; -1: all.
  int64_t cut_after = -1;
};

// SHA-256 in hexadecimal.
std::string HashOf(const std::string& content);

class FakeHub {
 public:
  FakeHub();
  ~FakeHub();

  std::string url() const;

  // Files by "owner/name" and path.
  void Add(const std::string& repository, const std::string& path,
           const std::string& content);
  // What is answered in place of what a hub would.
  using Intercept =
      std::function<std::optional<FakeAnswer>(const FakeRequest& request)>;
  void SetIntercept(Intercept intercept);
  // Contents are then redirected to.
  void SetStorage(const FakeHub* storage);
  // Lists without sizes and checksums, as some hubs have.
  void SetShortLists(bool short_lists);

  std::vector<FakeRequest> requests() const;
  void ForgetRequests();

  // The answer with a file's content, or the part that is asked for.
  static FakeAnswer Content(const FakeRequest& request,
                            const std::string& content);

 private:
  void Serve();
  void Answer(int connection);
  FakeAnswer Respond(const FakeRequest& request);

  int socket_ = -1, port_ = 0;
  std::atomic<bool> ending_{false};
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, std::string>> files_;
  Intercept intercept_;
  const FakeHub* storage_ = nullptr;
  bool short_lists_ = false;
  std::vector<FakeRequest> requests_;
  std::thread thread_;
};

}  // namespace weft
