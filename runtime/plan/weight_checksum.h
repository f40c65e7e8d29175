// The checksums of weights in a plan file, and who compares them when.
//
// Of a weight: the xxh3 of the xxh3s of its pieces of 1 MiB (the last may be
// shorter), so that threads can share one weight's work.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/machine/thread_pool.h"
#include "runtime/plan/plan.h"

namespace weft {

uint64_t WeightChecksum(absl::Span<const uint8_t> bytes);
// Of a weight with the matrices of several experts, all of one size: the xxh3
// of each.
std::vector<uint64_t> ExpertChecksums(absl::Span<const uint8_t> bytes,
                                      int64_t experts);

// Compares each weight of a plan that came with checksums once, just before it
// is first read. Reading all of them at load would take longer than the rest of
// a start; here the pages are about to be read anyway, and what a piece's
// checksum brought into the caches the kernel finds there. Tables that stay in
// the file (large_tables.h) are not compared: few of their pages are read. Nor
// are weights whose experts are read one by one (streamed_experts.h): there,
// each matrix has a checksum of its own, which whoever reads it compares.
//
// One thread at a time. Allocates when made, and for an error's message.
class WeightGuard {
 public:
  // `plan` must outlive the guard.
  explicit WeightGuard(const Plan& plan);

  // The weight of this name, or -1 if it has no checksum.
  int Find(absl::string_view name) const;
  // Whether every weight has been found right.
  bool done() const { return unchecked_ == 0; }
  // Compares a weight of Find unless that was done. Errors name the weight; it
  // stays unchecked.
  absl::Status Check(int weight, ThreadPool* threads);

 private:
  struct Entry {
    absl::string_view name;
    absl::Span<const uint8_t> bytes;
    uint64_t checksum;
    bool checked;
  };
  std::vector<Entry> entries_;  // by name
  int64_t unchecked_ = 0;
  std::vector<uint64_t> pieces_;  // room for those of the largest weight
};

}  // namespace weft
