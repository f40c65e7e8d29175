// Anthropic's client: node anthropic.mjs URL KEY
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { apiKey, model, run, url } from './checks.mjs';

const client = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
const messages = [{ role: 'user', content: 'It is a truth' }];
const asked = { model, max_tokens: 8, temperature: 0, system: 'Be kind.',
  messages };
const tools = [{ name: 'choose', description: 'chooses', input_schema: {
  type: 'object', properties: { kind: { enum: ['x', 'y'] } },
  required: ['kind'], additionalProperties: false } }];

await run({
  async 'a message, its tokens, its stream'() {
    const whole = await client.messages.create(asked);
    assert.equal(whole.stop_reason, 'max_tokens');
    assert.equal(whole.usage.output_tokens, 8);
    const { input_tokens } = await client.messages.countTokens(
      { model, messages, system: 'Be kind.' });
    assert.equal(input_tokens, whole.usage.input_tokens +
      whole.usage.cache_read_input_tokens);
    const stream = client.messages.stream(asked);
    let text = '';
    stream.on('text', (delta) => { text += delta; });
    const final = await stream.finalMessage();
    assert.equal(text, whole.content[0].text);
    assert.deepEqual(final.content.map(({ text }) => text), [text]);
    assert.equal(final.usage.output_tokens, 8);
  },

  async 'a tool is called and answered'() {
    for (const streams of [false, true]) {
      const request = { model, max_tokens: 200, messages, tools,
        tool_choice: { type: 'tool', name: 'choose' } };
      const answer = streams ?
        await client.messages.stream(request).finalMessage() :
        await client.messages.create(request);
      assert.equal(answer.stop_reason, 'tool_use');
      const use = answer.content.find(({ type }) => type === 'tool_use');
      assert.match(use.input.kind, /^[xy]$/);
      const next = await client.messages.create({ model, max_tokens: 3, tools,
        tool_choice: { type: 'none' }, messages: [...messages,
          { role: 'assistant', content: answer.content },
          { role: 'user', content: [{ type: 'tool_result',
            tool_use_id: use.id, content: 'done' }] }] });
      assert.equal(next.role, 'assistant');
    }
  },

  async 'what was begun goes on'() {
    const answer = await client.messages.create({ ...asked,
      messages: [...messages, { role: 'assistant', content: 'universally' }] });
    assert.equal(answer.content[0].type, 'text');
  },

  async 'errors have their class'() {
    await assert.rejects(client.messages.create({ ...asked, messages: [] }),
      Anthropic.BadRequestError);
    const stranger = new Anthropic({ baseURL: url, apiKey: 'wrong',
      maxRetries: 0 });
    await assert.rejects(stranger.messages.create(asked),
      Anthropic.AuthenticationError);
  },
});
