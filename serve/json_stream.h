// JSON that is written piece by piece: what is large is never a tree, nor
// whole.
//
// Who writes keeps the order of a JSON text; commas are put here. Lists and
// objects that are small come as values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weft {

// Not thread-safe.
class JsonStream {
 public:
  // Pieces of some 16 KB go to `write`. Once that returns false, nothing more
  // is written.
  using Write = std::function<bool(absl::string_view piece)>;
  explicit JsonStream(Write write) : write_(std::move(write)) {}

  // `bracket` is '{' or '['; Close finds the one that belongs to it.
  void Open(char bracket);
  void Close();
  // Of an object: before its value.
  void Key(absl::string_view name);
  void Value(const nlohmann::ordered_json& value);
  // A string of any length; bytes that are no UTF-8 become U+FFFD.
  void Text(absl::string_view text);
  // Elements of a list, or one value, that are JSON already.
  void Raw(absl::string_view json);

  // Writes what is left. False: not all could be written.
  bool Finish();
  bool broken() const { return broken_; }

 private:
  void Separate();
  void Put(absl::string_view text);

  const Write write_;
  std::string piece_;
  std::vector<char> closing_;  // brackets
  bool separate_ = false;      // before the next element
  bool broken_ = false;
};

}  // namespace weft
