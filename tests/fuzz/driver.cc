// Runs a fuzz target without libFuzzer: N seeded mutations of each corpus file.
//   driver N FILE...
// A crash is found again with the seed and file that were printed last.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MUTATIONS FILE...\n", argv[0]);
    return 2;
  }
  const uint64_t mutations = std::strtoull(argv[1], nullptr, 10);
  for (int i = 2; i < argc; ++i) {
    std::ifstream stream(argv[i], std::ios::binary);
    if (!stream) {
      std::fprintf(stderr, "cannot read %s\n", argv[i]);
      return 1;
    }
    const std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(stream)),
                                     {});
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    for (uint64_t seed = 0; seed < mutations; ++seed) {
      if (seed % 1000 == 0) {
        std::printf("%s from seed %llu\n", argv[i],
                    static_cast<unsigned long long>(seed));
        std::fflush(stdout);
      }
      const std::vector<uint8_t> input = weft::Mutate(bytes, seed);
      LLVMFuzzerTestOneInput(input.data(), input.size());
    }
  }
  return 0;
}
