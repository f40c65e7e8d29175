#include "benchmarks/kernels/kernel_memory.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "base/status.h"
#include "ops/op_table.h"
#include "ops/quantize.h"
#include "ops/reference.h"
#include "ops/storage.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

// What is smaller stays in the caches of a model's step, too.
constexpr int64_t kLeastStreamed = int64_t{1} << 20;
constexpr int64_t kAlignment = 64;

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void FillRandom(std::mt19937& random, int64_t count, float* out) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < count; ++i) out[i] = uniform(random);
}

// Sixteen rows, again and again: what is in them does not matter to the time.
void FillWeight(const ValueType& type, std::mt19937& random, uint8_t* data) {
  constexpr int64_t kRows = 16;
  const int64_t rows = type.shape[0].value;
  const int64_t columns = type.shape[1].value;
  const int64_t row_bytes = RowBytes(type.dtype, columns);
  std::vector<float> floats(columns);
  std::vector<uint8_t> encoded(kRows * row_bytes);
  for (int64_t row = 0; row < kRows; ++row) {
    FillRandom(random, columns, floats.data());
    QuantizeRow(type.dtype, floats.data(), &encoded[row * row_bytes], columns)
        .IgnoreError();  // numbers in (-1, 1) fit every type
  }
  FindWeightLayout(type.layout)
      ->pack(
          type.dtype, rows, columns,
          [&](int64_t row) { return &encoded[row % kRows * row_bytes]; }, data);
}

}  // namespace

KernelMemory::KernelMemory(const KernelCase& kernel_case, ThreadPool* threads)
    : graph_(kernel_case.graph), row_(kernel_case.row), threads_(threads) {}

absl::StatusOr<std::unique_ptr<KernelMemory>> KernelMemory::Create(
    const KernelCase& kernel_case, int64_t streamed_bytes,
    ThreadPool* threads) {
  std::unique_ptr<KernelMemory> memory(new KernelMemory(kernel_case, threads));
  WEFT_RETURN_IF_ERROR(memory->Fill(streamed_bytes));
  return memory;
}

void KernelMemory::FillValue(const Value& value, uint8_t* data) const {
  std::mt19937 random(1);
  const int64_t bytes = StorageBytes(value.type, graph_.bounds);
  if (value.kind == ValueKind::kState) {
    // A number that is neither large nor subnormal in any type of a cache.
    std::memset(data, 0x2c, bytes);
  } else if (value.type.dtype == DType::kI32) {
    int32_t* numbers = reinterpret_cast<int32_t*>(data);
    const int64_t count = bytes / 4;
    for (int64_t i = 0; i < count; ++i) {
      // Positions end at the context's end; rows and token ids ascend.
      numbers[i] = static_cast<int32_t>(value.name == "positions"
                                            ? graph_.bounds.context - count + i
                                        : value.name == "sequence" ? 0
                                                                   : i);
    }
  } else if (value.type.shape.rank() == 2 && value.kind == ValueKind::kWeight) {
    FillWeight(value.type, random, data);
  } else {
    FillRandom(random, bytes / 4, reinterpret_cast<float*>(data));
  }
}

absl::Status KernelMemory::Fill(int64_t streamed_bytes) {
  const Bounds& bounds = graph_.bounds;
  const auto allocate = [this](int64_t bytes) -> absl::StatusOr<uint8_t*> {
    WEFT_ASSIGN_OR_RETURN(Arena arena, Arena::Create(bytes, "operands"));
    memory_.push_back(std::move(arena));
    return memory_.back().data();
  };

  for (int64_t p = 0; p < (bounds.context + kPageTokens - 1) / kPageTokens;
       ++p) {
    page_table_.push_back(static_cast<int32_t>(p));
  }
  values_.resize(graph_.value_count());
  states_.resize(graph_.value_count());
  for (ValueId id = 0; id < graph_.value_count(); ++id) {
    const Value& value = graph_.value(id);
    WEFT_ASSIGN_OR_RETURN(uint8_t * data,
                          allocate(StorageBytes(value.type, bounds)));
    values_[id] = MatrixOperand(value.type, bounds, data);
    if (value.kind != ValueKind::kTemporary) FillValue(value, data);
    if (IsStateType(value.type)) {
      states_[id] = {data, KvPageBytes(value.type), page_table_.data(),
                     static_cast<int64_t>(page_table_.size())};
      values_[id].state = &states_[id];
    }
  }

  for (ValueId id : node().inputs) {
    const ValueKind kind = graph_.value(id).kind;
    if (kind != ValueKind::kWeight && kind != ValueKind::kState) continue;
    streamed_.push_back({id, copy_bytes_});
    copy_bytes_ += Aligned(StorageBytes(graph_.value(id).type, bounds));
  }
  if (streamed_bytes > 0 && copy_bytes_ >= kLeastStreamed) {
    copy_count_ = (streamed_bytes + copy_bytes_ - 1) / copy_bytes_;
  }
  WEFT_ASSIGN_OR_RETURN(Arena copies, Arena::Create(copy_count_ * copy_bytes_,
                                                    "copies of operands"));
  copies_ = std::move(copies);
  for (int64_t copy = 0; copy < copy_count_; ++copy) {
    for (const Streamed& part : streamed_) {
      std::memcpy(copies_.data() + copy * copy_bytes_ + part.offset,
                  values_[part.value].data,
                  StorageBytes(graph_.value(part.value).type, bounds));
    }
  }

  const NodeView view = {graph_, node(), {row_->isa()}};
  WEFT_ASSIGN_OR_RETURN(Arena scratch,
                        Arena::Create(row_->ScratchBytes(view), "scratch"));
  scratch_ = std::move(scratch);
  WEFT_ASSIGN_OR_RETURN(Arena thread_scratch,
                        Arena::Create(Aligned(row_->ThreadScratchBytes(view)) *
                                          threads_->threads(),
                                      "scratch"));
  thread_scratch_ = std::move(thread_scratch);

  // What the node reads from other nodes, by their reference functions.
  for (NodeId id : graph_.order()) {
    const Node& before = graph_.node(id);
    if (&before == &node()) break;
    std::vector<Operand> inputs, outputs;
    for (ValueId input : before.inputs) inputs.push_back(values_[input]);
    for (ValueId output : before.outputs) outputs.push_back(values_[output]);
    OpOf(before).reference(
        {graph_, before, inputs.data(), outputs.data(), bounds});
  }

  kernel_ = row_->Create(view);
  for (ValueId input : node().inputs) inputs_.push_back(values_[input]);
  for (ValueId output : node().outputs) outputs_.push_back(values_[output]);
  return absl::OkStatus();
}

void KernelMemory::UseCopy(int64_t copy) {
  for (const Streamed& part : streamed_) {
    uint8_t* data = copies_.data() + copy * copy_bytes_ + part.offset;
    states_[part.value].pages = data;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (node().inputs[i] == part.value) inputs_[i].data = data;
    }
  }
  // The new version of a state is where the old one is.
  if (OpOf(node()).writes_state) {
    outputs_[0].data = inputs_[0].data;
    outputs_[0].state = inputs_[0].state;
  }
}

void KernelMemory::Run() {
  UseCopy(next_copy_);
  next_copy_ = (next_copy_ + 1) % copy_count_;
  const int64_t thread_bytes = thread_scratch_.bytes() / threads_->threads();
  KernelCall call = {inputs_.data(), outputs_.data(), scratch_.data(), nullptr};
  for (int phase = 0; phase < kernel_->phases(); ++phase) {
    threads_->ParallelFor(kernel_->Items(call, phase),
                          [&](int64_t begin, int64_t end, int thread) {
                            KernelCall mine = call;
                            mine.thread_scratch =
                                thread_scratch_.data() + thread * thread_bytes;
                            kernel_->Run(mine, phase, begin, end);
                          });
  }
}

}  // namespace weft
