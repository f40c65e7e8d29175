// Many requests at once in one program, without a server: submitted without
// waiting, run together, each told as it goes on.
//   bazel run //examples:many_requests -- [MODEL.gguf]
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "runtime/api/completion.h"
#include "runtime/api/scheduler.h"

int main(int argc, char** argv) {
  weft::EngineOptions options;
  options.slots = 4;  // run at the same time; more wait
  auto engine = weft::Engine::Load(argc > 1 ? argv[1] : "", options);
  if (!engine.ok()) return std::cerr << engine.status() << "\n", 1;
  auto scheduler = weft::Scheduler::Create(*std::move(engine), {});
  if (!scheduler.ok()) return std::cerr << scheduler.status() << "\n", 1;

  // One queue for the news of all. A callback of one's own would do, too; it
  // runs on the scheduler's thread.
  const auto news = std::make_shared<weft::EventQueue>();
  std::map<weft::RequestId, std::string> texts;
  for (const char* prompt :
       {"It is a truth", "She was", "My dear Mr. Bennet,", "The evening",
        "He could not", "Elizabeth smiled"}) {
    auto tokens = (*scheduler)->tokenizer().Encode(prompt, {});
    if (!tokens.ok()) return std::cerr << tokens.status() << "\n", 1;
    weft::Request request;
    request.prompt_tokens = *std::move(tokens);
    request.max_tokens = 40;
    request.stop_strings = {".", "\n"};
    request.sampling.temperature = 0;
    const auto id = (*scheduler)->Submit(std::move(request), news->Callback());
    if (!id.ok()) return std::cerr << id.status() << "\n", 1;
    texts[*id] = prompt;
  }
  weft::Event event;
  while (news->Next(absl::InfiniteDuration(), &event)) {
    std::string& text = texts[event.request];
    text += event.text;
    if (!event.last) continue;
    if (!event.status.ok()) std::cerr << event.status << "\n";
    std::cout << text << "  [" << weft::Name(event.reason) << "]\n";
  }

  // Or one that is waited for.
  weft::Request request;
  request.prompt_tokens = *(*scheduler)->tokenizer().Encode("It is", {});
  request.max_tokens = 5;
  request.choices = 2;
  const auto result = weft::Complete(**scheduler, std::move(request));
  if (!result.ok()) return std::cerr << result.status() << "\n", 1;
  for (const weft::ChoiceResult& choice : result->choices) {
    std::cout << "It is" << choice.text << "\n";
  }
}
