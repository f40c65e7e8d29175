#include "text/stream_decoder.h"

#include <utility>

#include "text/utf8.h"

namespace weft {

absl::StatusOr<std::string> StreamDecoder::Push(int32_t id) {
  const absl::Status status =
      tokenizer_.AppendBytes(id, options_, &at_start_, &pending_);
  if (!status.ok()) return status;
  size_t whole = 0;
  while (whole < pending_.size()) {
    const Utf8Unit unit = Utf8UnitAt(pending_, whole);
    if (unit.kind == Utf8Unit::kIncomplete) break;
    whole += unit.bytes;
  }
  std::string text = RepairUtf8(absl::string_view(pending_).substr(0, whole));
  pending_.erase(0, whole);
  return text;
}

std::string StreamDecoder::Finish() {
  return RepairUtf8(std::exchange(pending_, {}));
}

}  // namespace weft
