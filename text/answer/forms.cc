// The table. Sources: the published chat templates of each family, and what
// its model card says of calls.
#include "text/answer/forms.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace weft::answer {
namespace {

// DeepSeek's markers have full-width bars and lower one-eighth blocks.
#define WEFT_BAR "\uff5c"
#define WEFT_GAP "\u2581"
#define WEFT_DEEPSEEK(words) "<" WEFT_BAR words WEFT_BAR ">"
#define WEFT_DSML WEFT_BAR "DSML" WEFT_BAR

CallForm Base(std::string name, CallBody body, std::vector<std::string> signs) {
  CallForm form;
  form.name = std::move(name);
  form.body = body;
  form.signs = std::move(signs);
  return form;
}

enum class Written { kObject, kList };

CallForm Json(std::string name, std::string open, std::string close,
              Written written, std::string arguments_key = "arguments") {
  CallForm form = Base(std::move(name), CallBody::kJson, {open});
  form.call_open = std::move(open);
  form.call_close = std::move(close);
  form.list = written == Written::kList;
  form.arguments_key = std::move(arguments_key);
  return form;
}

CallForm Named(std::string name, std::string open, std::string name_close,
               std::string close, std::vector<std::string> signs) {
  CallForm form = Base(std::move(name), CallBody::kNamed, std::move(signs));
  form.call_open = std::move(open);
  form.name_close = std::move(name_close);
  form.call_close = std::move(close);
  return form;
}

CallForm Section(CallForm form, std::string open, std::string close) {
  form.section_open = std::move(open);
  form.section_close = std::move(close);
  return form;
}

struct Tag {
  std::string open, key_close, close;
};
CallForm Parameters(std::string name, Tag call, Tag value,
                    std::vector<std::string> signs) {
  CallForm form =
      Named(std::move(name), std::move(call.open), std::move(call.key_close),
            std::move(call.close), std::move(signs));
  form.body = CallBody::kParameters;
  form.parameter_open = std::move(value.open);
  form.key_close = std::move(value.key_close);
  form.value_close = std::move(value.close);
  return form;
}

// <invoke name="f"><parameter name="k">v</parameter></invoke>, each tag with a
// prefix.
CallForm Invoke(std::string name, const std::string& prefix,
                const std::string& section, bool attributes) {
  CallForm form = Section(
      Parameters(
          std::move(name),
          {"<" + prefix + "invoke name=\"", "\">", "</" + prefix + "invoke>"},
          {"<" + prefix + "parameter name=\"", "\">",
           "</" + prefix + "parameter>"},
          {"<" + prefix + "invoke name=", prefix + section}),
      "<" + prefix + section + ">", "</" + prefix + section + ">");
  if (attributes) {
    form.key_close = "\"";
    form.attributes_close = ">";
    form.written_attributes = {" string=\"true\"", " string=\"false\""};
  }
  return form;
}

void AddParameters(std::vector<CallForm>* forms) {
  const auto add = [&](CallForm form) { forms->push_back(std::move(form)); };
  const Tag function = {"<function=", ">", "</function>"};
  const Tag parameter = {"<parameter=", ">", "</parameter>"};
  add(Section(Parameters("seed-oss", function, parameter, {"<seed:tool_call>"}),
              "<seed:tool_call>", "</seed:tool_call>"));
  CallForm qwen = Section(Parameters("qwen3-coder", function, parameter,
                                     {"<function=", "<parameter="}),
                          "<tool_call>", "</tool_call>");
  qwen.value_lines = true;
  add(std::move(qwen));
  CallForm glm =
      Parameters("glm4", {"<tool_call>", "", "</tool_call>"},
                 {"<arg_key>", "</arg_key>", "</arg_value>"}, {"<arg_key>"});
  glm.value_open = "<arg_value>";
  add(std::move(glm));
  CallForm hunyuan =
      Section(Parameters("hunyuan3",
                         {"<tool_call:opensource>", "<tool_sep:opensource>",
                          "</tool_call:opensource>"},
                         {"<arg_key:opensource>", "</arg_key:opensource>",
                          "</arg_value:opensource>"},
                         {"<arg_key:opensource>"}),
              "<tool_calls:opensource>", "</tool_calls:opensource>");
  hunyuan.value_open = "<arg_value:opensource>";
  add(std::move(hunyuan));
  add(Invoke("minimax-m2", "", "minimax:tool_call", false));
  forms->back().section_open = "<minimax:tool_call>";
  add(Invoke("deepseek-v3.2", WEFT_DSML, "function_calls", true));
  add(Invoke("deepseek-v4", WEFT_DSML, "tool_calls", true));
  add(Invoke("muse", "atem:", "function_calls", false));
  add(Invoke("invoke", "", "function_calls", false));
  const std::string bar = "]<]minimax[>[";
  add(Section(
      Parameters("minimax-m3",
                 {bar + "<invoke name=\"", "\">", bar + "</invoke>"},
                 {bar + "<", ">", bar + "</\1>"}, {bar, "<invoke name="}),
      bar + "<tool_call>", bar + "</tool_call>"));
  CallForm kimi = Section(
      Parameters("kimi-k3",
                 {"<|open|>call tool=\"", "\"", "<|close|>call<|sep|>"},
                 {"<|open|>argument key=\"", "\"", "<|close|>argument<|sep|>"},
                 {"<|open|>", "<|sep|>", "argument"}),
      "<|open|>tools<|sep|>", "<|close|>tools<|sep|>");
  kimi.attributes_close = "<|sep|>";
  kimi.written_attributes = {" type=\"string\"", " type=\"object\""};
  add(std::move(kimi));
  add(Parameters("minicpm5", {"<function name=\"", "\">", "</function>"},
                 {"<param name=\"", "\">", "</param>"},
                 {"<function name=", "<param name="}));
}

void AddNamed(std::vector<CallForm>* forms) {
  const auto add = [&](CallForm form) { forms->push_back(std::move(form)); };
  CallForm mistral = Named("mistral-args", "[TOOL_CALLS]", "[ARGS]", "",
                           {"[TOOL_CALLS]", "[ARGS]"});
  mistral.id_open = "[CALL_ID]";
  add(std::move(mistral));
  add(Section(
      Named("deepseek-r1",
            WEFT_DEEPSEEK("tool" WEFT_GAP "call" WEFT_GAP
                          "begin") "function" WEFT_DEEPSEEK("tool" WEFT_GAP
                                                            "sep"),
            "```json",
            "```" WEFT_DEEPSEEK("tool" WEFT_GAP "call" WEFT_GAP "end"),
            {WEFT_DEEPSEEK("tool" WEFT_GAP "sep"), "```json"}),
      WEFT_DEEPSEEK("tool" WEFT_GAP "calls" WEFT_GAP "begin"),
      WEFT_DEEPSEEK("tool" WEFT_GAP "calls" WEFT_GAP "end")));
  add(Section(Named("deepseek-v3.1",
                    WEFT_DEEPSEEK("tool" WEFT_GAP "call" WEFT_GAP "begin"),
                    WEFT_DEEPSEEK("tool" WEFT_GAP "sep"),
                    WEFT_DEEPSEEK("tool" WEFT_GAP "call" WEFT_GAP "end"),
                    {WEFT_DEEPSEEK("tool" WEFT_GAP "sep")}),
              WEFT_DEEPSEEK("tool" WEFT_GAP "calls" WEFT_GAP "begin"),
              WEFT_DEEPSEEK("tool" WEFT_GAP "calls" WEFT_GAP "end")));
  CallForm kimi =
      Section(Named("kimi-k2", "<|tool_call_begin|>",
                    "<|tool_call_argument_begin|>", "<|tool_call_end|>",
                    {"<|tool_call_begin|>", "<|tool_call_argument_begin|>"}),
              "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>");
  kimi.name_prefix = "functions.";
  kimi.numbered = true;
  add(std::move(kimi));
  CallForm solar =
      Section(Named("solar", "<|tool_call:begin|>", "<|tool_call:args|>",
                    "<|tool_call:end|>", {"<|tool_call:begin|>"}),
              "<|tool_calls|>", "<|calls|>");
  solar.id_close = "<|tool_call:name|>";
  add(std::move(solar));
  CallForm functionary = Named("functionary-v3.2", ">>>", "\n", "", {">>>all"});
  functionary.content_name = "all";
  add(std::move(functionary));
  add(Named("function-tag", "<function=", ">", "</function>", {"<function="}));
}

void AddJson(std::vector<CallForm>* forms) {
  const auto add = [&](CallForm form) { forms->push_back(std::move(form)); };
  add(Json("mistral", "[TOOL_CALLS]", "", Written::kList));
  add(Json("hermes", "<tool_call>", "</tool_call>", Written::kObject));
  add(Json("phi4-mini", "<|tool_call|>", "<|/tool_call|>", Written::kList));
  forms->back().signs = {"<|/tool_call|>"};
  add(Json("granite", "<|tool_call|>", "", Written::kList));
  add(Json("nemotron", "<TOOLCALL>", "</TOOLCALL>", Written::kList));
  add(Json("tool-calls", "<tool_calls>", "</tool_calls>", Written::kList));
  add(Json("granite-20b", "<function_call>", "", Written::kObject));
  add(Json("functools", "functools", "", Written::kList));
  add(Json("gigachat3.1", "<|function_call|>", "", Written::kObject));
  add(Json("gigachat3", "function call<|role_sep|>", "", Written::kObject));
  add(Json("command-r7b", "<|START_ACTION|>", "<|END_ACTION|>", Written::kList,
           "parameters"));
  forms->back().name_key = "tool_name";
  add(Section(Json("command-r", "```json", "```", Written::kList, "parameters"),
              "Action:", ""));
  forms->back().name_key = "tool_name";
  forms->back().signs = {"Action:", "```json"};
  add(Json("apertus", "<|tools_prefix|>", "<|tools_suffix|>", Written::kList));
  forms->back().name_key = "";
  add(Section(Json("internlm2", "<|plugin|>", "<|action_end|>",
                   Written::kObject, "parameters"),
              "<|action_start|>", ""));
}

void AddPython(std::vector<CallForm>* forms) {
  const auto add = [&](const char* name, const char* open, const char* close,
                       std::vector<std::string> signs) {
    forms->push_back(Base(name, CallBody::kPython, std::move(signs)));
    forms->back().call_open = open;
    forms->back().call_close = close;
    return &forms->back();
  };
  CallForm* minicpm =
      add("minicpm3", "```python", "```", {"<|tool_call_start|>", "```python"});
  minicpm->section_open = "<|tool_call_start|>";
  minicpm->section_close = "<|tool_call_end|>";
  add("lfm2", "<|tool_call_start|>", "<|tool_call_end|>",
      {"<|tool_list_start|>"})
      ->list = true;
  add("olmo3", "<function_calls>", "</function_calls>", {"<function_calls>"});
  CallForm* llama = add("pythonic", "", "", {"[func_name1("});
  llama->section_open = "<|python_start|>";
  llama->section_close = "<|python_end|>";
  llama->list = true;
}

void AddBraces(std::vector<CallForm>* forms) {
  const auto add = [&](const char* name, const char* open, const char* close,
                       const char* quote) {
    CallForm form = Base(name, CallBody::kBraces, {open});
    form.call_open = open;
    form.call_close = close;
    form.name_prefix = "call:";
    form.quote = quote;
    forms->push_back(std::move(form));
  };
  add("gemma4", "<|tool_call>", "<tool_call|>", "<|\"|>");
  add("function-gemma", "<start_function_call>", "<end_function_call>",
      "<escape>");
}

std::vector<CallForm> MakeCallForms() {
  std::vector<CallForm> forms;
  forms.push_back(Base("harmony", CallBody::kHarmony,
                       {"<|channel|>", "<|message|>", "<|start|>"}));
  forms.back().section_open = "<|start|>";
  forms.back().call_open = "<|channel|>";
  forms.back().name_close = "<|message|>";
  forms.back().name_prefix = "functions.";
  forms.back().call_close = "<|call|>";
  AddParameters(&forms);
  AddNamed(&forms);
  AddBraces(&forms);
  AddJson(&forms);
  AddPython(&forms);
  // What the whole answer is has no marker that tells it from others: last.
  CallForm llama = Json("llama3", "", "", Written::kObject, "parameters");
  llama.section_open = "<|python_tag|>";
  llama.signs = {"\"parameters\": ", "\"name\": "};
  forms.push_back(std::move(llama));
  return forms;
}

}  // namespace

const std::vector<CallForm>& CallForms() {
  static const auto* const forms = new std::vector<CallForm>(MakeCallForms());
  return *forms;
}

const std::vector<ReasoningForm>& ReasoningForms() {
  static const auto* const forms = new std::vector<ReasoningForm>{
      // The first is looked for whatever the template says.
      {"<think>", "</think>", "", ""},
      {"[THINK]", "[/THINK]", "", ""},
      {"<seed:think>", "</seed:think>", "", ""},
      {"<mm:think>", "</mm:think>", "", ""},
      {"<think:opensource>", "</think:opensource>", "", ""},
      {"<thought>", "</thought>", "", ""},
      {"<reasoning>", "</reasoning>", "", ""},
      {"\u25c1think\u25b7", "\u25c1/think\u25b7", "", ""},
      {"<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>",
       "<|END_RESPONSE|>"},
      {"<|open|>think<|sep|>", "<|close|>think<|sep|>",
       "<|open|>response<|sep|>", "<|close|>response<|sep|>"},
      {"<|channel>thought", "<channel|>", "", ""},
      {"<|inner_prefix|>", "<|inner_suffix|>", "", ""},
      {"<|thought_start|>", "<|thought_end|>", "", ""},
      {"<|think|>", "<|end|>", "<|begin|>assistant<|content|>", ""},
      {"Here is my thought process:", "Here is my response:", "", ""},
      {"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", "",
       "[END FINAL RESPONSE]"},
  };
  return *forms;
}

std::vector<std::string> AnswerForms::Markers() const {
  std::vector<std::string> markers;
  const auto add = [&](std::initializer_list<std::string> texts) {
    for (const std::string& text : texts) {
      if (!text.empty()) markers.push_back(text);
    }
  };
  for (const ReasoningForm& form : reasoning) {
    add({form.open, form.close, form.content_open, form.content_close});
  }
  if (!call) return markers;
  if (harmony()) {
    add({"<|constrain|>", "<|end|>", "<|return|>"});
  }
  add({call->section_open, call->section_close, call->call_open,
       call->call_close, call->name_close, call->id_close, call->id_open,
       call->parameter_open, call->key_close, call->attributes_close,
       call->value_open, call->value_close, call->quote});
  return markers;
}

std::string OpenReasoning(const AnswerForms& forms, absl::string_view prompt) {
  prompt = absl::StripTrailingAsciiWhitespace(prompt);
  for (const ReasoningForm& form : forms.reasoning) {
    if (absl::EndsWith(prompt, form.open)) return form.close;
  }
  return "";
}

AnswerForms PlainForms() {
  AnswerForms forms;
  forms.reasoning = {ReasoningForms().front()};
  return forms;
}

AnswerForms NamedForms(absl::string_view name) {
  AnswerForms forms = PlainForms();
  for (const CallForm& form : CallForms()) {
    if (form.name == name) forms.call = form;
  }
  return forms;
}

}  // namespace weft::answer
