// GET and POST /lora-adapters, as llama.cpp's server has them: the adapters
// that a model was loaded with, and how much of each requests have that do not
// say
// (`lora`). What is not in a posted list has 0.
#pragma once

#include "serve/http_server.h"
#include "serve/served_model.h"

namespace weft {

void AnswerAdapters(const ServedModel& model, HttpCall* call);
void AnswerSetAdapters(const ServedModel& model, HttpCall* call);

}  // namespace weft
