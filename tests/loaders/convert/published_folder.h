// Writes a model's file back as the folder that it would have been made of:
// published names, rows in their published order, config.json, tokenizer.json.
//
// What is undone here is stated a second time, from the published modelling
// code, not taken from the tables that are tested.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace weft {

struct PublishedOptions {
  std::string class_name;  // config.json's "architectures"
  nlohmann::json config;   // merged into what the file says
  // Names that differ from LLaMA's: {"ffn_norm": "pre_feedforward_layernorm"},
  // of tensors of blocks, without their ending.
  nlohmann::json names = nlohmann::json::object();
  // LLaMA's order of rows in queries and keys; norms without their 1.
  bool pairs = false, norms_lack_one = false;
  // Of experts: "one" file tensor for each, "joined" (gate above up),
  // "gpt-oss" (taking turns, transposed, or packed where they are MXFP4).
  std::string experts = "one";
  // Before all names, and before the number of a block.
  std::string prefix = "model.", layers = "layers.";
  nlohmann::json tokenizer = nullptr;  // else SentencePieceTokenizer(320)
  int parts = 1;                       // files
};

// `folder` is made anew.
void WritePublishedFolder(const std::string& gguf_path,
                          const std::string& folder,
                          const PublishedOptions& options);

// tokenizer.json of SentencePiece's kind with `size` tokens: controls, bytes,
// letters and a few words.
nlohmann::json SentencePieceTokenizer(int size);

}  // namespace weft
