#include "serve/rerank.h"

#include "absl/strings/str_cat.h"

namespace weft {

void AnswerRerank(const ServedModel& model, const ServiceLimits&,
                  HttpCall* call) {
  call->Answer(ToApiError(absl::InvalidArgumentError(
      absl::StrCat(model.id, " is no reranker: it has no head for scores"))));
}

}  // namespace weft
