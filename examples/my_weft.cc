// weft with an attention of one's own: all commands, all models.
//   bazel run //examples:my_weft -- [--window N] [--slope X] run -p "It is"
//   bazel run //examples:my_weft -- dump "" --diff use-windowed-attention
#include <cstring>
#include <iostream>

#include "absl/strings/numbers.h"
#include "cli/main.h"
#include "examples/custom_attention.h"

int main(int argc, char** argv) {
  // Our own flags stand first.
  examples::WindowedAttention options;
  int used = 1;
  while (used + 1 < argc) {
    if (std::strcmp(argv[used], "--window") == 0) {
      if (!absl::SimpleAtoi(argv[used + 1], &options.window)) break;
    } else if (std::strcmp(argv[used], "--slope") == 0) {
      if (!absl::SimpleAtod(argv[used + 1], &options.slope)) break;
    } else {
      break;
    }
    used += 2;
  }
  const auto attention = examples::RegisterWindowedAttention(options);
  if (!attention.ok()) {
    std::cerr << "my_weft: " << attention.status().message() << "\n";
    return 2;
  }
  argv[used - 1] = argv[0];
  return weft::Main(argc - used + 1, argv + used - 1);
}
