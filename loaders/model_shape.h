// The dimensions of a model to be made up by `weft synth`.
//
// Known by name (published_shapes.json: dimensions of published models, from
// their configuration files, and "mixtral-small", Mixtral's proportions at
// about a hundredth of its size), or read from a JSON object with the fields of
// ModelShape as keys, for example
//   {"architecture": "llama", "embedding_length": 512, "block_count": 4,
//    "feed_forward_length": 1024, "head_count": 8, "head_count_kv": 4,
//    "vocabulary_size": 4096, "context_length": 1024, "tied_output": true}
// What tensors a model has follows from its architecture, which is asked
// (synthesize.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

struct ModelShape {
  std::string name;
  std::string architecture = "llama";  // `general.architecture`
  int64_t embedding_length = 0;
  int64_t block_count = 0;
  int64_t feed_forward_length = 0;
  int64_t head_count = 0;
  int64_t head_count_kv = 0;  // 0: head_count
  int64_t key_length =
      0;  // elements per head; 0: embedding_length / head_count
  int64_t vocabulary_size = 0;
  int64_t context_length = 2048;
  double rope_freq_base = 10000.0;
  double norm_epsilon = 1e-5;
  bool tied_output = false;
  int64_t rope_dimension_count = 0;  // elements that turn; 0: key_length
  // Further metadata, without the architecture's prefix:
  // {"attention.sliding_window": 4096}.
  std::map<std::string, double> keys = {};
  // Ends of the names of tensors that the architecture can do without and this
  // model has: ["attn_q.bias"].
  std::vector<std::string> optional_tensors = {};
  // The same with a whole number for each block; these win. In JSON they stand
  // in "keys" too, as arrays.
  std::map<std::string, std::vector<int64_t>> block_keys = {};
};

// The names of the table.
std::vector<std::string> ModelShapeNames();

// `name_or_path` is a name of the table or ends in ".json". The result is
// checked: dimensions positive and at most 2^24 (layers
// 2^12), heads that divide, an even key_length, matrices of at most 2^38
// elements, a vocabulary with room for 259 control and byte tokens. Errors name
// the file and key.
absl::StatusOr<ModelShape> FindModelShape(absl::string_view name_or_path);

}  // namespace weft
