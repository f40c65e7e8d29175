#include "ops/kernels/matmul/matmul_onednn.h"

#include <algorithm>
#include <cmath>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ops/kernels/half.h"
#include "ops/kernels/matmul/dense_isa.h"

namespace weft {
namespace {

using Memory = dnnl::memory;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

const dnnl::engine& Cpu() {
  static const dnnl::engine* engine =
      new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

Memory::desc WeightDesc(DType type, int64_t weight_rows, int64_t depth) {
  const Memory::dims dims = {depth, weight_rows};
  return type == DType::kF32 ? Memory::desc(dims, Type::f32, Tag::BA16a16b)
                             : Memory::desc(dims, Type::bf16, Tag::BA16a64b2a);
}

absl::Status Failed(const char* what, const dnnl::error& error) {
  return absl::InternalError(absl::StrCat("oneDNN failed: ", what, ": ",
                                          error.what(), ": use an own kernel"));
}

absl::Status Refused(const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("oneDNN refused: ", why, ": use an own kernel"));
}

}  // namespace

std::string OneDnnVersion() {
  const dnnl_version_t* version = dnnl_version();
  return absl::StrCat(version->major, ".", version->minor, ".", version->patch);
}

struct OneDnnMatmul::Impl {
  // What is needed for one number of rows.
  struct Prepared {
    dnnl::matmul matmul;
    Memory x, y;    // bound to the caller's memory on each run
    Memory bf16_x;  // kBF16: x rounded
    dnnl::reorder round;
  };

  explicit Impl(const Options& o)
      : options(o),
        stream(Cpu()),
        weight(WeightDesc(o.type, o.weight_rows, o.depth), Cpu(),
               const_cast<uint8_t*>(o.weight)),
        rounded(o.type == DType::kBF16
                    ? static_cast<size_t>(o.max_rows * o.depth)
                    : 0) {}

  Options options;
  dnnl::stream stream;
  Memory weight;
  std::vector<uint16_t> rounded;
  std::unordered_map<int64_t, Prepared> prepared;
};

OneDnnMatmul::OneDnnMatmul(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
OneDnnMatmul::~OneDnnMatmul() = default;

absl::StatusOr<int64_t> OneDnnMatmul::PackedBF16Bytes(int64_t weight_rows,
                                                      int64_t depth) {
  try {
    return static_cast<int64_t>(
        WeightDesc(DType::kBF16, weight_rows, depth).get_size());
  } catch (const dnnl::error& error) {
    return Failed("layout of a BF16 weight", error);
  }
}

absl::Status OneDnnMatmul::PackBF16(const uint8_t* rows, int64_t weight_rows,
                                    int64_t depth, uint8_t* dst) {
  try {
    // Rows of the file are columns of the [depth, weight_rows] matrix.
    Memory from({{depth, weight_rows}, Type::bf16, Tag::ba}, Cpu(),
                const_cast<uint8_t*>(rows));
    Memory to(WeightDesc(DType::kBF16, weight_rows, depth), Cpu(), dst);
    dnnl::stream stream(Cpu());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    return Failed("packing a BF16 weight", error);
  }
}

absl::StatusOr<std::unique_ptr<OneDnnMatmul>> OneDnnMatmul::Create(
    const Options& options) {
  const bool f32 = options.type == DType::kF32;
  if (!f32 && options.type != DType::kBF16) {
    return Refused(absl::StrCat("no ", Info(options.type).name, " weights"));
  }
  const int64_t step = f32 ? 16 : 32;
  if (options.depth % step != 0) {
    return Refused(
        absl::StrCat("depth ", options.depth, " is no multiple of ", step));
  }
  try {
    std::unique_ptr<OneDnnMatmul> matmul(
        new OneDnnMatmul(std::make_unique<Impl>(options)));
    const absl::Status checked = matmul->CheckOrder();
    if (!checked.ok()) return checked;
    const absl::Status prepared = matmul->Prepare(options.max_rows);
    if (!prepared.ok()) return prepared;
    return matmul;
  } catch (const dnnl::error& error) {
    return Failed("creation", error);
  }
}

absl::Status OneDnnMatmul::Prepare(int64_t rows) {
  const Options& o = impl_->options;
  if (impl_->prepared.count(rows) != 0) return absl::OkStatus();
  try {
    const bool f32 = o.type == DType::kF32;
    const Memory::desc f32_x({rows, o.depth}, Type::f32, Tag::ab);
    const Memory::desc x({rows, o.depth}, f32 ? Type::f32 : Type::bf16,
                         Tag::ab);
    const Memory::desc y({rows, o.weight_rows}, Type::f32, Tag::ab);
    const dnnl::matmul::primitive_desc choice(
        dnnl::matmul::desc(x, impl_->weight.get_desc(), y), Cpu());
    const std::string kernel = choice.impl_info_str();
    if (!absl::StartsWith(kernel, "brg:avx512")) {
      return Refused(absl::StrCat("it takes ", kernel, " for ", rows,
                                  " rows, whose sums have another order"));
    }
    Impl::Prepared made;
    made.matmul = dnnl::matmul(choice);
    made.x = Memory(f32_x, Cpu(), nullptr);
    made.y = Memory(y, Cpu(), nullptr);
    if (!f32) {
      made.bf16_x = Memory(x, Cpu(), impl_->rounded.data());
      made.round = dnnl::reorder(made.x, made.bf16_x);
    }
    impl_->prepared.emplace(rows, std::move(made));
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    return Failed("creating a primitive", error);
  }
}

absl::Status OneDnnMatmul::Run(const float* x, int64_t rows, float* y) {
  const absl::Status status = Prepare(rows);
  if (!status.ok()) return status;
  try {
    Impl::Prepared& p = impl_->prepared.at(rows);
    p.x.set_data_handle(const_cast<float*>(x));
    p.y.set_data_handle(y);
    const bool f32 = impl_->options.type == DType::kF32;
    if (!f32) p.round.execute(impl_->stream, p.x, p.bf16_x);
    p.matmul.execute(impl_->stream, {{DNNL_ARG_SRC, f32 ? p.x : p.bf16_x},
                                     {DNNL_ARG_WEIGHTS, impl_->weight},
                                     {DNNL_ARG_DST, p.y}});
    impl_->stream.wait();
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    return Failed("running a matmul", error);
  }
}

// Compares some outputs of one and of several rows with the order that the own
// kernels keep (F32), or one row with several (BF16, which has no own kernel).
absl::Status OneDnnMatmul::CheckOrder() {
  const Options& o = impl_->options;
  const int64_t rows = std::min<int64_t>(o.max_rows, 7);
  std::vector<float> x(static_cast<size_t>(rows * o.depth));
  uint32_t state = 1;
  for (float& value : x) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  std::vector<float> together(static_cast<size_t>(rows * o.weight_rows));
  std::vector<float> alone(static_cast<size_t>(o.weight_rows));
  absl::Status status = Run(x.data(), rows, together.data());
  if (!status.ok()) return status;
  const float* last = x.data() + (rows - 1) * o.depth;
  status = Run(last, 1, alone.data());
  if (!status.ok()) return status;
  const auto same = [](float a, float b) {
    return FloatBits(a) == FloatBits(b) || (std::isnan(a) && std::isnan(b));
  };
  const float* of_last = together.data() + (rows - 1) * o.weight_rows;
  const int64_t block = DenseSumBlock(o.depth);
  for (int64_t n = 0; n < o.weight_rows; ++n) {
    if (!same(alone[static_cast<size_t>(n)], of_last[n])) {
      return Refused("a row alone and among others gives other bits");
    }
    // A sample: all outputs would take as long as a slow matmul.
    const bool sampled = n % (o.weight_rows / 8 + 1) == 0;
    if (o.type != DType::kF32 || !sampled) continue;
    const float* w = reinterpret_cast<const float*>(o.weight) +
                     n / kPanelRows * kPanelRows * o.depth + n % kPanelRows;
    float sum = 0.0f;
    for (int64_t begin = 0; begin < o.depth; begin += block) {
      float chain = 0.0f;
      for (int64_t k = begin; k < std::min(begin + block, o.depth); ++k) {
        chain = std::fma(last[k], w[k * kPanelRows], chain);
      }
      sum = begin == 0 ? chain : sum + chain;
    }
    if (!same(sum, of_last[n])) {
      return Refused(absl::StrCat("version ", OneDnnVersion(),
                                  " sums in another order at depth ", o.depth));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
