#include "runtime/execution/state_history.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft {
namespace {

// Of a state, copied by one thread at a time.
constexpr int64_t kPiece = 64 << 10;

}  // namespace

absl::StatusOr<StateHistory> StateHistory::Create(const Graph& graph,
                                                  KvCache* cache,
                                                  int32_t rows) {
  StateHistory history;
  const std::vector<SlotUpdate> updates = SlotUpdates(graph);
  if (rows == 0 || updates.empty()) return history;
  const int32_t slots = cache->pool().slots();
  history.cache_ = cache;
  history.rows_ = rows;
  history.runs_.reserve(slots);
  history.positions_.resize(rows);
  history.sequence_.resize(rows);
  history.updates_.resize(cache->states().size());
  WEFT_ASSIGN_OR_RETURN(
      history.memory_,
      Arena::Create(HistoryBytes(updates, slots, rows), "state history"));
  uint8_t* data = history.memory_.data();
  history.results_ = data;
  for (const SlotUpdate& update : updates) {
    data = std::max(data, history.results_ + update.result_bytes() * rows);
  }
  for (const SlotUpdate& update : updates) {
    Update& kept = history.updates_[update.state];
    if (kept.rows != nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("cannot go back: state ", update.state,
                       ": several nodes write it: use no rewind_rows"));
    }
    kept = {update, data};
    data += update.operand_bytes() * slots * rows;
  }
  return history;
}

// Where its next row is, unless it begins anew.
int64_t StateHistory::PositionOf(int32_t slot) const {
  return std::max<int64_t>(cache_->position(slot), 0);
}

void StateHistory::Mark(int32_t slot) {
  if (cache_ != nullptr) cache_->SetMark(slot, PositionOf(slot));
}

void StateHistory::Forget(int32_t slot) {
  if (cache_ != nullptr) cache_->SetMark(slot, -1);
}

bool StateHistory::Reaches(int32_t slot, int64_t tokens) const {
  return cache_ != nullptr && cache_->mark(slot) >= 0 &&
         tokens >= cache_->mark(slot) && tokens <= cache_->position(slot);
}

void StateHistory::BeginStep(absl::Span<const int32_t> positions,
                             absl::Span<const int32_t> slots) {
  if (cache_ == nullptr) return;
  const int64_t rows = static_cast<int64_t>(positions.size());
  for (int64_t row = 0, end = 0; row < rows; row = end) {
    const int32_t slot = slots[row];
    while (end < rows && slots[end] == slot) ++end;
    const int64_t mark = cache_->mark(slot);
    if (mark < 0) continue;
    const int64_t at = positions[row] - mark;
    // Rows before the mark are another text's, and there is no room for them.
    if (positions[row] != PositionOf(slot) || at < 0 ||
        at + end - row > rows_) {
      Forget(slot);
      continue;
    }
    // A sequence that begins has no states to copy.
    runs_.push_back({slot, row, end - row, at, at == 0 && mark > 0});
  }
}

void StateHistory::EndStep(bool ran) {
  if (!ran) {
    for (const Run& run : runs_) Forget(run.slot);
  }
  runs_.clear();
}

uint8_t* StateHistory::RowsOf(const Update& update, int32_t slot,
                              size_t operand) const {
  uint8_t* data = update.rows + update.nodes.operand_bytes() * slot * rows_;
  for (size_t i = 0; i < operand; ++i) {
    data += update.nodes.operands[i].bytes * rows_;
  }
  return data;
}

void StateHistory::Keep(int state, const Operand* inputs, ThreadPool* threads) {
  if (runs_.empty()) return;
  const Update& update = updates_[state];
  for (const Run& run : runs_) {
    for (size_t i = 0; i < update.nodes.operands.size(); ++i) {
      const TokenRows& rows = update.nodes.operands[i];
      const Operand& from = inputs[rows.index];
      uint8_t* to = RowsOf(update, run.slot, i) + run.at * rows.bytes;
      for (int64_t row = 0; row < run.rows; ++row) {
        std::memcpy(to + row * rows.bytes,
                    static_cast<const uint8_t*>(from.data) +
                        (run.row + row) * from.row_bytes,
                    rows.bytes);
      }
    }
    if (!run.copies) continue;
    const KvState& memory = cache_->states()[state];
    const uint8_t* from = memory.pages + run.slot * memory.page_bytes;
    uint8_t* to =
        memory.pages + cache_->mark_place(run.slot) * memory.page_bytes;
    const auto copy = [&](int64_t begin, int64_t end, int) {
      std::memcpy(to + begin * kPiece, from + begin * kPiece,
                  std::min(end * kPiece, memory.page_bytes) - begin * kPiece);
    };
    threads->ParallelFor((memory.page_bytes + kPiece - 1) / kPiece, copy);
  }
}

int64_t StateHistory::GoBack(int32_t slot, int64_t tokens) {
  const int64_t mark = cache_->mark(slot);
  if (mark > 0) cache_->CopyFromMark(slot);
  for (int64_t row = 0; row < tokens - mark; ++row) {
    positions_[row] = static_cast<int32_t>(mark + row);
    sequence_[row] = slot;
  }
  return tokens - mark;
}

void StateHistory::SetOperands(int state, int32_t slot, int64_t rows,
                               int inputs, Operand* operands) {
  const Update& update = updates_[state];
  const auto set = [&](Operand* operand, uint8_t* data, int64_t row_bytes) {
    operand->data = data;
    operand->rows = rows;
    operand->row_bytes = row_bytes;
  };
  for (size_t i = 0; i < update.nodes.operands.size(); ++i) {
    const TokenRows& kept = update.nodes.operands[i];
    set(&operands[kept.index], RowsOf(update, slot, i), kept.bytes);
  }
  uint8_t* result = results_;
  for (const TokenRows& rows_of : update.nodes.results) {
    set(&operands[inputs + rows_of.index], result, rows_of.bytes);
    result += rows_of.bytes * rows_;
  }
  if (update.nodes.positions >= 0) {
    operands[update.nodes.positions].data = positions_.data();
  }
  if (update.nodes.sequence >= 0) {
    operands[update.nodes.sequence].data = sequence_.data();
  }
}

}  // namespace weft
