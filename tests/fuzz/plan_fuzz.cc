// Fuzz target: any bytes either load as a plan or give an error, and a plan
// that is found sound runs. Each input is tried as it is and with its checksums
// made right, of weights too, so that what lies behind them is reached.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/runtime/plan/plan_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  weft::LoadAndRun(bytes).IgnoreError();
  weft::FixAllChecksums(&bytes);
  weft::LoadAndRun(bytes).IgnoreError();
  return 0;
}
