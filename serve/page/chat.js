// The conversation: what is asked, what comes, and what can be done with it.

// `answering`: the message of `chat` that is being written, not yet one of its
// messages. `running`: what ends it.
const state = { chat: newChat(), answering: null, running: null, capacity: 0 };
const views = new WeakMap();  // of messages

const system = () => $('system').value.trim();

function setRunning(controller) {
  state.running = controller;
  document.body.classList.toggle('running', controller !== null);
  $('send').hidden = controller !== null;
  $('stop').hidden = controller === null;
}

function keepChat(chat) {
  if (!saveChat(chat) && chat === state.chat) {
    $('status').textContent = 'The browser keeps no more: this chat will be ' +
      'gone with the page. Delete older ones to make room.';
  }
  showChats();
}

function viewOf(message) {
  if (!views.has(message)) {
    const view = new MessageView(message.role);
    view.show(message);
    views.set(message, view);
  }
  return views.get(message);
}

// Shows the chat as it is. What was shown stays, and is not made again.
function showChat() {
  const { chat, answering } = state;
  const shown = chat.messages.map((message, i) => {
    offerActions(viewOf(message), chat, i);
    return viewOf(message).message;
  });
  if (answering) shown.push(viewOf(answering).message);
  if (chat.dropped > 0) {
    shown.splice(chat.dropped, 0, element('p', 'left-out',
      'The context is full: what stands above is not sent any more.'));
  }
  $('messages').replaceChildren(...shown);
}

function offerActions(view, chat, index) {
  const message = chat.messages[index];
  const buttons = [copyButton(() => message.content)];
  if (message.role === 'user') {
    buttons.push(button('Edit', 'Change this message and send it again', () => {
      if (state.running) return;
      view.edit(message.content, (text) => ask(text, 0, index));
    }));
  } else if (index === chat.messages.length - 1) {
    buttons.push(button('Regenerate', 'Another answer', () => {
      if (state.running) return;
      const { content, tries } = chat.messages[index - 1];
      ask(content, tries + 1, index - 1);
    }));
  }
  view.act(...buttons);
}

// Tokens, their rate from the first one on, and what there is room for.
function speedText(usage, times) {
  if (!usage || times.length < 1) return '';
  const made = usage.completion_tokens;
  const seconds = (times[times.length - 1] - times[0]) / 1000;
  let text = made === 1 ? '1 token' : `${made} tokens`;
  if (made > 1 && seconds > 0) {
    text += `, ${((made - 1) / seconds).toFixed(1)} per second`;
  }
  if (state.capacity > 0) {
    text += ` · ${usage.total_tokens} of ${state.capacity} in the context`;
  }
  return text;
}

// `most`: the tokens that were asked for; none or below 0: as many as there are.
function noteText(finish, usage, most) {
  if (finish !== 'length') return '';
  if (most >= 0 && usage?.completion_tokens >= most) {
    return `The answer was cut after ${most} tokens, as set (most tokens).`;
  }
  return 'The answer was cut: the context is full. Older messages will be left ' +
    'out from now on.';
}

// The request's fields for the chat as it is. A chosen seed gives another
// answer each time that one is asked for.
function requestOf(chat) {
  const fields = chosenFields();
  const { tries } = chat.messages[chat.messages.length - 1];
  if (fields.seed !== undefined) fields.seed += tries;
  return { messages: sentMessages(chat, system()), return_progress: true,
    ...fields };
}

// Streams the answer to the chat into `message`. When the server finds the
// prompt too long, older turns are left out, as long as there are any.
async function stream(chat, message, view, signal) {
  const most = chosenFields().max_tokens;
  const makeRoom = (tokens, capacity) => {
    const went = dropTurns(chat, system(), tokens, roomForPrompt(capacity, most));
    if (went > 0 && chat === state.chat) growing(showChat);
    return went > 0;
  };
  const expected = estimatedTokens(chat, system());
  if (state.capacity > 0 && expected > roomForPrompt(state.capacity, most)) {
    makeRoom(expected, state.capacity);
  }
  for (;;) {
    const request = requestOf(chat);
    const times = [];
    let usage = null, finish = null;
    try {
      await streamChat(request, signal, (part) => {
        usage = part.usage ?? usage;
        const { delta, finish_reason: reason } = part.choices?.[0] ?? {};
        finish = reason ?? finish;
        const progress = part.prompt_progress;
        if (progress && times.length === 0 && progress.total > 0) {
          view.wait(`Reading: ${progress.processed} of ${progress.total} tokens`);
        }
        if (!delta?.content && !delta?.reasoning_content) return;
        times.push(performance.now());
        message.content += delta.content ?? '';
        message.reasoning_content += delta.reasoning_content ?? '';
        view.grow(message);
      });
      learnRate(chat, request.messages, usage?.prompt_tokens ?? 0);
      message.speed = speedText(usage, times);
      message.note = noteText(finish, usage, most);
      return;
    } catch (error) {
      const { n_prompt_tokens: tokens, n_ctx: context } = error.details ?? {};
      if (times.length > 0 || !tokens || !makeRoom(tokens, context)) throw error;
    }
  }
}

// Sends a message of the chat that is open, in place of those from number `at`
// on. If nothing comes of it, all is as before, and the text in the input.
async function ask(text, tries = 0, at = state.chat.messages.length) {
  const chat = state.chat;
  const controller = new AbortController();
  const { messages: before, dropped } = chat;
  const blank = { content: '', reasoning_content: '', note: '', speed: '',
    tries: 0 };
  chat.messages = before.slice(0, at);
  chat.dropped = Math.min(dropped, at);
  chat.messages.push({ ...blank, role: 'user', content: text, tries });
  const message = { ...blank, role: 'assistant' };
  const view = viewOf(message);
  view.message.setAttribute('aria-busy', 'true');
  view.wait('Waiting for the model');
  state.answering = message;
  setRunning(controller);
  $('status').textContent = '';
  keepChat(chat);
  showChat();
  toBottom();
  let failure = null;
  try {
    await stream(chat, message, view, controller.signal);
  } catch (error) {
    failure = error;
    const stopped = error.name === 'AbortError';
    message.note = stopped ? 'Stopped.' : `The answer broke off: ${error.message}`;
    if (!stopped && chat === state.chat) $('status').textContent = error.message;
  }
  if (!failure || message.content || message.reasoning_content) {
    chat.messages.push(message);
  } else {
    chat.messages = before;
    chat.dropped = dropped;
    if (chat === state.chat && before[at]?.content !== text) {
      $('input').value ||= text;
    }
    if (before.length === 0) removeChat(chat.id);
  }
  view.message.removeAttribute('aria-busy');
  growing(() => view.show(message));
  keepChat(chat);
  if (chat !== state.chat || state.running !== controller) return;
  state.answering = null;
  setRunning(null);
  growing(showChat);
  $('input').focus();
}

function send() {
  const text = $('input').value.trim();
  if (!text || state.running) return;
  $('input').value = '';
  ask(text);
}

// Opens a chat in place of the one that is shown, whose answer ends here.
function openChat(chat) {
  state.running?.abort();
  setRunning(null);
  state.answering = null;
  state.chat = chat;
  $('status').textContent = '';
  showChat();
  toBottom();
  showChats();
  $('input').focus();
}

// The list of chats, where it is shown.
function showChats() {
  const id = state.chat.messages.length > 0 ? state.chat.id : '';
  history.replaceState(null, '', id ? `#${id}` : '#');
  if ($('chats').hidden) return;
  const rows = listChats().map((chat) => {
    const open = button(chat.title || 'Without words', chat.title, () => {
      if (chat.id !== state.chat.id) openChat(loadChat(chat.id) ?? newChat());
      if (isNarrow()) showPanel(false);
    });
    open.classList.add('open');
    if (chat.id === state.chat.id) open.setAttribute('aria-current', 'true');
    const remove = button('×', `Delete the chat: ${chat.title}`, () => {
      if (!confirm(`Delete "${chat.title}"?`)) return;
      removeChat(chat.id);
      if (chat.id === state.chat.id) {
        state.chat.removed = true;
        openChat(newChat());
      } else {
        showChats();
      }
    });
    return element('li', '', open, remove);
  });
  $('chat-list').replaceChildren(...rows);
  $('no-chats').hidden = rows.length > 0;
}

const isNarrow = () => matchMedia('(max-width: 900px)').matches;

function showPanel(shown) {
  $('chats').hidden = !shown;
  $('show-chats').setAttribute('aria-expanded', shown);
  showChats();
}

async function showModel() {
  const response = await fetch('/v1/models', { headers: requestHeaders() });
  if (!response.ok) {
    $('status').textContent = (await errorOf(response)).message;
    return;
  }
  $('status').textContent = '';
  const names = (await response.json()).data.map((model) => model.id);
  const before = $('model').value;
  $('model').replaceChildren(...names.map((name) => new Option(name)));
  if (names.includes(before)) $('model').value = before;
  $('model').disabled = names.length === 1;
  await takeProperties();
}

async function takeProperties() {
  state.capacity = (await modelProperties())?.capacity ?? 0;
}

function beginChat() {
  $('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  $('input').addEventListener('keydown', (event) => {
    if (!sends(event)) return;
    event.preventDefault();
    send();
  });
  $('stop').addEventListener('click', () => state.running?.abort());
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') state.running?.abort();
  });
  $('new-chat').addEventListener('click', () => openChat(newChat()));
  $('show-chats').addEventListener('click', () => {
    showPanel($('chats').hidden);
    if (!isNarrow()) keep('panel', $('chats').hidden ? 'closed' : 'open');
  });
  $('close-chats').addEventListener('click', () => showPanel(false));
  $('api_key').addEventListener('change', showModel);
  $('model').addEventListener('change', takeProperties);
  state.chat = loadChat(location.hash.slice(1)) ?? state.chat;
  showChat();
  toBottom();
  showPanel(!isNarrow() && readKept('panel') !== 'closed');
  showModel().catch(() => {
    $('status').textContent = 'the server does not answer';
  });
}

beginSettings();
beginChat();
