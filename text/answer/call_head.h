// The beginning of a call, up to its arguments.
//
// It is read again from its first byte when more has come: what is no call
// stays text, as it was. Heads are short, but for arguments that stand before
// the name or an id behind them; so who reads waits until there is a good deal
// more.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "text/answer/argument_reader.h"
#include "text/answer/forms.h"
#include "text/answer/markers.h"

namespace weft::answer {

struct CallHead {
  enum Kind { kCall, kContent, kReasoning };
  Kind kind = kCall;
  // Known as soon as it has come and is one of the tools.
  std::string name;
  std::string id;  // as the model wrote it, where it did
  // Null: `whole` is all of them.
  std::unique_ptr<ArgumentReader> arguments;
  std::string whole;
  // It is a JSON object, of which so many are open behind the arguments.
  bool json = false;
  int open_objects = 0;
  size_t size = 0;  // bytes of the text
};

// `text` begins where a call may. `opened`: its opening may be missing, since
// it stands in the prompt or another call came just before, or the form has
// none. `tools` in OpenAI's form; it and `form` must outlive the head.
Match ReadHead(const CallForm& form, const nlohmann::ordered_json& tools,
               absl::string_view text, bool opened, bool at_end,
               CallHead* head);

// The rest of the JSON object that a call is: kYes sets `*size` to its bytes.
Match ReadObjectEnd(absl::string_view text, int open_objects, size_t* size);

}  // namespace weft::answer
