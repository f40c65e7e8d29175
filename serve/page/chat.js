// The conversation: what was said, shown as text, and the answer that comes.

const state = { messages: [], running: null };

function atBottom() {
  const box = $('messages');
  return box.scrollHeight - box.scrollTop - box.clientHeight < 40;
}

function showMessage(role, text) {
  const message = document.createElement('article');
  message.className = `message ${role}`;
  message.setAttribute('aria-label', role === 'user' ? 'You' : 'Model');
  const body = document.createElement('div');
  body.className = 'text';
  body.textContent = text;
  const speed = document.createElement('div');
  speed.className = 'speed';
  message.append(body, speed);
  $('messages').append(message);
  $('messages').scrollTop = $('messages').scrollHeight;
  return { message, body, speed };
}

// Reasoning stands folded above what it led to.
function showReasoning(shown, more) {
  if (!shown.reasoning) {
    const fold = document.createElement('details');
    fold.className = 'reasoning';
    const summary = document.createElement('summary');
    summary.textContent = 'Reasoning';
    shown.reasoning = document.createElement('div');
    fold.append(summary, shown.reasoning);
    shown.message.prepend(fold);
  }
  shown.reasoning.append(more);
}

function setRunning(controller) {
  state.running = controller;
  $('send').hidden = controller !== null;
  $('stop').hidden = controller === null;
}

// Tokens and their rate, from the first one on.
function speedText(usage, begun) {
  if (!usage || begun === null) return '';
  const seconds = (performance.now() - begun) / 1000;
  const rate = usage.completion_tokens / Math.max(seconds, 0.001);
  return `${usage.completion_tokens} tokens, ${rate.toFixed(1)} per second`;
}

// Asks for what follows `chat`, whose last message is the user's own `said`.
async function answer(chat, said) {
  const system = $('system').value.trim();
  const messages = system ? [{ role: 'system', content: system }] : [];
  messages.push(...chat);
  const shown = showMessage('assistant', '');
  const controller = new AbortController();
  setRunning(controller);
  let text = '', reasoning = '', usage = null, begun = null;
  try {
    await streamChat({ messages, ...chosenFields() }, controller.signal,
      (part) => {
        usage = part.usage ?? usage;
        const delta = part.choices[0]?.delta?.content ?? '';
        const thought = part.choices[0]?.delta?.reasoning_content ?? '';
        if (!delta && !thought) return;
        begun ??= performance.now();
        const follow = atBottom();
        text += delta;
        reasoning += thought;
        if (thought) showReasoning(shown, thought);
        shown.body.append(delta);
        if (follow) $('messages').scrollTop = $('messages').scrollHeight;
      });
  } catch (error) {
    if (error.name !== 'AbortError') {
      $('status').textContent = error.message;
      shown.message.classList.add('failed');
    }
  }
  shown.speed.textContent = speedText(usage, begun);
  if (text || reasoning) {
    chat.push({ role: 'assistant', content: text,
      ...(reasoning && { reasoning_content: reasoning }) });
  } else {
    // Back to before: the message may be changed and sent again.
    shown.message.remove();
    said.message.remove();
    const unsent = chat.pop().content;
    if (chat === state.messages) $('input').value ||= unsent;
  }
  setRunning(null);
  $('input').focus();
}

function send() {
  const text = $('input').value.trim();
  if (!text || state.running) return;
  $('status').textContent = '';
  $('input').value = '';
  state.messages.push({ role: 'user', content: text });
  answer(state.messages, showMessage('user', text));
}

async function showModel() {
  const response = await fetch('/v1/models', { headers: requestHeaders() });
  if (!response.ok) {
    $('status').textContent = await errorOf(response);
    return;
  }
  $('status').textContent = '';
  const names = (await response.json()).data.map((model) => model.id);
  const before = $('model').value;
  $('model').replaceChildren(...names.map((name) => new Option(name)));
  if (names.includes(before)) $('model').value = before;
  $('model').disabled = names.length === 1;
  await takeSuggested();
}

function beginChat() {
  $('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  $('input').addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  $('stop').addEventListener('click', () => state.running?.abort());
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') state.running?.abort();
  });
  $('new-chat').addEventListener('click', () => {
    state.running?.abort();
    state.messages = [];
    $('messages').replaceChildren();
    $('status').textContent = '';
    $('input').focus();
  });
  $('api_key').addEventListener('change', showModel);
  $('model').addEventListener('change', takeSuggested);
  showModel().catch(() => {
    $('status').textContent = 'the server does not answer';
  });
}

beginSettings();
beginChat();
