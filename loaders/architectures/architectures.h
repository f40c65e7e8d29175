// One line per architecture; the files beside this define them.
#pragma once

#include "loaders/architectures/architecture.h"

namespace weft {

extern const Architecture kLlama;
extern const Architecture kLlama;
extern const Architecture kQwen2;
extern const Architecture kQwen2Moe;
extern const Architecture kQwen3;
extern const Architecture kGpt2;
extern const Architecture kStableLm;
extern const Architecture kGemma;
extern const Architecture kGemma2;
extern const Architecture kGemma3;
extern const Architecture kPhi3;
extern const Architecture kGranite;
extern const Architecture kOlmo2;
extern const Architecture kBert;

}  // namespace weft
