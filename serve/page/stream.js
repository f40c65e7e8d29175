// Streams: server-sent events over fetch.

// The error that an answer holds; `details` are its fields.
async function errorOf(response) {
  const text = await response.text();
  try {
    return detailedError(JSON.parse(text).error);
  } catch {
    return new Error(`${response.status} ${response.statusText}`);
  }
}

function detailedError(details) {
  const error = new Error(details.message);
  error.details = details;
  return error;
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
  if (!response.ok) throw await errorOf(response);
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
      if (object.error) throw detailedError(object.error);
      take(object);
    }
  }
}
