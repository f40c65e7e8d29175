// SmolLM3: loaders/architectures/smollm3.cc.
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "loaders/convert/families.h"

namespace weft {
namespace {

constexpr int64_t kPublishedInterval = 4;

// Blocks without positions: a list of 0 and 1 for the blocks, or every how
// many.
absl::Status Finish(Conversion& c) {
  constexpr char kInterval[] = "no_rope_layer_interval";
  constexpr char kBlocks[] = "no_rope_layers";
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> said,
                        c.config.OptionalInt(kInterval));
  const int64_t interval = said.value_or(kPublishedInterval);
  if (interval < 1) return c.config.BadKey(kInterval, "a number above 0");
  WEFT_ASSIGN_OR_RETURN(const auto rotates, c.config.OptionalNumbers(kBlocks));
  if (rotates.has_value()) {
    bool good = static_cast<int64_t>(rotates->size()) == c.blocks;
    for (size_t i = 0; good && i < rotates->size(); ++i) {
      const bool last = (static_cast<int64_t>(i) + 1) % interval == 0;
      good = (*rotates)[i] == (last ? 0.0 : 1.0);
    }
    if (!good) {
      return c.config.BadKey(
          kBlocks, absl::StrCat("for each block 1, and for the last of every ",
                                interval, " 0"));
    }
  }
  if (interval != kPublishedInterval) {
    c.writer.SetUint32(c.Key(kInterval), static_cast<uint32_t>(interval));
  }
  WEFT_RETURN_IF_ERROR(c.config.Expect("use_sliding_window", {false}));
  c.config.Find("sliding_window");
  WEFT_RETURN_IF_ERROR(CheckWindows(c, 1));
  RopeRules rules;
  rules.writes_dimensions = true;
  return SetRope(c, rules);
}

}  // namespace

Family SmolLm3Family() {
  Family family = LlamaFamily();
  family.names = {"SmolLM3ForCausalLM"};
  family.architecture = "smollm3";
  family.finish = Finish;
  return family;
}

}  // namespace weft
