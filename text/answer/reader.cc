#include "text/answer/reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "text/answer/call_ids.h"
#include "text/answer/markers.h"

namespace weft::answer {
namespace {

// The first of `markers` in `text`; `*which` is npos where there is none, and
// the result is then what is certainly none of them.
size_t FirstOf(absl::string_view text, const std::vector<std::string>& markers,
               bool at_end, size_t* which) {
  size_t first = absl::string_view::npos;
  *which = absl::string_view::npos;
  size_t open_end = 0;
  for (size_t i = 0; i < markers.size(); ++i) {
    const size_t found = text.find(markers[i]);
    const bool longer = found == first && found != absl::string_view::npos &&
                        markers[i].size() > markers[*which].size();
    if (found < first || longer) {
      first = found;
      *which = i;
    }
    if (!at_end)
      open_end = std::max(open_end, BeginningAtEnd(text, markers[i]));
  }
  // What has begun before it, or at its place and is longer, may come.
  const size_t certain = text.size() - open_end;
  const bool waits = *which == absl::string_view::npos || certain < first ||
                     (certain == first && open_end >= markers[*which].size());
  if (!waits) return first;
  *which = absl::string_view::npos;
  return std::min(certain, first);
}

// What is read again from its beginning waits until it has grown by an eighth,
// once it is long.
size_t LookAgainAt(size_t size) {
  constexpr size_t kLong = 1024;
  return size < kLong ? size : size + size / 8;
}

}  // namespace

AnswerReader::AnswerReader(AnswerForms forms, ReaderOptions options)
    : forms_(std::move(forms)), options_(std::move(options)) {
  if (ReadsCalls() || forms_.harmony()) {
    for (const std::string& open :
         {forms_.call->section_open, forms_.call->call_open}) {
      if (!open.empty()) markers_.push_back(open);
    }
    call_markers_ = markers_.size();
  }
  // Where there are calls to be taken for drafts.
  for (const ReasoningForm& form : forms_.reasoning) {
    if (!ReadsCalls() || forms_.harmony()) break;
    if (form.open.empty() || form.close.empty()) continue;
    markers_.push_back(form.open);
    quotes_.push_back(form.close);
  }
  if (forms_.harmony()) {
    closes_ = {forms_.call->call_close, "<|end|>", "<|return|>"};
    markers_.insert(markers_.end(), closes_.begin(), closes_.end());
  } else if (ReadsCalls() && !forms_.call->call_close.empty()) {
    closes_ = {forms_.call->call_close};
  }
  for (const ReasoningForm& form : forms_.reasoning) {
    for (const std::string& around : {form.content_open, form.content_close}) {
      if (!around.empty()) markers_.push_back(around);
    }
  }
  std::string close = OpenReasoning(forms_, options_.prompt);
  if (!close.empty()) {
    BeginReasoning({std::move(close)});
    return;
  }
  if (!ReadsCalls() || forms_.harmony()) return;
  const std::string& open = forms_.call->call_open;
  if (!open.empty() && absl::EndsWith(options_.prompt, open)) {
    opened_ = true;
    state_ = State::kHead;
  }
}

std::vector<AnswerEvent> AnswerReader::Push(absl::string_view text) {
  absl::StrAppend(&held_, text);
  while (Step()) {
  }
  return std::exchange(events_, {});
}

std::vector<AnswerEvent> AnswerReader::Finish(bool cut) {
  at_end_ = true;
  cut_ = cut;
  if (cut) CutForcedCall();
  while (Step()) {
  }
  if (head_.arguments != nullptr) {
    absl::StrAppend(&written_, std::exchange(held_, {}));
    EndCall(cut ? AnswerEvent::kCut : AnswerEvent::kBroken);
  }
  if (!drops_space_) Tell(AnswerEvent::kContent, std::exchange(space_, {}));
  return std::exchange(events_, {});
}

void AnswerReader::CutForcedCall() {
  const bool waits = state_ == State::kStart || state_ == State::kContent ||
                     state_ == State::kHead;
  if (options_.forced_tool.empty() || calls_ > 0 || !waits ||
      SkipSpace(held_, 0) == held_.size()) {
    return;
  }
  held_.clear();
  head_ = CallHead();
  head_.name = options_.forced_tool;
  BeginCall();
  EndCall(AnswerEvent::kCut);
}

bool AnswerReader::Step() {
  switch (state_) {
    case State::kStart:
      return Start();
    case State::kReasoning:
      return Reasoning();
    case State::kContent:
      return Content();
    case State::kHead:
      return Head();
    case State::kArguments:
      return Arguments();
    case State::kObjectEnd:
      return ObjectEnd();
    case State::kBetween:
      return Between();
    case State::kIgnored:
      held_.clear();
      return false;
  }
  return false;
}

void AnswerReader::Tell(AnswerEvent::Kind kind, std::string text) {
  if (text.empty()) return;
  if (!events_.empty() && events_.back().kind == kind) {
    absl::StrAppend(&events_.back().text, text);
    return;
  }
  AnswerEvent event;
  event.kind = kind;
  event.text = std::move(text);
  if (kind == AnswerEvent::kCallArguments) event.call = calls_;
  events_.push_back(std::move(event));
}

void AnswerReader::TellText(AnswerEvent::Kind kind, bool begun,
                            absl::string_view text) {
  const size_t words = absl::StripTrailingAsciiWhitespace(text).size();
  if (words > 0) {
    if (!begun && drops_space_) {
      space_.clear();
      const size_t first = SkipSpace(text, 0);
      Tell(kind, std::string(text.substr(first, words - first)));
    } else {
      Tell(kind, absl::StrCat(space_, text.substr(0, words)));
      space_.clear();
    }
  }
  absl::StrAppend(&space_, text.substr(words));
}

void AnswerReader::TellReasoning(absl::string_view text) {
  if (!options_.separate_reasoning) return TellContent(text);
  TellText(AnswerEvent::kReasoning, reasoning_begun_, text);
  reasoning_begun_ |= SkipSpace(text, 0) < text.size();
}

void AnswerReader::TellContent(absl::string_view text) {
  TellText(AnswerEvent::kContent, content_begun_, text);
  content_begun_ |= SkipSpace(text, 0) < text.size();
}

bool AnswerReader::Start() {
  const size_t at = SkipSpace(held_, 0);
  if (at == held_.size() && !at_end_) return false;
  const absl::string_view rest = absl::string_view(held_).substr(at);
  bool may_open = false, call = false;
  for (const ReasoningForm& form : forms_.reasoning) {
    const Match match = Begins(rest, form.open);
    may_open |= match == Match::kMore;
    if (match != Match::kYes) continue;
    const size_t size = at + form.open.size();
    BeginReasoning({form.close});
    if (!options_.separate_reasoning) {
      TellContent(absl::string_view(held_).substr(0, size));
    }
    Take(size);
    return true;
  }
  if (forms_.harmony()) {
    // The prompt has begun the message.
    for (const absl::string_view open : {"<|channel|>", "<|start|>", "to="}) {
      const Match match = Begins(rest, open);
      may_open |= match == Match::kMore;
      call |= match == Match::kYes;
    }
  } else if (ReadsCalls() && forms_.call->call_open.empty() && !rest.empty()) {
    call = opened_ = rest[0] == '[' ||
                     (rest[0] == '{' && forms_.call->body == CallBody::kJson);
  }
  if (may_open && !call && !at_end_) return false;
  state_ = State::kContent;
  if (!call) return true;
  TellContent(absl::string_view(held_).substr(0, at));
  Take(at);
  state_ = State::kHead;
  return true;
}

void AnswerReader::BeginReasoning(std::vector<std::string> closes) {
  closes_reasoning_ = std::move(closes);
  reasoned_ = true;
  reasoning_begun_ = false;
  drops_space_ = options_.separate_reasoning;
  state_ = State::kReasoning;
}

bool AnswerReader::Reasoning() {
  size_t which;
  const size_t end = FirstOf(held_, closes_reasoning_, at_end_, &which);
  TellReasoning(absl::string_view(held_).substr(0, end));
  Take(end);
  if (which == absl::string_view::npos) return false;
  if (options_.separate_reasoning) {
    space_.clear();
  } else if (which == 0) {
    TellContent(closes_reasoning_[which]);
  }
  // Of several the first alone belongs to it: the others open what follows.
  if (which == 0) Take(closes_reasoning_[which].size());
  state_ = forms_.harmony() ? State::kContent : State::kStart;
  return true;
}

bool AnswerReader::Content() {
  if (!quote_close_.empty()) return Quoted();
  size_t which;
  const size_t end = FirstOf(held_, markers_, at_end_, &which);
  TellContent(absl::string_view(held_).substr(0, end));
  Take(end);
  if (which == absl::string_view::npos) return false;
  if (which < call_markers_) {
    opened_ = false;
    state_ = State::kHead;
  } else if (which < call_markers_ + quotes_.size()) {
    TellContent(markers_[which]);
    Take(markers_[which].size());
    quote_close_ = quotes_[which - call_markers_];
  } else {
    Take(markers_[which].size());
  }
  return true;
}

// Up to the first call there is nothing to wait for.
bool AnswerReader::Quoted() {
  std::vector<std::string> markers = {quote_close_};
  markers.insert(markers.end(), markers_.begin(),
                 markers_.begin() + static_cast<ptrdiff_t>(call_markers_));
  size_t which = absl::string_view::npos;
  if (quote_searched_ == 0) {
    const size_t end = FirstOf(held_, markers, at_end_, &which);
    TellContent(absl::string_view(held_).substr(0, end));
    Take(end);
    if (which == absl::string_view::npos) return false;
  }
  if (which != 0) {
    const size_t close = held_.find(quote_close_, quote_searched_);
    if (close == std::string::npos) {
      quote_searched_ = std::max<size_t>(
          1, held_.size() - std::min(held_.size(), quote_close_.size() - 1));
      if (!at_end_) return false;
      quote_close_.clear();  // a mention
      quote_searched_ = 0;
      return true;
    }
    TellContent(absl::string_view(held_).substr(0, close));
    Take(close);
  }
  TellContent(quote_close_);
  Take(quote_close_.size());
  quote_close_.clear();
  quote_searched_ = 0;
  return true;
}

bool AnswerReader::Head() {
  if (held_.size() <= look_again_ && !at_end_) return false;
  look_again_ = 0;
  CallHead head;
  const Match match = ReadHead(*forms_.call, options_.tools, held_, opened_,
                               at_end_ && !cut_, &head);
  if (match == Match::kMore) {
    if (!at_end_) {
      look_again_ = LookAgainAt(held_.size());
      return false;
    }
    // A call that was cut is none of the content; without a marker only its
    // name tells that it is one.
    if (opened_ && head.name.empty()) {
      NoCall();
      return true;
    }
    held_.clear();
    if (!head.name.empty()) {
      head_ = std::move(head);
      BeginCall();
      EndCall(AnswerEvent::kCut);
    }
    return false;
  }
  if (match == Match::kNo) {
    NoCall();
    return true;
  }
  head_ = std::move(head);
  if (head_.kind == CallHead::kCall) {
    BeginCall();
    return true;
  }
  if (!options_.separate_reasoning && head_.kind == CallHead::kReasoning) {
    TellContent(absl::string_view(held_).substr(0, head_.size));
  }
  Take(head_.size);
  if (head_.kind == CallHead::kReasoning) {
    space_.clear();
    BeginReasoning(
        {"<|end|>", "<|start|>", "<|channel|>", "<|call|>", "<|return|>"});
  } else {
    state_ = State::kContent;
  }
  return true;
}

void AnswerReader::NoCall() {
  size_t size = std::min<size_t>(1, held_.size());
  for (size_t i = 0; i < call_markers_; ++i) {
    if (absl::StartsWith(held_, markers_[i])) {
      size = std::max(size, markers_[i].size());
    }
  }
  TellContent(absl::string_view(held_).substr(0, size));
  Take(size);
  state_ = State::kContent;
}

void AnswerReader::BeginCall() {
  dropped_space_ = std::exchange(drops_space_, true);
  closed_ = false;
  AnswerEvent begin;
  begin.kind = AnswerEvent::kCallBegin;
  begin.text = head_.name;
  begin.call = calls_;
  begin.id = head_.id.empty() ? ShortCallId(options_.id, calls_) : head_.id;
  events_.push_back(std::move(begin));
  written_ = held_.substr(0, head_.size);
  Take(head_.size);
  state_ = State::kArguments;
}

bool AnswerReader::Arguments() {
  if (head_.arguments == nullptr) {
    Tell(AnswerEvent::kCallArguments, head_.whole);
    EndCall(AnswerEvent::kWhole);
    return true;
  }
  size_t used = 0;
  std::string json;
  const Scan scan =
      head_.arguments->Read(held_, at_end_ && !cut_, &used, &json);
  absl::StrAppend(&written_, absl::string_view(held_).substr(0, used));
  Take(used);
  Tell(AnswerEvent::kCallArguments, std::move(json));
  if (scan == Scan::kMore) return false;
  EndCall(scan == Scan::kDone ? AnswerEvent::kWhole : AnswerEvent::kBroken);
  return true;
}

void AnswerReader::EndCall(AnswerEvent::End end) {
  AnswerEvent event;
  event.kind = AnswerEvent::kCallEnd;
  event.call = calls_++;
  event.end = end;
  if (end == AnswerEvent::kBroken) {
    // As if there had been no call.
    drops_space_ = dropped_space_;
    if (drops_space_ && !content_begun_) space_.clear();
    event.text = absl::StrCat(std::exchange(space_, {}), written_);
    content_begun_ = true;
  }
  events_.push_back(std::move(event));
  listed_ = head_.json || forms_.call->body == CallBody::kPython;
  open_objects_ = head_.open_objects;
  state_ = end == AnswerEvent::kBroken                       ? State::kContent
           : options_.one_call && end == AnswerEvent::kWhole ? State::kIgnored
           : open_objects_ > 0                               ? State::kObjectEnd
                                                             : State::kBetween;
  head_ = CallHead();
  written_.clear();
}

bool AnswerReader::ObjectEnd() {
  if (held_.size() <= look_again_ && !at_end_) return false;
  size_t size = 0;
  const Match match = ReadObjectEnd(held_, open_objects_, &size);
  if (match == Match::kMore) {
    look_again_ = LookAgainAt(held_.size());
    if (at_end_) held_.clear();
    return false;
  }
  look_again_ = 0;
  Take(size);
  state_ = State::kBetween;
  return true;
}

bool AnswerReader::Between() {
  const CallForm& form = *forms_.call;
  const size_t at = SkipSpace(held_, 0);
  if (at == held_.size() && !at_end_) return false;
  const absl::string_view rest = absl::string_view(held_).substr(at);
  bool waits = false;
  const auto begins = [&](absl::string_view marker) {
    if (marker.empty() || rest.empty()) return false;
    const Match match = Begins(rest, marker);
    waits |= match == Match::kMore;
    return match == Match::kYes;
  };
  // A marker that opens may begin like one that closes.
  bool call = false;
  for (size_t i = 0; i < call_markers_; ++i) call |= begins(markers_[i]);
  if (!call && waits && !at_end_) return false;
  for (const std::string& close : closes_) {
    if (call || !begins(close)) continue;
    closed_ = true;
    Take(at + close.size());
    return true;
  }
  if (!call && begins(form.section_close)) {
    Take(at + form.section_close.size());
    state_ = State::kContent;
    return true;
  }
  const bool listed = listed_ && !closed_ && !rest.empty();
  opened_ = !call && listed &&
            (form.body == CallBody::kPython
                 ? absl::ascii_isalpha(static_cast<unsigned char>(rest[0])) != 0
                 : rest[0] == '{');
  if (!call && waits && !at_end_) return false;
  if (!call && !opened_ && listed &&
      absl::string_view(",;]").find(rest[0]) != absl::string_view::npos) {
    Take(at + 1);
    return true;
  }
  state_ = State::kContent;
  if (!call && !opened_) return true;
  TellContent(absl::string_view(held_).substr(0, at));
  Take(at);
  state_ = State::kHead;
  return true;
}

void Answer::Add(const AnswerEvent& event) {
  switch (event.kind) {
    case AnswerEvent::kReasoning:
      reasoning += event.text;
      break;
    case AnswerEvent::kContent:
      content += event.text;
      break;
    case AnswerEvent::kCallBegin:
      calls.push_back({event.id, event.text, "", false});
      break;
    case AnswerEvent::kCallArguments:
      calls.back().arguments += event.text;
      break;
    case AnswerEvent::kCallEnd:
      calls.back().whole = event.end == AnswerEvent::kWhole;
      if (event.end != AnswerEvent::kBroken) break;
      content += event.text;
      calls.pop_back();
      break;
  }
}

}  // namespace weft::answer
