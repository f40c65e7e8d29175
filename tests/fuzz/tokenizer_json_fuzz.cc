// Fuzz target: any bytes as tokenizer.json either become the keys of a
// vocabulary or give an error; and as config.json, what every family asks of
// it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "loaders/convert/family.h"
#include "loaders/convert/vocabulary_keys.h"
#include "loaders/safetensors/json_text.h"

namespace weft {
namespace {

constexpr JsonLimits kLimits = {int64_t{1} << 20, int64_t{1} << 16, 32};

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using nlohmann::json;
  const auto parsed = weft::ParseJsonObject(
      absl::string_view(reinterpret_cast<const char*>(data), size), "input",
      weft::kLimits);
  if (!parsed.ok()) return 0;
  const weft::CheckpointConfig config(*parsed, "input");
  weft::VocabularySource source;
  source.tokenizer = *parsed;
  source.path = "input";
  source.tokenizer_config = *parsed;
  source.generation_config = *parsed;
  weft::VocabularyRules rules;
  rules.size = 64;
  weft::GgufWriter writer;
  std::vector<std::string> warnings;
  static_cast<void>(
      weft::SetVocabulary(source, config, rules, &writer, &warnings));
  for (const std::string& name : weft::FamilyNames()) {
    const weft::Family& family = *weft::FindFamily(name);
    weft::Conversion conversion(config, std::string(family.architecture),
                                &writer, &warnings);
    conversion.blocks = 2;
    conversion.embedding = 64;
    conversion.heads = conversion.heads_kv = 2;
    conversion.head_length = 32;
    static_cast<void>(family.finish(conversion));
    static_cast<void>(config.CheckAllRead(&warnings));
  }
  return 0;
}
