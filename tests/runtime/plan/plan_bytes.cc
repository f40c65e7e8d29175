#include "tests/runtime/plan/plan_bytes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/cache/kv_cache.h"
#include "runtime/execution/executor.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/weight_checksum.h"
#include "xxhash.h"

namespace weft {
namespace {

// Offsets of plan_file.h.
constexpr size_t kHeaderBytes = 16;
constexpr size_t kWeightsStart = 24;
constexpr size_t kWeightsBytes = 32;
constexpr size_t kChecksum = 40;
constexpr size_t kHeader = 48;

uint64_t Get(absl::Span<const uint8_t> bytes, size_t at) {
  uint64_t value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

void Put(uint64_t value, size_t at, std::vector<uint8_t>* bytes) {
  std::memcpy(bytes->data() + at, &value, sizeof(value));
}

absl::Status RunPlan(Plan plan) {
  auto shared = std::make_shared<Plan>(std::move(plan));
  KvCacheShape shape;
  shape.states = StatesOf(shared->buckets.back());
  shape.slots = 1;
  shape.pages_per_sequence =
      (shared->context() + kPageTokens - 1) / kPageTokens;
  shape.pages = shape.pages_per_sequence;
  absl::StatusOr<std::unique_ptr<KvCache>> cache = KvCache::Create(shape);
  if (!cache.ok()) return cache.status();
  absl::StatusOr<std::unique_ptr<ThreadPool>> threads = ThreadPool::Create(1);
  if (!threads.ok()) return threads.status();
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::Create(shared, threads->get(), cache->get());
  if (!executor.ok()) return executor.status();
  const int32_t last = static_cast<int32_t>(shared->model.vocabulary_size) - 1;
  int32_t position = 0;
  for (int32_t tokens : {1, 7}) {
    if (tokens > shared->max_tokens() ||
        position + tokens > shared->context()) {
      break;
    }
    if (absl::Status s = (*cache)->Reserve(0, position + tokens); !s.ok()) {
      return s;
    }
    std::vector<int32_t> ids, positions, sequences, rows;
    for (int32_t i = 0; i < tokens; ++i) {
      ids.push_back(i % 2 == 0 ? last : 0);
      positions.push_back(position++);
      sequences.push_back(0);
      rows.push_back(tokens - 1 - i);
    }
    std::vector<float> logits(
        static_cast<size_t>(tokens * shared->model.vocabulary_size));
    absl::Status s =
        (*executor)->Run({ids, positions, sequences, rows, logits.data()});
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

AlignedPlan::AlignedPlan(absl::Span<const uint8_t> bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 4096, bytes.size() + 1) != 0) std::abort();
  memory_.reset(static_cast<uint8_t*>(memory), std::free);
  std::copy(bytes.begin(), bytes.end(), memory_.get());
  file_ = MappedFile::FromStatic(
      absl::MakeConstSpan(memory_.get(), bytes.size()), "input");
}

void FixChecksum(std::vector<uint8_t>* bytes) {
  if (bytes->size() < kHeader) return;
  const uint64_t header = Get(*bytes, kHeaderBytes);
  if (header > bytes->size() - kHeader) return;
  const uint64_t seed = XXH3_64bits(bytes->data(), kChecksum);
  Put(XXH3_64bits_withSeed(bytes->data() + kHeader, header, seed), kChecksum,
      bytes);
}

void FixAllChecksums(std::vector<uint8_t>* bytes) {
  if (bytes->size() < kHeader) return;
  const uint64_t size = Get(*bytes, kHeaderBytes);
  const uint64_t start = Get(*bytes, kWeightsStart);
  PlanProto header;
  if (size > bytes->size() - kHeader || start > bytes->size() ||
      !header.ParseFromArray(bytes->data() + kHeader, static_cast<int>(size))) {
    return FixChecksum(bytes);
  }
  const auto weights = absl::MakeConstSpan(*bytes).subspan(start);
  const int count = std::min(header.weights_size(), header.weight_xxh3_size());
  for (int i = 0; i < count; ++i) {
    const uint64_t offset = static_cast<uint64_t>(header.weights(i).offset());
    const uint64_t length = static_cast<uint64_t>(header.weights(i).bytes());
    if (offset > weights.size() || length > weights.size() - offset) continue;
    header.set_weight_xxh3(i, WeightChecksum(weights.subspan(offset, length)));
  }
  const std::string text = header.SerializeAsString();
  if (text.size() == size) {
    std::copy(text.begin(), text.end(), bytes->begin() + kHeader);
  }
  FixChecksum(bytes);
}

std::vector<uint8_t> WithHeader(absl::Span<const uint8_t> bytes,
                                const std::function<void(PlanProto*)>& edit) {
  PlanProto header;
  header.ParseFromArray(bytes.data() + kHeader,
                        static_cast<int>(Get(bytes, kHeaderBytes)));
  edit(&header);
  const std::string text = header.SerializeAsString();
  std::vector<uint8_t> result((kHeader + text.size() + 4095) / 4096 * 4096);
  std::copy_n(bytes.begin(), kHeader, result.begin());
  std::copy(text.begin(), text.end(), result.begin() + kHeader);
  Put(text.size(), kHeaderBytes, &result);
  Put(result.size(), kWeightsStart, &result);
  const auto weights = bytes.subspan(Get(bytes, kWeightsStart));
  Put(weights.size(), kWeightsBytes, &result);
  result.insert(result.end(), weights.begin(), weights.end());
  FixAllChecksums(&result);
  return result;
}

absl::Status LoadAndRun(absl::Span<const uint8_t> bytes) {
  const AlignedPlan memory(bytes);
  absl::StatusOr<PlanFile> file = LoadPlanFile(memory.file());
  if (!file.ok()) return file.status();
  if (file->reference) return absl::OkStatus();
  return RunPlan(std::move(file->plan));
}

}  // namespace weft
