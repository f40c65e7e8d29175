#include "runtime/execution/rank_steps.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status.h"

namespace weft {
namespace {

// What a message begins with. The rest: changes, ids, positions, slots, wanted
// rows, scales. It comes in one piece, or, where it is longer than kFirstBytes,
// in two.
struct Head {
  int64_t end = 0;  // 1: no step more
  int64_t changes = 0;
  int64_t tokens = 0;
  int64_t rows = 0;
  int64_t scales = 0;
};
constexpr int64_t kFirstBytes = 512;
static_assert(sizeof(Head) < kFirstBytes);

int64_t MessageBytes(const Head& head) {
  return static_cast<int64_t>(sizeof(Head)) +
         head.changes * static_cast<int64_t>(sizeof(CacheChange)) +
         4 * (3 * head.tokens + head.rows + head.scales);
}

template <typename T>
void Append(absl::Span<const T> values, uint8_t** to) {
  if (values.empty()) return;
  std::memcpy(*to, values.data(), values.size() * sizeof(T));
  *to += values.size() * sizeof(T);
}

template <typename T>
absl::Span<const T> Take(int64_t count, const uint8_t** from) {
  const auto* begin = reinterpret_cast<const T*>(*from);
  *from += count * sizeof(T);
  return absl::MakeConstSpan(begin, count);
}

constexpr int64_t kTextBytes = 1000;

}  // namespace

absl::Status CheckSameOnAllRanks(Communicator* communicator,
                                 const std::string& text) {
  const int ranks = communicator->ranks();
  std::string own = text.substr(0, kTextBytes - 1);
  own.resize(kTextBytes);
  std::vector<uint8_t> all(ranks * kTextBytes);
  const std::vector<int64_t> bytes(ranks, kTextBytes);
  WEFT_RETURN_IF_ERROR(communicator->AllGather(own.data(), bytes, all.data()));
  const auto text_of = [&](int rank) {
    return absl::string_view(reinterpret_cast<const char*>(all.data()) +
                             rank * kTextBytes);
  };
  for (int rank = 1; rank < ranks; ++rank) {
    if (text_of(rank) == text_of(0)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "ranks 0 and ", rank, " do not run the same model alike: ", text_of(0),
        "; and ", text_of(rank),
        ": give all ranks the same command and the parts of one compilation"));
  }
  return absl::OkStatus();
}

StepLeader::StepLeader(Communicator* communicator, int64_t most_tokens,
                       int64_t adapters)
    : communicator_(communicator) {
  constexpr int64_t kChanges = 4096;
  changes_.reserve(kChanges);
  message_.resize(
      std::max(kFirstBytes, MessageBytes({0, kChanges, most_tokens, most_tokens,
                                          most_tokens * adapters})));
}

absl::Status StepLeader::Send(const Batch& batch) {
  return SendMessage(0, batch);
}

absl::Status StepLeader::End() { return SendMessage(1, Batch{}); }

absl::Status StepLeader::SendMessage(int64_t end, const Batch& batch) {
  const Head head = {end, static_cast<int64_t>(changes_.size()),
                     static_cast<int64_t>(batch.ids.size()),
                     static_cast<int64_t>(batch.output_rows.size()),
                     static_cast<int64_t>(batch.adapter_scales.size())};
  const int64_t bytes = MessageBytes(head);
  if (bytes > static_cast<int64_t>(message_.size())) message_.resize(bytes);
  uint8_t* to = message_.data();
  Append(absl::MakeConstSpan(&head, 1), &to);
  Append(absl::MakeConstSpan(changes_), &to);
  Append(batch.ids, &to);
  Append(batch.positions, &to);
  Append(batch.slots, &to);
  Append(batch.output_rows, &to);
  Append(batch.adapter_scales, &to);
  changes_.clear();
  WEFT_RETURN_IF_ERROR(communicator_->Broadcast(message_.data(), kFirstBytes));
  if (bytes <= kFirstBytes) return absl::OkStatus();
  return communicator_->Broadcast(message_.data() + kFirstBytes,
                                  bytes - kFirstBytes);
}

absl::Status FollowSteps(Communicator* communicator, Executor* executor,
                         KvCache* cache, const Plan& plan) {
  std::vector<uint8_t> message(kFirstBytes);
  std::vector<float> logits;
  while (true) {
    WEFT_RETURN_IF_ERROR(communicator->Broadcast(message.data(), kFirstBytes));
    Head head;
    std::memcpy(&head, message.data(), sizeof(head));
    const int64_t bytes = MessageBytes(head);
    if (bytes > kFirstBytes) {
      if (bytes > static_cast<int64_t>(message.size())) message.resize(bytes);
      WEFT_RETURN_IF_ERROR(communicator->Broadcast(message.data() + kFirstBytes,
                                                   bytes - kFirstBytes));
    }
    if (head.end != 0) return absl::OkStatus();
    const uint8_t* from = message.data() + sizeof(Head);
    for (const CacheChange& change : Take<CacheChange>(head.changes, &from)) {
      if (change.kind == CacheChange::kMark) {
        executor->Mark(change.slot);
      } else if (change.kind == CacheChange::kTruncateStates) {
        WEFT_RETURN_IF_ERROR(executor->Truncate(change.slot, change.number));
      } else {
        WEFT_RETURN_IF_ERROR(cache->Apply(change));
      }
    }
    Batch batch = {};
    batch.ids = Take<int32_t>(head.tokens, &from);
    batch.positions = Take<int32_t>(head.tokens, &from);
    batch.slots = Take<int32_t>(head.tokens, &from);
    batch.output_rows = Take<int32_t>(head.rows, &from);
    batch.adapter_scales = Take<float>(head.scales, &from);
    const size_t numbers = head.rows * plan.model.output_columns();
    if (numbers > logits.size()) logits.resize(numbers);
    batch.logits = logits.data();
    WEFT_RETURN_IF_ERROR(executor->Run(batch));
  }
}

}  // namespace weft
