#include "runtime/plan/weight_checksum.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/plan/large_tables.h"
#include "xxhash.h"

namespace weft {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;

int64_t Pieces(absl::Span<const uint8_t> bytes) {
  return (static_cast<int64_t>(bytes.size()) + kPieceBytes - 1) / kPieceBytes;
}

uint64_t PieceChecksum(absl::Span<const uint8_t> bytes, int64_t piece) {
  const auto part = bytes.subspan(piece * kPieceBytes, kPieceBytes);
  return XXH3_64bits(part.data(), part.size());
}

uint64_t Joined(const uint64_t* pieces, int64_t count) {
  return XXH3_64bits(pieces, static_cast<size_t>(count) * sizeof(uint64_t));
}

}  // namespace

uint64_t WeightChecksum(absl::Span<const uint8_t> bytes) {
  std::vector<uint64_t> pieces;
  for (int64_t i = 0; i < Pieces(bytes); ++i) {
    pieces.push_back(PieceChecksum(bytes, i));
  }
  return Joined(pieces.data(), Pieces(bytes));
}

std::vector<uint64_t> ExpertChecksums(absl::Span<const uint8_t> bytes,
                                      int64_t experts) {
  const size_t size = bytes.size() / experts;
  std::vector<uint64_t> checksums;
  for (int64_t e = 0; e < experts; ++e) {
    checksums.push_back(XXH3_64bits(bytes.data() + e * size, size));
  }
  return checksums;
}

WeightGuard::WeightGuard(const Plan& plan) {
  const Graph& graph = plan.buckets.front();
  std::map<absl::string_view, absl::Span<const uint8_t>> weights;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.IsWeight(id) && !StaysInFile(graph, id) &&
        !plan.Streams(graph.value(id).name)) {
      weights[graph.value(id).name] = graph.value(id).data.bytes;
    }
  }
  int64_t most = 0;
  for (const auto& [name, checksum] : plan.weight_checksums) {
    const auto it = weights.find(name);
    if (it == weights.end()) continue;
    entries_.push_back({name, it->second, checksum, false});
    most = std::max(most, Pieces(it->second));
  }
  unchecked_ = static_cast<int64_t>(entries_.size());
  pieces_.resize(most);
}

int WeightGuard::Find(absl::string_view name) const {
  const auto it = std::lower_bound(
      entries_.begin(), entries_.end(), name,
      [](const Entry& entry, absl::string_view n) { return entry.name < n; });
  if (it == entries_.end() || it->name != name) return -1;
  return static_cast<int>(it - entries_.begin());
}

absl::Status WeightGuard::Check(int weight, ThreadPool* threads) {
  Entry& entry = entries_[weight];
  if (entry.checked) return absl::OkStatus();
  const int64_t count = Pieces(entry.bytes);
  threads->ParallelFor(count, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      pieces_[i] = PieceChecksum(entry.bytes, i);
    }
  });
  if (Joined(pieces_.data(), count) != entry.checksum) {
    return absl::DataLossError(
        absl::StrCat("plan file is damaged: weight ", entry.name,
                     ": its checksum is wrong: compile it again"));
  }
  entry.checked = true;
  --unchecked_;
  return absl::OkStatus();
}

}  // namespace weft
