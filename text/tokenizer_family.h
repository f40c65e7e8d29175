// What a tokeniser family (SentencePiece BPE, byte-level BPE, ...) implements.
// A new one is one file and one row in tokenizer.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "text/vocabulary.pb.h"

namespace weft {

// Whether the ids of a text are still wanted: asks so seldom that it costs
// nothing, so often that an end is noticed within milliseconds.
class StopCheck {
 public:
  // `unwanted` may be empty: nobody is asked.
  explicit StopCheck(const std::function<bool()>& unwanted)
      : unwanted_(unwanted) {}

  // Call it for each small step of work. True from when it was said.
  bool Stopped() {
    if (!stopped_ && unwanted_ && ++steps_ % kStepsBetween == 0) {
      stopped_ = unwanted_();
    }
    return stopped_;
  }

 private:
  static constexpr uint32_t kStepsBetween = 4096;

  const std::function<bool()>& unwanted_;
  uint32_t steps_ = 0;
  bool stopped_ = false;
};

// What texts take: the strings themselves, and those that do not fit in one.
inline size_t BytesOfTexts(const std::vector<std::string>& texts) {
  size_t bytes = texts.capacity() * sizeof(std::string);
  for (const std::string& text : texts) {
    if (text.capacity() > sizeof(std::string) / 2) bytes += text.capacity();
  }
  return bytes;
}

// Thread-safe.
class TokenizerFamily {
 public:
  virtual ~TokenizerFamily() = default;

  // Appends the ids of `text`, any bytes in which no special token is left.
  // `space_prefix`: whether `text` begins anew (it opens the whole text, or
  // follows a special token) and the vocabulary wants a space put before it.
  // Returns early, with any ids, when `stop` says so.
  virtual absl::Status Encode(absl::string_view text, bool space_prefix,
                              StopCheck& stop,
                              std::vector<int32_t>& ids) const = 0;

  // The bytes that a token stands for. Not called for control and user-defined
  // tokens: those stand for their own text.
  virtual absl::string_view Bytes(int32_t id) const = 0;

  // Defaults for what a model's file need not say.
  virtual bool default_add_bos() const = 0;
  virtual bool default_add_space_prefix() const = 0;
  virtual bool default_add_eos() const { return false; }

  // Whether texts come with user-defined tokens left in, for the family to
  // find.
  virtual bool takes_user_defined() const { return false; }

  // Whether the published tokeniser normalises texts to NFC first.
  virtual bool normalizes() const { return false; }

  virtual size_t MemoryBytes() const = 0;
};

using CreateTokenizerFamily =
    absl::StatusOr<std::unique_ptr<const TokenizerFamily>> (*)(
        const Vocabulary& vocabulary);

}  // namespace weft
