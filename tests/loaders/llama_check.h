// All checks that loading a llama model makes before a graph is built: file,
// configuration, vocabulary, and the shape of every tensor. For tests.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "loaders/gguf.h"
#include "loaders/model_config.h"
#include "loaders/vocabulary.h"
#include "loaders/weights.h"

namespace weft {

inline absl::Status CheckLlamaTensors(const GgufFile& file,
                                      const ModelConfig& config) {
  const int64_t width = config.embedding_length;
  const int64_t hidden = config.feed_forward_length;
  const int64_t query = config.head_count * config.key_length;
  const int64_t key = config.head_count_kv * config.key_length;
  const int64_t value = config.head_count_kv * config.value_length;
  const int64_t attended = config.head_count * config.value_length;
  WeightReader weights(file);
  absl::Status status;
  const auto require = [&](const std::string& name,
                           std::initializer_list<int64_t> dims) {
    if (status.ok()) status = weights.Require(name, dims).status();
  };
  const auto optional = [&](const std::string& name,
                            std::initializer_list<int64_t> dims) {
    if (status.ok()) status = weights.Optional(name, dims).status();
  };
  require("token_embd.weight", {width, config.vocabulary_size});
  for (int64_t block = 0; block < config.block_count && status.ok(); ++block) {
    const std::string prefix = absl::StrCat("blk.", block, ".");
    require(prefix + "attn_norm.weight", {width});
    require(prefix + "attn_q.weight", {width, query});
    require(prefix + "attn_k.weight", {width, key});
    require(prefix + "attn_v.weight", {width, value});
    require(prefix + "attn_output.weight", {attended, width});
    optional(prefix + "attn_q.bias", {query});
    optional(prefix + "attn_k.bias", {key});
    optional(prefix + "attn_v.bias", {value});
    optional(prefix + "attn_output.bias", {width});
    require(prefix + "ffn_norm.weight", {width});
    require(prefix + "ffn_gate.weight", {width, hidden});
    require(prefix + "ffn_up.weight", {width, hidden});
    require(prefix + "ffn_down.weight", {hidden, width});
    optional(prefix + "ffn_gate.bias", {hidden});
    optional(prefix + "ffn_up.bias", {hidden});
    optional(prefix + "ffn_down.bias", {width});
  }
  require("output_norm.weight", {width});
  optional("output.weight", {width, config.vocabulary_size});
  optional("rope_freqs.weight", {config.rope_dimension_count / 2});
  if (!status.ok()) return status;
  return weights.CheckAllUsed();
}

inline absl::Status CheckLlamaModel(const absl::StatusOr<GgufFile>& file) {
  if (!file.ok()) return file.status();
  auto config = ReadModelConfig(*file);
  if (!config.ok()) return config.status();
  auto vocabulary = ReadVocabulary(*file);
  if (!vocabulary.ok()) return vocabulary.status();
  return CheckLlamaTensors(*file, *config);
}

}  // namespace weft
