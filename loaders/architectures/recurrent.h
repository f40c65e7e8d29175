// Parts of models whose blocks keep a state of fixed size for each sequence:
// the mixers that stand in the place of attention.
//
// How to write such a family: its blocks are those of blocks.h, but where a
// block is recurrent, the mixer takes the place of SeparateHeads and
// CachedAttention. Which blocks are, files say in one of three ways: an array
// of heads of keys and values with 0 in it (ModelConfig::Block;
// traits.blocks_without_attention), an interval, or an array of flags
// (ModelConfig::recurrent_blocks). A mixer of its own is made of
//   m.WindowState, m.ShortConv      the causal convolution over the last rows
//   m.MatrixState, m.DeltaRule      linear attention that forgets and corrects
//   m.MatrixState, m.SelectiveScan  Mamba, 1 and 2
//   m.L2Norm, m.Softplus, and what all models have;
// each state's last version becomes an output with m.KeepState. `weft eval
// --states` writes states in the order in which a builder makes them, so the
// window comes before the matrices. Norm and gate behind a mixer are plain
// nodes: passes find what can be one.
#pragma once

#include <string>
#include <vector>

#include "loaders/architectures/architecture.h"

namespace weft {

// What `ssm.*` says: keys for ModelTraits::keys, and the numbers.
std::vector<ModelKey> SsmKeys();
struct SsmSizes {
  int64_t window;  // rows that a convolution looks back
  int64_t state;   // keys of a head's matrix
  int64_t groups;  // of heads, or heads of keys
  int64_t heads;
  int64_t inner;  // values of all heads
};
// Fails where heads do not divide evenly.
SsmSizes SsmSizesOf(ModelBuilder& m);

// silu(x convolved with the taps of `tensor`.weight, + `tensor`.bias where the
// file has it). The state is named `state`. With `planes`, each channel's taps
// are a plane of one row in the file.
ValueId ConvolvedSilu(ModelBuilder& m, int64_t block, const std::string& tensor,
                      const std::string& state, ValueId x, int64_t columns,
                      int64_t window, bool planes = false);

// The mixer of Mamba 2 (Dao and Gu 2024, arXiv:2405.21060), from ssm_in to
// ssm_out. The norm behind the gate may be missing.
ValueId Mamba2Mixer(ModelBuilder& m, int64_t block, ValueId x);

// The mixer of Mamba (Gu and Dao 2023, arXiv:2312.00752), likewise, and its
// keys. Steps, b and c may have norms.
std::vector<ModelKey> MambaKeys();
ValueId MambaMixer(ModelBuilder& m, int64_t block, ValueId x);

}  // namespace weft
