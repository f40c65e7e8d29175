// weft inside another program: all it takes to generate text.
//   bazel run //examples:embed -- "It is a truth" [MODEL.gguf]
#include <iostream>

#include "runtime/engine.h"

int main(int argc, char** argv) {
  auto engine = weft::Engine::Load(argc > 2 ? argv[2] : "", {});
  if (!engine.ok()) return std::cerr << engine.status() << "\n", 1;
  weft::GenerateRequest request;
  request.prompt = argc > 1 ? argv[1] : "It is a truth";
  request.max_tokens = 20;
  request.sampling.temperature = 0;
  auto result = (*engine)->Generate(request, [](absl::string_view text) {
    return static_cast<bool>(std::cout << text << std::flush);
  });
  if (!result.ok()) return std::cerr << result.status() << "\n", 1;
  std::cout << "\n";
}
