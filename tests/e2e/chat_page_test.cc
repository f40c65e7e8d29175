// The chat page of `weft serve` in a browser. A proxy stands between, which
// adds the checks to the page and hands all else on, streams as they come.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/notification.h"
#include "tests/e2e/browser.h"
#include "tests/e2e/scripted_model.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

class Proxy {
 public:
  // Without `streams` answers are handed on whole, with their status.
  Proxy(const Server& server, const std::string& checks, bool streams) {
    proxy_.Get("/hold", [this](const httplib::Request&, httplib::Response&) {
      finished_.WaitForNotificationWithTimeout(absl::Minutes(4));
    });
    proxy_.Post("/finished",
                [this](const httplib::Request&, httplib::Response&) {
                  finished_.Notify();
                });
    proxy_.Get(".*", [&server, checks](const httplib::Request& request,
                                       httplib::Response& response) {
      const auto answer = server.Client().Get(request.path);
      response.status = answer->status;
      std::string body = answer->body;
      if (request.path == "/") {
        response.set_header(
            "Content-Security-Policy",
            answer->get_header_value("Content-Security-Policy"));
        body = absl::StrReplaceAll(
            WithChecks(body, "tests/e2e/page/chat_checks.js", checks),
            {{"</body>",
              "<script nonce=\"weft\" src=\"/hold\"></script></body>"}});
      }
      response.set_content(body, answer->get_header_value("Content-Type"));
    });
    proxy_.Post(".*", [&server, streams](const httplib::Request& request,
                                         httplib::Response& response) {
      if (!streams) {
        const Answer answer = Post(server, request.path, request.body);
        response.status = answer.status;
        response.set_content(answer.text, "application/json");
        return;
      }
      response.set_chunked_content_provider(
          "text/event-stream",
          [&server, body = request.body, path = request.path](
              size_t, httplib::DataSink& sink) {
            httplib::Client client = server.Client();
            httplib::Request forward;
            forward.method = "POST";
            forward.path = path;
            forward.headers = {{"Content-Type", "application/json"}};
            forward.body = body;
            forward.content_receiver = [&](const char* data, size_t size,
                                           uint64_t, uint64_t) {
              return sink.write(data, size);
            };
            client.send(forward);
            sink.done();
            return true;
          });
    });
    port_ = proxy_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { proxy_.listen_after_bind(); });
  }
  ~Proxy() {
    proxy_.stop();
    thread_.join();
  }

  std::string url() const { return absl::StrCat("http://127.0.0.1:", port_); }

 private:
  absl::Notification finished_;
  httplib::Server proxy_;
  int port_ = 0;
  std::thread thread_;
};

class ChatPage : public testing::Test {
 protected:
  void SetUp() override { NeedChromium(); }
};

TEST_F(ChatPage, IsUsedLikeAPersonWould) {
  const Server server({"--context", "512", "--model-name", "small"});
  const Proxy proxy(server,
                    "checkModel, checkSettings, checkAnswer, checkNewChat, "
                    "checkStop, checkRegenerate, checkEdit, checkHistory",
                    /*streams=*/true);
  ExpectChecksPass(proxy.url(), "1280,800", Until::kLoaded);
}

constexpr char kTemplate[] =
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{% endfor %}<|go|>";

TEST_F(ChatPage, ShowsMarkdownAndFoldsReasoning) {
  const Server server({ScriptedModel("markdown.gguf",
                                     R"(<think>Hm, **two**.</think># Title

- a
- b

```python
print('<b>')
```

| c | d |
|---|--:|
| 1 | 2 |

<img src=x onerror=attacked=1> <script>attacked=1</script>
[bad](javascript:attacked=1) [good](https://example.org/))",
                                     kTemplate)});
  for (const char* size : {"1280,800", "390,844"}) {
    const Proxy proxy(server, "checkMarkdown", /*streams=*/true);
    ExpectChecksPass(proxy.url(), size, Until::kLoaded);
  }
}

TEST_F(ChatPage, LeavesOldTurnsOutWhenTheContextIsFull) {
  const Server server(
      {ScriptedModel("turns.gguf", "Yes, that is what I think.", kTemplate),
       "--context", "128"});
  for (const bool streams : {true, false}) {
    const Proxy proxy(
        server,
        streams ? "checkFullContextByExpecting" : "checkFullContextByError",
        streams);
    ExpectChecksPass(proxy.url(), "1280,800", Until::kLoaded);
  }
}

TEST_F(ChatPage, OffersTheModelsOfAFolder) {
  const std::string folder = TemporaryPath("page-models");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  for (const char* name : {"ant", "bee 2"}) {
    std::filesystem::rename(
        ScriptedModel("page.gguf",
                      absl::StrCat("I am the ", std::string(name).substr(0, 3)),
                      "{{ messages[0].content }}<|go|>"),
        absl::StrCat(folder, "/", name, ".gguf"));
  }
  const Server server({"--models", folder});
  const Proxy proxy(server, "checkChoiceOfModels", /*streams=*/true);
  ExpectChecksPass(proxy.url(), "1280,800", Until::kLoaded);
}

TEST_F(ChatPage, TellsErrors) {
  const Server server({SmallModel("00-valid.gguf"), "--model-name", "small"});
  const Proxy proxy(server, "checkModel, checkError", /*streams=*/false);
  ExpectChecksPass(proxy.url(), "390,844", Until::kLoaded);
}

}  // namespace
}  // namespace weft
