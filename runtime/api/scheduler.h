// Many requests at once on one model (continuous batching), asynchronous, in
// process.
//
//   auto engine = weft::Engine::Load("model.gguf", options);  // .slots = 8
//   auto scheduler = weft::Scheduler::Create(*std::move(engine), {});
//   weft::Request request;
//   request.prompt_tokens = *(*scheduler)->tokenizer().Encode("Hello", {});
//   auto id = (*scheduler)->Submit(std::move(request),
//                                  [](const weft::Event& event) {
//                                    std::cout << event.text;
//                                  });
//
// One thread forms steps: one token of every text that is being written, and
// part of the prompts that wait, up to a budget; it runs the step (Yu et al.,
// "Orca: A Distributed Serving System for Transformer-Based Generative Models",
// 2022; Agrawal et al., "SARATHI: Efficient LLM Inference by Piggybacking
// Decodes with Chunked Prefills", 2023), samples, and tells the news. Requests
// join and leave between steps.
//
// Memory is that of the engine, stated before it is loaded (MemoryOf in
// plan.h): EngineOptions::slots may run at the same time, and
// EngineOptions::kv_pages hold the keys and values of all. When no page is
// free, requests wait in a bounded queue, and of those that run the youngest
// gives its pages back and is computed again later. A request that was accepted
// is never given up for want of memory.
//
// Slots go around among clients and their requests (fair_share.h): who brings
// many delays others as if they were one. The oldest text never gives way.
//
// Of an encoder requests are texts whose vectors are wanted (Request::embed): a
// step runs as many whole texts as it has room for.
//
// A request's tokens and log-probabilities are the same to the bit whatever
// else runs, whatever is cached, however prompts are cut, and however often it
// had to give way.
//
// Thread-safe. Callbacks run on the scheduler's thread, between steps, never
// two at a time: they delay everybody, so they should only hand on what they
// are told (EventQueue, Completion). They may call Submit, Cancel and
// GetStats, but nothing that waits.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/api/engine.h"
#include "runtime/generation/request.h"
#include "runtime/generation/scheduler_options.h"
#include "runtime/generation/scheduler_stats.h"

namespace weft {

// Whether prompts of this engine can be kept in files
// (SchedulerOptions::cache_folder) of so many bytes together: an error that
// says why not.
absl::Status CheckKeepsPrompts(Engine& engine, int64_t cache_bytes);

class Scheduler {
 public:
  // Takes the engine, so that nothing else runs on it. Errors: options out of
  // range; more slots than a step of the plan takes tokens.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(
      std::unique_ptr<Engine> engine, const SchedulerOptions& options);

  // Cancels what is left; the callbacks have been called when it returns. Not
  // from a callback.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const Engine& engine() const;
  const Tokenizer& tokenizer() const { return engine().tokenizer(); }
  // The most tokens that can be run of a prompt and its text together: the
  // context, or what all pages hold if that is less; of an encoder's text,
  // what a step takes. One more can be drawn after the last.
  int64_t capacity() const;

  // Returns at once. Every request that is accepted ends with one event that is
  // `last`, after one that is `finished` for each choice (the last of them is
  // the same event). The callback may be called before Submit returns. It is
  // destroyed after the last event.
  // Errors, then there are no events: kInvalidArgument, a field out of range;
  // kFailedPrecondition, the model's file was written to;
  // kOutOfRange, the prompt is above capacity() (names both numbers);
  // kResourceExhausted, the queue, or the client's part of it, is full (names
  // both numbers);
  // kUnavailable, Drain has begun.
  absl::StatusOr<RequestId> Submit(Request request, EventCallback callback);

  // The request ends before the next step, with kCancelled. False if there is
  // none of this number, or no longer.
  bool Cancel(RequestId id);

  // Accepts no more requests, and waits until those that were accepted have
  // ended; after `longest` they are cancelled. Returns how many were.
  int64_t Drain(absl::Duration longest);

  SchedulerStats GetStats() const;

  // Why every request fails, and others would: the plan's weights are damaged
  // (weight_checksum.h). An error of a disk that met some requests is none.
  absl::Status Damage() const;

 private:
  class Impl;
  explicit Scheduler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
