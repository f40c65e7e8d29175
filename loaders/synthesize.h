// `weft synth`: a model of a given shape with random weights, for benchmarks.
//
// What tensors there are, the architecture's builder says by asking for them
// (loaders/architectures): an architecture needs nothing here.
//
// Sizes, types, layouts and the scale of the numbers are those of a real model;
// what it says is noise. Weights are normal, with deviation 1 / sqrt(row
// length) (the last matrix of a residual branch 1 / sqrt(2 layers) of that, the
// embedding 0.02), norms are near 1: activations keep the size they have in
// trained models.
//
// So that billions of weights take seconds, a pool of blocks is drawn and
// properly quantised for each type and deviation, and a tensor is a random
// sequence of blocks of its pool: every block is one that a quantiser wrote,
// and rows of several blocks do not repeat. Nothing but the pools is held in
// memory. The same options give the same bytes.
//
// The vocabulary is a SentencePiece one of the right size: control tokens, 256
// bytes, single characters, then letter strings whose parts are all in the
// vocabulary, so any text can be tokenised and merges do happen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

struct SynthesizeOptions {
  std::string shape;                      // see model_shape.h
  std::string type;                       // a word of quantization_mix.h
  std::vector<std::string> tensor_types;  // PATTERN=TYPE
  uint64_t seed = 0;
  // 0: the shape's; else fewer, the first of them.
  int64_t blocks = 0;
  // Zeros that take no disk in place of weights: for looking at a plan.
  bool hollow = false;
};

struct SynthesizeReport {
  int64_t parameters = 0;
  int64_t tensor_bytes = 0;
  std::vector<std::string> warnings;  // tensors that fell back to another type
};

// Writes `path` whole or not at all. Errors: an unknown shape, type or pattern,
// a bad shape file, and those of writing.
absl::StatusOr<SynthesizeReport> SynthesizeModel(
    const SynthesizeOptions& options, const std::string& path);

}  // namespace weft
