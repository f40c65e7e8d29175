// Messages as elements: what was said, what is being said, and what can be done
// with it.

function atBottom() {
  const box = $('messages');
  return box.scrollHeight - box.scrollTop - box.clientHeight < 40;
}

function toBottom() {
  $('messages').scrollTop = $('messages').scrollHeight;
}

// Changes what is shown; who was at the end stays there.
function growing(change) {
  const follow = atBottom();
  change();
  if (follow) toBottom();
}

class MessageView {
  constructor(role) {
    this.body = element('div', 'text');
    this.note = element('p', 'note');
    this.speed = element('span', 'speed');
    this.actions = element('span', 'actions');
    this.message = element('article', `message ${role}`, this.body, this.note,
      element('div', 'foot', this.speed, this.actions));
    this.message.setAttribute('aria-label', role === 'user' ? 'You' : 'Model');
    this.message.dataset.role = role;
    this.timer = null;
    this.cost = 0;
  }

  // The message as it is, the last of a text that grew.
  show(message) {
    clearTimeout(this.timer);
    this.timer = null;
    this.draw(message, false);
  }

  draw({ role, content, reasoning_content: reasoning, note, speed }, grows) {
    this.wait('');
    if (role === 'user') {
      this.body.textContent = content;
    } else {
      showMarkdown(this.body, content);
      this.think(reasoning, grows && !content);
    }
    this.note.textContent = note ?? '';
    this.speed.textContent = speed ?? '';
  }

  // A message that grows. Whoever draws a long one again and again waits a
  // while, so that nine tenths of the time are free.
  grow(message) {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      const begun = performance.now();
      growing(() => this.draw(message, true));
      this.cost = performance.now() - begun;
    }, Math.min(Math.max(40, 10 * this.cost), 2000));
  }

  // Reasoning stands folded above what it led to.
  think(text, goesOn) {
    if (!text) return;
    if (!this.reasoning) {
      this.reasoning = element('div', 'thoughts');
      this.summary = element('summary');
      this.message.prepend(
        element('details', 'reasoning', this.summary, this.reasoning));
    }
    this.summary.textContent = goesOn ? 'Thinking' : 'Reasoning';
    this.summary.className = goesOn ? 'waiting' : '';
    showMarkdown(this.reasoning, text);
  }

  // A sign that something will come; an empty text takes it away.
  wait(text) {
    if (!text) {
      this.waiting?.remove();
      this.waiting = null;
      return;
    }
    if (!this.waiting) {
      this.waiting = element('p', 'waiting');
      this.body.before(this.waiting);
    }
    this.waiting.textContent = text;
  }

  act(...buttons) {
    this.actions.replaceChildren(...buttons);
  }

  // A field in place of the text; `send` gets what is in it in the end.
  edit(text, send) {
    const field = element('textarea', 'edit');
    field.value = text;
    field.rows = Math.min(12, text.split('\n').length + 1);
    field.setAttribute('aria-label', 'The message, to be changed');
    const form = element('form', 'editor', field);
    const close = () => {
      form.remove();
      this.body.hidden = false;
      this.actions.hidden = false;
    };
    const submit = () => {
      const changed = field.value.trim();
      close();
      if (changed) send(changed);
    };
    const sending = button('Send', 'Send the changed message', submit);
    sending.className = 'first';
    form.append(element('div', 'buttons', sending,
      button('Cancel', 'Leave the message as it was', close)));
    form.addEventListener('submit', (event) => event.preventDefault());
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        close();
      } else if (sends(event)) {
        event.preventDefault();
        submit();
      }
    });
    this.body.hidden = true;
    this.actions.hidden = true;
    this.body.after(form);
    field.focus();
  }
}

// Enter alone; one that ends the composing of a character is none.
function sends(event) {
  return event.key === 'Enter' && !event.shiftKey && !event.isComposing;
}
