// Idea: embeddings are unit vectors, the one block adds nothing, and the output
// matrix gives each token its successor.
#include "tests/e2e/scripted_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "loaders/gguf_writer.h"

namespace weft {
namespace {

// The text as tokens: control tokens, and pieces of which no two are the same
// unless a control token cuts them short.
std::vector<std::string> Pieces(const std::string& text,
                                const std::vector<std::string>& control) {
  std::vector<std::string> pieces;
  std::set<std::string> seen;
  const auto control_at = [&](size_t at) {
    for (const std::string& token : control) {
      if (text.compare(at, token.size(), token) == 0) return token;
    }
    return std::string();
  };
  for (size_t at = 0; at < text.size();) {
    std::string piece = control_at(at);
    if (piece.empty()) {
      do {
        piece += text[at + piece.size()];
      } while (at + piece.size() < text.size() &&
               control_at(at + piece.size()).empty() &&
               (piece.size() < 2 || seen.count(piece) > 0 ||
                // No half characters.
                (text[at + piece.size()] & 0xc0) == 0x80));
    }
    at += piece.size();
    seen.insert(piece);
    pieces.push_back(piece);
  }
  return pieces;
}

absl::Span<const uint8_t> Bytes(const std::vector<float>& values) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values.data()),
                             values.size() * sizeof(float));
}

}  // namespace

std::string ScriptedModel(const std::string& file_name, const std::string& text,
                          const std::string& chat_template,
                          const std::vector<std::string>& control) {
  constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;
  constexpr int32_t kEnd = 2;
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {kUnknown, kControl, kControl};
  for (int i = 0; i < 256; ++i) {
    tokens.push_back(absl::StrFormat("<0x%02X>", i));
    types.push_back(kByte);
  }
  const auto add = [&](const std::string& token, int32_t type) {
    tokens.push_back(token);
    types.push_back(type);
    return static_cast<int32_t>(tokens.size()) - 1;
  };
  add("<|go|>", kControl);
  const size_t first_control = tokens.size();
  for (const std::string& token : control) add(token, kControl);
  const size_t first_piece = tokens.size();
  std::vector<int32_t> said;
  // Each has one successor: what is said twice are two tokens.
  for (const std::string& piece : Pieces(text, control)) {
    const auto known = std::find(control.begin(), control.end(), piece);
    const int32_t id =
        static_cast<int32_t>(first_control + (known - control.begin()));
    if (known == control.end()) {
      said.push_back(
          add(absl::StrReplaceAll(piece, {{" ", "\u2581"}}), kNormal));
    } else {
      said.push_back(std::find(said.begin(), said.end(), id) == said.end()
                         ? id
                         : add(piece, kControl));
    }
  }
  said.push_back(kEnd);
  const int64_t count = static_cast<int64_t>(tokens.size());
  const int64_t width = (count + 63) / 64 * 64;
  std::vector<float> scores(tokens.size());
  for (size_t i = first_piece; i < tokens.size(); ++i) {
    scores[i] = -1e6f - static_cast<float>(i);
  }
  std::vector<int32_t> next(tokens.size(), said[0]);
  for (size_t i = 0; i + 1 < said.size(); ++i) next[said[i]] = said[i + 1];
  std::vector<float> embedding(count * width), output(count * width);
  for (int64_t i = 0; i < count; ++i) {
    embedding[i * width + i] = 1;
    output[next[i] * width + i] = 10;
  }
  const std::vector<float> ones(width, 1.0f);
  GgufWriter writer;
  writer.SetString("general.architecture", "llama");
  writer.SetString("general.name", "script");
  writer.SetUint32("llama.context_length", 8192);
  writer.SetUint32("llama.embedding_length", width);
  writer.SetUint32("llama.block_count", 1);
  writer.SetUint32("llama.feed_forward_length", 64);
  writer.SetUint32("llama.attention.head_count", width / 64);
  writer.SetUint32("llama.attention.head_count_kv", 1);
  writer.SetFloat32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.SetUint32("llama.rope.dimension_count", 64);
  writer.SetUint32("llama.vocab_size", count);
  writer.SetString("tokenizer.ggml.model", "llama");
  writer.SetStrings("tokenizer.ggml.tokens", tokens);
  writer.SetFloat32s("tokenizer.ggml.scores", scores);
  writer.SetInt32s("tokenizer.ggml.token_type", types);
  writer.SetUint32("tokenizer.ggml.bos_token_id", 1);
  writer.SetUint32("tokenizer.ggml.eos_token_id", kEnd);
  writer.SetBool("tokenizer.ggml.add_bos_token", false);
  writer.SetBool("tokenizer.ggml.add_space_prefix", false);
  writer.SetString("tokenizer.chat_template", chat_template);
  const auto norm = [&](const std::string& name) {
    writer.AddTensor(name, DType::kF32, {width}, Bytes(ones));
  };
  writer.AddTensor("token_embd.weight", DType::kF32, {width, count},
                   Bytes(embedding));
  writer.AddTensor("output.weight", DType::kF32, {width, count}, Bytes(output));
  norm("output_norm.weight");
  norm("blk.0.attn_norm.weight");
  norm("blk.0.ffn_norm.weight");
  writer.AddHole("blk.0.attn_q.weight", DType::kF32, {width, width});
  writer.AddHole("blk.0.attn_k.weight", DType::kF32, {width, 64});
  writer.AddHole("blk.0.attn_v.weight", DType::kF32, {width, 64});
  writer.AddHole("blk.0.attn_output.weight", DType::kF32, {width, width});
  writer.AddHole("blk.0.ffn_gate.weight", DType::kF32, {width, 64});
  writer.AddHole("blk.0.ffn_up.weight", DType::kF32, {width, 64});
  writer.AddHole("blk.0.ffn_down.weight", DType::kF32, {64, width});
  const std::string path = testing::TempDir() + "/" + file_name;
  const absl::Status written = writer.WriteTo(path);
  EXPECT_TRUE(written.ok()) << written;
  return path;
}

}  // namespace weft
