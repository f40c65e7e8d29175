#include "loaders/window_config.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/status.h"

namespace weft {
namespace {

constexpr uint64_t kMaxWindow = uint64_t{1} << 31;  // no context is as long

absl::Status ReadContext(const GgufFile& file, const ModelTraits& traits,
                         const ConfigKeys& keys, ModelConfig* config) {
  constexpr char kWindow[] = "attention.sliding_window";
  WEFT_RETURN_IF_ERROR(keys.InRange("context_length", 1, kMaxContext,
                                    &config->trained_context_length));
  config->context_length = config->trained_context_length;
  // Converters write 0 for "none", or what no text reaches.
  WEFT_ASSIGN_OR_RETURN(std::optional<uint64_t> window,
                        file.OptionalUint(keys.Key(kWindow)));
  if (!window.has_value() && traits.default_window != nullptr) {
    window = static_cast<uint64_t>(traits.default_window(*config));
  }
  uint64_t tokens = window.value_or(0);
  if (traits.needs_window && tokens == 0) {
    constexpr char kExpected[] =
        "the tokens that blocks with a window see, 1 or more";
    return window.has_value() ? file.BadValue(keys.Key(kWindow), "0", kExpected)
                              : file.MissingKey(keys.Key(kWindow), kExpected);
  }
  if (traits.window_to_both_sides && tokens > 0) tokens = tokens / 2 + 1;
  if (keys.Handles(kWindow) && tokens > 0) {
    config->sliding_blocks.assign(config->block_count, true);
  }
  if (tokens < kMaxWindow &&
      tokens < static_cast<uint64_t>(config->trained_context_length)) {
    config->sliding_window = static_cast<int64_t>(tokens);
  }
  if (config->sliding_window > 0 && !keys.Handles(kWindow)) {
    config->context_length =
        std::min(config->context_length, config->sliding_window);
  }
  return absl::OkStatus();
}

// Which blocks have the window: as the file says, by a number (the last of
// every so many has none; 0: all have it) or an array (true: it has), else as
// the family does.
absl::Status ReadBlocks(const GgufFile& file, const ModelTraits& traits,
                        const ConfigKeys& keys, ModelConfig* config) {
  if (config->sliding_blocks.empty()) return absl::OkStatus();
  const std::string key = keys.Key("attention.sliding_window_pattern");
  int64_t period = traits.window_period;
  if (const GgufValue* value = file.FindValue(key)) {
    if (value->is_array()) {
      return keys.ReadFlags(key, *value, &config->sliding_blocks);
    }
    WEFT_ASSIGN_OR_RETURN(const uint64_t said, file.GetUint(key));
    // Beyond the last block, one is like the other.
    period = static_cast<int64_t>(std::min(said, kMaxWindow));
  } else if (period == ModelTraits::kFileSays) {
    return file.MissingKey(key, "which blocks have a window");
  }
  if (period == 0) return absl::OkStatus();
  for (int64_t block = 0; block < config->block_count; ++block) {
    config->sliding_blocks[block] =
        block % period != (traits.first_sees_all ? 0 : period - 1);
  }
  return absl::OkStatus();
}

// Blocks with a window may have heads of another length.
absl::Status ReadHeads(const ConfigKeys& keys, ModelConfig* config) {
  if (config->sliding_blocks.empty()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(
      const std::optional<int64_t> key_length,
      keys.OptionalInRange("attention.key_length_swa", 1, kMaxDimension));
  WEFT_ASSIGN_OR_RETURN(
      const std::optional<int64_t> value_length,
      keys.OptionalInRange("attention.value_length_swa", 1, kMaxDimension));
  for (int64_t i = 0; i < config->block_count; ++i) {
    if (!config->sliding_blocks[i]) continue;
    ModelConfig::PerBlock& block = config->blocks[i];
    block.key_length = key_length.value_or(block.key_length);
    block.value_length = value_length.value_or(block.value_length);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadContextAndWindows(const GgufFile& file,
                                   const ModelTraits& traits,
                                   const ConfigKeys& keys,
                                   ModelConfig* config) {
  WEFT_RETURN_IF_ERROR(ReadContext(file, traits, keys, config));
  WEFT_RETURN_IF_ERROR(ReadBlocks(file, traits, keys, config));
  return ReadHeads(keys, config);
}

}  // namespace weft
