// OpenAI's own client against a server: node check.mjs URL KEY
// Exits with 1 at the first thing that is not as a user of the client expects.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const [url, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
const model = 'any';
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

for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
  } catch (error) {
    console.error(`FAILED ${name}:`, error);
    process.exit(1);
  }
  console.log(`ok ${name}`);
}
