// Ranking: how well a document answers a query, by a model whose plan gives
// scores (plan().model.gives == ModelOutput::kScores).
//
// One pair at once, or many as requests of a scheduler, each a text like those
// whose vectors are wanted:
//
//   weft::Request request;
//   request.embed = true;
//   WEFT_ASSIGN_OR_RETURN(
//       request.prompt_tokens,
//       weft::PairTokens(engine.plan(), engine.tokenizer(), query, document));
//   scheduler->Submit(std::move(request), [](const weft::Event& event) {
//     if (event.finished) Use(event.embedding[0]);
//   });
//
// So a server's route makes one request for each document, waits for all as
// /v1/embeddings does, and sorts by the first score. What a score is, the model
// says: of bge's and Jina's rankers any number, the larger the better; of
// Qwen3-Reranker's the first is the probability of "yes". Scores are not
// normalised.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/api/engine.h"

namespace weft {

// The tokens of a pair: the model's own template with the two texts in it, in
// which only what the template itself has may be a control token; or without
// one, BOS, the query, EOS, the separator where the vocabulary wants one, the
// document, EOS. Errors: those of Tokenizer::Encode. `options` as there, but
// for what is said here.
absl::StatusOr<std::vector<int32_t>> PairTokens(const Plan& plan,
                                                const Tokenizer& tokenizer,
                                                absl::string_view query,
                                                absl::string_view document,
                                                EncodeOptions options = {});

// The scores of a pair, in the order of ModelInfo::labels. Errors: a plan that
// gives none; a pair that is too long.
absl::StatusOr<std::vector<float>> Score(Engine& engine,
                                         absl::string_view query,
                                         absl::string_view document);

}  // namespace weft
