#include "loaders/architectures/recurrent.h"

#include "absl/strings/str_cat.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

constexpr char kConvKernel[] = "ssm.conv_kernel";
constexpr char kStateSize[] = "ssm.state_size";
constexpr char kGroupCount[] = "ssm.group_count";
constexpr char kHeads[] = "ssm.time_step_rank";
constexpr char kInnerSize[] = "ssm.inner_size";
constexpr char kPlainNorms[] = "ssm.dt_b_c_rms";

// FalconMamba's mixer_rms_eps: files do not carry it.
constexpr double kPlainNormEpsilon = 1e-6;

}  // namespace

std::vector<ModelKey> SsmKeys() {
  constexpr bool kRequired = true;
  return {{kConvKernel, 2, 64, 0, kRequired},
          {kStateSize, 1, 512, 0, kRequired},
          {kGroupCount, 1, 1 << 16, 0, kRequired},
          {kHeads, 1, 1 << 16, 0, kRequired},
          {kInnerSize, 1, 1 << 24, 0, kRequired}};
}

SsmSizes SsmSizesOf(ModelBuilder& m) {
  const auto number = [&m](const char* key) {
    return static_cast<int64_t>(m.config.Number(key));
  };
  const SsmSizes s = {number(kConvKernel) - 1, number(kStateSize),
                      number(kGroupCount), number(kHeads), number(kInnerSize)};
  if (s.heads % s.groups != 0 || s.inner % s.heads != 0) {
    m.Fail(absl::InvalidArgumentError(
        absl::StrCat("bad sizes of recurrent blocks: ", m.config.architecture,
                     ".ssm: ", s.inner, " values of ", s.heads, " heads in ",
                     s.groups, " groups: they must divide evenly")));
  }
  return s;
}

ValueId ConvolvedSilu(ModelBuilder& m, int64_t block, const std::string& tensor,
                      const std::string& state, ValueId x, int64_t columns,
                      int64_t window, bool planes) {
  std::vector<int64_t> dims = {window + 1, columns};
  if (planes) dims.insert(dims.begin() + 1, 1);
  const ValueId taps = m.Transposed(tensor + ".weight", dims);
  const ValueId bias = m.VectorIfThere(tensor + ".bias", {columns});
  if (!m.ok()) return kNone;
  const ValueId rows = m.WindowState(block, state, window, columns);
  m.Name(tensor);
  const ValueId y = m.KeepState(BlockPrefix(block) + state,
                                m.ShortConv(rows, x, taps, bias, m.rows_of()));
  m.Name(tensor + "_act");
  return m.Silu(y);
}

ValueId Mamba2Mixer(ModelBuilder& m, int64_t block, ValueId x) {
  const SsmSizes s = SsmSizesOf(m);
  if (!m.ok()) return kNone;
  const std::string blk = BlockPrefix(block);
  const int64_t d = m.config.embedding_length;
  const int64_t keys = s.groups * s.state;
  const int64_t channels = s.inner + 2 * keys;
  const ValueId all =
      m.Linear(blk + "ssm_in", x, s.inner + channels + s.heads, d);
  const ValueId step_bias = m.Vector(blk + "ssm_dt.bias", {s.heads});
  const ValueId a = m.Vector(blk + "ssm_a", {1, s.heads});
  const ValueId skip = m.Vector(blk + "ssm_d", {1, s.heads});
  const ValueId norm =
      m.VectorIfThere(blk + "ssm_norm.weight", {s.inner / s.groups, s.groups});
  if (!m.ok()) return kNone;

  m.Name(blk + "ssm_gate");
  const ValueId gate = m.Slice(all, 0, s.inner);
  m.Name(blk + "ssm_xbc");
  const ValueId mixed = m.Slice(all, s.inner, channels);
  m.Name(blk + "ssm_dt");
  const ValueId step =
      m.Softplus(m.Add(m.Slice(all, s.inner + channels, s.heads), step_bias));
  const ValueId conv = ConvolvedSilu(m, block, blk + "ssm_conv1d", "window",
                                     mixed, channels, s.window);
  if (!m.ok()) return kNone;
  m.Name(blk + "ssm_x");
  const ValueId in = m.Slice(conv, 0, s.inner);
  m.Name(blk + "ssm_b");
  const ValueId b = m.Slice(conv, s.inner, keys);
  m.Name(blk + "ssm_c");
  const ValueId c = m.Slice(conv, s.inner + keys, keys);
  const ValueId state =
      m.MatrixState(block, s.heads, s.state, s.inner / s.heads);
  m.Name(blk + "ssm_scan");
  const ValueId scanned =
      m.KeepState(blk + "matrices",
                  m.SelectiveScan(state, in, b, c, step, a, skip, m.rows_of()));
  m.Name(blk + "ssm_gated");
  ValueId y = m.Mul(m.Silu(gate), scanned);
  if (norm != kNone) {
    m.Name(blk + "ssm_norm");
    y = m.RmsNorm(y, norm, AsWritten(m.config.norm_epsilon), s.groups);
  }
  return m.Linear(blk + "ssm_out", y, d, s.inner);
}

std::vector<ModelKey> MambaKeys() {
  constexpr bool kRequired = true;
  return {{kConvKernel, 2, 64, 0, kRequired},
          {kStateSize, 1, 512, 0, kRequired},
          {kHeads, 1, 1 << 16, 0, kRequired},
          {kInnerSize, 1, 1 << 24, 0, kRequired},
          {kPlainNorms, 0, 1, 0}};
}

ValueId MambaMixer(ModelBuilder& m, int64_t block, ValueId x) {
  const auto number = [&m](const char* key) {
    return static_cast<int64_t>(m.config.Number(key));
  };
  const std::string blk = BlockPrefix(block);
  const int64_t d = m.config.embedding_length;
  const int64_t keys = number(kStateSize), rank = number(kHeads);
  const int64_t inner = number(kInnerSize);
  const double epsilon = AsWritten(m.config.norm_epsilon);
  const ValueId all = m.Linear(blk + "ssm_in", x, 2 * inner, d);
  const ValueId a = m.Transposed(blk + "ssm_a", {keys, inner});
  const ValueId skip = m.Vector(blk + "ssm_d", {inner});
  if (!m.ok()) return kNone;
  m.Name(blk + "ssm_gate");
  const ValueId gate = m.Slice(all, inner, inner);
  m.Name(blk + "ssm_x");
  const ValueId in =
      ConvolvedSilu(m, block, blk + "ssm_conv1d", "window",
                    m.Slice(all, 0, inner), inner, number(kConvKernel) - 1);
  const ValueId mixed = m.Linear(blk + "ssm_x", in, rank + 2 * keys, inner);
  if (!m.ok()) return kNone;
  // Jamba norms each part, FalconMamba (TII 2024, arXiv:2410.05355) without
  // weights.
  const bool plain_norms = number(kPlainNorms) == 1;
  const auto part = [&](const char* name, int64_t begin, int64_t size) {
    m.Name(absl::StrCat(blk, "ssm_", name));
    const ValueId rows = m.Slice(mixed, begin, size);
    const ValueId weight = m.VectorIfThere(
        absl::StrCat(blk, "ssm_", name, "_norm.weight"), {size});
    m.Name(absl::StrCat(blk, "ssm_", name, "_norm"));
    if (plain_norms) return m.RmsNorm(rows, kNone, kPlainNormEpsilon);
    return weight == kNone ? rows : m.RmsNorm(rows, weight, epsilon);
  };
  const ValueId low = part("dt", 0, rank);
  const ValueId b = part("b", rank, keys);
  const ValueId c = part("c", rank + keys, keys);
  const ValueId step =
      m.Linear(blk + "ssm_dt", low, inner, rank, Bias::kRequired);
  if (!m.ok()) return kNone;
  const ValueId state = m.MatrixState(block, 1, keys, inner);
  m.Name(blk + "ssm_scan");
  const ValueId scanned = m.KeepState(
      blk + "matrices",
      m.SelectiveScan(state, in, b, c, m.Softplus(step), a, skip, m.rows_of()));
  m.Name(blk + "ssm_gated");
  return m.Linear(blk + "ssm_out", m.Mul(m.Silu(gate), scanned), d, inner);
}

}  // namespace weft
