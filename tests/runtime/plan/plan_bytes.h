// Plan files as bytes in memory, for tests that damage them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/mapped_file.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// A copy on the heap, aligned as a mapping would be; nothing behind its end.
class AlignedPlan {
 public:
  explicit AlignedPlan(absl::Span<const uint8_t> bytes);
  std::shared_ptr<const MappedFile> file() const { return file_; }

 private:
  std::shared_ptr<uint8_t> memory_;
  std::shared_ptr<const MappedFile> file_;
};

// Makes the checksum of the header right again, if there is a whole header.
void FixChecksum(std::vector<uint8_t>* bytes);

// Makes the checksums of weights and header right again, as far as the header
// can be read and says where weights lie.
void FixAllChecksums(std::vector<uint8_t>* bytes);

// The plan file with its header changed by `edit`, all else consistent.
std::vector<uint8_t> WithHeader(absl::Span<const uint8_t> bytes,
                                const std::function<void(PlanProto*)>& edit);

// Loads the plan and, if it is found sound, runs steps of one and of several
// tokens. The status of loading or running.
absl::Status LoadAndRun(absl::Span<const uint8_t> bytes);

}  // namespace weft
