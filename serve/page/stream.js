// Streams: server-sent events over fetch.

// The error that an answer holds, as a sentence.
async function errorOf(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error.message;
  } catch {
    return `${response.status} ${response.statusText}`;
  }
}

// Calls `take` with each event's object until the stream ends. Throws what went
// wrong; an aborted signal is an AbortError.
async function streamChat(body, signal, take) {
  const response = await fetch('/v1/chat/completions', {
    method: 'POST',
    headers: requestHeaders(),
    body: JSON.stringify({ ...body, stream: true,
      stream_options: { include_usage: true } }),
    signal,
  });
  if (!response.ok) throw new Error(await errorOf(response));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error('the server ended the answer early');
    rest += value;
    const events = rest.split('\n\n');
    rest = events.pop();
    for (const event of events) {
      if (event.startsWith(':')) continue;  // the server is still there
      const data = event.replace(/^data: /, '');
      if (data === '[DONE]') return;
      const object = JSON.parse(data);
      if (object.error) throw new Error(object.error.message);
      take(object);
    }
  }
}
