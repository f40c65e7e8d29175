// A model that is ready to be asked, and what the server's owner allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/api/scheduler.h"
#include "serve/adapters.h"
#include "serve/openai_request.h"
#include "serve/output_grammar.h"
#include "serve/slots.h"
#include "text/answer/customs.h"
#include "text/chat_template.h"

namespace weft {

class RequestLog;

struct ServiceLimits {
  RequestLimits request;
  int64_t prompt_tokens = 0;  // 0: what the context holds
  // Of an answer that is kept until it is whole: texts with their
  // log-probabilities, or the text of tokens.
  int64_t answer_bytes = 64 << 20;
  // Events of one request that may wait for a client to read.
  size_t buffered_events = 8192;
  // Of requests that do not say.
  ContextOverflow overflow = ContextOverflow::kStop;
  std::string slot_folder;  // where slots are saved; empty: nowhere
  // After so long without a word a stream says that it is still there.
  absl::Duration silence = absl::Seconds(5);
};

struct ServedModel {
  std::string id;       // its name in the API
  std::string path;     // of its file, from the root; empty: it is embedded
  int64_t created = 0;  // seconds since 1970
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<const ChatTemplate> chat_template;
  answer::TemplateCustoms customs;  // of chat_template
  // Control tokens that answers are read by, in order.
  std::vector<int32_t> marker_tokens;
  std::unique_ptr<OutputGrammars> grammars;
  std::shared_ptr<Slots> slots;
  std::shared_ptr<DefaultAdapters> adapters;
  RequestLog* log = nullptr;  // null: requests are not written down

  const Engine& engine() const { return scheduler->engine(); }
  // Whether it gives vectors of texts, and writes none.
  bool encoder() const { return !engine().plan().model.generates(); }
  const Tokenizer& tokenizer() const { return engine().tokenizer(); }
  // The most tokens of a text, prompt included.
  int64_t capacity() const { return scheduler->capacity(); }
};

}  // namespace weft
