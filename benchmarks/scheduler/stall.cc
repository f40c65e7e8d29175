// How long a stream pauses while a long prompt is taken in: the time from one
// token of it to the next, before and meanwhile.
//   bazel run //benchmarks/scheduler:stall -- MODEL PROMPT_TOKENS [CHUNK]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/synchronization/notification.h"
#include "runtime/api/completion.h"
#include "runtime/api/scheduler.h"

namespace weft {
namespace {

constexpr int kTokensBefore = 20;

using Clock = std::chrono::steady_clock;

Request MakeRequest(int64_t prompt, int64_t max_tokens) {
  Request request;
  for (int64_t i = 0; i < prompt; ++i) {
    request.prompt_tokens.push_back(static_cast<int32_t>(10 + i * i % 290));
  }
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  request.stop_at_end_of_text = false;
  return request;
}

void Print(const char* when, std::vector<double> gaps) {
  if (gaps.empty()) return;
  std::sort(gaps.begin(), gaps.end());
  std::cout << absl::StreamFormat(
      "%-10s %4d tokens, from one to the next: median %.1f ms, p99 %.1f, most "
      "%.1f\n",
      when, gaps.size(), gaps[gaps.size() / 2], gaps[gaps.size() * 99 / 100],
      gaps.back());
}

int Main(int argc, char** argv) {
  if (argc < 3) return std::cerr << "stall MODEL PROMPT_TOKENS [CHUNK]\n", 2;
  const int64_t prompt = std::atoll(argv[2]);
  EngineOptions engine_options;
  engine_options.slots = 2;
  engine_options.model.graph.context = prompt + 64;
  SchedulerOptions options;
  if (argc > 3) options.prefill_tokens = std::atoll(argv[3]);
  auto engine = Engine::Load(argv[1], engine_options);
  if (!engine.ok()) return std::cerr << engine.status() << "\n", 1;
  auto scheduler = Scheduler::Create(*std::move(engine), options);
  if (!scheduler.ok()) return std::cerr << scheduler.status() << "\n", 1;

  std::vector<double> before, during;
  Clock::time_point last;
  int64_t tokens = 0;
  Usage long_usage;
  absl::Notification stream_ended, prompt_ended;
  RequestId stream = 0;
  // The stream's own callback brings in the prompt, and ends the stream when
  // the prompt is done. All of it is on the scheduler's thread.
  const auto on_prompt = [&](const Event& event) {
    if (!event.last) return;
    long_usage = event.usage;
    (*scheduler)->Cancel(stream);
    prompt_ended.Notify();
  };
  const auto on_stream = [&](const Event& event) {
    stream = event.request;
    const Clock::time_point now = Clock::now();
    if (tokens > 1 && !event.finished) {
      const double gap =
          std::chrono::duration<double, std::milli>(now - last).count();
      (tokens <= kTokensBefore ? before : during).push_back(gap);
    }
    last = now;
    if (++tokens == kTokensBefore) {
      auto id = (*scheduler)->Submit(MakeRequest(prompt, 1), on_prompt);
      if (!id.ok()) std::cerr << id.status() << "\n", std::exit(1);
    }
    if (event.last) stream_ended.Notify();
  };
  auto id = (*scheduler)->Submit(MakeRequest(16, -1), on_stream);
  if (!id.ok()) return std::cerr << id.status() << "\n", 1;
  prompt_ended.WaitForNotification();
  stream_ended.WaitForNotification();
  Print("before", before);
  Print("meanwhile", during);
  std::cout << absl::StreamFormat(
      "the prompt of %d tokens took %.2f s to its first token\n", prompt,
      long_usage.first_token_seconds);
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
