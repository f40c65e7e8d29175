#include "ops/kv_types.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/dtype.h"
#include "graph/listing.h"
#include "ops/storage.h"

namespace weft {
namespace {

// Far above any model, and few enough that plan files cannot make work of them.
constexpr int64_t kMostBlocks = 4096;
constexpr size_t kMostText = 1 << 16;

absl::StatusOr<DType> ParseType(absl::string_view name) {
  const std::optional<DType> type = DTypeFromName(name);
  if (type.has_value() && FindKvType(*type).has_value()) return *type;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown type '", name, "': use f16, f32, bf16 or q8_0"));
}

bool ParseBlock(absl::string_view text, int64_t* block) {
  return absl::SimpleAtoi(text, block) && *block >= 0 && *block < kMostBlocks;
}

}  // namespace

absl::StatusOr<KvTypes> KvTypes::Parse(absl::string_view text) {
  if (text.size() > kMostText) {
    return absl::InvalidArgumentError(
        absl::StrCat(text.size(), " characters: at most ", kMostText));
  }
  KvTypes types;
  bool first_part = true;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, '=');
    absl::StatusOr<DType> type = ParseType(sides.back());
    if (sides.size() > 2 || (sides.size() == 1 && !first_part)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot read '", part,
                       "': write TYPE first, then BLOCK=TYPE or A-B=TYPE"));
    }
    if (!type.ok()) return type.status();
    first_part = false;
    if (sides.size() == 1) {
      types.all_ = *type;
      continue;
    }
    const std::vector<absl::string_view> ends = absl::StrSplit(sides[0], '-');
    Range range = {0, 0, *type};
    if (ends.size() > 2 || !ParseBlock(ends.front(), &range.first) ||
        !ParseBlock(ends.back(), &range.last) || range.last < range.first) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", sides[0], "' is neither a block nor a range of blocks A-B"));
    }
    for (const Range& other : types.ranges_) {
      if (range.first <= other.last && other.first <= range.last) {
        return absl::InvalidArgumentError(
            absl::StrCat("block ", std::max(range.first, other.first),
                         " has two types: name each block once"));
      }
    }
    types.ranges_.push_back(range);
  }
  std::sort(types.ranges_.begin(), types.ranges_.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  return types;
}

KvTypes KvTypes::Of(const Graph& graph) {
  std::map<int64_t, DType> blocks;
  KvTypes types;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kState ||
        value.type.shape[0] != Dim::Context()) {
      continue;
    }
    types.all_ = value.type.dtype;
    const int block = BlockOf(value.name);
    if (block >= 0) blocks[block] = value.type.dtype;
  }
  for (const auto& [block, type] : blocks) {
    if (type == types.all_) continue;
    std::vector<Range>& ranges = types.ranges_;
    if (!ranges.empty() && ranges.back().last == block - 1 &&
        ranges.back().type == type) {
      ranges.back().last = block;
    } else {
      ranges.push_back({block, block, type});
    }
  }
  return types;
}

DType KvTypes::OfBlock(int64_t block) const {
  for (const Range& range : ranges_) {
    if (block >= range.first && block <= range.last) return range.type;
  }
  return all_;
}

int64_t KvTypes::last_block() const {
  return ranges_.empty() ? -1 : ranges_.back().last;
}

std::string KvTypes::ToString() const {
  std::string text = Info(all_).name;
  for (const Range& range : ranges_) {
    absl::StrAppend(&text, ",", range.first);
    if (range.last > range.first) absl::StrAppend(&text, "-", range.last);
    absl::StrAppend(&text, "=", Info(range.type).name);
  }
  return text;
}

}  // namespace weft
