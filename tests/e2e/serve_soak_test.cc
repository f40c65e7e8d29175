// Thousands of requests from 64 connections, of which some hang up in the
// middle, some are wrong and some ask for what others asked: at the end the
// server holds no page more and no more memory than after the first thousand.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

constexpr int kConnections = 64;
constexpr int kWarmUp = 1000;

// A served model, and how long the prompts are.
struct Soak {
  std::string path;
  int requests;
  unsigned most_tokens;
};

// One request, drawn by `random`. Whether its answer was as it should be.
bool Ask(const Server& server, const Soak& soak, httplib::Client* client,
         std::mt19937* random) {
  const auto below = [&](unsigned limit) { return (*random)() % limit; };
  const bool hang_up = below(5) == 0, stream = below(2) == 0;
  if (below(50) == 0) {
    const auto wrong =
        client->Post("/v1/completions", R"({"prompt": 5})", "application/json");
    return wrong && wrong->status == 400;
  }
  httplib::Request request;
  request.method = "POST";
  request.path = "/v1/completions";
  request.headers = {{"Content-Type", "application/json"}};
  std::string ids = "1";
  const unsigned length = below(soak.most_tokens), kind = below(20);
  for (unsigned i = 0; i < length; ++i) {
    absl::StrAppend(&ids, ",", 40 + (kind + i) % 200);
  }
  request.body = absl::StrCat(
      R"({"prompt": [)", ids, R"(], "max_tokens": )", 1 + below(20),
      R"(, "n": )", 1 + below(3), R"(, "seed": )", below(100),
      R"(, "ignore_eos": true, "stream": )", stream ? "true" : "false", "}");
  size_t bytes = 0;
  request.content_receiver = [&](const char*, size_t size, uint64_t, uint64_t) {
    bytes += size;
    return !hang_up || bytes < 200;
  };
  if (hang_up) {
    // Its own connection, which ends with it.
    httplib::Client own = server.Client();
    own.send(request);
    return true;
  }
  const auto answer = client->send(request);
  return answer && answer->status == 200 && bytes > 0;
}

// Returns how many answers were wrong.
int AskMany(const Server& server, const Soak& soak, int requests,
            unsigned seed) {
  std::atomic<int> left{requests}, wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kConnections; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(seed + static_cast<unsigned>(i));
      httplib::Client client = server.Client();
      client.set_keep_alive(true);
      while (left-- > 0) {
        if (!Ask(server, soak, &client, &random)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return wrong;
}

void WaitUntilIdle(const Server& server) {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (MetricOf(server, "weft_sequences_running") != 0 ||
         MetricOf(server, "weft_sequences_waiting") != 0 ||
         MetricOf(server, "weft_http_connections") > 1) {
    ASSERT_LT(absl::Now(), deadline);
    absl::SleepFor(absl::Milliseconds(50));
  }
}

void ExpectNothingLeft(const Soak& soak) {
  const Server server({soak.path, "--slots", "8", "--kv-tokens", "1024",
                       "--connections", "200"});
  EXPECT_EQ(AskMany(server, soak, kWarmUp, 1), 0);
  WaitUntilIdle(server);
  const double before = MetricOf(server, "process_resident_memory_bytes");
  EXPECT_EQ(AskMany(server, soak, soak.requests, 2), 0);
  WaitUntilIdle(server);
  EXPECT_EQ(MetricOf(server, "weft_kv_pages_used"), 0);
  EXPECT_EQ(MetricOf(server, "weft_kv_pages_cached") +
                MetricOf(server, "weft_kv_pages_free"),
            MetricOf(server, "weft_kv_pages"));
  EXPECT_EQ(MetricOf(server, "weft_requests_finished_total"),
            MetricOf(server, "weft_requests_total"));
  EXPECT_GT(MetricOf(server, "weft_requests_cancelled_total"), 0);
  EXPECT_EQ(MetricOf(server, "weft_requests_failed_total"), 0);
  // Allocators keep some; a leak of a kilobyte per request would be 10 MB.
  EXPECT_LT(MetricOf(server, "process_resident_memory_bytes"),
            before + (8 << 20));
  EXPECT_GT(MetricOf(server, "weft_prefix_hit_tokens_total"), 0);
}

TEST(ServeSoakTest, TenThousandRequestsLeaveNothingBehind) {
  ExpectNothingLeft({SmallModel("00-valid.gguf"), 10000, 40});
}

// Prompts are long enough for checkpoints, and more of them than are kept.
TEST(ServeSoakTest, CheckpointsLeaveNothingBehind) {
  ExpectNothingLeft(
      {"tests/data/golden/recurrent/qwen35-head64.gguf", 3000, 160});
}

}  // namespace
}  // namespace weft
