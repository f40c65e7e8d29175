// GET /slots, and POST /slots/N?action=save, restore or erase.
#pragma once

#include "serve/http_server.h"
#include "serve/served_model.h"

namespace weft {

void AnswerSlots(const ServedModel& model, HttpCall* call);
// Files have plain names, in the owner's folder (ServiceLimits::slot_folder).
void AnswerSlotAction(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call);

}  // namespace weft
