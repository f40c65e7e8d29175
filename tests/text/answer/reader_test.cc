#include "text/answer/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::answer {
namespace {

using json = nlohmann::ordered_json;

json Tool(const char* name, const char* parameters) {
  return {
      {"type", "function"},
      {"function", {{"name", name}, {"parameters", json::parse(parameters)}}}};
}

const json& Tools() {
  static const auto* const tools = new json(
      json::array({Tool("weather", R"({"type": "object", "properties": {
           "city": {"type": "string"}, "days": {"type": "integer"},
           "where": {"type": "object"}}})"),
                   Tool("now", R"({"type": "object", "properties": {}})"),
                   Tool("save", R"({"type": "object", "properties": {
           "text": {"type": "string"}, "any": {}}})")}));
  return *tools;
}

ReaderOptions Options() {
  ReaderOptions options;
  options.tools = Tools();
  options.id = "x";
  return options;
}

// What is told, with events of one kind that follow each other joined.
std::string Shown(const std::vector<AnswerEvent>& events) {
  std::string shown;
  AnswerEvent::Kind last = AnswerEvent::kCallEnd;
  for (const AnswerEvent& event : events) {
    const bool part = event.kind != AnswerEvent::kCallBegin &&
                      event.kind != AnswerEvent::kCallEnd;
    if (!part || event.kind != last) {
      absl::StrAppend(&shown, "\n", event.kind, " ", event.call, " ", event.id,
                      " ", event.end, " ");
    }
    shown += event.text;
    last = event.kind;
  }
  return shown;
}

std::vector<AnswerEvent> Events(const AnswerForms& forms,
                                const ReaderOptions& options,
                                const std::vector<std::string>& parts,
                                bool cut) {
  AnswerReader reader(forms, options);
  std::vector<AnswerEvent> all;
  const auto add = [&](std::vector<AnswerEvent> events) {
    for (AnswerEvent& event : events) all.push_back(std::move(event));
  };
  for (const std::string& part : parts) add(reader.Push(part));
  add(reader.Finish(cut));
  return all;
}

// However the text comes, the same is told.
Answer Read(const AnswerForms& forms, const std::string& text,
            const ReaderOptions& options = Options(), bool cut = false) {
  const std::vector<AnswerEvent> whole = Events(forms, options, {text}, cut);
  const std::string shown = Shown(whole);
  std::vector<std::string> bytes;
  for (const char c : text) bytes.push_back(std::string(1, c));
  EXPECT_EQ(Shown(Events(forms, options, bytes, cut)), shown) << text;
  for (size_t i = 0; i <= text.size(); ++i) {
    EXPECT_EQ(
        Shown(Events(forms, options, {text.substr(0, i), text.substr(i)}, cut)),
        shown)
        << text << "\ncut at " << i;
  }
  Answer answer;
  for (const AnswerEvent& event : whole) answer.Add(event);
  return answer;
}

std::string Calls(const Answer& answer) {
  return absl::StrJoin(
      answer.calls, "; ", [](std::string* out, const Answer::Call& call) {
        const json arguments = json::parse(call.arguments, nullptr, false);
        absl::StrAppend(out, call.name, " ",
                        arguments.is_discarded()
                            ? absl::StrCat("cut ", call.arguments)
                            : arguments.dump());
      });
}

constexpr char kTwoCalls[] = R"(weather {"city":"Bern","days":7}; now {})";

struct Written {
  const char* form;
  const char* text;
};

// One text for each form, in the manner of its models: content, then two calls.
const std::vector<Written>& AllForms() {
  static const auto* const written = new std::vector<Written>{
      {"hermes",
       "Let me look.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": "
       "{\"city\": \"Bern\", \"days\": 7}}\n</tool_call>\n<tool_call>\n"
       "{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
      {"qwen3-coder",
       "Let me look.\n\n<tool_call>\n<function=weather>\n<parameter=city>\n"
       "Bern\n</parameter>\n<parameter=days>\n7\n</parameter>\n</function>\n"
       "</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>"},
      {"qwen3-coder",
       "Let me look.<function=weather>\n<parameter=city>\nBern\n</parameter>\n"
       "<parameter=days>\n7\n</parameter>\n</tool_call>\n"
       "<function=now></function>"},
      {"seed-oss",
       "Let me look.<seed:tool_call>\n<function=weather>\n<parameter=city>Bern"
       "</parameter>\n<parameter=days>7</parameter>\n</function>\n"
       "</seed:tool_call>\n<seed:tool_call><function=now></function>"
       "</seed:tool_call>"},
      {"glm4",
       "Let me look.\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>"
       "Bern</arg_value>\n<arg_key>days</arg_key>\n<arg_value>7</arg_value>\n"
       "</tool_call>\n<tool_call>now</tool_call>"},
      {"glm4",
       "Let me look.<tool_call>weather<arg_key>city</arg_key><arg_value>"
       "Bern</arg_value><arg_key>days</arg_key><arg_value>7</arg_value>"
       "</tool_call><tool_call>now\n</tool_call>"},
      {"hunyuan3",
       "Let me look.<tool_calls:opensource>\n<tool_call:opensource>weather"
       "<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n"
       "<arg_value:opensource>Bern</arg_value:opensource>\n"
       "<arg_key:opensource>days</arg_key:opensource>\n<arg_value:opensource>7"
       "</arg_value:opensource>\n</tool_call:opensource>\n"
       "<tool_call:opensource>now<tool_sep:opensource>\n"
       "</tool_call:opensource>\n</tool_calls:opensource>"},
      {"minimax-m2",
       "Let me look.\n<minimax:tool_call>\n<invoke name=\"weather\">\n"
       "<parameter name=\"city\">Bern</parameter>\n<parameter name=\"days\">7"
       "</parameter>\n</invoke>\n<invoke name=\"now\">\n</invoke>\n"
       "</minimax:tool_call>"},
      {"minimax-m3",
       "Let me look.]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke "
       "name=\"weather\">]<]minimax[>[<city>Bern]<]minimax[>[</city>]<]minimax"
       "[>[<days>7]<]minimax[>[</days>]<]minimax[>[</invoke>\n]<]minimax[>["
       "<invoke name=\"now\">]<]minimax[>[</invoke>\n]<]minimax[>["
       "</tool_call>"},
      {"deepseek-v3.2",
       "Let me look.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke "
       "name=\"weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">"
       "Bern</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" "
       "string=\"false\">7</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜"
       "invoke name=\"now\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"},
      {"deepseek-v4",
       "Let me look.\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke "
       "name=\"weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">"
       "Bern</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" "
       "string=\"false\">7</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜"
       "invoke name=\"now\">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>"},
      {"muse",
       "Let me look.<atem:function_calls>\n<atem:invoke name=\"weather\">\n"
       "<atem:parameter name=\"city\">Bern</atem:parameter>\n<atem:parameter "
       "name=\"days\">7</atem:parameter>\n</atem:invoke>\n"
       "</atem:function_calls><atem:function_calls><atem:invoke name=\"now\">"
       "</atem:invoke></atem:function_calls>"},
      {"invoke",
       "Let me look.<function_calls>\n<invoke name=\"weather\">\n<parameter "
       "name=\"city\">Bern</parameter>\n<parameter name=\"days\">7</parameter>"
       "\n</invoke>\n<invoke name=\"now\"></invoke></function_calls>"},
      {"kimi-k3",
       "Let me look.<|open|>tools<|sep|><|open|>call tool=\"weather\" "
       "index=\"1\"<|sep|><|open|>argument key=\"city\" type=\"string\"<|sep|>"
       "Bern<|close|>argument<|sep|><|open|>argument key=\"days\" "
       "type=\"number\"<|sep|>7<|close|>argument<|sep|><|close|>call<|sep|>"
       "<|open|>call tool=\"now\" index=\"2\"<|sep|><|close|>call<|sep|>"
       "<|close|>tools<|sep|>"},
      {"minicpm5",
       "Let me look.\n<function name=\"weather\"><param name=\"city\">Bern"
       "</param><param name=\"days\">7</param></function>\n"
       "<function name=\"now\"></function>"},
      {"mistral-args",
       "Let me look.[TOOL_CALLS]weather[ARGS]{\"city\": \"Bern\", \"days\": 7}"
       "[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS]{}"},
      {"mistral-args",
       "Let me look.[TOOL_CALLS] [{\"name\": \"weather\", \"arguments\": "
       "{\"city\": \"Bern\", \"days\": 7}}, {\"name\": \"now\", "
       "\"arguments\": {}}]"},
      {"deepseek-r1",
       "Let me look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function"
       "<｜tool▁sep｜>weather\n```json\n{\"city\": \"Bern\", \"days\": 7}\n```"
       "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n"
       "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {"deepseek-v3.1",
       "Let me look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather"
       "<｜tool▁sep｜>{\"city\": \"Bern\", \"days\": 7}<｜tool▁call▁end｜>"
       "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
       "<｜tool▁calls▁end｜>"},
      {"kimi-k2",
       "Let me look.<|tool_calls_section_begin|><|tool_call_begin|>"
       "functions.weather:0<|tool_call_argument_begin|>{\"city\": \"Bern\", "
       "\"days\": 7}<|tool_call_end|><|tool_call_begin|>functions.now:1"
       "<|tool_call_argument_begin|>{}<|tool_call_end|>"
       "<|tool_calls_section_end|>"},
      {"solar",
       "Let me look.<|tool_calls|><|tool_call:begin|>abc<|tool_call:name|>"
       "weather<|tool_call:args|>{\"city\": \"Bern\", \"days\": 7}"
       "<|tool_call:end|><|tool_call:begin|>abd<|tool_call:name|>now"
       "<|tool_call:args|>{}<|tool_call:end|>"},
      {"functionary-v3.2",
       "Let me look.>>>weather\n{\"city\": \"Bern\", \"days\": 7}>>>now\n{}"},
      {"function-tag",
       "Let me look.<function=weather>{\"city\": \"Bern\", \"days\": 7}"
       "</function><function=now>{}</function>"},
      {"mistral",
       "Let me look.[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": "
       "{\"city\": \"Bern\", \"days\": 7}, \"id\": \"abcdefghi\"}, {\"name\": "
       "\"now\", \"arguments\": {}, \"id\": \"abcdefghj\"}]"},
      {"phi4-mini",
       "Let me look.<|tool_call|>[{\"name\": \"weather\", \"arguments\": "
       "{\"city\": \"Bern\", \"days\": 7}}, {\"name\": \"now\", "
       "\"arguments\": {}}]<|/tool_call|>"},
      {"granite",
       "Let me look.<|tool_call|>[{\"name\": \"weather\", \"arguments\": "
       "{\"city\": \"Bern\", \"days\": 7}}, {\"name\": \"now\", "
       "\"arguments\": {}}]"},
      {"nemotron",
       "Let me look.<TOOLCALL>[{\"name\": \"weather\", \"arguments\": "
       "{\"city\": \"Bern\", \"days\": 7}}, {\"name\": \"now\", "
       "\"arguments\": {}}]</TOOLCALL>"},
      {"tool-calls",
       "Let me look.<tool_calls>\n{\"name\": \"weather\", \"arguments\": "
       "{\"city\": \"Bern\", \"days\": 7}}\n{\"name\": \"now\", "
       "\"arguments\": {}}\n</tool_calls>"},
      {"granite-20b",
       "Let me look.<function_call> {\"name\": \"weather\", \"arguments\": "
       "{\"city\": \"Bern\", \"days\": 7}} <function_call> {\"name\": \"now\", "
       "\"arguments\": {}}"},
      {"functools",
       "Let me look. functools[{\"name\": \"weather\", \"arguments\": "
       "{\"city\": \"Bern\", \"days\": 7}}, {\"name\": \"now\", "
       "\"arguments\": {}}]"},
      {"gigachat3.1",
       "Let me look.<|function_call|>{\"name\": \"weather\", \"arguments\": "
       "{\"city\": \"Bern\", \"days\": 7}}<|function_call|>{\"name\": \"now\", "
       "\"arguments\": {}}"},
      {"gigachat3",
       "Let me look.function call<|role_sep|>\n{\"name\": \"weather\", "
       "\"arguments\": {\"city\": \"Bern\", \"days\": 7}}\nfunction call"
       "<|role_sep|>\n{\"name\": \"now\", \"arguments\": {}}"},
      {"command-r7b",
       "Let me look.<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", "
       "\"tool_name\": \"weather\", \"parameters\": {\"city\": \"Bern\", "
       "\"days\": 7}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"now\", "
       "\"parameters\": {}}\n]<|END_ACTION|>"},
      {"command-r",
       "Let me look.\nAction:\n```json\n[\n    {\n        \"tool_name\": "
       "\"weather\",\n        \"parameters\": {\"city\": \"Bern\", \"days\": 7}"
       "\n    },\n    {\"tool_name\": \"now\", \"parameters\": {}}\n]```"},
      {"apertus",
       "Let me look.<|tools_prefix|>[{\"weather\": {\"city\": \"Bern\", "
       "\"days\": 7}}, {\"now\": {}}]<|tools_suffix|>"},
      {"internlm2",
       "Let me look.<|action_start|><|plugin|>\n{\"name\": \"weather\", "
       "\"parameters\": {\"city\": \"Bern\", \"days\": 7}}<|action_end|>"
       "<|action_start|><|plugin|>\n{\"name\": \"now\", \"parameters\": {}}"
       "<|action_end|>"},
      {"minicpm3",
       "Let me look.<|tool_call_start|>\n```python\nweather(city=\"Bern\", "
       "days=7)\nnow()\n```\n<|tool_call_end|>"},
      {"lfm2",
       "Let me look.<|tool_call_start|>[weather(city=\"Bern\", days=7), now()]"
       "<|tool_call_end|>"},
      {"olmo3",
       "Let me look.<function_calls>weather(city='Bern', days=7)\nnow()"
       "</function_calls>"},
      {"gemma4",
       "Let me look.<|tool_call>call:weather{city:<|\"|>Bern<|\"|>,days:7}"
       "<tool_call|><|tool_call>call:now{}<tool_call|>"},
      {"function-gemma",
       "Let me look.<start_function_call>call:weather{city:<escape>Bern"
       "<escape>,days:7}<end_function_call><start_function_call>call:now{}"
       "<end_function_call>"},
      {"harmony",
       "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>"
       "commentary<|message|>Let me look.<|end|><|start|>assistant<|channel|>"
       "commentary to=functions.weather <|constrain|>json<|message|>{\"city\": "
       "\"Bern\", \"days\": 7}<|call|><|start|>assistant to=functions.now"
       "<|channel|>commentary json<|message|>{}"},
  };
  return *written;
}

TEST(AnswerReader, ReadsEveryFormHoweverItComes) {
  for (const Written& written : AllForms()) {
    SCOPED_TRACE(written.form);
    const Answer answer = Read(NamedForms(written.form), written.text);
    EXPECT_EQ(answer.content, "Let me look.") << written.text;
    EXPECT_EQ(Calls(answer), kTwoCalls) << written.text;
    for (const Answer::Call& call : answer.calls) EXPECT_TRUE(call.whole);
  }
}

TEST(AnswerReader, FormsWithoutMarkersAreTheWholeAnswer) {
  for (const char* text :
       {"{\"name\": \"weather\", \"parameters\": {\"city\": \"Bern\", "
        "\"days\": 7}}; {\"name\": \"now\", \"parameters\": {}}",
        "<|python_tag|>{\"name\": \"weather\", \"parameters\": {\"city\": "
        "\"Bern\", \"days\": 7}}\n{\"name\": \"now\", \"parameters\": {}}",
        "\n[{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\", "
        "\"days\": 7}}, {\"name\": \"now\"}]"}) {
    const Answer answer = Read(NamedForms("llama3"), text);
    EXPECT_EQ(Calls(answer), kTwoCalls) << text;
    EXPECT_EQ(answer.content, "") << text;
  }
  for (const char* text : {"[weather(city=\"Bern\", days=7), now()]",
                           "<|python_start|>[weather(city='Bern', days=7), "
                           "now()]<|python_end|>"}) {
    const Answer answer = Read(NamedForms("pythonic"), text);
    EXPECT_EQ(Calls(answer), kTwoCalls) << text;
    EXPECT_EQ(answer.content, "") << text;
  }
  for (const char* text :
       {"{\"city\": \"Bern\"}", "[1, 2]", "Look: {\"name\": \"now\"}", "{",
        "[now", " {\"name\": \"other\", \"parameters\": {}}"}) {
    EXPECT_EQ(Read(NamedForms("llama3"), text).content, text);
    EXPECT_EQ(Read(NamedForms("pythonic"), text).content, text);
  }
}

TEST(AnswerReader, PromptsMayHaveBegunTheCall) {
  ReaderOptions options = Options();
  options.prompt = "<|end_header_id|>\n\n>>>";
  const AnswerForms forms = NamedForms("functionary-v3.2");
  EXPECT_EQ(Read(forms, "all\nHello.", options).content, "Hello.");
  EXPECT_EQ(Calls(Read(forms, "now\n{}", options)), "now {}");
  const Answer both = Read(forms, "all\nWell.>>>now\n{}", options);
  EXPECT_EQ(both.content, "Well.");
  EXPECT_EQ(Calls(both), "now {}");
}

TEST(AnswerReader, ReasoningIsApart) {
  const AnswerForms forms = NamedForms("hermes");
  const Answer opened = Read(forms, "<think>\nHm.\n</think>\n\nYes. ");
  EXPECT_EQ(opened.reasoning, "Hm.");
  EXPECT_EQ(opened.content, "Yes.");
  ReaderOptions options = Options();
  options.prompt = "<|im_start|>assistant\n<think>\n";
  const Answer by_prompt = Read(forms, "Hm.\n\nSo.\n</think>\n\nYes.", options);
  EXPECT_EQ(by_prompt.reasoning, "Hm.\n\nSo.");
  EXPECT_EQ(by_prompt.content, "Yes.");
  options.prompt = "<think>\n\n</think>\n\n";
  EXPECT_EQ(Read(forms, "Yes.", options).content, "Yes.");
  // Elsewhere it is a mention.
  EXPECT_EQ(Read(forms, "Say <think>.</think>").content,
            "Say <think>.</think>");
  const Answer cut = Read(forms, "<think>Hm. <", Options(), true);
  EXPECT_EQ(cut.reasoning, "Hm. <");
  EXPECT_EQ(cut.content, "");
}

TEST(AnswerReader, KeepsReasoningWhereItIsAskedFor) {
  ReaderOptions options = Options();
  options.separate_reasoning = false;
  const std::string text =
      "<think>\nA <tool_call>{\"name\": \"now\"}</tool_call>\n</think>\n\nYes.";
  const Answer answer = Read(NamedForms("hermes"), text, options);
  EXPECT_EQ(answer.content, text);
  EXPECT_TRUE(answer.calls.empty());
}

TEST(AnswerReader, EveryFormOfReasoning) {
  for (const ReasoningForm& form : ReasoningForms()) {
    AnswerForms forms = NamedForms("hermes");
    forms.reasoning = {form};
    const std::string said =
        absl::StrCat("Hm.\n", form.close, "\n", form.content_open, "Yes.",
                     form.content_close);
    const Answer opened = Read(forms, absl::StrCat(form.open, "\n", said));
    EXPECT_EQ(opened.reasoning, "Hm.") << form.open;
    EXPECT_EQ(opened.content, "Yes.") << form.open;
    ReaderOptions options = Options();
    options.prompt = absl::StrCat("assistant", form.open, "\n");
    EXPECT_EQ(Read(forms, said, options).reasoning, "Hm.") << form.open;
  }
  const Answer channels =
      Read(NamedForms("harmony"),
           "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
           "<|channel|>final<|message|>Yes.<|return|>");
  EXPECT_EQ(channels.reasoning, "Hm.");
  EXPECT_EQ(channels.content, "Yes.");
}

TEST(AnswerReader, ReasoningHidesNoCallAndHasNone) {
  const std::string call =
      "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  const AnswerForms forms = NamedForms("hermes");
  EXPECT_EQ(Calls(Read(forms, "<think>A <tool_call> helps.</think>\n" + call)),
            "now {}");
  const Answer draft = Read(forms, "<think>No: " + call + "</think>\nHello.");
  EXPECT_EQ(draft.content, "Hello.");
  EXPECT_TRUE(draft.calls.empty());
}

// Not only the first: a draft in what looks like reasoning is none either.
TEST(AnswerReader, LaterReasoningHasNoCallsEither) {
  const std::string call =
      "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  const AnswerForms forms = NamedForms("hermes");
  const std::string draft = absl::StrCat("<think>No: ", call, "</think>");
  const Answer later =
      Read(forms, absl::StrCat("<think>a</think>b", draft, "d"));
  EXPECT_EQ(later.reasoning, "a");
  EXPECT_EQ(later.content, absl::StrCat("b", draft, "d"));
  EXPECT_TRUE(later.calls.empty());
  const Answer next = Read(forms, absl::StrCat("b", draft, "d ", call));
  EXPECT_EQ(next.content, absl::StrCat("b", draft, "d"));
  EXPECT_EQ(Calls(next), "now {}");
  // Right behind the first it is more reasoning.
  const Answer twice =
      Read(forms, absl::StrCat("<think>a</think>\n", draft, "\nd"));
  EXPECT_EQ(twice.content, "d");
  EXPECT_TRUE(absl::StrContains(twice.reasoning, "now")) << twice.reasoning;
  EXPECT_TRUE(twice.calls.empty());
  // One that never closes was a mention, and hides nothing.
  const Answer mention = Read(forms, absl::StrCat("Write <think>. ", call));
  EXPECT_EQ(mention.content, "Write <think>.");
  EXPECT_EQ(Calls(mention), "now {}");
}

// However large a call is, it is one, and the time it takes grows as it does.
TEST(AnswerReader, LargeCallsAreCalls) {
  const std::string large(1 << 20, 'x');
  const std::string before =
      absl::StrCat(R"(<tool_call>{"arguments": {"text": ")", large,
                   R"("}, "name": "save"}</tool_call>)");
  const std::string behind = absl::StrCat(
      R"(<tool_call>{"name": "save", "arguments": {"text": "a"}, "id": ")",
      large, R"("}</tool_call>End.)");
  for (const std::string& text : {before, behind}) {
    AnswerReader reader(NamedForms("hermes"), Options());
    Answer answer;
    // As tokens come.
    for (size_t at = 0; at < text.size(); at += 4) {
      for (const AnswerEvent& event : reader.Push(text.substr(at, 4))) {
        answer.Add(event);
      }
    }
    for (const AnswerEvent& event : reader.Finish(false)) answer.Add(event);
    ASSERT_EQ(answer.calls.size(), 1u);
    EXPECT_TRUE(answer.calls[0].whole);
    EXPECT_LT(answer.content.size(), 10u);
  }
}

TEST(AnswerReader, OneCallAloneWhereNoMoreAreWanted) {
  const std::string call =
      "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
  ReaderOptions options = Options();
  options.one_call = true;
  const Answer answer = Read(NamedForms("hermes"),
                             absl::StrCat("So: ", call, call, "End."), options);
  EXPECT_EQ(answer.content, "So:");
  EXPECT_EQ(Calls(answer), "now {}");
  // One that is none is not the first.
  const std::string bad = "<tool_call>{\"name\": \"now\", \"arguments\": {,";
  const Answer second =
      Read(NamedForms("hermes"), absl::StrCat(bad, call, call), options);
  EXPECT_EQ(second.content, bad);
  EXPECT_EQ(Calls(second), "now {}");
}

TEST(AnswerReader, ABadCallDoesNotLoseTheNext) {
  const std::string good =
      "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  for (const std::string bad :
       {"<tool_call>{\"name\": \"weather\", \"arg</tool_call>",
        "<tool_call>{\"name\": \"other\", \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"weather\", \"arguments\": 7}</tool_call>",
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": "
        "\"Be</tool_call>",
        "<tool_call>{\"name\": \"weather\", \"arguments\": \"{1}\"}"
        "</tool_call>",
        "<tool_call>", "<tool_call> helps."}) {
    const Answer answer = Read(NamedForms("hermes"), bad + "\n" + good);
    EXPECT_EQ(Calls(answer), "now {}") << bad;
    EXPECT_EQ(answer.content, bad);
  }
}

// What is no call is content as it was written, spaces and line breaks too.
TEST(AnswerReader, ABrokenCallStaysAsItWasWritten) {
  for (const std::string arguments :
       {R"({"city":"C:\dir"})", R"({"city": "Bern",})", R"({"days": NaN})",
        "{\"city\": \"x\ny\"}", "{\"city\": \"x\n  y\"}  "}) {
    const std::string text = absl::StrCat(
        "<tool_call>{\"name\": \"weather\", \"arguments\": ", arguments,
        "}</tool_call>");
    for (const std::string before : {"", "Text ", "Text\n\n"}) {
      const Answer answer =
          Read(NamedForms("hermes"), absl::StrCat(before, text, " and so on"));
      EXPECT_EQ(answer.content, absl::StrCat(before, text, " and so on"));
      EXPECT_TRUE(answer.calls.empty());
    }
    const Answer thought = Read(NamedForms("hermes"),
                                absl::StrCat("<think>Hm.</think>\n\n", text));
    EXPECT_EQ(thought.content, text);
  }
  const std::string line =
      "So: <|tool_call_start|>[save(text='line\nbreak')]<|tool_call_end|>";
  EXPECT_EQ(Read(NamedForms("lfm2"), line).content, line);
}

TEST(AnswerReader, TextBetweenCallsStays) {
  const std::string call =
      "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
  const Answer answer = Read(
      NamedForms("hermes"), "One.\n\n" + call + "\nand:\n" + call + "\nEnd.\n");
  EXPECT_EQ(answer.content, "One.\n\n\nand:\n\nEnd.");
  EXPECT_EQ(Calls(answer), "now {}; now {}");
}

TEST(AnswerReader, ACallEndsWithItsArguments) {
  const Answer json = Read(
      NamedForms("hermes"),
      R"(<tool_call>{"name": "save", "arguments": {"text": "x </tool_call> y"}})"
      "</tool_call>");
  EXPECT_EQ(Calls(json), R"(save {"text":"x </tool_call> y"})");
  EXPECT_EQ(json.content, "");
  const Answer tags = Read(NamedForms("qwen3-coder"),
                           "<tool_call><function=save><parameter=text>\na "
                           "</parameter> b\n\n</parameter>\n</function>"
                           "</tool_call>");
  EXPECT_EQ(Calls(tags), R"(save {"text":"a </parameter> b\n"})");
}

TEST(AnswerReader, NumbersKeepTheirSpelling) {
  const std::string arguments =
      R"({"n": 123456789012345678901234567890, "p": 1.10, "e": 1E-7})";
  const Answer hermes = Read(NamedForms("hermes"),
                             "<tool_call>{\"name\": \"save\", "
                             "\"arguments\": " +
                                 arguments + "}</tool_call>");
  ASSERT_EQ(hermes.calls.size(), 1u);
  EXPECT_EQ(hermes.calls[0].arguments, arguments);
  const Answer lfm = Read(NamedForms("lfm2"),
                          "<|tool_call_start|>[save(n=1234567890123456789012345"
                          "67890, p=1.10, e=1E-7)]<|tool_call_end|>");
  ASSERT_EQ(lfm.calls.size(), 1u);
  EXPECT_EQ(lfm.calls[0].arguments, arguments);
}

TEST(AnswerReader, ArgumentsMayBeText) {
  const Answer answer = Read(
      NamedForms("hermes"),
      R"(<tool_call>{"name": "weather", "arguments": )"
      R"("{\"city\": \"B\\u00e9rn \ud83d\ude00\"}", "id": "x"}</tool_call>)");
  ASSERT_EQ(answer.calls.size(), 1u);
  EXPECT_EQ(answer.calls[0].arguments, "{\"city\": \"B\\u00e9rn \U0001F600\"}");
  EXPECT_EQ(Calls(Read(NamedForms("hermes"),
                       R"(<tool_call>{"name": "now", "arguments": ""})")),
            "now {}");
  // Half of a surrogate pair, which is no character.
  const Answer half = Read(NamedForms("hermes"),
                           R"(<tool_call>{"name": "weather", "arguments": )"
                           R"("{\"city\": \"\ud800\"}"}</tool_call>)");
  ASSERT_EQ(half.calls.size(), 1u) << half.content;
  EXPECT_EQ(half.calls[0].arguments, "{\"city\": \"\uFFFD\"}");
  EXPECT_EQ(Calls(Read(NamedForms("hermes"),
                       R"(<tool_call>{"arguments": {"city": "A"}, )"
                       R"("name": "weather"}</tool_call>)")),
            R"(weather {"city":"A"})");
}

TEST(AnswerReader, ValuesBetweenTagsHaveTheirSchemasType) {
  const Answer answer = Read(
      NamedForms("qwen3-coder"),
      "<function=weather>\n<parameter=city>\n7\n</"
      "parameter>\n<parameter=days>\n"
      "1.10\n</parameter>\n<parameter=where>\n{\"a\": [1, \"<b>\"]}\n"
      "</parameter>\n<parameter=other>\nTrue\n</parameter>\n<parameter=text>\n"
      "say \"hi\"\n\tthere\n</parameter>\n</function>");
  ASSERT_EQ(answer.calls.size(), 1u);
  EXPECT_EQ(answer.calls[0].arguments,
            R"({"city": "7", "days": 1.10, "where": {"a": [1, "<b>"]}, )"
            R"("other": true, "text": "say \"hi\"\n\tthere"})");
}

TEST(AnswerReader, LiteralsBecomeJson) {
  const Answer python =
      Read(NamedForms("pythonic"),
           R"([save(a='it\'s "x"', b=[1, -2.5, None], c={'k': (True, )" +
               std::string("\"\\x41\\u00e9\\n\\d\")}, d=False)]"));
  EXPECT_EQ(Calls(python),
            "save {\"a\":\"it's \\\"x\\\"\",\"b\":[1,-2.5,null],\"c\":{\"k\":"
            "[true,\"A\u00e9\\n\\\\d\"]},\"d\":false}");
  const Answer braces = Read(
      NamedForms("gemma4"),
      R"(<|tool_call>call:save{a:<|"|>x "y", {z}<|"|>,b:[1,<|"|>q<|"|>,null],)"
      R"(c:{d:true,e:{}}}<tool_call|>)");
  EXPECT_EQ(
      Calls(braces),
      R"(save {"a":"x \"y\", {z}","b":[1,"q",null],"c":{"d":true,"e":{}}})");
  EXPECT_EQ(Read(NamedForms("pythonic"), "[save(a=1 b=2)]").content,
            "[save(a=1 b=2)]");
}

TEST(AnswerReader, PythonsLiteralsBecomeJson) {
  const AnswerForms forms = NamedForms("pythonic");
  // The value as Python has it, and as it is told.
  const std::vector<std::pair<std::string, std::string>> values = {
      {R"('\U0001F600')", R"("\ud83d\ude00")"},
      {R"('\u00e9\xe9\N{BULLET}')", R"("\u00e9\u00e9\\N{BULLET}")"},
      {R"('a\0b\012\101\q')", R"("a\u0000b\u000aA\\q")"},
      {R"('\a\v\'\"')", R"("\u0007\u000b'\"")"},
      {"'a\\\nb'", R"("ab")"},
      {R"(r'\d+\'')", R"("\\d+\\'")"},
      {"(1)", "1"},
      {"(1,)", "[1]"},
      {"()", "[]"},
      {"((1), [(2,), ('a' 'b')])", R"([1, [[2], "ab"]])"},
      {"[1,]", "[1]"},
      {"{'a': (1), 'b': [],}", R"({"a": 1, "b": []})"},
      {"{1: 2, True: None, 1.5: {2: 3}}",
       R"({"1": 2, "true": null, "1.5": {"2": 3}})"},
      {".5", "0.5"},
      {"-.5", "-0.5"},
      {"1.", "1.0"},
      {"1.e5", "1.0e5"},
      {"+1", "1"},
      {"0x1F", "31"},
      {"-0b101", "-5"},
      {"0o17", "15"},
      {"0xFFFFFFFFFFFFFFFFFFFF", "1208925819614629174706175"},
      {"1_000", "1000"},
      {"0x_ff", "255"},
      {"1.10", "1.10"},
      {"'''a\n'b' \"c\"'''", R"("a\n'b' \"c\"")"},
      {"\"\"\"x\"\"\"", R"("x")"},
      {"''", R"("")"},
      {"'x' 'y'\n\"z\"", R"("xyz")"},
      {R"('x' r'\y')", R"("x\\y")"},
      {"['a', 'b' 'c']", R"(["a", "bc"])"}};
  for (const auto& [python, told] : values) {
    const Answer answer =
        Read(forms, absl::StrCat("[save(text=", python, ", any=2)]"));
    ASSERT_EQ(answer.calls.size(), 1u) << python << "\n" << answer.content;
    EXPECT_TRUE(answer.calls[0].whole) << python;
    // Escapes may be spelled in two ways.
    EXPECT_EQ(json::parse(answer.calls[0].arguments, nullptr, false),
              json::parse(absl::StrCat("{\"text\": ", told, ", \"any\": 2}")))
        << python << "\n"
        << answer.calls[0].arguments;
  }
  EXPECT_EQ(Read(forms, "[save(any=1.10)]").calls[0].arguments,
            R"({"any": 1.10})");
  // What Python does not take is no value.
  for (const char* bad : {"[,]",
                          "[1,,2]",
                          "[1 2]",
                          "{,}",
                          "{'a'}",
                          "{'a': }",
                          "{'a': 1 'b': 2}",
                          "1__0",
                          "_1",
                          "1_",
                          "0xg",
                          "0x",
                          "0b2",
                          ".",
                          "+",
                          "(1",
                          "(1]",
                          "1 2",
                          "'\\xg0'",
                          "'\\U00110000'",
                          "'a\nb'",
                          "b'a'",
                          "x",
                          "(1:2)",
                          "['a': 1]"}) {
    const Answer answer = Read(forms, absl::StrCat("[save(any=", bad, ")]"));
    EXPECT_TRUE(answer.calls.empty() || !answer.calls[0].whole) << bad;
  }
}

TEST(AnswerReader, SchemasSayInEveryWayWhatIsAString) {
  ReaderOptions options = Options();
  options.tools = json::array({Tool("f", R"x({"type": "object", "properties": {
      "zip": {"anyOf": [{"type": "string"}, {"type": "null"}]},
      "code": {"$ref": "#/$defs/code"},
      "maybe": {"type": ["string", "null"]},
      "both": {"allOf": [{"$ref": "#/$defs/text"}, {"minLength": 1}]},
      "one": {"oneOf": [{"const": "1"}, {"enum": ["2", "3"]}]},
      "object": {"type": "object"},
      "list": {"anyOf": [{"type": "array"}, {"type": "null"}]},
      "number": {"type": ["number", "null"]},
      "mixed": {"type": ["string", "boolean"]},
      "listed": {"enum": ["1", 2]},
      "any": {}},
      "patternProperties": {"^text": {"type": "string"}},
      "$defs": {"code": {"type": "string", "enum": ["1", "2"]},
                "text": {"type": "string"}}})x")});
  struct Value {
    const char *name, *written, *told;
  };
  const std::vector<Value> values = {
      {"zip", "90210", R"("90210")"},
      {"zip", "null", "null"},
      {"zip", "None", "null"},
      {"zip", "nullable", R"("nullable")"},
      {"zip", "", R"("")"},
      {"zip", "[1]", R"("[1]")"},
      {"zip", "N", R"("N")"},
      {"zip", "\"a\"", R"("\"a\"")"},
      {"code", "1", R"("1")"},
      {"maybe", "true", R"("true")"},
      {"both", "7", R"("7")"},
      {"one", "2", R"("2")"},
      {"text_a", "7", R"("7")"},
      {"object", "{'a': True}", R"({"a": true})"},
      {"object", R"({"a": 1.10})", R"({"a": 1.10})"},
      {"list", "['a', (1)]", R"(["a", 1])"},
      {"list", "None", "null"},
      {"number", "+1_0", "10"},
      {"number", "null", "null"},
      {"number", "many", R"("many")"},
      {"mixed", "true", "true"},
      {"mixed", "90210", R"("90210")"},
      {"mixed", "a", R"("a")"},
      {"listed", "1", R"("1")"},
      {"listed", "2", "2"},
      {"any", "1", "1"},
      {"any", "+49 1", R"("+49 1")"},
      {"any", "+491", R"("+491")"},
      {"any", "{'a': 1}", R"({"a": 1})"},
      {"other", "1", "1"}};
  for (const char* form : {"qwen3-coder", "glm4", "minimax-m2"}) {
    for (const Value& value : values) {
      const std::string name = value.name, written = value.written;
      std::string text;
      if (form == std::string("qwen3-coder")) {
        text =
            absl::StrCat("<tool_call>\n<function=f>\n<parameter=", name, ">\n",
                         written, "\n</parameter>\n</function>\n</tool_call>");
      } else if (form == std::string("glm4")) {
        text = absl::StrCat("<tool_call>f\n<arg_key>", name,
                            "</arg_key>\n<arg_value>", written,
                            "</arg_value>\n</tool_call>");
      } else {
        text = absl::StrCat(
            "<minimax:tool_call><invoke name=\"f\"><parameter name=\"", name,
            "\">", written, "</parameter></invoke></minimax:tool_call>");
      }
      const Answer answer = Read(NamedForms(form), text, options);
      ASSERT_EQ(answer.calls.size(), 1u) << form << " " << text;
      EXPECT_EQ(answer.calls[0].arguments,
                absl::StrCat("{\"", name, "\": ", value.told, "}"))
          << form << " " << written;
    }
  }
}

TEST(AnswerReader, CutCallsArePartialCalls) {
  for (const Written& written : AllForms()) {
    const std::string text = written.text;
    const std::string form = written.form;
    const size_t second = text.rfind("now");
    const size_t first = text.find("weather");
    for (size_t size = first + 7; size < second; ++size) {
      AnswerReader reader(NamedForms(form), Options());
      Answer answer;
      for (const AnswerEvent& event : reader.Push(text.substr(0, size))) {
        answer.Add(event);
      }
      for (const AnswerEvent& event : reader.Finish(/*cut=*/true)) {
        answer.Add(event);
      }
      // An unfinished name may be another tool's.
      EXPECT_LE(answer.calls.size(), 1u)
          << form << ": " << text.substr(0, size);
      EXPECT_EQ(answer.content.find("weather"), std::string::npos)
          << form << ": " << text.substr(0, size);
      if (answer.calls.empty()) continue;
      EXPECT_EQ(answer.calls[0].name, "weather");
      EXPECT_TRUE(absl::StrContains("{\"city\": \"Bern\", \"days\": 7}",
                                    answer.calls[0].arguments))
          << form << ": " << answer.calls[0].arguments;
    }
  }
  const Answer answer =
      Read(NamedForms("hermes"),
           R"(<tool_call>{"name": "weather", "arguments": {"city": "Be)",
           Options(), true);
  ASSERT_EQ(answer.calls.size(), 1u);
  EXPECT_EQ(answer.calls[0].arguments, R"({"city": "Be)");
  EXPECT_FALSE(answer.calls[0].whole);
  EXPECT_EQ(answer.content, "");
}

// Its name is known before the model has written it.
TEST(AnswerReader, AForcedCallIsOneHoweverEarlyItIsCut) {
  for (const Written& written : AllForms()) {
    const AnswerForms forms = NamedForms(written.form);
    const std::string text = written.text;
    // As the grammar has it: nothing before the call.
    const std::string before = "Let me look.";
    const size_t look = text.find(before);
    size_t begin = look == std::string::npos
                       ? 0
                       : text.find_first_not_of(" \n", look + before.size());
    const std::string end = "<|end|>";  // of harmony's content
    if (text.compare(begin, end.size(), end) == 0) begin += end.size();
    ReaderOptions options = Options();
    options.forced_tool = "weather";
    const size_t name = text.find("weather");
    for (size_t size = 1; begin + size < name + 7; ++size) {
      AnswerReader reader(forms, options);
      Answer answer;
      for (const AnswerEvent& event : reader.Push(text.substr(begin, size))) {
        answer.Add(event);
      }
      for (const AnswerEvent& event : reader.Finish(/*cut=*/true)) {
        answer.Add(event);
      }
      ASSERT_EQ(answer.calls.size(), 1u)
          << written.form << ": " << text.substr(begin, size);
      EXPECT_EQ(answer.calls[0].name, "weather");
      EXPECT_EQ(answer.calls[0].arguments, "");
      EXPECT_FALSE(answer.calls[0].whole);
      EXPECT_EQ(answer.content, "")
          << written.form << ": " << text.substr(begin, size);
    }
  }
  ReaderOptions options = Options();
  options.forced_tool = "weather";
  options.prompt = "<think>";
  const Answer thinking = Read(NamedForms("hermes"), "Hm", options, true);
  EXPECT_EQ(thinking.reasoning, "Hm");
  EXPECT_TRUE(thinking.calls.empty());
}

TEST(AnswerReader, ArgumentsComeInParts) {
  for (const Written& written : AllForms()) {
    AnswerReader reader(NamedForms(written.form), Options());
    const std::string text = written.text;
    bool begun = false, city = false, ended = false;
    for (const char c : text) {
      for (const AnswerEvent& event : reader.Push(std::string(1, c))) {
        begun |= event.kind == AnswerEvent::kCallBegin;
        if (!ended && event.kind == AnswerEvent::kCallArguments) {
          EXPECT_LE(event.text.size(), 12u) << written.form;
          city |= event.text == "e";  // of Bern
        }
        ended |= event.kind == AnswerEvent::kCallEnd;
      }
    }
    EXPECT_TRUE(begun && city) << written.form;
  }
}

TEST(AnswerReader, IdsAreNineLettersAndDigits) {
  const std::string calls =
      "<tool_call>{\"name\": \"now\"}</tool_call>"
      "<tool_call>{\"name\": \"now\"}</tool_call>";
  const Answer answer = Read(NamedForms("hermes"), calls);
  ASSERT_EQ(answer.calls.size(), 2u);
  for (const Answer::Call& call : answer.calls) {
    EXPECT_THAT(call.id, testing::MatchesRegex("[A-Za-z0-9]{9}"));
  }
  EXPECT_NE(answer.calls[0].id, answer.calls[1].id);
  ReaderOptions other = Options();
  other.id = "y";
  EXPECT_NE(Read(NamedForms("hermes"), calls, other).calls[0].id,
            answer.calls[0].id);
}

TEST(AnswerReader, WithoutToolsNothingIsACall) {
  ReaderOptions none;
  const std::string text = "<tool_call>{\"name\": \"now\"}</tool_call>";
  EXPECT_EQ(Read(NamedForms("hermes"), text, none).content, text);
  EXPECT_EQ(Read(PlainForms(), text).content, text);
  EXPECT_EQ(Read(PlainForms(), "  a \n").content, "  a \n");
  EXPECT_EQ(Read(PlainForms(), " \n").content, " \n");
}

// Whatever a model writes, what is told does not depend on how it comes, and
// no work runs away.
TEST(AnswerReader, RandomMixesOfMarkersAreReadTheSame) {
  std::mt19937 random(1);
  for (const CallForm& form : CallForms()) {
    const AnswerForms forms = NamedForms(form.name);
    std::vector<std::string> words = forms.Markers();
    for (const char* word : {"weather",
                             "now",
                             "{\"name\": \"now\"",
                             "\"arguments\": {",
                             "}",
                             "]",
                             "[",
                             "\"",
                             ",",
                             ": ",
                             "city",
                             "Bern",
                             " ",
                             "\n",
                             "7",
                             "<",
                             "(",
                             ")",
                             "=",
                             "functions.",
                             ":0",
                             "call:",
                             "to=functions.now",
                             "analysis",
                             "\"parameters\": {\"city\": \"a\"}",
                             "assistant",
                             "```"}) {
      words.push_back(word);
    }
    for (int round = 0; round < 60; ++round) {
      std::string text;
      std::vector<std::string> parts;
      for (int i = 0; i < 24; ++i) {
        parts.push_back(words[random() % words.size()]);
        text += parts.back();
      }
      const bool cut = random() % 2 == 0;
      const std::string whole = Shown(Events(forms, Options(), {text}, cut));
      EXPECT_EQ(Shown(Events(forms, Options(), parts, cut)), whole)
          << form.name << ": " << text;
      std::vector<std::string> bytes;
      for (const char c : text) bytes.push_back(std::string(1, c));
      EXPECT_EQ(Shown(Events(forms, Options(), bytes, cut)), whole)
          << form.name << ": " << text;
    }
  }
}

}  // namespace
}  // namespace weft::answer
