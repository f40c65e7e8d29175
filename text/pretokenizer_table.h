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
  // Letters of scripts that know capitals (Lu, Ll and Lt of an older Unicode),
  // by number: normalising this file must not change them.
  static constexpr absl::string_view kDeepseekLlmLetters =
      R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA})"
      R"(\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373})"
      R"(\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C})"
      R"(\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F})"
      R"(\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD})"
      R"(\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B})"
      R"(\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})"
      R"(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
      R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D})"
      R"(\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
      R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})"
      R"(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102})"
      R"(\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126})"
      R"(\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139})"
      R"(\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184})"
      R"(\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2})"
      R"(\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
      R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"
      R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A})"
      R"(\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3})"
      R"(\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
      R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
  static constexpr absl::string_view kDeepseekLlmSigns =
      R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";
  // At the end of a piece. The look-behind changes no match (a search from the
  // left meets the run's first place before any other), but spares a run that
  // does not end the piece from being tried again from each of its places.
  static constexpr absl::string_view kTrailingSpace = R"((?<!\s)\s++$)";
  static constexpr absl::string_view kCjk = R"([一-龥ࠀ-一가-퟿]+)";
  static constexpr absl::string_view kCjkKana = R"([一-龥぀-ゟ゠-ヿ]+)";
  static constexpr absl::string_view kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

  // OLMo's line ends, and runs of spaces by powers of two.
  static constexpr absl::string_view kJais2 =
      R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
      R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
      R"(|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S))"
      R"(|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)";
  // No merge crosses a line end.
  static constexpr absl::string_view kLines = R"([^\n]+|\n+)";
  // Qwen's, without English contractions: Turkish suffixes follow an
  // apostrophe.
  static constexpr absl::string_view kUfakzeka =
      R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
      R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
  // DeepSeek's, with each line end by itself.
  static constexpr absl::string_view kSpark =
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
      R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+)"
      R"(|[\r\n]|\s+(?!\S)|\s+)";
  // Words of more than one syllable block stay together.
  static constexpr absl::string_view kExaoneMoe =
      R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
      R"(|[^\r\n\p{L}\p{N}]?\p{L}\p{M}*+(?: ?\p{L}\p{M}*+)*+|\p{N})"
      R"(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
  // gpt-4o with each digit by itself.
  static constexpr absl::string_view kYoutu =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*)"
      R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
      R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
      R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
      R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
      R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
      R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static constexpr absl::string_view kYoutuScripts =
      R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+)"
      R"(|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A})"
      R"(\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+)"
      R"(|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F})"
      R"(\x{30A0}-\x{30FF}]+)";
  // Letters and marks without Han, and without small or without capital ones,
  // said by what they are not: PCRE2 10.42 knows no intersection of classes.
  // Code points that are not assigned count as letters here.
  static constexpr absl::string_view kKimiK2 =
      R"(\p{Han}+|[^\r\n\p{L}\p{N}]?)"
      R"([^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{Cc}\p{Cf}\p{Co}\p{Han}]*)"
      R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{Cc}\p{Cf}\p{Co}\p{Han}]+)"
      R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
      R"(|[^\r\n\p{L}\p{N}]?)"
      R"([^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{Cc}\p{Cf}\p{Co}\p{Han}]+)"
      R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{Cc}\p{Cf}\p{Co}\p{Han}]*)"
      R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
      R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  // Numbers in threes from the right: the number, what is left over in front,
  // and threes.
  static constexpr absl::string_view kNumber = R"(\p{N}+)";
  static constexpr absl::string_view kNumberHead =
      R"(^\p{N}{1,2}(?=(?:\p{N}{3})*+$))";
  static constexpr absl::string_view kThreeDigits = R"(\p{N}{3})";
  // Scripts written without spaces.
  static constexpr absl::string_view kAfmoeScripts =
      R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF})"
      R"(\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F})"
      R"(\x{2F00}-\x{2FDF}\x{0E40}-\x{0E7F}\x{0E80}-\x{0EFF}\x{1780}-\x{17FF})"
      R"(\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF})"
      R"(\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)";

  static constexpr PretokenizerTraits kPlain = {};
  static constexpr PretokenizerTraits kWhole = {true, true};
  static constexpr PretokenizerTraits kWholeNoBos = {true};
  static constexpr PretokenizerTraits kBos = {false, true};
  static constexpr PretokenizerTraits kSeparated = {false, false, true};
  // NFC: the published tokenizer.json of Qwen, GPT-NeoX (MPT, OLMo, ModernBERT)
  // and Cohere, and the Python tokenisers of StableLM 2 and Hunyuan.
  static constexpr PretokenizerTraits kNfc = {false, false, false, true};
  static constexpr PretokenizerTraits kRaw = {false, false, false, false, true};
  static constexpr PretokenizerTraits kGemma4 = {false, true, false,
                                                 false, true, true};

  static const auto* const kTable = new std::vector<PretokenizerRow>{
      {"default",
       kPlain,
       {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", R"([0-9][0-9][0-9])"}},
      {"gpt-2", kPlain, {kGpt2}},
      {"phi-2", kPlain, {kGpt2}},
      {"mpt", kNfc, {kGpt2}},
      {"olmo", kNfc, {kGpt2}},
      {"jais", kPlain, {kGpt2}},
      {"exaone4", kPlain, {kGpt2}},
      {"gigachat", kPlain, {kGpt2}},
      {"mellum", kPlain, {kGpt2}},
      {"a.x-4.0", kPlain, {kGpt2}},
      {"trillion", kPlain, {kGpt2}},
      {"granite-docling", kPlain, {kGpt2}},
      {"starcoder", kPlain, {R"(\p{N})", kGpt2}},
      {"refact", kPlain, {R"(\p{N})", kGpt2}},
      {"command-r", kNfc, {R"(\p{N})", kGpt2}},
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
      {"qwen2", kNfc, {kQwen2}},
      {"deepseek-r1-qwen", kPlain, {kQwen2}},
      {"megrez", kPlain, {kQwen2}},
      {"kormo", kPlain, {kQwen2}},
      {"stablelm2", kNfc, {kQwen2}},
      {"hunyuan", kNfc, {kQwen2}},
      {"grok-2", kPlain, {kQwen2}},
      {"qwen35", kNfc, {kQwen35}},
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
      {"f2llmv2", kNfc, {kQwen2}},
      {"openpangu", kPlain, {kQwen2}},
      {"solar-open", kPlain, {kQwen2}},
      {"laguna", kPlain, {kLines, kQwen2}},
      {"jina-v5-nano", kWhole, {kLlama3}},
      {"joyai-llm", kPlain, {R"(\p{N}{1,3})", kCjkKana, kDeepseekV3}},
      {"kanana2", kPlain, {kGpt4o}},
      {"talkie", kPlain, {kGpt4o}},
      {"mellum2", kPlain, {R"(\p{N})", kGpt2}},
      {"cohere2_moe", kNfc, {R"(\p{N})", kGpt2}},
      {"jina-de", kPlain, {kGpt2}},
      {"jina-es", kPlain, {kGpt2}},
      {"jina-v2-de", kPlain, {kGpt2}},
      {"jina-v2-es", kPlain, {kGpt2}},
      {"modern-bert", kNfc, {kGpt2}},
      {"roberta-bpe", kSeparated, {kGpt2}},
      {"jina-v1-en", kSeparated, {kGpt2}},
      {"jina-v2-code", kSeparated, {kGpt2}},
      {"superbpe", kPlain, {kNumber, kNumberHead, kThreeDigits}},
      {"jais-2", kPlain, {kJais2}},
      {"tiny_aya", kNfc, {kNumber, kNumberHead, kThreeDigits, kGpt4o}},
      {"cohere2moe", kNfc, {kNumber, kNumberHead, kThreeDigits, kGpt4o}},
      {"youtu", kWholeNoBos, {kYoutuScripts, kYoutu}},
      {"exaone-moe", kPlain, {kExaoneMoe}},
      {"chameleon",
       kBos,
       {R"(<sentinel:[0-9]+>)", R"(IMGIMG[A-I]{1,4}Z)", R"([\t\n]|    |  )",
        R"(\p{N})", R"([\p{P}!-/:-@\[-`{-~])", kGpt2}},
      {"kimi-k2", kPlain, {kKimiK2}},
      {"afmoe",
       kPlain,
       {kNumber, kNumberHead, kThreeDigits, kAfmoeScripts, kDeepseekV3}},
      {"minicpm5", kWholeNoBos, {R"(\p{N}{1,3})", kLlama3}},
      {"spark2_5", kPlain, {R"(\p{N}{1,3})", kCjkKana, kSpark, R"(\p{N})"}},
      {"hy_v4", kPlain, {R"(\p{N}{1,3})", kCjkKana, kDeepseekV3}},
      {"ufakzeka", kPlain, {kUfakzeka}},
      {"granite-embed-multi-97m", kWholeNoBos, {kGpt4o}},
      {"gemma4", kGemma4, {kLines}},
      {"granite-embed-multi-311m", kGemma4, {kLines}},
      {"sarvam-moe", kRaw, {kLines}},
      {"viking", kPlain, {kBloom, R"(\p{N})"}},
  };
  return *kTable;
}

}  // namespace weft
