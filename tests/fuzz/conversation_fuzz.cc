// Fuzz target: any bytes as a saved conversation either load or give an error;
// what loads is written and loads again as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "chat/conversation.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weft::chat::Conversation;
  const auto loaded = Conversation::FromJson(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!loaded.ok()) return 0;
  const std::string written = loaded->ToJson();
  const auto again = Conversation::FromJson(written);
  if (!again.ok() || again->ToJson() != written) abort();
  return 0;
}
