// Decoder models a second time, without graphs: loops in double precision over
// the weights of a file, for families that no other implementation's logits are
// at hand for. Shares nothing with the engine but the reading of GGUF files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

// Logits after each token, one row behind the other. Ends the program on a file
// that it cannot make sense of.
std::vector<float> PlainLogits(const std::string& path,
                               const std::vector<int32_t>& tokens);

}  // namespace weft
