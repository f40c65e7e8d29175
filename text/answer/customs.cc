#include "text/answer/customs.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "text/answer/arguments.h"
#include "text/answer/call_ids.h"
#include "text/answer/reader.h"
#include "text/answer/write_calls.h"
#include "text/json_tree.h"

namespace weft::answer {
namespace {

using json = nlohmann::ordered_json;

// What is looked for in rendered text.
constexpr char kTool[] = "weft_tool", kKey[] = "weft_key",
               kValue[] = "weft value", kResult[] = "weft result",
               kSaid[] = "weft said";

json Tools() {
  return json::array(
      {{{"type", "function"},
        {"function",
         {{"name", kTool},
          {"description", "weft description"},
          {"parameters",
           {{"type", "object"},
            {"properties",
             {{kKey, {{"type", "string"}, {"description", "weft key"}}},
              {"weft_number",
               {{"type", "integer"}, {"description", "weft number"}}}}},
            {"required", json::array({kKey})}}}}}}});
}

json Call(int number) {
  return {
      {"id", absl::StrCat("abcdefgh", number)},
      {"type", "function"},
      {"function",
       {{"name", kTool},
        {"arguments",
         {{kKey, absl::StrCat(kValue, number)}, {"weft_number", number}}}}}};
}

json Result(int number) {
  return {{"role", "tool"},
          {"tool_call_id", absl::StrCat("abcdefgh", number)},
          {"name", kTool},
          {"content", absl::StrCat(kResult, number)}};
}

class Probe {
 public:
  explicit Probe(const ChatTemplate& chat_template)
      : template_(chat_template) {}

  std::optional<std::string> Render(const TemplateCustoms& customs,
                                    json messages, bool tools,
                                    bool generation) const {
    ChatRequest request;
    request.messages = std::move(messages);
    if (tools) request.tools = Tools();
    request.add_generation_prompt = generation;
    const auto segments = RenderConversation(template_, customs, request);
    if (!segments.ok()) return std::nullopt;
    return JoinSegments(*segments);
  }

  static json Question() {
    return {{"role", "user"}, {"content", "weft question"}};
  }

  // A conversation with so many calls at once.
  static json Conversation(int calls, const json& content, bool results) {
    json message = {{"role", "assistant"}, {"content", content}};
    for (int i = 0; i < calls; ++i) message["tool_calls"].push_back(Call(i));
    json messages = {Question(), std::move(message)};
    for (int i = 0; results && i < calls; ++i) messages.push_back(Result(i));
    return messages;
  }

 private:
  const ChatTemplate& template_;
};

bool Shows(const std::optional<std::string>& text,
           std::initializer_list<std::string> words) {
  return text &&
         std::all_of(words.begin(), words.end(), [&](const std::string& word) {
           return absl::StrContains(*text, word);
         });
}

std::string Numbered(const char* word, int number) {
  return absl::StrCat(word, number);
}

// Python's way of writing a mapping, or JSON that was put into a string.
bool Garbled(const std::string& text) {
  return absl::StrContains(text, absl::StrCat("'", kKey, "':")) ||
         absl::StrContains(text, absl::StrCat("\\\"", kKey));
}

void FindShape(const Probe& probe, TemplateCustoms* customs) {
  TemplateCustoms tried = *customs;
  tried.shows_calls = true;
  // The results with them if that goes, else without.
  for (const bool results : {true, false}) {
    tried.shows_results = results;
    for (const bool garbled : {false, true}) {
      for (const bool text : {false, true}) {
        for (const auto content :
             {TemplateCustoms::Content::kEmpty, TemplateCustoms::Content::kNull,
              TemplateCustoms::Content::kAbsent}) {
          tried.text_arguments = text;
          tried.no_content = content;
          const auto shown = probe.Render(
              tried, Probe::Conversation(1, nullptr, results), true, true);
          if (!Shows(shown, {Numbered(kValue, 0)}) ||
              Garbled(*shown) != garbled ||
              (results && !Shows(shown, {Numbered(kResult, 0)}))) {
            continue;
          }
          *customs = tried;
          return;
        }
      }
    }
  }
  // No calls; perhaps results.
  tried = *customs;
  tried.shows_calls = false;
  tried.shows_results = true;
  customs->shows_results = Shows(
      probe.Render(tried, Probe::Conversation(1, kSaid, true), true, true),
      {Numbered(kResult, 0), kSaid});
}

void FindLimits(const Probe& probe, TemplateCustoms* customs) {
  if (!customs->shows_calls) return;
  const auto shows_two = [&] {
    return Shows(
        probe.Render(*customs,
                     Probe::Conversation(2, nullptr, customs->shows_results),
                     true, true),
        {Numbered(kValue, 0), Numbered(kValue, 1)});
  };
  if (!shows_two()) {
    customs->single_calls = true;
    customs->single_calls = shows_two();
  }
  json foreign = Probe::Conversation(1, nullptr, customs->shows_results);
  constexpr char kForeign[] = "call_weft_0123456789";
  foreign[1]["tool_calls"][0]["id"] = kForeign;
  if (customs->shows_results) foreign[2]["tool_call_id"] = kForeign;
  customs->short_ids =
      !Shows(probe.Render(*customs, std::move(foreign), true, true),
             {Numbered(kValue, 0)});
  customs->content_with_calls =
      Shows(probe.Render(*customs,
                         Probe::Conversation(1, kSaid, customs->shows_results),
                         true, true),
            {Numbered(kValue, 0), kSaid});
}

// How much of `turn` is left when its calls are read in this form; nullopt:
// they are not all there.
std::optional<size_t> LeftOver(const CallForm& form, const std::string& turn,
                               const std::string& prompt, int calls) {
  for (const std::string& marker : {form.call_open, form.name_close,
                                    form.parameter_open, form.call_close}) {
    if (!absl::StrContains(turn, marker)) return std::nullopt;
  }
  AnswerForms forms = PlainForms();
  forms.call = form;
  forms.reasoning = ReasoningForms();
  ReaderOptions options;
  options.tools = Tools();
  options.prompt = prompt;
  AnswerReader reader(std::move(forms), std::move(options));
  Answer answer;
  for (const AnswerEvent& event : reader.Push(turn)) answer.Add(event);
  for (const AnswerEvent& event : reader.Finish(false)) answer.Add(event);
  if (answer.calls.size() != static_cast<size_t>(calls)) return std::nullopt;
  for (int i = 0; i < calls; ++i) {
    const json arguments =
        json::parse(answer.calls[i].arguments, nullptr, false);
    if (arguments != Call(i)["function"]["arguments"]) return std::nullopt;
  }
  return answer.content.size();
}

// A form of its own: JSON behind a tag that no row of the table has.
std::optional<CallForm> FormOfTag(const std::string& turn) {
  const size_t name = turn.find(absl::StrCat("\"", kTool, "\""));
  if (name == std::string::npos) return std::nullopt;
  const size_t brace = turn.rfind('{', name);
  if (brace == std::string::npos) return std::nullopt;
  size_t end = turn.find_last_not_of(" \n\t[", brace - 1);
  if (brace == 0 || end == std::string::npos) return std::nullopt;
  const char last = turn[end];
  const size_t begin = last == '>'   ? turn.rfind('<', end)
                       : last == ']' ? turn.rfind('[', end)
                                     : std::string::npos;
  if (begin == std::string::npos) return std::nullopt;
  CallForm form;
  form.name = "the template's own";
  form.call_open = turn.substr(begin, end + 1 - begin);
  form.list = turn.find('[', end + 1) < brace;
  // <x> closes with </x>, and so do [x] and <|x|>.
  for (const char* slash : {"/", "|/"}) {
    std::string close = form.call_open;
    close.insert(1, slash);
    if (*slash == '|') close.erase(3, 1);
    if (absl::StrContains(turn, close)) form.call_close = close;
  }
  return form;
}

void FindCallForm(const Probe& probe, const ChatTemplate& chat_template,
                  const std::function<bool(absl::string_view)>& has_token,
                  TemplateCustoms* customs) {
  customs->forms.call = *NamedForms("hermes").call;
  if (customs->shows_calls) {
    const int calls = customs->single_calls ? 1 : 2;
    const auto before = probe.Render(*customs, {Probe::Question()}, true, true);
    const auto after = probe.Render(
        *customs, Probe::Conversation(calls, nullptr, false), true, false);
    if (before && after) {
      const size_t common = std::mismatch(before->begin(), before->end(),
                                          after->begin(), after->end())
                                .first -
                            before->begin();
      const std::string turn = after->substr(common);
      const std::string prompt = before->substr(0, common);
      std::optional<size_t> least;
      const auto consider = [&](const CallForm& form) {
        const std::optional<size_t> left = LeftOver(form, turn, prompt, calls);
        if (!left || (least && *left >= *least)) return;
        least = left;
        customs->forms.call = form;
        customs->knows_form = true;
      };
      for (const CallForm& form : CallForms()) consider(form);
      if (!customs->knows_form) {
        if (const auto form = FormOfTag(turn)) consider(*form);
      }
      if (customs->knows_form) return;
    }
  }
  for (const CallForm& form : CallForms()) {
    if (!form.signs.empty() && std::all_of(form.signs.begin(), form.signs.end(),
                                           [&](const std::string& sign) {
                                             return absl::StrContains(
                                                 chat_template.source(), sign);
                                           })) {
      customs->forms.call = form;
      customs->knows_form = true;
      return;
    }
  }
  if (!customs->shows_tools) return;
  for (const CallForm& form : CallForms()) {
    if (form.call_open.empty() || !has_token(form.call_open)) continue;
    customs->forms.call = form;
    customs->knows_form = true;
    return;
  }
}

void FindReasoning(const ChatTemplate& chat_template, AnswerForms* forms) {
  for (const ReasoningForm& form : ReasoningForms()) {
    if (forms->reasoning.empty() ||
        absl::StrContains(chat_template.source(), form.open) ||
        absl::StrContains(chat_template.source(), form.close)) {
      forms->reasoning.push_back(form);
    }
  }
}

// --- messages in their shape ---

// With all that may be left out, also of what a parameter is.
json WholeTools(json tools) {
  for (json& tool : tools) {
    tool["type"] = "function";
    json& function = tool["function"];
    json whole = json::object();
    whole["name"] = function["name"];
    const auto description = function.find("description");
    whole["description"] =
        description != function.end() && description->is_string() ? *description
                                                                  : json("");
    json parameters = json::object();
    const auto given = function.find("parameters");
    if (given != function.end() && given->is_object()) parameters = *given;
    if (!parameters.contains("type")) parameters["type"] = "object";
    if (!parameters.contains("properties")) {
      parameters["properties"] = json::object();
    }
    for (json& property : parameters["properties"]) {
      if (property.is_object() && !property.contains("description")) {
        property["description"] = "";
      }
    }
    whole["parameters"] = std::move(parameters);
    for (const auto& [key, value] : function.items()) {
      if (!whole.contains(key)) whole[key] = value;
    }
    function = std::move(whole);
  }
  return tools;
}

bool HasCalls(const json& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array() && !calls->empty();
}

void ShapeArguments(bool text, json* calls) {
  for (json& call : *calls) {
    json& arguments = call["function"]["arguments"];
    if (text && !arguments.is_string()) arguments = WriteJson(arguments);
    if (!text && arguments.is_string()) {
      arguments = ArgumentsObject(arguments.get<std::string>());
    }
  }
}

void SetContent(TemplateCustoms::Content content, json* message) {
  if (content == TemplateCustoms::Content::kAbsent) {
    message->erase("content");
  } else {
    (*message)["content"] =
        content == TemplateCustoms::Content::kNull ? json(nullptr) : json("");
  }
}

bool Empty(const json& message) {
  const auto content = message.find("content");
  return content == message.end() || content->is_null() || *content == "";
}

std::string ContentText(const json& message) {
  const auto content = message.find("content");
  return content != message.end() && content->is_string()
             ? content->get<std::string>()
             : "";
}

// Ids as short as some templates want them; those that are stay. Calls without
// one get one, and results without one that of the call that they follow.
void ShortenIds(json* messages) {
  std::vector<std::string> ids;  // of the last calls
  size_t answered = 0;
  uint64_t calls = 0;
  const auto shortened = [](const std::string& id) {
    return IsShortCallId(id) ? id : ShortCallId(id, 0);
  };
  for (json& message : *messages) {
    if (HasCalls(message)) {
      ids.clear();
      answered = 0;
      for (json& call : message["tool_calls"]) {
        const std::string id = call.value("id", "");
        ids.push_back(id.empty() ? ShortCallId("", ++calls) : shortened(id));
        call["id"] = ids.back();
      }
    } else if (message.value("role", json()) == "tool") {
      const std::string id = message.value("tool_call_id", "");
      if (!id.empty()) {
        message["tool_call_id"] = shortened(id);
      } else if (answered < ids.size()) {
        message["tool_call_id"] = ids[answered];
      }
      ++answered;
    }
  }
}

class Shaper {
 public:
  Shaper(const TemplateCustoms& customs, json messages)
      : customs_(customs), messages_(std::move(messages)) {
    if (customs_.short_ids) ShortenIds(&messages_);
  }

  json Run() {
    for (size_t i = 0; i < messages_.size(); ++i) Add(i);
    for (json& message : shaped_) {
      const auto content = message.find("content");
      if (!customs_.parts || content == message.end()) continue;
      if (!content->is_string()) continue;
      *content = json::array({{{"type", "text"}, {"text", *content}}});
    }
    return std::move(shaped_);
  }

 private:
  void Add(size_t i) {
    const json& message = messages_[i];
    const json role = message.value("role", json());
    if (role == "assistant" && HasCalls(message)) {
      NameCalls(message["tool_calls"]);
      return AddCalls(i);
    }
    if (role == "tool") return AddResult(message);
    if (role == "user" && results_as_user_) {
      shaped_.back()["content"] =
          absl::StrCat(ContentText(shaped_.back()), "\n", ContentText(message));
      results_as_user_ = false;
      return;
    }
    results_as_user_ = false;
    shaped_.push_back(message);
    Reasoning(&shaped_.back());
    // Some templates want a text even of an assistant who said nothing.
    if (role == "assistant" && Empty(message)) shaped_.back()["content"] = "";
  }

  void Reasoning(json* message) const {
    const auto found = message->find("reasoning_content");
    if (customs_.thinking && found != message->end()) {
      (*message)["thinking"] = *found;
    }
  }

  void NameCalls(const json& calls) {
    names_.clear();
    for (const json& call : calls) {
      names_.emplace_back(call.value("id", ""), call["function"]["name"]);
    }
    answered_ = 0;
  }

  void AddCalls(size_t i) {
    json message = messages_[i];
    results_as_user_ = false;
    Reasoning(&message);
    ShapeArguments(customs_.text_arguments, &message["tool_calls"]);
    if (!customs_.shows_calls) {
      const std::string said = ContentText(message);
      message["content"] =
          absl::StrCat(said, said.empty() ? "" : "\n",
                       WriteCalls(*customs_.forms.call, message["tool_calls"]));
      message.erase("tool_calls");
      shaped_.push_back(std::move(message));
      return;
    }
    if (Empty(message) || !customs_.content_with_calls) {
      SetContent(customs_.no_content, &message);
    }
    const size_t calls = message["tool_calls"].size();
    if (!customs_.single_calls || calls < 2) {
      shaped_.push_back(std::move(message));
      return;
    }
    // Each with its result behind it.
    for (size_t c = 0; c < calls; ++c) {
      json one = message;
      one["tool_calls"] = json::array({message["tool_calls"][c]});
      if (c > 0) {
        SetContent(customs_.no_content, &one);
        one.erase("reasoning_content");
        one.erase("thinking");
      }
      shaped_.push_back(std::move(one));
      for (size_t r = i + 1;
           r < messages_.size() && messages_[r].value("role", "") == "tool";
           ++r) {
        const json& result = messages_[r];
        const std::string id = result.value("tool_call_id", "");
        const bool by_place = id.empty() && r - i - 1 == c;
        if (by_place || (!id.empty() && id == names_[c].first)) {
          AddShapedResult(result);
          split_.push_back(&result);
        }
      }
    }
  }

  void AddResult(const json& result) {
    if (std::find(split_.begin(), split_.end(), &result) != split_.end()) {
      return;
    }
    AddShapedResult(result);
  }

  void AddShapedResult(json result) {
    if (!result.contains("name")) {
      const std::string id = result.value("tool_call_id", "");
      for (size_t c = 0; c < names_.size(); ++c) {
        if (id.empty() ? c == answered_ : id == names_[c].first) {
          result["name"] = names_[c].second;
        }
      }
    }
    if (!result.contains("tool_call_id") && answered_ < names_.size()) {
      result["tool_call_id"] = names_[answered_].first;
    }
    ++answered_;
    if (customs_.shows_results) {
      shaped_.push_back(std::move(result));
      return;
    }
    const std::string text = absl::StrCat(
        "<tool_response>\n", ContentText(result), "\n</tool_response>");
    if (results_as_user_) {
      shaped_.back()["content"] =
          absl::StrCat(ContentText(shaped_.back()), "\n", text);
    } else {
      shaped_.push_back({{"role", "user"}, {"content", text}});
      results_as_user_ = true;
    }
  }

  const TemplateCustoms& customs_;
  json messages_;
  json shaped_ = json::array();
  std::vector<std::pair<std::string, json>> names_;  // of the last calls, by id
  size_t answered_ = 0;
  std::vector<const json*> split_;  // results that stand behind their calls
  bool results_as_user_ = false;
};

}  // namespace

absl::StatusOr<std::vector<TextSegment>> RenderConversation(
    const ChatTemplate& chat_template, const TemplateCustoms& customs,
    ChatRequest request) {
  if (request.messages.is_array() &&
      std::all_of(request.messages.begin(), request.messages.end(),
                  [](const json& message) { return message.is_object(); })) {
    request.messages = Shaper(customs, std::move(request.messages)).Run();
  }
  if (request.tools.is_null() && customs.empty_tools) {
    request.tools = json::array();
  }
  auto segments = chat_template.Render(request);
  if (segments.ok() || !absl::IsInvalidArgument(segments.status())) {
    return segments;
  }
  if (request.tools.is_array()) request.tools = WholeTools(request.tools);
  if (request.variables.is_null()) request.variables = json::object();
  // Names of Firefunction's template.
  if (!request.variables.contains("functions")) {
    request.variables["functions"] =
        request.tools.is_array() ? PlainNumbers(request.tools).dump(4) : "";
  }
  if (!request.variables.contains("datetime")) {
    request.variables["datetime"] = absl::FormatTime(
        "%Y-%m-%d %H:%M:%S UTC", request.now, absl::UTCTimeZone());
  }
  // Some take either words or reasoning beside calls.
  for (json& message : request.messages) {
    if (message.is_object() && HasCalls(message) && !Empty(message)) {
      message.erase("thinking");
    }
  }
  auto filled = chat_template.Render(request);
  return filled.ok() ? filled : segments;
}

TemplateCustoms FindCustoms(
    const ChatTemplate& chat_template,
    const std::function<bool(absl::string_view)>& has_token) {
  const Probe probe(chat_template);
  TemplateCustoms customs;
  const auto plain = [&] {
    return probe.Render(customs, {Probe::Question()}, false, true);
  };
  if (!plain()) {
    customs.empty_tools = true;
    customs.empty_tools = plain().has_value();
  }
  constexpr char kQuestion[] = "weft question";
  if (!Shows(plain(), {kQuestion})) {
    customs.parts = true;
    customs.parts = Shows(plain(), {kQuestion});
  }
  customs.thinking =
      absl::StrContains(chat_template.source(), "message.thinking");
  customs.shows_tools =
      Shows(probe.Render(customs, {Probe::Question()}, true, true), {kTool});
  // What a template may have no place for is written as Hermes models do.
  customs.forms = NamedForms("hermes");
  FindShape(probe, &customs);
  FindLimits(probe, &customs);
  FindCallForm(probe, chat_template, has_token, &customs);
  customs.forms.reasoning.clear();
  FindReasoning(chat_template, &customs.forms);
  return customs;
}

}  // namespace weft::answer
