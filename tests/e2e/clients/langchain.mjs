// LangChain's OpenAI classes: node langchain.mjs URL KEY
import assert from 'node:assert/strict';
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';
import { apiKey, model, run, url } from './checks.mjs';

const schema = z.object({ kind: z.enum(['x', 'y']) });
const choose = tool(async ({ kind }) => kind,
  { name: 'choose', description: 'chooses', schema });

const checks = {};
for (const useResponsesApi of [false, true]) {
  const name = useResponsesApi ? 'responses' : 'chat';
  const make = (fields) => new ChatOpenAI({ model, apiKey, useResponsesApi,
    maxRetries: 0, configuration: { baseURL: `${url}/v1` }, ...fields });

  checks[`${name}: a text and its stream`] = async () => {
    const chat = make({ maxTokens: 8, temperature: 0 });
    const whole = await chat.invoke('It is a truth');
    assert.equal(whole.usage_metadata.output_tokens, 8);
    let text = '';
    for await (const part of await chat.stream('It is a truth')) {
      text += part.text;
    }
    assert.equal(text, whole.text);
  };

  checks[`${name}: a tool is called and answered`] = async () => {
    const chat = make({ maxTokens: 200 });
    const ask = new HumanMessage('Choose');
    const call = await chat.bindTools([choose], { tool_choice: 'choose' })
      .invoke([ask]);
    assert.equal(call.tool_calls.length, 1);
    schema.parse(call.tool_calls[0].args);
    const next = await chat.bindTools([choose], { tool_choice: 'none' })
      .invoke([ask, call, new ToolMessage({ content: 'done',
        tool_call_id: call.tool_calls[0].id })]);
    assert.equal(next.getType(), 'ai');
  };

  checks[`${name}: an object of a schema`] = async () => {
    const chat = make({ maxTokens: 200 });
    for (const method of ['jsonSchema', 'functionCalling']) {
      schema.parse(await chat.withStructuredOutput(schema,
        { name: 'choice', method }).invoke('Choose'));
    }
  };
}

await run(checks);
