// What the scheduler costs beside the model: the same tokens of the same number
// of sequences by a plain loop (one step of the executor, the best logit of
// each row, its text) and by requests.
//   bazel run //benchmarks/scheduler:overhead -- [MODEL [SEQUENCES [TOKENS]]]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/api/completion.h"
#include "runtime/api/scheduler.h"
#include "text/stream_decoder.h"

namespace weft {
namespace {

constexpr int kRepeats = 7;
constexpr int kPrompt = 4;

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since)
      .count();
}

std::unique_ptr<Engine> Load(const std::string& path, int sequences) {
  EngineOptions options;
  options.slots = sequences;
  auto engine = Engine::Load(path, options);
  if (engine.ok()) return *std::move(engine);
  std::cerr << engine.status() << "\n";
  std::exit(1);
}

// Seconds for `tokens` tokens of each sequence.
double PlainLoop(Engine& engine, int sequences, int tokens) {
  const size_t vocabulary = engine.plan().model.vocabulary_size;
  std::vector<float> logits(sequences * vocabulary);
  std::vector<int32_t> ids(sequences, 20), positions(sequences),
      slots(sequences), rows(sequences);
  std::vector<StreamDecoder> decoders(
      sequences, StreamDecoder(engine.tokenizer(), {true, true}));
  std::string text;
  SamplingOptions greedy;
  greedy.temperature = 0;
  auto sampler = Sampler::Create(greedy, static_cast<int32_t>(vocabulary));
  for (int i = 0; i < sequences; ++i) slots[i] = rows[i] = i;
  auto start = std::chrono::steady_clock::now();
  for (int t = 0; t < kPrompt - 1 + tokens; ++t) {
    if (t == kPrompt - 1) start = std::chrono::steady_clock::now();
    for (int i = 0; i < sequences; ++i) {
      positions[i] = t;
      if (!engine.cache().Reserve(i, t + 1).ok()) std::exit(1);
    }
    const Batch batch = {ids, positions, slots, rows, logits.data()};
    if (!engine.executor().Run(batch).ok()) std::exit(1);
    for (int i = 0; i < sequences && t >= kPrompt - 1; ++i) {
      ids[i] = *sampler->Sample(
          absl::MakeConstSpan(logits).subspan(i * vocabulary, vocabulary), {});
      text += *decoders[i].Push(ids[i]);
    }
  }
  const double seconds = Seconds(start);
  for (int i = 0; i < sequences; ++i) {
    engine.cache().Release(i).IgnoreError();
  }
  return seconds;
}

double Requests(Scheduler& scheduler, int sequences, int tokens) {
  std::vector<std::future<absl::StatusOr<Completion>>> results;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < sequences; ++i) {
    Request request;
    request.prompt_tokens.assign(kPrompt, 20);
    request.max_tokens = tokens;
    request.sampling.temperature = 0;
    request.stop_at_end_of_text = false;
    auto result = SubmitForResult(scheduler, std::move(request));
    if (!result.ok()) std::exit(1);
    results.push_back(*std::move(result));
  }
  for (auto& result : results) {
    if (!result.get().ok()) std::exit(1);
  }
  return Seconds(start);
}

void Measure(const std::string& path, int sequences, int tokens) {
  auto plain = Load(path, sequences);
  auto scheduler = *Scheduler::Create(Load(path, sequences), {});
  std::vector<double> loop, requests;
  for (int i = 0; i < kRepeats; ++i) {
    loop.push_back(PlainLoop(*plain, sequences, tokens));
    requests.push_back(Requests(*scheduler, sequences, tokens));
  }
  std::sort(loop.begin(), loop.end());
  std::sort(requests.begin(), requests.end());
  const double count = static_cast<double>(sequences) * tokens;
  const double a = loop[kRepeats / 2] / count * 1e6;
  const double b = requests[kRepeats / 2] / count * 1e6;
  std::cout << absl::StrFormat(
      "%2d sequences, %d tokens: plain %.2f us a token, scheduler %.2f: "
      "%+.2f\n",
      sequences, tokens, a, b, b - a);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "";
  const int tokens = argc > 3 ? std::atoi(argv[3]) : 200;
  if (argc > 2) {
    weft::Measure(path, std::atoi(argv[2]), tokens);
    return 0;
  }
  for (const int sequences : {1, 4, 16}) {
    weft::Measure(path, sequences, tokens);
  }
}
