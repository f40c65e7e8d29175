// Random damage to a file, the same for the same seed: bytes flipped, numbers
// replaced by extremes, pieces cut out, doubled or cut off.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace weft {

inline std::vector<uint8_t> Mutate(std::vector<uint8_t> bytes, uint64_t seed) {
  // The values that length checks get wrong.
  static constexpr uint64_t kExtremes[] = {
      0,          1,          31,         0x7f,       0x80,
      0xff,       0x7fff,     0xffff,     0x7fffffff, 0x80000000,
      0xffffffff, 1ull << 32, 1ull << 40, 1ull << 61, (1ull << 61) + 1,
      1ull << 62, 1ull << 63, ~0ull,      ~31ull,     ~0ull >> 1,
  };
  std::mt19937_64 random(seed);
  const auto below = [&random](uint64_t limit) { return random() % limit; };
  const uint64_t steps = 1 + below(4);
  for (uint64_t step = 0; step < steps && !bytes.empty(); ++step) {
    // Headers are short and data is long: half of the damage goes to the front.
    const uint64_t size = bytes.size();
    const uint64_t at = below(2) == 0 ? below(size) : below(size / 4 + 1);
    switch (below(6)) {
      case 0:
        bytes[at] ^= static_cast<uint8_t>(1 + below(255));
        break;
      case 1:
      case 2: {
        const uint64_t value =
            kExtremes[below(sizeof(kExtremes) / sizeof(kExtremes[0]))];
        const uint64_t width = uint64_t{1} << below(4);
        if (at + width <= size) std::memcpy(&bytes[at], &value, width);
        break;
      }
      case 3:
        bytes.resize(at);
        break;
      case 4: {
        const uint64_t length = below(std::min<uint64_t>(size - at, 64)) + 1;
        bytes.erase(bytes.begin() + at, bytes.begin() + at + length);
        break;
      }
      case 5: {
        const uint64_t length = below(std::min<uint64_t>(size - at, 64)) + 1;
        const std::vector<uint8_t> piece(bytes.begin() + at,
                                         bytes.begin() + at + length);
        bytes.insert(bytes.begin() + below(size), piece.begin(), piece.end());
        break;
      }
    }
  }
  return bytes;
}

}  // namespace weft
