#include "runtime/execution/session.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft {

Session::Session(const Plan& plan, Executor* executor, KvCache* cache,
                 int32_t slot)
    : plan_(plan), executor_(executor), cache_(cache), slot_(slot) {
  tokens_.reserve(plan.context());
  logits_.resize(plan.model.output_columns());
  positions_.reserve(plan.max_tokens());
  slots_.assign(plan.max_tokens(), slot);
  adapter_scales_ = plan.model.AdapterScales(plan.max_tokens());
}

Session::~Session() { cache_->Release(slot_).IgnoreError(); }

int64_t Session::room() const {
  return plan_.context() - static_cast<int64_t>(tokens_.size());
}

absl::Status Session::CheckRoom(size_t tokens) const {
  if (static_cast<int64_t>(tokens) <= room()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("context is full: ", tokens_.size(), " + ", tokens,
                   " tokens: the context has ", plan_.context(), " positions"));
}

int64_t Session::StepTokens(int64_t chunk) const {
  const int64_t most = plan_.max_tokens();
  return chunk <= 0 || chunk > most ? most : chunk;
}

absl::Status Session::RunChunk(absl::Span<const int32_t> tokens,
                               absl::Span<const int32_t> output_rows,
                               float* logits) {
  const int64_t first = static_cast<int64_t>(tokens_.size());
  const int64_t n = static_cast<int64_t>(tokens.size());
  WEFT_RETURN_IF_ERROR(cache_->Reserve(slot_, first + n));
  positions_.clear();
  for (int64_t i = 0; i < n; ++i) {
    positions_.push_back(static_cast<int32_t>(first + i));
  }
  Batch batch;
  batch.ids = tokens;
  batch.positions = positions_;
  batch.slots = absl::MakeConstSpan(slots_).subspan(0, n);
  batch.output_rows = output_rows;
  batch.logits = logits;
  batch.adapter_scales = absl::MakeConstSpan(adapter_scales_)
                             .subspan(0, n * plan_.model.adapters.size());
  WEFT_RETURN_IF_ERROR(executor_->Run(batch));
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return absl::OkStatus();
}

absl::Status Session::Append(absl::Span<const int32_t> tokens, int64_t chunk) {
  WEFT_RETURN_IF_ERROR(CheckRoom(tokens.size()));
  chunk = StepTokens(chunk);
  while (!tokens.empty()) {
    const absl::Span<const int32_t> part = tokens.subspan(0, chunk);
    const int32_t last = static_cast<int32_t>(part.size()) - 1;
    absl::Status s =
        RunChunk(part, absl::MakeConstSpan(&last, 1), logits_.data());
    if (!s.ok()) return s;
    tokens.remove_prefix(part.size());
  }
  return absl::OkStatus();
}

absl::Status Session::Evaluate(absl::Span<const int32_t> tokens,
                               absl::Span<const int64_t> positions,
                               int64_t chunk, const LogitsCallback& callback) {
  WEFT_RETURN_IF_ERROR(CheckRoom(tokens.size()));
  chunk = StepTokens(chunk);
  const size_t columns = logits_.size();
  std::vector<float> rows;
  std::vector<int32_t> wanted;
  size_t next = 0;
  while (!tokens.empty()) {
    const absl::Span<const int32_t> part = tokens.subspan(0, chunk);
    const int64_t first = static_cast<int64_t>(tokens_.size());
    const int64_t end = first + static_cast<int64_t>(part.size());
    wanted.clear();
    for (; next < positions.size() && positions[next] < end; ++next) {
      wanted.push_back(static_cast<int32_t>(positions[next] - first));
    }
    const bool none = wanted.empty();
    if (none) wanted.push_back(static_cast<int32_t>(part.size()) - 1);
    rows.resize(wanted.size() * columns);
    WEFT_RETURN_IF_ERROR(RunChunk(part, wanted, rows.data()));
    for (size_t i = 0; i < wanted.size() && !none; ++i) {
      absl::Status s =
          callback(first + wanted[i],
                   absl::MakeConstSpan(rows).subspan(i * columns, columns));
      if (!s.ok()) return s;
    }
    tokens.remove_prefix(part.size());
  }
  return absl::OkStatus();
}

absl::Status Session::Truncate(int64_t size) {
  if (size >= static_cast<int64_t>(tokens_.size())) {
    return cache_->Truncate(slot_, size);
  }
  tokens_.resize(size);
  if (executor_->CanTruncate(slot_, size)) {
    WEFT_RETURN_IF_ERROR(cache_->Truncate(slot_, size));
    return executor_->Truncate(slot_, size);
  }
  const std::vector<int32_t> kept = std::move(tokens_);
  tokens_.clear();
  tokens_.reserve(plan_.context());
  WEFT_RETURN_IF_ERROR(cache_->Truncate(slot_, 0));
  return Append(kept);
}

}  // namespace weft
