// Ollama's client: node ollama.mjs URL KEY
import assert from 'node:assert/strict';
import { Ollama } from 'ollama';
import { apiKey, model, run, url } from './checks.mjs';

const client = new Ollama({ host: url,
  headers: { Authorization: `Bearer ${apiKey}` } });
const options = { num_predict: 8, temperature: 0 };
const messages = [{ role: 'user', content: 'It is a truth' }];
const parameters = { type: 'object', properties: { kind: { enum: ['x', 'y'] } },
  required: ['kind'], additionalProperties: false };

await run({
  async 'the model is listed and shown'() {
    const { models } = await client.list();
    assert.equal(models.length, 1);
    const shown = await client.show({ model: models[0].name });
    assert.ok(shown.capabilities.includes('completion'));
    assert.equal((await client.ps()).models[0].name, models[0].name);
    assert.ok((await client.version()).version);
  },

  async 'a chat and its stream'() {
    const whole = await client.chat({ model, messages, options });
    assert.equal(whole.eval_count, 8);
    assert.equal(whole.done_reason, 'length');
    let text = '';
    for await (const part of await client.chat(
      { model, messages, options, stream: true })) text += part.message.content;
    assert.equal(text, whole.message.content);
  },

  async 'a text and its stream'() {
    const asked = { model, prompt: 'It is a truth', options };
    const whole = await client.generate(asked);
    let text = '', done = false;
    for await (const part of await client.generate({ ...asked, stream: true })) {
      text += part.response;
      done = part.done;
    }
    assert.equal(text, whole.response);
    assert.ok(done);
  },

  async 'a format, and a call with its result'() {
    const formatted = await client.chat({ model, messages, format: parameters,
      options: { num_predict: 200 } });
    assert.match(JSON.parse(formatted.message.content).kind, /^[xy]$/);
    const tools = [{ type: 'function', function: { name: 'choose',
      description: 'chooses', parameters } }];
    const next = await client.chat({ model, tools, options: { num_predict: 3 },
      messages: [...messages, { role: 'assistant', content: '', tool_calls: [
        { function: { name: 'choose', arguments: { kind: 'x' } } }] },
      { role: 'tool', tool_name: 'choose', content: 'done' }] });
    assert.equal(next.message.role, 'assistant');
  },

  async 'errors are told'() {
    await assert.rejects(client.show({ model: 'other' }),
      (error) => error.status_code === 404 && /not found/.test(error.message));
    await assert.rejects(client.embed({ model, input: 'a' }),
      (error) => error.status_code === 400);
  },
});
