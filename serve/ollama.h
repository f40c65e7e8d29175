// Ollama's routes: /api/chat, /api/generate, /api/embed, /api/embeddings,
// /api/tags, /api/show, /api/ps, /api/version.
//
// Streams are lines of JSON, and are what is answered unless "stream" is false.
// Defaults of sampling are Ollama's. Any model's name is taken, since there is
// one model.
#pragma once

#include <vector>

#include "serve/http_server.h"
#include "serve/model_set.h"
#include "serve/served_model.h"

namespace weft {

// {"error": "message"}.
nlohmann::ordered_json OllamaError(const ApiError& error);

void AnswerOllamaChat(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call);
void AnswerOllamaGenerate(const ServedModel& model, const ServiceLimits& limits,
                          HttpCall* call);
void AnswerOllamaEmbed(const ServedModel& model, const ServiceLimits& limits,
                       HttpCall* call);
// The older form: one "prompt", one vector.
void AnswerOllamaEmbedding(const ServedModel& model,
                           const ServiceLimits& limits, HttpCall* call);

nlohmann::ordered_json OllamaTags(const std::vector<ModelSet::Info>& models);
// Of those that are loaded.
nlohmann::ordered_json OllamaRunning(const std::vector<ModelSet::Info>& models);
void AnswerOllamaShow(const ServedModel& model, HttpCall* call);

}  // namespace weft
