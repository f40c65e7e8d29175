// Which experts of one block are in memory, and who goes when another comes.
//
// Idea: routers have favourites, for a model and more so for a text. So the one
// that was chosen least often goes (least frequently used), where what was
// chosen long ago counts less and less: all counts are halved every so many
// tokens (Robinson & Devarakonda 1990, "Data cache management using
// frequency-based replacement"). Of equals the one goes that was not chosen for
// longest.
//
// Knows numbers and no memory; allocates when made alone.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace weft {

class ExpertSlots {
 public:
  // Tokens after which what was counted is worth half.
  static constexpr int64_t kHalfLife = 512;

  // Requires 1 <= slots <= experts.
  ExpertSlots(int experts, int slots);

  int slots() const { return static_cast<int>(expert_in_.size()); }

  // What `tokens` tokens have chosen.
  void Count(absl::Span<const int32_t> chosen, int64_t tokens);

  // Where an expert is; -1: nowhere.
  int SlotOf(int expert) const { return slot_of_[expert]; }

  // A slot for an expert that has none, from now on its own: one that is empty,
  // or that of the expert that is wanted least among those whose slot `may`
  // go; -1 if none may.
  int Take(int expert, absl::FunctionRef<bool(int slot)> may);

  // Whether expert a is wanted less than b.
  bool Less(int a, int b) const;

 private:
  std::vector<int> slot_of_, expert_in_;  // -1: none
  std::vector<float> counts_;             // of each expert
  std::vector<int64_t> last_;             // the step in which it was chosen
  int64_t steps_ = 0, tokens_ = 0;
};

}  // namespace weft
