// What becomes of the logits: tokens, ends of texts, and the news of both.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/pooling.h"
#include "runtime/generation/batcher.h"

namespace weft {
namespace {

double Seconds(SteadyTime from, SteadyTime to) {
  return std::chrono::duration<double>(to - from).count();
}

// The first token of a prompt, which nothing tells the probability of.
void TellFirst(Sequence* sequence) {
  sequence->event.prompt.emplace_back();
  sequence->event.prompt.back().id = sequence->tokens[0];
  ++sequence->told_prompt;
}

}  // namespace

// Every part has its scratch memory, so there may be fewer than threads.
void Batcher::ChooseTokens() {
  const int64_t choices = static_cast<int64_t>(choosing_.size());
  const int64_t rows = choices + static_cast<int64_t>(prompt_rows_.size());
  const int64_t parts = std::min(rows, static_cast<int64_t>(scratch_.size()));
  const auto choose = [&](int64_t begin, int64_t end, int) {
    for (int64_t part = begin; part < end; ++part) {
      for (int64_t row = part; row < rows; row += parts) {
        row < choices ? ChooseToken(choosing_[row], row, &scratch_[part])
                      : ReadPromptRow(row - choices);
      }
    }
  };
  threads_.ParallelFor(parts, choose);
}

void Batcher::ChooseToken(Sequence* sequence, int64_t row,
                          ChooserScratch* scratch) {
  if (sequence == nullptr) return;
  const absl::Span<float> logits =
      absl::MakeSpan(logits_).subspan(row * columns_, columns_);
  sequence->nans = MaskNans(logits);
  sequence->choice_status = CheckLogits(*sequence, sequence->nans);
  if (!sequence->choice_status.ok()) return;
  sequence->choice_status = sequence->chooser.Choose(
      logits, sequence->tokens, sequence->generated, scratch, &sequence->token);
  // What the constraint allows had no numbers: not the asker's mistake.
  if (sequence->nans.count > 0 &&
      absl::IsInvalidArgument(sequence->choice_status)) {
    sequence->choice_status =
        absl::InternalError(sequence->choice_status.message());
  }
}

void Batcher::ReadPromptRow(size_t index) {
  PromptRow& row = prompt_rows_[index];
  const absl::Span<float> logits = absl::MakeSpan(logits_).subspan(
      (choosing_.size() + index) * columns_, columns_);
  row.status = CheckLogits(*row.sequence, MaskNans(logits));
  if (!row.status.ok()) return;
  const absl::StatusOr<LogSoftmax> softmax = LogSoftmax::Of(logits);
  row.status = softmax.status();
  if (!row.status.ok()) return;
  row.token.logprob = softmax->At(row.token.id);
  softmax->Top(row.sequence->request->request.prompt_logprobs, &row.token.top);
}

void Batcher::TakePromptRows() {
  for (PromptRow& row : prompt_rows_) {
    Sequence* const sequence = row.sequence;
    if (sequence->finished) continue;
    if (!row.status.ok()) {
      Finish(sequence, FinishReason::kError, std::move(row.status));
      continue;
    }
    std::vector<GeneratedToken>& told = sequence->event.prompt;
    if (told.empty()) AddNews(sequence);
    if (sequence->told_prompt == 0) {
      TellFirst(sequence);
    }
    told.push_back(std::move(row.token));
    ++sequence->told_prompt;
  }
}

void Batcher::PoolVectors() {
  absl::Span<const float> rows = logits_;
  for (Sequence* sequence : choosing_) {
    // What is one row is that row.
    const bool all = encoder_ && plan_.model.RowOfText(sequence->rows) < 0;
    Pooler pooler(all ? plan_.model.pooling : Pooling::kLast, columns_);
    for (int64_t i = 0; i < (all ? sequence->rows : 1); ++i) {
      pooler.Add(rows.first(columns_));
      rows.remove_prefix(columns_);
    }
    sequence->event.embedding = pooler.Result();
  }
}

void Batcher::TakeTokens(const absl::Status& status) {
  if (status.ok()) {
    TakePromptRows();
    for (Sequence* sequence : choosing_) {
      if (sequence == nullptr || sequence->finished) continue;
      embeds_ ? TakeVector(sequence) : TakeToken(sequence);
    }
    return;
  }
  if (!executed_) return TakeError(status);
  while (!running_.empty()) {
    Finish(running_.back(), FinishReason::kError, status);
  }
}

// The step's rows did not run to their end: a matrix of an expert could not be
// read, say, that only some of them need. So each runs again by itself, without
// guesses, and who meets the error then ends with it.
void Batcher::TakeError(const absl::Status& status) {
  const auto ran = [](const Sequence* sequence) { return sequence->rows > 0; };
  const bool known =
      !guesses_ && std::count_if(running_.begin(), running_.end(), ran) == 1;
  for (size_t i = running_.size(); i-- > 0;) {
    Sequence* const sequence = running_[i];
    if (!ran(sequence)) continue;
    if (known) {
      Finish(sequence, FinishReason::kError, status);
      continue;
    }
    sequence->alone_until =
        std::max(sequence->alone_until, sequence->computed + sequence->rows);
    Settle(sequence).IgnoreError();
    // States by sequence are lost; what is in pages is written again.
    if (cache_.has_slots()) GiveWay(sequence);
  }
  choosing_.clear();
  guesses_ = false;
}

void Batcher::TakeVector(Sequence* sequence) {
  std::vector<float>& vector = sequence->event.embedding;
  for (const float x : vector) {
    if (x == x) continue;
    vector.clear();
    Finish(sequence, FinishReason::kError,
           WithAdapters(*sequence,
                        absl::InternalError(
                            "the text has no vector: its numbers are NaN: the "
                            "model or its weights are broken")));
    return;
  }
  ++(plan_.model.gives == ModelOutput::kScores ? stats_.scored_texts
                                               : stats_.embedded_texts);
  Finish(sequence, FinishReason::kEmbedded);
}

// Forgets tokens so that the text can go on; false where it is to end.
bool Batcher::Shift(Sequence* sequence) {
  const Request& request = sequence->request->request;
  if (request.overflow == ContextOverflow::kStop) return false;
  const int64_t keep = std::min(request.shift_keep, capacity_ / 2);
  const int64_t newest = (capacity_ - keep) / 2;
  Settle(sequence).IgnoreError();  // the slot is given up
  std::vector<int32_t>& tokens = sequence->tokens;
  // What was drawn from the full context is the last, and has not run.
  tokens.erase(tokens.begin() + keep, tokens.end() - 1 - newest);
  prefix_cache_.Release(sequence->slot).IgnoreError();
  if (options_.proposer != nullptr)
    options_.proposer->Begin(sequence->slot, sequence->request->scope);
  sequence->prompt = 0;
  sequence->computed = 0;
  sequence->checkpoint = 0;
  sequence->once_computed = keep + newest;
  ++stats_.context_shifts;
  return true;
}

absl::Status Batcher::CheckLogits(const Sequence& sequence,
                                  const NanLogits& nans) {
  absl::Status status = CheckSomeLeft(nans, columns_);
  return status.ok() ? status : WithAdapters(sequence, std::move(status));
}

// Names the adapters in use: one that is too strong breaks the best model.
absl::Status Batcher::WithAdapters(const Sequence& sequence,
                                   absl::Status error) const {
  const std::vector<float>& scales = sequence.request->request.adapter_scales;
  std::vector<std::string> used;
  for (size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] == 0) continue;
    used.push_back(absl::StrCat(plan_.model.adapters[i].path, "=", scales[i]));
  }
  if (used.empty()) return error;
  return absl::Status(
      error.code(),
      absl::StrCat(error.message(), "; or an adapter is too strong (",
                   absl::StrJoin(used, ", "), "): a smaller scale may help"));
}

void Batcher::WarnOfNans(const NanLogits& nans) {
  if (nans.count == 0 || warned_of_nans_) return;
  warned_of_nans_ = true;
  Log(NanWarning(nans, columns_));
}

void Batcher::Log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

void Batcher::TakeToken(Sequence* sequence) {
  const Request& request = sequence->request->request;
  if (request.prompt_logprobs >= 0 && sequence->choice == 0 &&
      sequence->told_prompt == 0) {
    TellFirst(sequence);  // the only one
    AddNews(sequence);
  }
  if (request.max_tokens == 0) return Finish(sequence, FinishReason::kLength);
  GeneratedToken token = std::move(sequence->token);
  absl::Status status = std::move(sequence->choice_status);
  if (!status.ok()) {
    Finish(sequence, FinishReason::kError, std::move(status));
    return;
  }
  WarnOfNans(sequence->nans);
  CountToken(sequence);
  FinishReason reason;
  if (sequence->chooser.Ends(token.id, &reason)) {
    Finish(sequence, reason);
    if (request.tell_end) sequence->event.tokens.push_back(std::move(token));
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
  } else if (static_cast<int64_t>(sequence->tokens.size()) > capacity_ &&
             !Shift(sequence)) {
    Finish(sequence, FinishReason::kContext);
  } else {
    if (!sequence->event.tokens.empty() || !sequence->event.text.empty()) {
      AddNews(sequence);
    }
    if (sequence->chooser.constraint() != nullptr) {
      mask_maker_.Add(&sequence->mask);
    }
  }
}

void Batcher::AddNews(Sequence* sequence) {
  if (sequence->has_news) return;
  sequence->has_news = true;
  news_.push_back(sequence);
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
  // Errors of what was asked are the asker's alone.
  if (reason == FinishReason::kError && !absl::IsInvalidArgument(status)) {
    Log(absl::StrCat("request ", request->id, " failed: ", status.message()));
  }
  sequence->finished = true;
  sequence->event.finished = true;
  sequence->event.reason = reason;
  sequence->event.status = std::move(status);
  AddNews(sequence);
  if (sequence->slot >= 0) {
    GiveSlotBack(sequence);
  } else {
    waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), sequence),
                   waiting_.end());
  }
  shares_.Leave(request->share);
  if (sequence->choice == 0) request->prompt_done = true;
  request->failed = request->failed || reason == FinishReason::kError;
  request->cancelled = request->cancelled ||
                       reason == FinishReason::kCancelled ||
                       reason == FinishReason::kDeadline;
  if (--request->unfinished > 0) return;
  if (!request->started) NoteStarted(request);
  ++stats_.finished;
  stats_.failed += request->failed;
  stats_.cancelled += request->cancelled;
  if (!options_.prefix_cache || request->request.prompt_logprobs >= 0) {
    prefix_cache_.Forget(request->scope);
    checkpoints_.Forget(request->scope);
  }
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
    sequence->has_news = false;
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
    event.prompt.clear();
  }
  news_.clear();
  if (ended->empty()) return;
  requests_.erase(
      std::remove_if(requests_.begin(), requests_.end(),
                     [](const auto& request) { return request->untold == 0; }),
      requests_.end());
}

}  // namespace weft
