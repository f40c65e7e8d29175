#include "cli/bench_speculation.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/api/completion.h"
#include "runtime/api/scheduler.h"

namespace weft {
namespace {

constexpr absl::string_view kRight = "right:";

// The texts are told after they were written once.
class KnownRate : public Proposer {
 public:
  explicit KnownRate(double rate) : rate_(rate) {}

  void Tell(std::vector<std::vector<int32_t>> texts) {
    texts_ = std::move(texts);
  }

  absl::Status Prepare(int32_t, int64_t, int64_t) override {
    return absl::OkStatus();
  }
  void Begin(int32_t, uint64_t) override {}
  Proposal Propose(int32_t, absl::Span<const int32_t> tokens, const Sampler&,
                   absl::Span<int32_t> guesses) override {
    for (const std::vector<int32_t>& text : texts_) {
      if (text.size() <= tokens.size() || text[0] != tokens[0] ||
          text[tokens.size() - 1] != tokens.back() ||
          !std::equal(tokens.begin(), tokens.end(), text.begin())) {
        continue;
      }
      const size_t count =
          std::min(guesses.size(), text.size() - tokens.size());
      for (size_t i = 0; i < count; ++i) {
        const int32_t right = text[tokens.size() + i];
        guesses[i] = chance_(random_) < rate_ ? right : right == 0;
      }
      return {static_cast<int64_t>(count), 0};
    }
    return {};
  }

 private:
  const double rate_;
  std::vector<std::vector<int32_t>> texts_;
  std::mt19937 random_{1};
  std::uniform_real_distribution<double> chance_{0, 1};
};

struct Run {
  double rate = 0;  // tokens per second
  std::vector<std::vector<int32_t>> texts;
  Usage usage;
};

absl::StatusOr<Run> Write(Scheduler& scheduler, const SpeculationBench& bench,
                          bool speculate) {
  const int64_t vocabulary = scheduler.engine().plan().model.vocabulary_size;
  const std::vector<int32_t> all =
      RandomTokens(bench.batch * bench.prompt, vocabulary);
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::future<absl::StatusOr<Completion>>> results;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < bench.batch; ++i) {
    Request request;
    request.prompt_tokens.assign(all.begin() + i * bench.prompt,
                                 all.begin() + (i + 1) * bench.prompt);
    prompts.push_back(request.prompt_tokens);
    request.max_tokens = bench.generate;
    request.sampling.temperature = 0;
    request.stop_at_end_of_text = false;
    request.speculate = speculate;
    WEFT_ASSIGN_OR_RETURN(auto result,
                          SubmitForResult(scheduler, std::move(request)));
    results.push_back(std::move(result));
  }
  Run run;
  for (int64_t i = 0; i < bench.batch; ++i) {
    WEFT_ASSIGN_OR_RETURN(const Completion done, results[i].get());
    run.usage.drafted_tokens += done.usage.drafted_tokens;
    run.usage.accepted_tokens += done.usage.accepted_tokens;
    run.texts.push_back(prompts[i]);
    for (const GeneratedToken& token : done.choices[0].tokens) {
      run.texts.back().push_back(token.id);
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  run.rate = bench.batch * bench.generate / std::max(seconds, 1e-9);
  return run;
}

nlohmann::ordered_json Rates(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  const size_t n = rates.size();
  return {{"median", (rates[(n - 1) / 2] + rates[n / 2]) / 2},
          {"min", rates.front()},
          {"max", rates.back()}};
}

}  // namespace

bool IsKnownRate(const std::string& mode) {
  double rate = 0;
  return absl::StartsWith(mode, kRight) &&
         absl::SimpleAtod(mode.substr(kRight.size()), &rate) && rate >= 0 &&
         rate <= 1;
}

absl::StatusOr<nlohmann::ordered_json> BenchSpeculation(
    std::unique_ptr<Engine> engine, const SpeculationBench& bench,
    const CompileFlags& compile, const CommonFlags& common) {
  SchedulerOptions options;
  std::shared_ptr<KnownRate> known;
  const std::string& mode = bench.flags->mode;
  if (IsKnownRate(mode)) {
    double rate = 0;
    (void)absl::SimpleAtod(mode.substr(kRight.size()), &rate);
    known = std::make_shared<KnownRate>(rate);
    options.proposer = known;
  } else {
    WEFT_ASSIGN_OR_RETURN(options.proposer,
                          bench.flags->Make(*engine, compile, common));
  }
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Scheduler> scheduler,
                        Scheduler::Create(std::move(engine), options));
  std::vector<double> without, with;
  Usage usage;
  int64_t steps = 0;
  WEFT_ASSIGN_OR_RETURN(Run first, Write(*scheduler, bench, false));
  if (known != nullptr) known->Tell(first.texts);
  for (int64_t i = 0; i <= bench.repeat; ++i) {
    WEFT_ASSIGN_OR_RETURN(const Run plain, Write(*scheduler, bench, false));
    const int64_t before = scheduler->GetStats().steps;
    WEFT_ASSIGN_OR_RETURN(const Run guessed, Write(*scheduler, bench, true));
    if (guessed.texts != first.texts || plain.texts != first.texts) {
      return absl::InternalError(
          "texts differ: with guesses and without: this is a fault of weft");
    }
    if (i == 0) continue;  // what steps cost is found out
    without.push_back(plain.rate);
    with.push_back(guessed.rate);
    usage.drafted_tokens += guessed.usage.drafted_tokens;
    usage.accepted_tokens += guessed.usage.accepted_tokens;
    steps += scheduler->GetStats().steps - before;
  }
  nlohmann::ordered_json json = {{"without_tokens_per_second", Rates(without)},
                                 {"with_tokens_per_second", Rates(with)}};
  json["gain"] = json["with_tokens_per_second"]["median"].get<double>() /
                 json["without_tokens_per_second"]["median"].get<double>();
  json["drafted"] = usage.drafted_tokens / bench.repeat;
  json["accepted"] = usage.accepted_tokens / bench.repeat;
  json["steps"] = steps / bench.repeat;
  return json;
}

}  // namespace weft
