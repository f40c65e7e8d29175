#include "benchmarks/kernels/kernel_memory.h"

#include <cstring>

#include "base/status.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/storage.h"

namespace weft {
namespace {

// What is smaller stays in the caches of a model's step, too.
constexpr int64_t kLeastStreamed = int64_t{1} << 20;
constexpr int64_t kAlignment = 64;

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

KernelMemory::KernelMemory(const KernelCase& kernel_case, ThreadPool* threads)
    : row_(kernel_case.entry), threads_(threads) {}

absl::StatusOr<std::unique_ptr<KernelMemory>> KernelMemory::Create(
    const KernelCase& kernel_case, int64_t streamed_bytes,
    ThreadPool* threads) {
  std::unique_ptr<KernelMemory> memory(new KernelMemory(kernel_case, threads));
  WEFT_ASSIGN_OR_RETURN(
      memory->operands_,
      KernelOperands::Create(kernel_case, kernel_case.tokens,
                             [](const Value&) { return FillUniform; }));
  WEFT_RETURN_IF_ERROR(memory->Copy(streamed_bytes));
  return memory;
}

absl::Status KernelMemory::Copy(int64_t streamed_bytes) {
  inputs_ = operands_->inputs();
  outputs_ = operands_->outputs();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Value& value = graph().value(node().inputs[i]);
    if (value.kind != ValueKind::kWeight && value.kind != ValueKind::kState) {
      continue;
    }
    const int64_t bytes = StorageBytes(value.type, graph().bounds);
    streamed_.push_back({i, copy_bytes_, bytes, {}});
    if (inputs_[i].state != nullptr) streamed_.back().state = *inputs_[i].state;
    copy_bytes_ += Aligned(bytes);
  }
  if (streamed_bytes > 0 && copy_bytes_ >= kLeastStreamed) {
    copy_count_ = (streamed_bytes + copy_bytes_ - 1) / copy_bytes_;
  }
  WEFT_ASSIGN_OR_RETURN(
      copies_, Arena::Create(copy_count_ * copy_bytes_, "copies of operands"));
  for (int64_t copy = 0; copy < copy_count_; ++copy) {
    for (const Streamed& part : streamed_) {
      std::memcpy(copies_.data() + copy * copy_bytes_ + part.offset,
                  inputs_[part.operand].data, part.bytes);
    }
  }

  const NodeView view = {graph(), node(), {row_->isa()}};
  WEFT_ASSIGN_OR_RETURN(scratch_,
                        Arena::Create(row_->ScratchBytes(view), "scratch"));
  WEFT_ASSIGN_OR_RETURN(thread_scratch_,
                        Arena::Create(Aligned(row_->ThreadScratchBytes(view)) *
                                          threads_->threads(),
                                      "scratch"));
  kernel_ = row_->Create(view);
  return absl::OkStatus();
}

void KernelMemory::UseCopy(int64_t copy) {
  for (Streamed& part : streamed_) {
    uint8_t* data = copies_.data() + copy * copy_bytes_ + part.offset;
    Operand& operand = inputs_[part.operand];
    operand.data = data;
    if (operand.state != nullptr) {
      part.state.pages = data;
      operand.state = &part.state;
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
