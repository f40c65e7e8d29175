// Instructor with zod: node instructor.mjs URL KEY
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import OpenAI from 'openai';
import { z } from 'zod/v3';
import { apiKey, model, run, url } from './checks.mjs';

const instructor = createRequire(import.meta.url)('@instructor-ai/instructor');
const Instructor = instructor.default ?? instructor;
const schema = z.object({ kind: z.enum(['x', 'y']), sure: z.boolean() });
const messages = [{ role: 'user', content: 'Choose' }];

const checks = {};
for (const mode of ['TOOLS', 'JSON_SCHEMA']) {
  checks[`an object by ${mode}`] = async () => {
    const client = Instructor({ mode, client: new OpenAI(
      { baseURL: `${url}/v1`, apiKey, maxRetries: 0 }) });
    const answer = await client.chat.completions.create({ model, messages,
      max_tokens: 400, response_model: { schema, name: 'Choice' } });
    schema.parse(answer);
  };
}
checks['an object that comes in parts'] = async () => {
  const client = Instructor({ mode: 'TOOLS', client: new OpenAI(
    { baseURL: `${url}/v1`, apiKey, maxRetries: 0 }) });
  let last = null;
  for await (const part of await client.chat.completions.create({ model,
    messages, max_tokens: 400, stream: true,
    response_model: { schema, name: 'Choice' } })) last = part;
  assert.match(last.kind, /^[xy]$/);
};

await run(checks);
