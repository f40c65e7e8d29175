// What a model writes, as reasoning, content and calls of tools: the one reader
// of answers.
//
// Idea: bytes go in as they come, events come out as soon as they are certain;
// joined, the events are the same however the text was cut. What may be the
// beginning of a marker is held back, and so is a call until its name is known
// to be one of the tools: what looks like a call but is none is content, as it
// was written, and reading goes on right behind its first marker. From there on
// the arguments go through while they come.
//
// Rules:
// - Reasoning is opened by the prompt, or stands before anything else that the
//   model writes, once or more often. What looks like it further behind is
//   content. Nothing in either is a call; where it never closes, it was a
//   mention and hides nothing.
// - White space around reasoning and between calls belongs to neither.
// - A call ends with its arguments, wherever its closing marker stands. Each
//   stands alone: one that breaks off says so, and the next one is found.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "text/answer/argument_reader.h"
#include "text/answer/call_head.h"
#include "text/answer/forms.h"

namespace weft::answer {

struct AnswerEvent {
  enum Kind {
    kReasoning,  // `text` is more of it
    kContent,
    kCallBegin,      // `text` is the tool's name
    kCallArguments,  // more of the JSON object that they are
    kCallEnd,
  };
  // How a call ended.
  enum End {
    kWhole,
    kCut,  // the answer ended before the arguments did
    // These are no arguments: `text` is all that was written of it, and is
    // content.
    kBroken,
  };
  Kind kind = kContent;
  std::string text;
  int call = -1;   // of calls: which one, from 0
  std::string id;  // of kCallBegin
  End end = kWhole;
};

struct ReaderOptions {
  // What calls are read of, in OpenAI's form; null: nothing is a call.
  nlohmann::ordered_json tools;
  // The end of the prompt, some hundred bytes: it may have opened reasoning.
  std::string prompt;
  // Off: reasoning is content, markers and all.
  bool separate_reasoning = true;
  // The tool that the answer has to call, where one alone is possible: then a
  // call that is cut before its name is known is one of it.
  std::string forced_tool;
  // Ids of calls, nine letters and digits, are made of it.
  std::string id;
  // What stands behind the first whole call is left out.
  bool one_call = false;
};

// One answer. Not thread-safe. Work is linear in the text; memory is that of
// one call.
class AnswerReader {
 public:
  AnswerReader(AnswerForms forms, ReaderOptions options);

  std::vector<AnswerEvent> Push(absl::string_view text);
  // Nothing follows. `cut`: the model would have gone on.
  std::vector<AnswerEvent> Finish(bool cut);

 private:
  enum class State {
    kStart,  // reasoning may open, or the answer be a call
    kReasoning,
    kContent,
    kHead,  // at what may open a call
    kArguments,
    kObjectEnd,  // the rest of a JSON object that is a call
    kBetween,    // behind a call
    kIgnored,    // behind the one call
  };

  // Each does what the held text allows; false: more is needed.
  bool Step();
  bool Start();
  bool Reasoning();
  bool Content();
  bool Head();
  bool Arguments();
  bool ObjectEnd();
  bool Between();
  // At what opens reasoning in content. False: more is needed.
  bool Quoted();

  bool ReadsCalls() const { return forms_.call && options_.tools.is_array(); }
  // Ends with one of `closes`; the first belongs to it.
  void BeginReasoning(std::vector<std::string> closes);
  void BeginCall();
  void CutForcedCall();
  void EndCall(AnswerEvent::End end);
  // The call at the beginning of the held text is none.
  void NoCall();

  void Take(size_t size) { held_.erase(0, size); }
  void Tell(AnswerEvent::Kind kind, std::string text);
  // White space waits for what follows.
  void TellText(AnswerEvent::Kind kind, bool begun, absl::string_view text);
  void TellReasoning(absl::string_view text);
  void TellContent(absl::string_view text);

  const AnswerForms forms_;
  const ReaderOptions options_;
  // Of content: those that open calls come first, then those that open
  // reasoning, which `quotes_` close; the others are left out.
  std::vector<std::string> markers_;
  size_t call_markers_ = 0;
  std::vector<std::string> quotes_;
  std::vector<std::string> closes_;  // of calls

  State state_ = State::kStart;
  std::string held_;  // has come, and is not told
  bool at_end_ = false, cut_ = false;
  std::vector<AnswerEvent> events_;

  std::vector<std::string> closes_reasoning_;
  bool reasoned_ = false, reasoning_begun_ = false, content_begun_ = false;
  bool drops_space_ = false;    // reasoning or a call came before
  bool dropped_space_ = false;  // the same, before the call that is read
  std::string space_;           // waits

  // Content is in what looks like reasoning and ends so; empty: it is not.
  std::string quote_close_;
  size_t quote_searched_ = 0;  // of the held text: it does not end before
  // The held text must be longer than this before it is looked at again: so
  // what is read from its beginning each time costs a few times its length.
  size_t look_again_ = 0;

  bool opened_ = false;  // see ReadHead
  bool closed_ = false;  // the call before, by its marker
  bool listed_ = false;  // more of its kind may follow without one
  CallHead head_;
  int open_objects_ = 0;
  std::string written_;  // of the call that is read
  int calls_ = 0;
};

// The events of an answer, joined.
struct Answer {
  struct Call {
    std::string id, name, arguments;
    bool whole = false;
  };
  std::string reasoning, content;
  std::vector<Call> calls;

  // Calls that are broken become content again.
  void Add(const AnswerEvent& event);
};

}  // namespace weft::answer
