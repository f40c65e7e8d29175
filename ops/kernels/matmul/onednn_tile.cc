#include "ops/kernels/matmul/onednn_tile.h"

#include "absl/strings/str_cat.h"

#if defined(__x86_64__)

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/matmul/bf16_isa.h"

namespace weft {
namespace {

using Memory = dnnl::memory;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

constexpr int64_t kMostDepth = 65536;

thread_local bool inside_onednn = false;

class InsideScope {
 public:
  InsideScope() { inside_onednn = true; }
  ~InsideScope() { inside_onednn = false; }
};

// oneDNN plans a primitive for as many threads as OpenMP would start now.
class OneThreadScope {
 public:
  OneThreadScope() : saved_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThreadScope() { omp_set_num_threads(saved_); }

 private:
  const int saved_;
};

const dnnl::engine& Cpu() {
  static const dnnl::engine* engine =
      new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

// A primitive with the memory objects that it is called with.
struct Tile {
  std::string kernel;  // what oneDNN chose
  int64_t scratch_bytes;
  dnnl::stream stream;
  dnnl::matmul matmul;
  Memory x, w, y, scratch;
  std::unordered_map<int, Memory> arguments;
};

using TileKey = std::pair<int64_t, int64_t>;  // depth, rows

std::unique_ptr<Tile> MakeTile(int64_t depth, int64_t rows) {
  const OneThreadScope one_thread;
  const int64_t k = Bf16PaddedDepth(depth);
  const Memory::desc x({rows, k}, Type::bf16, Tag::ab);
  const Memory::desc w({k, kOneDnnWeightRows}, Type::bf16, Tag::BA16a64b2a);
  const Memory::desc y({rows, kOneDnnWeightRows}, Type::f32, Tag::ab);
  // Scratch of ours: oneDNN's own may be shared between threads.
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::primitive_desc choice(dnnl::matmul::desc(x, w, y),
                                            attributes, Cpu());
  auto tile = std::make_unique<Tile>();
  tile->kernel = choice.impl_info_str();
  tile->scratch_bytes =
      static_cast<int64_t>(choice.scratchpad_desc().get_size());
  tile->stream = dnnl::stream(Cpu());
  tile->matmul = dnnl::matmul(choice);
  tile->x = Memory(x, Cpu(), nullptr);
  tile->w = Memory(w, Cpu(), nullptr);
  tile->y = Memory(y, Cpu(), nullptr);
  tile->scratch = Memory(choice.scratchpad_desc(), Cpu(), nullptr);
  tile->arguments = {{DNNL_ARG_SRC, tile->x},
                     {DNNL_ARG_WEIGHTS, tile->w},
                     {DNNL_ARG_DST, tile->y},
                     {DNNL_ARG_SCRATCHPAD, tile->scratch}};
  return tile;
}

// This thread's. Throws dnnl::error, or std::bad_alloc.
Tile& FindTile(int64_t depth, int64_t rows) {
  thread_local std::map<TileKey, std::unique_ptr<Tile>> tiles;
  std::unique_ptr<Tile>& tile = tiles[{depth, rows}];
  if (tile == nullptr) tile = MakeTile(depth, rows);
  return *tile;
}

// Numbers in [-1, 1), always the same.
class Numbers {
 public:
  float Next() {
    state_ = state_ * 1664525 + 1013904223;
    return static_cast<float>(state_ >> 8) * 0x1p-23f - 1.0f;
  }

 private:
  uint32_t state_ = 1;
};

// Compares bits with the own kernel, for the least and the most rows.
std::string CheckBits(int64_t depth) {
  const int64_t padded = Bf16PaddedDepth(depth);
  const int64_t x_bytes = padded * 2;
  Numbers numbers;
  const auto random_row = [&](uint8_t* to) {
    std::vector<float> row(static_cast<size_t>(padded));
    for (float& value : row) value = numbers.Next();
    kBf16KernelsAvx512Bf16.round_row(row.data(), padded,
                                     reinterpret_cast<uint16_t*>(to));
  };
  // Weights only have to be numbers: their places do not matter here.
  std::vector<uint8_t> memory(kOneDnnWeightRows * x_bytes + 64);
  uint8_t* w =
      memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
  for (int64_t i = 0; i < kOneDnnWeightRows; ++i) random_row(w + i * x_bytes);
  std::vector<uint8_t> x(kOneDnnMostRows * x_bytes);
  for (int64_t i = 0; i < kOneDnnMostRows; ++i) {
    if (i < kOneDnnLeastRows) {
      random_row(x.data() + i * x_bytes);
    } else {
      std::memcpy(x.data() + i * x_bytes,
                  x.data() + i % kOneDnnLeastRows * x_bytes, x_bytes);
    }
  }
  std::vector<float> own(kOneDnnLeastRows * kOneDnnWeightRows);
  MatmulArgs args = {};
  args.x = x.data();
  args.x_row_bytes = x_bytes;
  args.rows = kOneDnnLeastRows;
  args.depth = depth;
  args.weight = w;
  args.weight_rows = kOneDnnWeightRows;
  args.epilogue = MatmulEpilogue::kStore;
  args.y = own.data();
  args.y_row_bytes = kOneDnnWeightRows * 4;
  kBf16KernelsAvx512Bf16.group(args, 0, kOneDnnWeightRows / kPanelRows, 0,
                               kOneDnnLeastRows);

  std::vector<float> sums(kOneDnnMostRows * kOneDnnWeightRows);
  for (int64_t rows = kOneDnnLeastRows; rows <= kOneDnnMostRows; rows *= 2) {
    const Tile& tile = FindTile(depth, rows);
    if (!absl::StartsWith(tile.kernel, "brg:avx512")) {
      return absl::StrCat("oneDNN takes ", tile.kernel, " for ", rows,
                          " rows, whose sums have another order");
    }
    std::vector<uint8_t> scratch(tile.scratch_bytes + 64);
    if (!OneDnnMultiply(depth, rows, x.data(), w, sums.data(),
                        scratch.data())) {
      return "oneDNN failed";
    }
    for (int64_t row = 0; row < rows; ++row) {
      if (std::memcmp(sums.data() + row * kOneDnnWeightRows,
                      own.data() + row % kOneDnnLeastRows * kOneDnnWeightRows,
                      kOneDnnWeightRows * sizeof(float)) != 0) {
        return absl::StrCat("oneDNN ", OneDnnVersion(),
                            " sums in another order at depth ", depth);
      }
    }
  }
  return "";
}

std::string Check(int64_t depth) {
  if (!Includes(DetectIsa(), Isa::kAvx512Bf16)) {
    return absl::StrCat("needs ", Name(Isa::kAvx512Bf16));
  }
  // What is tried takes memory in proportion, and the depth may come from a
  // file.
  if (depth > kMostDepth) {
    return absl::StrCat("depth ", depth, " is above ", kMostDepth);
  }
  try {
    return CheckBits(depth);
  } catch (const dnnl::error& error) {
    return absl::StrCat("oneDNN failed: ", error.what());
  }
}

}  // namespace

std::string OneDnnVersion() {
  const dnnl_version_t* version = dnnl_version();
  return absl::StrCat(version->major, ".", version->minor, ".", version->patch);
}

std::string WhyNotOneDnn(int64_t depth) {
  static absl::Mutex mutex(absl::kConstInit);
  static auto* answers = new std::map<int64_t, std::string>;
  const absl::MutexLock lock(&mutex);
  const auto [it, is_new] = answers->emplace(depth, "");
  if (is_new) it->second = Check(depth);
  return it->second;
}

int64_t OneDnnScratchBytes(int64_t depth) {
  if (!WhyNotOneDnn(depth).empty()) return 0;
  int64_t bytes = 0;
  try {
    for (int64_t rows = kOneDnnLeastRows; rows <= kOneDnnMostRows; rows *= 2) {
      bytes = std::max(bytes, FindTile(depth, rows).scratch_bytes);
    }
  } catch (const dnnl::error&) {
    return 0;
  }
  return bytes;
}

bool OneDnnMultiply(int64_t depth, int64_t rows, const void* x,
                    const uint8_t* w, float* sums, uint8_t* scratch) {
  const InsideScope inside;
  try {
    Tile& tile = FindTile(depth, rows);
    tile.x.set_data_handle(const_cast<void*>(x));
    tile.w.set_data_handle(const_cast<uint8_t*>(w));
    tile.y.set_data_handle(sums);
    tile.scratch.set_data_handle(scratch);
    tile.matmul.execute(tile.stream, tile.arguments);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool InsideOneDnn() { return inside_onednn; }

}  // namespace weft

#else

namespace weft {

std::string OneDnnVersion() { return "none"; }
std::string WhyNotOneDnn(int64_t) { return "is for x86-64"; }
int64_t OneDnnScratchBytes(int64_t) { return 0; }
bool OneDnnMultiply(int64_t, int64_t, const void*, const uint8_t*, float*,
                    uint8_t*) {
  return false;
}
bool InsideOneDnn() { return false; }

}  // namespace weft

#endif  // __x86_64__

namespace weft {

int64_t OneDnnRows(int64_t rows) {
  if (rows < kOneDnnLeastRows) return 0;
  int64_t result = kOneDnnLeastRows;
  while (result < kOneDnnMostRows && 2 * result <= rows) result *= 2;
  return result;
}

}  // namespace weft
