// The expressions behind each pre-tokeniser's name. A new one is one row.
//
// Sources: the `pre_tokenizer` of each model's published tokenizer.json, and
// llama.cpp's names for them (`tokenizer.ggml.pre`). \s and \S mean Unicode's
// White_Space (see pretokenizers.cc).
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "text/pretokenizers.h"

namespace weft {

struct PretokenizerRow {
  absl::string_view name;
  PretokenizerTraits traits;
  std::vector<absl::string_view> expressions;
};

inline const std::vector<PretokenizerRow>& PretokenizerTable() {
  // GPT-2: English contractions; words, numbers and the rest, each with one
  // space before it. What is left of white space before a word falls between
  // matches.
  static constexpr absl::string_view kGpt2 =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
  // GPT-4 (cl100k): any one sign may lead a word, line ends stay with signs.
  // Families differ in how many digits make a piece.
  static constexpr absl::string_view kLlama3 =
      R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
      R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
      R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static constexpr absl::string_view kQwen2 =
      R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
      R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
      R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static constexpr absl::string_view kQwen35 =
      R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
      R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
      R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static constexpr absl::string_view kBailing =
      R"('[sSdDmMtT]|'[lL][lL]|'[vV][eE]|'[rR][eE])"
      R"(|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
      R"(|\s*[\r\n]|\s+(?!\S)|\s+)";
  static constexpr absl::string_view kSeedCoder =
      R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
      R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)"
      R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
  // GPT-4o (o200k): words are cut where capitals begin.
  static constexpr absl::string_view kGpt4o =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*)"
      R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
      R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
      R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
      R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
      R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
      R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static constexpr absl::string_view kTekken =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*)"
      R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
      R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
      R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
      R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static constexpr absl::string_view kDeepseekV3 =
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
      R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
      R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
  // Letters of scripts that know capitals.
  static constexpr absl::string_view kDeepseekLlmLetters =
      R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-Ჺ)"
      R"(Ჽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ)"
      "\u2126"  // OHM SIGN
      "ℨ"
      "\u212A"  // KELVIN SIGN
      R"(-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲)"
      R"(𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
  static constexpr absl::string_view kDeepseekLlmSigns =
      R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";
  // At the end of a piece. The look-behind changes no match (a search from the
  // left meets the run's first place before any other), but spares a run that
  // does not end the piece from being tried again from each of its places.
  static constexpr absl::string_view kTrailingSpace = R"((?<!\s)\s++$)";
  static constexpr absl::string_view kCjk = R"([一-龥ࠀ-一가-퟿]+)";
  static constexpr absl::string_view kCjkKana = R"([一-龥぀-ゟ゠-ヿ]+)";
  static constexpr absl::string_view kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

  static constexpr PretokenizerTraits kPlain = {};
  static constexpr PretokenizerTraits kWhole = {true, true};

  static const auto* const kTable = new std::vector<PretokenizerRow>{
      {"default",
       kPlain,
       {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", R"([0-9][0-9][0-9])"}},
      {"gpt-2", kPlain, {kGpt2}},
      {"phi-2", kPlain, {kGpt2}},
      {"mpt", kPlain, {kGpt2}},
      {"olmo", kPlain, {kGpt2}},
      {"jais", kPlain, {kGpt2}},
      {"exaone4", kPlain, {kGpt2}},
      {"gigachat", kPlain, {kGpt2}},
      {"mellum", kPlain, {kGpt2}},
      {"a.x-4.0", kPlain, {kGpt2}},
      {"trillion", kPlain, {kGpt2}},
      {"granite-docling", kPlain, {kGpt2}},
      {"starcoder", kPlain, {R"(\p{N})", kGpt2}},
      {"refact", kPlain, {R"(\p{N})", kGpt2}},
      {"command-r", kPlain, {R"(\p{N})", kGpt2}},
      {"smollm", kPlain, {R"(\p{N})", kGpt2}},
      {"codeshell", kPlain, {R"(\p{N})", kGpt2}},
      {"exaone", kPlain, {R"(\p{N})", kGpt2}},
      {"minerva-7b", kPlain, {R"(\p{N})", kGpt2}},
      {"falcon",
       kPlain,
       {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, R"([0-9][0-9][0-9])"}},
      {"llama-bpe", kWhole, {kLlama3}},
      {"llama3", kWhole, {kLlama3}},
      {"llama-v3", kWhole, {kLlama3}},
      {"falcon3", kWhole, {kLlama3}},
      {"falcon-h1", kWhole, {kLlama3}},
      {"pixtral", kWhole, {kLlama3}},
      {"midm-2.0", kWhole, {kLlama3}},
      {"lfm2", kWhole, {kLlama3}},
      {"dbrx", kPlain, {kLlama3}},
      {"smaug-bpe", kPlain, {kLlama3}},
      {"glm4", kPlain, {kLlama3}},
      {"chatglm-bpe", kPlain, {kLlama3}},
      {"qwen2", kPlain, {kQwen2}},
      {"deepseek-r1-qwen", kPlain, {kQwen2}},
      {"megrez", kPlain, {kQwen2}},
      {"kormo", kPlain, {kQwen2}},
      {"stablelm2", kPlain, {kQwen2}},
      {"hunyuan", kPlain, {kQwen2}},
      {"grok-2", kPlain, {kQwen2}},
      {"qwen35", kPlain, {kQwen35}},
      {"bailingmoe", kPlain, {kBailing}},
      {"bailingmoe2", kPlain, {kBailing}},
      {"llada-moe", kPlain, {kBailing}},
      {"seed-coder", kPlain, {kSeedCoder}},
      {"gpt-4o", kPlain, {kGpt4o}},
      {"llama4", kPlain, {kGpt4o}},
      {"minimax-m2", kPlain, {kGpt4o}},
      {"tekken", kWhole, {kTekken}},
      {"deepseek-llm",
       kPlain,
       {R"([\r\n])", kDeepseekLlmLetters, kDeepseekLlmSigns, kTrailingSpace,
        kCjk, R"(\p{N}+)"}},
      {"deepseek-coder",
       kPlain,
       {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjk, R"(\p{N})"}},
      {"deepseek-v3", kPlain, {R"(\p{N}{1,3})", kCjkKana, kDeepseekV3}},
      {"hunyuan-dense", kPlain, {R"(\p{N}{1,3})", kCjkKana, kDeepseekV3}},
      {"bloom", kPlain, {kBloom}},
      {"poro-chat", kPlain, {kBloom}},
      {"gpt3-finnish", kPlain, {kBloom}},
      {"viking", kPlain, {kBloom, R"(\p{N})"}},
  };
  return *kTable;
}

}  // namespace weft
