// What becomes of the logits: tokens, ends of texts, and the news of both.
#include <algorithm>
#include <utility>

#include "runtime/batcher.h"

namespace weft {
namespace {

double Seconds(SteadyTime from, SteadyTime to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

void Batcher::ChooseTokens() {
  const auto choose = [this](int64_t begin, int64_t end, int thread) {
    for (int64_t row = begin; row < end; ++row) {
      Sequence* const sequence = choosing_[row];
      if (sequence == nullptr) continue;
      sequence->choice_status = sequence->chooser.Choose(
          absl::MakeConstSpan(logits_).subspan(row * vocabulary_size_,
                                               vocabulary_size_),
          sequence->tokens, sequence->generated, &scratch_[thread],
          &sequence->token);
    }
  };
  engine_->thread_pool().ParallelFor(static_cast<int64_t>(choosing_.size()),
                                     choose);
}

void Batcher::TakeTokens(const absl::Status& status) {
  if (status.ok()) {
    for (Sequence* sequence : choosing_) {
      if (sequence != nullptr) TakeToken(sequence);
    }
    return;
  }
  while (!running_.empty()) {
    Finish(running_.back(), FinishReason::kError, status);
  }
}

void Batcher::TakeToken(Sequence* sequence) {
  const Request& request = sequence->request->request;
  GeneratedToken token = std::move(sequence->token);
  absl::Status status = std::move(sequence->choice_status);
  if (!status.ok()) {
    Finish(sequence, FinishReason::kError, std::move(status));
    return;
  }
  CountToken(sequence);
  FinishReason reason;
  if (sequence->chooser.Ends(token.id, &reason)) {
    Finish(sequence, reason);
    return;
  }
  sequence->tokens.push_back(token.id);
  ++sequence->generated;
  status = sequence->chooser.Accept(token.id);
  if (!status.ok()) {
    Finish(sequence, FinishReason::kError, std::move(status));
    return;
  }
  const absl::StatusOr<int> found = sequence->output.Push(
      std::move(token), sequence->generated >= request.min_tokens,
      &sequence->event);
  if (!found.ok()) {
    Finish(sequence, FinishReason::kError, found.status());
  } else if (*found >= 0) {
    sequence->event.stop_string = *found;
    Finish(sequence, FinishReason::kStopString);
  } else if (sequence->generated == request.max_tokens) {
    Finish(sequence, FinishReason::kLength);
  } else if (static_cast<int64_t>(sequence->tokens.size()) == capacity_) {
    Finish(sequence, FinishReason::kContext);
  } else {
    if (!sequence->event.tokens.empty() || !sequence->event.text.empty()) {
      news_.push_back(sequence);
    }
    if (sequence->chooser.constraint() != nullptr) {
      mask_maker_.Add(&sequence->mask);
    }
  }
}

void Batcher::CountToken(Sequence* sequence) {
  RequestState* const request = sequence->request;
  ++stats_.generated_tokens;
  if (++request->usage.completion_tokens == 1) {
    request->usage.first_token_seconds = Seconds(request->submitted, step_end_);
    stats_.first_token.Add(request->usage.first_token_seconds);
  }
  if (sequence->generated > 0) {
    stats_.inter_token.Add(Seconds(sequence->last_token, step_end_));
  }
  sequence->last_token = step_end_;
}

void Batcher::Finish(Sequence* sequence, FinishReason reason,
                     absl::Status status) {
  RequestState* const request = sequence->request;
  if (reason != FinishReason::kStopString) {
    sequence->output.Finish(&sequence->event);
  }
  mask_maker_.Remove(&sequence->mask);
  sequence->finished = true;
  sequence->event.finished = true;
  sequence->event.reason = reason;
  sequence->event.status = std::move(status);
  news_.push_back(sequence);
  if (sequence->slot >= 0) {
    GiveSlotBack(sequence);
  } else {
    waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), sequence),
                   waiting_.end());
  }
  if (sequence->choice == 0) request->prompt_done = true;
  request->failed = request->failed || reason == FinishReason::kError;
  request->cancelled = request->cancelled ||
                       reason == FinishReason::kCancelled ||
                       reason == FinishReason::kDeadline;
  if (--request->unfinished > 0) return;
  if (!request->started) --unstarted_;
  request->started = true;
  ++stats_.finished;
  stats_.failed += request->failed;
  stats_.cancelled += request->cancelled;
  if (!options_.prefix_cache) prefix_cache_.Forget(request->scope);
}

void Batcher::FinishAll(RequestState* request, FinishReason reason) {
  for (const auto& sequence : request->sequences) {
    if (!sequence->finished) Finish(sequence.get(), reason);
  }
}

void Batcher::TellNews(std::vector<RequestId>* ended) {
  for (Sequence* sequence : news_) {
    RequestState* const request = sequence->request;
    Event& event = sequence->event;
    event.request = request->id;
    event.choice = sequence->choice;
    event.usage = request->usage;
    event.last = event.finished && --request->untold == 0;
    if (request->callback) request->callback(event);
    if (event.last) {
      ended->push_back(request->id);
      continue;
    }
    event.text.clear();
    event.tokens.clear();
  }
  news_.clear();
  if (ended->empty()) return;
  requests_.erase(
      std::remove_if(requests_.begin(), requests_.end(),
                     [](const auto& request) { return request->untold == 0; }),
      requests_.end());
}

}  // namespace weft
