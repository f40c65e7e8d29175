// The chats that were had, in the browser's storage and nowhere else. What is
// read back is checked: it may be of another version, or another page's.

const CHAT = 'weft-chat-';

function checkedMessage(message) {
  const { role, content, reasoning_content: reasoning, note, speed, tries } =
    message;
  if (!['user', 'assistant'].includes(role) || typeof content !== 'string') {
    return null;
  }
  const text = (value) => typeof value === 'string' ? value : '';
  return { role, content, reasoning_content: text(reasoning), note: text(note),
    speed: text(speed), tries: Number.isSafeInteger(tries) ? tries : 0 };
}

// null when there is none that can be read.
function loadChat(id) {
  try {
    const read = JSON.parse(localStorage.getItem(CHAT + id));
    const messages = read.messages.map(checkedMessage);
    if (messages.length === 0 || messages.includes(null)) return null;
    const dropped = Number.isSafeInteger(read.dropped) && read.dropped >= 0 &&
      read.dropped < messages.length ? read.dropped : 0;
    return { id, title: String(read.title), updated: Number(read.updated) || 0,
      messages, dropped, rate: Number(read.rate) || 0 };
  } catch {
    return null;
  }
}

// Whether it could be kept; an empty one need not be.
function saveChat(chat) {
  if (chat.removed || chat.messages.length === 0) return true;
  const first = chat.messages[0].content.trim().split('\n', 1)[0];
  chat.title = first.length > 60 ? `${first.slice(0, 59)}…` : first;
  chat.updated = Date.now();
  try {
    localStorage.setItem(CHAT + chat.id, JSON.stringify(chat));
    return true;
  } catch {
    return false;
  }
}

function removeChat(id) {
  try {
    localStorage.removeItem(CHAT + id);
  } catch {
    // The browser keeps nothing.
  }
}

// The newest first.
function listChats() {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(CHAT))
      .map((key) => loadChat(key.slice(CHAT.length)))
      .filter((chat) => chat !== null)
      .sort((a, b) => b.updated - a.updated);
  } catch {
    return [];
  }
}
