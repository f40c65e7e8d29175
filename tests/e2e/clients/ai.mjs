// Vercel's AI SDK with its OpenAI provider, which asks /v1/responses unless told
// otherwise: node ai.mjs URL KEY
import assert from 'node:assert/strict';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { apiKey, model, run, url } from './checks.mjs';

const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey });
const prompt = 'It is a truth';
const schema = z.object({ kind: z.enum(['x', 'y']) });

const checks = {};
for (const [name, language] of [['responses', openai(model)],
  ['chat', openai.chat(model)]]) {
  checks[`${name}: a text and its stream`] = async () => {
    const asked = { model: language, prompt, system: 'Be kind.',
      maxOutputTokens: 8, temperature: 0, maxRetries: 0 };
    const whole = await generateText(asked);
    assert.ok(whole.text.length > 0);
    assert.equal(whole.finishReason, 'length');
    assert.equal(whole.usage.outputTokens, 8);
    const stream = streamText(asked);
    let text = '';
    for await (const part of stream.textStream) text += part;
    assert.equal(text, whole.text);
    assert.equal((await stream.usage).outputTokens, 8);
  };

  checks[`${name}: a tool is called and answered`] = async () => {
    const called = [];
    const choose = tool({ description: 'chooses', inputSchema: schema,
      execute: async ({ kind }) => { called.push(kind); return { kind }; } });
    const result = await generateText({ model: language, prompt, maxRetries: 0,
      tools: { choose }, maxOutputTokens: 200, stopWhen: stepCountIs(2),
      prepareStep: ({ stepNumber }) =>
        ({ toolChoice: stepNumber === 0 ? 'required' : 'none' }) });
    assert.equal(called.length, 1);
    assert.equal(result.steps.length, 2);
    assert.equal(result.steps[0].finishReason, 'tool-calls');
    const stream = streamText({ model: language, prompt, tools: { choose },
      toolChoice: 'required', maxOutputTokens: 200, maxRetries: 0 });
    const calls = [];
    for await (const part of stream.fullStream) {
      if (part.type === 'error') throw part.error;
      if (part.type === 'tool-call') calls.push(part.input);
    }
    assert.equal(calls.length, 1);
    schema.parse(calls[0]);
  };

  checks[`${name}: an object of a schema`] = async () => {
    const result = await generateText({ model: language, prompt,
      output: Output.object({ schema }), maxOutputTokens: 200, maxRetries: 0 });
    schema.parse(result.output);
  };
}

await run(checks);
