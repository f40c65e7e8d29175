#include "serve/metrics.h"

#include <unistd.h>

#include <cmath>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft {
namespace {

std::string Header(absl::string_view name, absl::string_view help,
                   absl::string_view type) {
  return absl::StrCat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type,
                      "\n");
}

std::string Histogram(absl::string_view name, absl::string_view help,
                      const LatencyHistogram& times) {
  std::string text = Header(name, help, "histogram");
  int64_t below = 0;
  for (int i = 0; i < LatencyHistogram::kClasses; ++i) {
    below += times.in_class(i);
    const double bound = LatencyHistogram::UpperBound(i);
    absl::StrAppend(
        &text, name, "_bucket{le=\"",
        std::isinf(bound) ? std::string("+Inf") : absl::StrFormat("%g", bound),
        "\"} ", below, "\n");
  }
  absl::StrAppend(&text, name, "_sum ", absl::StrFormat("%.9g", times.sum()),
                  "\n", name, "_count ", times.count(), "\n");
  return text;
}

}  // namespace

std::string Metric(absl::string_view name, absl::string_view help,
                   absl::string_view type, double value) {
  return absl::StrCat(Header(name, help, type), name, " ",
                      absl::StrFormat("%.15g", value), "\n");
}

void HttpCounters::Count(absl::string_view route, int status) {
  absl::MutexLock lock(&mutex_);
  ++answers_[{std::string(route), status}];
}

std::string HttpCounters::Text() const {
  absl::MutexLock lock(&mutex_);
  const char* name = "weft_http_answers_total";
  std::string text =
      Header(name, "Answers by route and HTTP status.", "counter");
  for (const auto& entry : answers_) {
    absl::StrAppend(&text, name, "{route=\"", entry.first.first, "\",status=\"",
                    entry.first.second, "\"} ", entry.second, "\n");
  }
  return text;
}

std::string SchedulerMetrics(const SchedulerStats& stats) {
  const struct {
    const char* name;
    const char* help;
    const char* type;
    double value;
  } numbers[] = {
      {"weft_sequences_waiting", "Sequences in the queue.", "gauge",
       static_cast<double>(stats.waiting)},
      {"weft_sequences_running", "Sequences that run.", "gauge",
       static_cast<double>(stats.running)},
      {"weft_slots", "Sequences that may run at the same time.", "gauge",
       static_cast<double>(stats.slots)},
      {"weft_kv_pages", "Pages of the KV cache, of 64 positions each.", "gauge",
       static_cast<double>(stats.pages)},
      {"weft_kv_pages_used", "Pages of sequences that run.", "gauge",
       static_cast<double>(stats.pages_used)},
      {"weft_kv_pages_cached", "Pages kept for later requests.", "gauge",
       static_cast<double>(stats.pages_cached)},
      {"weft_kv_pages_free", "Pages that hold nothing.", "gauge",
       static_cast<double>(stats.pages_free)},
      {"weft_kv_page_bytes", "Memory of a page.", "gauge",
       static_cast<double>(stats.page_bytes)},
      {"weft_requests_total", "Requests accepted.", "counter",
       static_cast<double>(stats.requests)},
      {"weft_requests_refused_total", "Requests refused: the queue was full.",
       "counter", static_cast<double>(stats.refused)},
      {"weft_requests_finished_total", "Requests that ended.", "counter",
       static_cast<double>(stats.finished)},
      {"weft_requests_cancelled_total", "Requests whose client went.",
       "counter", static_cast<double>(stats.cancelled)},
      {"weft_requests_failed_total", "Requests that ended with an error.",
       "counter", static_cast<double>(stats.failed)},
      {"weft_steps_total", "Steps of the model.", "counter",
       static_cast<double>(stats.steps)},
      {"weft_prompt_tokens_total", "Tokens of accepted prompts.", "counter",
       static_cast<double>(stats.prompt_tokens)},
      {"weft_prefill_tokens_total", "Tokens of prompts that were run.",
       "counter", static_cast<double>(stats.prefill_tokens)},
      {"weft_recomputed_tokens_total", "Tokens run again after preemption.",
       "counter", static_cast<double>(stats.recomputed_tokens)},
      {"weft_prefix_hit_tokens_total", "Tokens of prompts found in the cache.",
       "counter", static_cast<double>(stats.prefix_hit_tokens)},
      {"weft_cache_file_bytes", "Files of cached prompts.", "gauge",
       static_cast<double>(stats.stored_bytes)},
      {"weft_pages_loaded_total", "Pages and states read from files.",
       "counter", static_cast<double>(stats.pages_loaded)},
      {"weft_pages_stored_total", "Pages and states written to files.",
       "counter", static_cast<double>(stats.pages_stored)},
      {"weft_pages_damaged_total", "Files that were damaged, and removed.",
       "counter", static_cast<double>(stats.pages_damaged)},
      {"weft_generated_tokens_total", "Tokens generated.", "counter",
       static_cast<double>(stats.generated_tokens)},
      {"weft_embedded_texts_total", "Texts that got a vector.", "counter",
       static_cast<double>(stats.embedded_texts)},
      {"weft_ranked_texts_total", "Texts that got scores.", "counter",
       static_cast<double>(stats.scored_texts)},
      {"weft_drafted_tokens_total", "Tokens guessed and tried.", "counter",
       static_cast<double>(stats.drafted_tokens)},
      {"weft_accepted_tokens_total", "Of them, those that came true.",
       "counter", static_cast<double>(stats.accepted_tokens)},
      {"weft_preemptions_total", "Sequences that gave their pages back.",
       "counter", static_cast<double>(stats.preemptions)},
      {"weft_context_shifts_total", "Full contexts of which a part went on.",
       "counter", static_cast<double>(stats.context_shifts)},
      {"weft_busy_seconds_total", "Time inside steps.", "counter",
       stats.busy_seconds},
  };
  std::string text;
  for (const auto& number : numbers) {
    absl::StrAppend(
        &text, Metric(number.name, number.help, number.type, number.value));
  }
  absl::StrAppend(
      &text,
      Histogram("weft_queue_seconds", "From a request to its first step.",
                stats.queue_time),
      Histogram("weft_time_to_first_token_seconds",
                "From a request to its first token.", stats.first_token),
      Histogram("weft_inter_token_seconds",
                "From one token to the next of a text.", stats.inter_token),
      Histogram("weft_step_seconds", "Time of a step.", stats.step_time));
  return text;
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  if (!(file >> total >> resident)) return 0;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace weft
