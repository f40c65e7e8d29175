// weft inside another program: all it takes to generate text.
//   bazel run //examples:embed -- "It is a truth" [MODEL.gguf]
#include <iostream>

#include "runtime/api/completion.h"
#include "runtime/api/scheduler.h"

int main(int argc, char** argv) {
  auto engine = weft::Engine::Load(argc > 2 ? argv[2] : "", {});
  if (!engine.ok()) return std::cerr << engine.status() << "\n", 1;
  auto scheduler = weft::Scheduler::Create(*std::move(engine), {});
  if (!scheduler.ok()) return std::cerr << scheduler.status() << "\n", 1;
  weft::Request request;
  auto tokens = (*scheduler)
                    ->tokenizer()
                    .Encode(argc > 1 ? argv[1] : "It is a truth", {});
  if (!tokens.ok()) return std::cerr << tokens.status() << "\n", 1;
  request.prompt_tokens = *std::move(tokens);
  request.max_tokens = 20;
  request.sampling.temperature = 0;
  auto result = weft::Complete(
      **scheduler, std::move(request),
      [](const weft::Event& event) { std::cout << event.text << std::flush; });
  if (!result.ok()) return std::cerr << result.status() << "\n", 1;
  std::cout << "\n";
}
