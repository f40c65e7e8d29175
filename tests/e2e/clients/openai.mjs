// OpenAI's own client against a server: node openai.mjs URL KEY
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { apiKey, model, run, url } from './checks.mjs';

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
const messages = [{ role: 'user', content: 'hello' }];

const checks = {
  async 'models are listed'() {
    const ids = [];
    for await (const one of client.models.list()) ids.push(one.id);
    assert.equal(ids.length, 1);
    assert.equal((await client.models.retrieve(ids[0])).id, ids[0]);
  },

  async 'a chat'() {
    const answer = await client.chat.completions.create(
      { model, messages, max_completion_tokens: 5, temperature: 0 });
    assert.equal(answer.object, 'chat.completion');
    assert.equal(typeof answer.choices[0].message.content, 'string');
    assert.equal(answer.choices[0].message.role, 'assistant');
    assert.equal(answer.usage.completion_tokens, 5);
    assert.equal(answer.choices[0].finish_reason, 'length');
  },

  async 'a stream is the same text'() {
    const body = { model, messages, max_tokens: 12, seed: 3 };
    const whole = await client.chat.completions.create(body);
    const stream = await client.chat.completions.create(
      { ...body, stream: true, stream_options: { include_usage: true } });
    let text = '', usage = null, finish = null;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? '';
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(finish, whole.choices[0].finish_reason);
    assert.equal(usage.total_tokens, whole.usage.total_tokens);
    const helper = client.chat.completions.stream(body);
    assert.equal(await helper.finalContent(), text);
  },

  async 'several choices with log-probabilities'() {
    const answer = await client.chat.completions.create({ model, messages,
      n: 3, max_tokens: 4, logprobs: true, top_logprobs: 2, seed: 1 });
    assert.deepEqual(answer.choices.map((choice) => choice.index), [0, 1, 2]);
    for (const choice of answer.choices) {
      for (const token of choice.logprobs.content) {
        assert.ok(token.logprob <= 0);
        assert.equal(token.top_logprobs.length, 2);
      }
    }
  },

  async 'completions'() {
    const answer = await client.completions.create({ model,
      prompt: ['one', 'two'], max_tokens: 3, logprobs: 1, echo: false });
    assert.equal(answer.choices.length, 2);
    assert.equal(answer.choices[0].logprobs.tokens.length, 3);
  },

  async 'tools are taken'() {
    const answer = await client.chat.completions.create({ model, messages,
      max_tokens: 4, tool_choice: 'auto', tools: [{ type: 'function',
        function: { name: 'f', parameters: { type: 'object' } } }] });
    assert.ok(answer.choices[0].message);
  },

  async 'a forced call in a stream, and its second turn'() {
    const tools = [{ type: 'function', function: { name: 'choose',
      parameters: { type: 'object', properties: { kind: { enum: ['x', 'y'] } },
        required: ['kind'], additionalProperties: false } } }];
    const stream = client.chat.completions.stream({ model, messages, tools,
      tool_choice: 'required', max_tokens: 200 });
    const { message, finish_reason } =
      (await stream.finalChatCompletion()).choices[0];
    assert.equal(finish_reason, 'tool_calls');
    const call = message.tool_calls[0];
    assert.match(JSON.parse(call.function.arguments).kind, /^[xy]$/);
    const answer = await client.chat.completions.create({ model, tools,
      max_tokens: 3, messages: [...messages, message,
        { role: 'tool', tool_call_id: call.id, content: 'done' }] });
    assert.ok(answer.choices[0].message);
  },

  async 'responses'() {
    const first = await client.responses.create({ model, input: 'It is',
      instructions: 'Be kind.', max_output_tokens: 8, temperature: 0 });
    assert.equal(first.status, 'incomplete');
    assert.ok(first.output_text.length > 0);
    const stream = await client.responses.create({ model, input: 'It is',
      instructions: 'Be kind.', max_output_tokens: 8, temperature: 0,
      stream: true });
    let text = '', last = null;
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta') text += event.delta;
      last = event;
    }
    assert.equal(text, first.output_text);
    assert.equal(last.type, 'response.incomplete');
    const second = await client.responses.create({ model, input: 'And then?',
      previous_response_id: first.id, max_output_tokens: 4 });
    assert.equal(second.previous_response_id, first.id);
    assert.ok(second.usage.input_tokens > first.usage.input_tokens - 20);
    assert.equal((await client.responses.retrieve(first.id)).id, first.id);
    await client.responses.delete(first.id);
    await assert.rejects(client.responses.retrieve(first.id),
      OpenAI.NotFoundError);
  },

  async 'responses with tools'() {
    const tools = [{ type: 'function', name: 'choose', strict: true,
      parameters: { type: 'object', properties: { kind: { enum: ['x', 'y'] } },
        required: ['kind'], additionalProperties: false } }];
    const helper = client.responses.stream({ model, input: 'Choose', tools,
      tool_choice: 'required', max_output_tokens: 200 });
    const answer = await helper.finalResponse();
    const call = answer.output.find((item) => item.type === 'function_call');
    assert.match(JSON.parse(call.arguments).kind, /^[xy]$/);
    const next = await client.responses.create({ model, tools,
      tool_choice: 'none', max_output_tokens: 3, store: false,
      input: [{ role: 'user', content: 'Choose' }, ...answer.output,
        { type: 'function_call_output', call_id: call.call_id,
          output: 'done' }] });
    assert.equal(next.output[0].type, 'message');
  },

  async 'a schema'() {
    const answer = await client.responses.create({ model, input: 'Choose',
      max_output_tokens: 200, text: { format: { type: 'json_schema', name: 'n',
        strict: true, schema: { type: 'object', additionalProperties: false,
          properties: { kind: { enum: ['x', 'y'] } }, required: ['kind'] } } } });
    assert.match(JSON.parse(answer.output_text).kind, /^[xy]$/);
  },

  async 'errors have their class'() {
    await assert.rejects(client.chat.completions.create({ model, messages: [] }),
      (error) => error instanceof OpenAI.BadRequestError &&
        error.param === 'messages' && error.status === 400);
    await assert.rejects(
      client.chat.completions.create({ model, messages, n: 1000 }),
      OpenAI.BadRequestError);
    await assert.rejects(client.completions.create(
      { model, prompt: 'word '.repeat(900), stream: true }),
      (error) => error instanceof OpenAI.BadRequestError &&
        error.type === 'exceed_context_size_error');
    await assert.rejects(client.models.retrieve('nothing'),
      OpenAI.NotFoundError);
    const stranger = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'wrong',
      maxRetries: 0 });
    await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
  },

  async 'a stream may be left'() {
    const stream = await client.chat.completions.create(
      { model, messages, stream: true, max_tokens: 400 });
    for await (const chunk of stream) if (chunk.choices[0].delta.content) break;
    assert.ok(stream.controller.signal.aborted);
  },
};

await run(checks);
