// Anonymous memory from the system: page aligned (so 64-byte aligned), zero,
// and untouched until first use, so that what is never used costs nothing.
//
// Movable; the owner's thread only. What points inside lives as long as the
// Arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

class Arena {
 public:
  // An arena of no bytes: data() is null.
  Arena() = default;

  // `purpose` stands in the error's message ("KV cache"). With `huge_pages` the
  // start is 2 MiB aligned and the kernel is asked for transparent huge pages;
  // that it may decline is no error. Errors: negative size, no memory.
  static absl::StatusOr<Arena> Create(int64_t bytes, absl::string_view purpose,
                                      bool huge_pages = false);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Asks for transparent huge pages for the whole 2 MiB blocks inside a range,
// such as weights in a mapped file. True if the kernel agreed.
bool AdviseHugePages(const void* begin, int64_t bytes);

// Why this process gets none whatever it asks for, for people; empty if it may
// get some.
std::string WhyNoHugePages();
// The same of a system whose file transparent_hugepage/enabled says this.
std::string WhyNoHugePages(absl::string_view enabled);

}  // namespace weft
