#include "runtime/execution/rank_steps.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "xxhash.h"

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

// The longest value that a line shows.
constexpr size_t kMostShown = 200;

// As ranks compare it: the beginning and a hash of what is too long to show.
std::string Compared(const std::string& value) {
  if (value.size() <= kMostShown) return value;
  return absl::StrCat(
      value.substr(0, kMostShown), "... (",
      absl::Hex(XXH3_64bits(value.data(), value.size()), absl::kZeroPad16),
      ")");
}

// Facts as one text, each name and value with a zero behind it.
std::string TextOf(const std::vector<RankFact>& facts) {
  std::string text;
  for (const RankFact& fact : facts) {
    for (const std::string& part : {fact.name, Compared(fact.value)}) {
      text.append(part.c_str());  // names in files may hold zeros
      text.push_back('\0');
    }
  }
  return text;
}

std::vector<RankFact> FactsOf(absl::string_view text) {
  std::vector<RankFact> facts;
  const auto next = [&] {
    const size_t end = std::min(text.find('\0'), text.size());
    std::string part(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
  };
  while (!text.empty()) {
    std::string name = next();
    facts.push_back({std::move(name), next()});
  }
  return facts;
}

std::string AllOf(const std::vector<RankFact>& facts) {
  std::vector<std::string> parts;
  for (const RankFact& fact : facts) {
    parts.push_back(absl::StrCat(fact.name, " ",
                                 fact.value.empty() ? "unknown" : fact.value));
  }
  return absl::StrJoin(parts, ", ");
}

// Names of what differs.
std::vector<std::string> Differences(const std::vector<RankFact>& a,
                                     const std::vector<RankFact>& b) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size() || i >= b.size() || a[i].name != b[i].name) {
      names.push_back("what they compare");
      return names;
    }
    if (a[i].value == b[i].value || a[i].value.empty() || b[i].value.empty()) {
      continue;
    }
    names.push_back(a[i].name);
  }
  return names;
}

}  // namespace

absl::Status CheckSameOnAllRanks(Communicator* communicator,
                                 const std::vector<RankFact>& facts) {
  const int ranks = communicator->ranks();
  const std::string own = TextOf(facts);
  struct Summary {
    uint64_t hash = 0;
    int64_t bytes = 0;
  };
  Summary summary;
  summary.hash = XXH3_64bits(own.data(), own.size());
  summary.bytes = static_cast<int64_t>(own.size());
  std::vector<Summary> summaries(ranks);
  WEFT_RETURN_IF_ERROR(communicator->AllGather(
      &summary, std::vector<int64_t>(ranks, sizeof(Summary)),
      reinterpret_cast<uint8_t*>(summaries.data())));
  std::vector<int64_t> bytes;
  int64_t sum = 0;
  bool same = true;
  for (const Summary& of_rank : summaries) {
    same = same && of_rank.hash == summaries[0].hash;
    bytes.push_back(of_rank.bytes);
    sum += of_rank.bytes;
  }
  if (same) return absl::OkStatus();
  std::string all(sum, '\0');
  WEFT_RETURN_IF_ERROR(communicator->AllGather(
      own.data(), bytes, reinterpret_cast<uint8_t*>(all.data())));
  std::vector<std::vector<RankFact>> of_ranks;
  absl::string_view left = all;
  for (const int64_t size : bytes) {
    of_ranks.push_back(FactsOf(left.substr(0, size)));
    left.remove_prefix(size);
  }
  for (int rank = 1; rank < ranks; ++rank) {
    // Of any two: one that does not know something agrees with all in it.
    for (int other = 0; other < rank; ++other) {
      std::vector<std::string> differ =
          Differences(of_ranks[other], of_ranks[rank]);
      if (differ.empty()) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("ranks ", other, " and ", rank,
                       " do not run the same model alike: they differ in ",
                       absl::StrJoin(differ, ", "), ": rank ", other, " has ",
                       AllOf(of_ranks[other]), "; rank ", rank, " has ",
                       AllOf(of_ranks[rank]),
                       ": give all ranks the same command and the parts of one "
                       "compilation"));
    }
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
    // Rank 0 asks of its own only.
    WEFT_RETURN_IF_ERROR(plan.CheckFiles());
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
