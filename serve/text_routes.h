// POST /tokenize, /detokenize and /apply-template: texts, tokens and prompts,
// which the model's vocabulary and template make; nothing is generated.
#pragma once

#include "serve/http_server.h"
#include "serve/served_model.h"

namespace weft {

void AnswerTokenize(const ServedModel& model, HttpCall* call);
void AnswerDetokenize(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call);
void AnswerApplyTemplate(const ServedModel& model, HttpCall* call);

}  // namespace weft
