// What was said, and what of it is sent. Nothing here knows of elements.
//
// A chat: {id, title, updated, messages, dropped, rate}. A message: {role,
// content, reasoning_content, tries, note, speed}, of which the server gets the
// first three. As in the terminal chat, when the context is full, whole turns
// go, the oldest first, until a quarter is free; the system message and the
// newest message always stay. What goes stays in the chat that is shown.

function newChat() {
  const random = Math.random().toString(36).slice(2, 10);
  return { id: `${Date.now().toString(36)}-${random}`, title: '', updated: 0,
    messages: [], dropped: 0, rate: 0 };
}

// The messages of a request.
function sentMessages(chat, system) {
  const messages = system ? [{ role: 'system', content: system }] : [];
  for (const message of chat.messages.slice(chat.dropped)) {
    const { role, content, reasoning_content: reasoning } = message;
    messages.push({ role, content,
      ...(reasoning && { reasoning_content: reasoning }) });
  }
  return messages;
}

// A measure of texts: characters, and some for each message's marks. Reasoning
// is left out, as most templates leave it out.
function weightOf(messages) {
  return messages.reduce((sum, { content }) => sum + content.length + 16, 0);
}

// What the chat knows of the length of its tokens, from a prompt that was read.
function learnRate(chat, sent, tokens) {
  if (tokens > 0) chat.rate = tokens / weightOf(sent);
}

function estimatedTokens(chat, system) {
  return chat.rate * weightOf(sentMessages(chat, system));
}

// Leaves out turns of a prompt of so many tokens until it has three quarters of
// `most`, or the newest is left. Gives how many turns went.
function dropTurns(chat, system, tokens, most) {
  const each = tokens / weightOf(sentMessages(chat, system));
  let turns = 0;
  while (tokens > most - most / 4) {
    const next = chat.messages.findIndex(
      ({ role }, i) => role === 'user' && i > chat.dropped);
    if (next < 0) break;
    tokens -= each * weightOf(chat.messages.slice(chat.dropped, next));
    chat.dropped = next;
    ++turns;
  }
  return turns;
}

// How much of the context prompts may take: an answer wants room, too.
function roomForPrompt(capacity, maxTokens) {
  const quarter = Math.floor(capacity / 4);
  return capacity - (maxTokens > 0 ? Math.min(maxTokens, quarter) : quarter);
}
