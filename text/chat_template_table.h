// Chat templates by name, for models whose file has none, or a wrong one. A new
// one is one row.
//
// Each is the published shape of a family for plain conversations: no tools, no
// reasoning. They see `text(message)`, the content as text (kContentMacro in
// chat_template.cc).
//
// Sources: the families' published tokenizer_config.json.
#pragma once

#include "absl/strings/string_view.h"

namespace weft {

struct ChatTemplateRow {
  absl::string_view name;
  absl::string_view source;
};

inline constexpr ChatTemplateRow kChatTemplates[] = {
    {"chatml", R"(
{%- for message in messages %}
  {{- '<|im_start|>' ~ message.role ~ '\n' ~ text(message) ~ '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<|im_start|>assistant\n' }}
{%- endif %}
)"},
    {"plain", R"(
{%- for message in messages %}
  {%- if message.role == 'system' %}
    {{- text(message) ~ '\n\n' }}
  {%- else %}
    {{- message.role | capitalize ~ ': ' ~ text(message) ~ '\n' }}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- 'Assistant:' }}
{%- endif %}
)"},
    {"command-r", R"(
{{- bos_token }}
{%- for message in messages %}
  {%- set role = {'user': 'USER', 'assistant': 'CHATBOT'} %}
  {{- '<|START_OF_TURN_TOKEN|><|' ~ role.get(message.role, 'SYSTEM') }}
  {{- '_TOKEN|>' ~ (text(message) if message.role == 'system' else
                    text(message) | trim) ~ '<|END_OF_TURN_TOKEN|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}
{%- endif %}
)"},
    {"deepseek", R"(
{{- bos_token }}
{%- for message in messages %}
  {%- if message.role == 'user' %}
    {{- '<｜User｜>' ~ text(message) }}
  {%- elif message.role == 'assistant' %}
    {{- '<｜Assistant｜>' ~ text(message) ~ eos_token }}
  {%- else %}
    {{- text(message) }}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<｜Assistant｜>' }}
{%- endif %}
)"},
    {"gemma", R"(
{{- bos_token }}
{%- set opening = namespace(text='') %}
{%- for message in messages %}
  {%- if message.role == 'system' %}
    {%- set opening.text = text(message) ~ '\n\n' %}
  {%- else %}
    {{- '<start_of_turn>' }}
    {{- 'model' if message.role == 'assistant' else message.role }}
    {{- '\n' ~ opening.text ~ text(message) | trim ~ '<end_of_turn>\n' }}
    {%- set opening.text = '' %}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<start_of_turn>model\n' }}
{%- endif %}
)"},
    {"llama2", R"(
{%- set opening = namespace(text='') %}
{%- for message in messages %}
  {%- if message.role == 'system' %}
    {%- set opening.text = '<<SYS>>\n' ~ text(message) ~ '\n<</SYS>>\n\n' %}
  {%- elif message.role == 'assistant' %}
    {{- ' ' ~ text(message) | trim ~ ' ' ~ eos_token }}
  {%- else %}
    {{- bos_token ~ '[INST] ' ~ opening.text ~ text(message) | trim }}
    {{- ' [/INST]' }}
    {%- set opening.text = '' %}
  {%- endif %}
{%- endfor %}
)"},
    {"llama3", R"(
{{- bos_token }}
{%- for message in messages %}
  {{- '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\n\n' }}
  {{- text(message) | trim ~ '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
)"},
    // From version 3 of Mistral's tokenisers on: the system message stands before
    // the last question.
    {"mistral", R"(
{{- bos_token }}
{%- set opening = namespace(text='', place=0) %}
{%- for message in messages %}
  {%- if message.role == 'system' %}
    {%- set opening.text = text(message) ~ '\n\n' %}
  {%- elif message.role == 'user' %}
    {%- set opening.place = loop.index %}
  {%- endif %}
{%- endfor %}
{%- for message in messages %}
  {%- if message.role == 'assistant' %}
    {{- ' ' ~ text(message) | trim ~ eos_token }}
  {%- elif message.role != 'system' %}
    {{- '[INST] ' ~ (opening.text if loop.index == opening.place else '') }}
    {{- text(message) ~ '[/INST]' }}
  {%- endif %}
{%- endfor %}
)"},
    {"phi3", R"(
{%- for message in messages %}
  {{- '<|' ~ message.role ~ '|>\n' ~ text(message) ~ '<|end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<|assistant|>\n' }}
{%- endif %}
)"},
    {"vicuna", R"(
{%- for message in messages %}
  {%- if message.role == 'system' %}
    {{- text(message) ~ ' ' }}
  {%- elif message.role == 'assistant' %}
    {{- 'ASSISTANT: ' ~ text(message) ~ eos_token }}
  {%- else %}
    {{- 'USER: ' ~ text(message) ~ ' ' }}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- 'ASSISTANT:' }}
{%- endif %}
)"},
    {"zephyr", R"(
{%- for message in messages %}
  {{- '<|' ~ message.role ~ '|>\n' ~ text(message) ~ eos_token ~ '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<|assistant|>\n' }}
{%- endif %}
)"},
};

}  // namespace weft
