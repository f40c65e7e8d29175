// Uses the chat page as a person would; see checks.js. Waits watch the page
// instead of the clock.

const report = document.createElement('pre');
report.id = 'report';

function check(name, ok, why = '') {
  report.append((ok ? 'ok ' : 'FAILED ') + name + (ok ? '' : ': ' + why) + '\n');
}
function equal(name, got, wanted) {
  check(name, got === wanted, JSON.stringify(got) + ' is not ' +
    JSON.stringify(wanted));
}

function until(condition) {
  return new Promise((done) => {
    const observer = new MutationObserver(look);
    function look() {
      if (!condition()) return;
      observer.disconnect();
      done();
    }
    observer.observe(document.documentElement, {subtree: true, childList: true,
      attributes: true, characterData: true});
    look();
  });
}

const texts = (role) => [...document.querySelectorAll(`.message.${role} .text`)]
  .map((element) => element.textContent);
const idle = () => state.running === null && !$('send').hidden;
const said = () => state.chat.messages.map((m) => m.role).join();
const last = (role) => [...document.querySelectorAll(`.message.${role}`)].pop();
const press = (view, name) => [...view.querySelectorAll('button')]
  .find((button) => button.textContent === name).click();

async function say(text) {
  enter('input', text);
  pressEnter();
  await until(idle);
}

function enter(id, value) {
  $(id).value = value;
  $(id).dispatchEvent(new Event('input', {bubbles: true}));
}
function pressEnter(more = {}) {
  $('input').dispatchEvent(new KeyboardEvent('keydown',
    {key: 'Enter', bubbles: true, cancelable: true, ...more}));
}

async function checkModel() {
  await until(() => $('model').textContent !== '');
  equal('the model is named', $('model').textContent, 'small');
  equal('no error', $('status').textContent, '');
}

async function checkChoiceOfModels() {
  await until(() => $('model').textContent !== '');
  equal('all are there', [...$('model').options].map((o) => o.value).join(),
    'ant,bee 2');
  check('another can be chosen', !$('model').disabled);
  $('model').value = 'bee 2';
  $('model').dispatchEvent(new Event('change'));
  enter('input', 'who');
  pressEnter();
  await until(() => texts('assistant').length === 1 && idle());
  equal('the chosen one answers', texts('assistant')[0], 'I am the bee');
}

async function checkAnswer() {
  enter('max_tokens', '8');
  enter('temperature', '0');
  enter('input', 'hello');
  pressEnter({shiftKey: true});
  check('shift and enter send nothing', texts('user').length === 0);
  pressEnter();
  check('it runs', state.running !== null && $('send').hidden &&
    !$('stop').hidden);
  equal('the input is empty', $('input').value, '');
  await until(idle);
  equal('what was said', texts('user').join('|'), 'hello');
  check('what was answered', texts('assistant')[0].length > 0);
  check('how fast', /^8 tokens, \d/.test(
    document.querySelector('.speed:not(:empty)')?.textContent),
    $('messages').textContent);
  equal('both are remembered', said(), 'user,assistant');
}

// `hello` again, in a conversation that is new: the same answer.
async function checkNewChat() {
  const before = texts('assistant')[0];
  $('new-chat').click();
  equal('nothing is left', $('messages').children.length, 0);
  enter('input', 'hello');
  $('send').click();
  await until(idle);
  equal('the same answer', texts('assistant')[0], before);
}

async function checkStop() {
  $('new-chat').click();
  enter('max_tokens', '-1');
  enter('input', 'endless');
  pressEnter();
  await until(() => (texts('assistant')[0] ?? '').length > 20);
  $('stop').click();
  await until(idle);
  check('what came is kept', texts('assistant')[0].length > 20);
  equal('no error', $('status').textContent, '');
}

async function checkError() {
  $('new-chat').click();
  enter('max_tokens', '8');
  enter('input', 'x'.repeat(200));
  pressEnter();
  await until(idle);
  check('the error is told', /200|tokens/.test($('status').textContent),
    $('status').textContent);
  equal('the message comes back', $('input').value.length, 200);
  equal('and is not remembered', state.chat.messages.length, 0);
  equal('nor shown', $('messages').children.length, 0);
}

async function checkSettings() {
  check('hidden at first', $('settings').hidden);
  $('show-settings').click();
  check('shown', !$('settings').hidden);
  equal('told to readers', $('show-settings').getAttribute('aria-expanded'),
    'true');
  const theme = document.documentElement.dataset.theme;
  const back = getComputedStyle(document.body).backgroundColor;
  $('theme').click();
  check('the other theme', document.documentElement.dataset.theme !== theme);
  check('other colours',
    getComputedStyle(document.body).backgroundColor !== back);
  check('fits', document.documentElement.scrollWidth <= innerWidth);
  for (const input of document.querySelectorAll('input, textarea, button')) {
    check('named: ' + input.id, input.labels?.length > 0 ||
      input.getAttribute('aria-label') || input.textContent.trim());
  }
}

async function checkRegenerate() {
  $('new-chat').click();
  enter('max_tokens', '8');
  enter('temperature', '2');
  enter('seed', '5');
  await say('first');
  await say('second');
  const before = texts('assistant')[1];
  equal('one can be made anew', document.querySelectorAll('.message.assistant ' +
    '.actions button[title="Another answer"]').length, 1);
  press(last('assistant'), 'Regenerate');
  await until(idle);
  equal('in its place', texts('user').join() + said(),
    'first,seconduser,assistant,user,assistant');
  check('another, though the seed is the same',
    texts('assistant')[1] !== before, before);
  enter('seed', '');
}

async function checkEdit() {
  press(last('user'), 'Edit');
  const field = document.querySelector('.edit');
  equal('what was said', field.value, 'second');
  press(last('user'), 'Cancel');
  check('left as it was', !document.querySelector('.edit') &&
    texts('user')[1] === 'second');
  press(document.querySelector('.message.user'), 'Edit');
  document.querySelector('.edit').value = 'changed';
  document.querySelector('.edit').dispatchEvent(new KeyboardEvent('keydown',
    {key: 'Enter', bubbles: true, cancelable: true}));
  await until(idle);
  equal('the chat goes on from there', texts('user').join() + said(),
    'changeduser,assistant');
}

async function checkHistory() {
  enter('temperature', '0');
  $('new-chat').click();
  await say('<b>a chat</b> to keep');
  const {id} = state.chat;
  const answer = texts('assistant')[0];
  const names = () => [...document.querySelectorAll('#chat-list .open')]
    .map((open) => open.textContent);
  check('the list is there', !$('chats').hidden);
  equal('the newest is first', names()[0], '<b>a chat</b> to keep');
  check('the older ones, too', names().includes('changed'), names().join());
  equal('the address names it', location.hash, '#' + id);
  $('new-chat').click();
  equal('nothing is shown', $('messages').children.length, 0);
  document.querySelector('#chat-list .open').click();
  equal('it is open again', state.chat.id, id);
  equal('with its messages', texts('user')[0] + texts('assistant')[0],
    '<b>a chat</b> to keep' + answer);
  await say('and on');
  equal('it goes on', loadChat(id).messages.length, 4);
  const count = names().length;
  window.confirm = () => false;
  document.querySelector('#chat-list [aria-label^=Delete]').click();
  equal('asked first', names().length, count);
  window.confirm = () => true;
  document.querySelector('#chat-list [aria-label^=Delete]').click();
  equal('deleted', names().length, count - 1);
  equal('from the storage', localStorage.getItem('weft-chat-' + id), null);
  equal('and from the page', $('messages').children.length, 0);
  for (const [kept, what] of [['{', 'no JSON'], ['null', 'nothing'], ['{}', 'no chat'],
    ['{"messages": [{"role": "system", "content": "x"}]}', 'no such role'],
    ['{"messages": [{"role": "user", "content": 3}]}', 'no text']]) {
    localStorage.setItem('weft-chat-odd', kept);
    equal('not read: ' + what, loadChat('odd'), null);
    showChats();
    equal('not listed: ' + what, names().length, count - 1);
  }
  localStorage.removeItem('weft-chat-odd');
  const setItem = Storage.prototype.setItem;
  Storage.prototype.setItem = () => { throw new Error('full'); };
  await say('no room');
  check('told that it is not kept', $('status').textContent
    .includes('keeps no more'), $('status').textContent);
  Storage.prototype.setItem = setItem;
  $('show-chats').click();
  check('closed', $('chats').hidden);
}

// The model says what it is given in chat_page_test.cc.
async function checkMarkdown() {
  await until(() => $('model').textContent !== '');
  await say('hello');
  const message = last('assistant');
  const fold = message.querySelector('details');
  check('reasoning is there, folded', fold && !fold.open);
  equal('its summary', fold.querySelector('summary').textContent, 'Reasoning');
  equal('what it is', fold.querySelector('.thoughts').textContent, 'Hm, two.');
  equal('with its marks', fold.querySelector('strong').textContent, 'two');
  const body = message.querySelector('.text');
  check('no reasoning in the answer', !body.textContent.includes('Hm'));
  equal('a heading', body.querySelector('h2').textContent, 'Title');
  equal('a list', body.querySelectorAll('ul > li').length, 2);
  equal('a table', body.querySelectorAll('td').length, 2);
  equal('the language', body.querySelector('.code-head span').textContent,
    'python');
  equal('code', body.querySelector('pre').textContent, "print('<b>')");
  equal('links that may be', [...body.querySelectorAll('a')]
    .map((a) => a.href).join(), 'https://example.org/');
  check('the rest is text', body.textContent.includes('[bad](javascript:') &&
    body.textContent.includes('<img src=x onerror=attacked=1>'));
  equal('no element of the model', body.querySelectorAll('img, script, b').length,
    0);
  equal('nothing ran', window.attacked, undefined);
  let copied = '';
  Object.defineProperty(navigator, 'clipboard', {configurable: true,
    value: {writeText: async (text) => { copied = text; }}});
  press(body, 'Copy');
  await until(() => body.querySelector('.copy').textContent === 'Copied');
  equal('code is copied', copied, "print('<b>')");
  press(message.querySelector('.foot'), 'Copy');
  await until(() => message.querySelector('.foot .copy').textContent === 'Copied');
  check('the answer is copied as it was written', copied.startsWith('# Title'));
  check('reasoning goes to the server again', sentMessages(state.chat, '')[1]
    .reasoning_content.startsWith('Hm'));
  fold.open = true;
  await say('again');
  check('what is open stays open', fold.open && fold.isConnected);
  const id = state.chat.id;
  $('new-chat').click();
  openChat(loadChat(id));
  equal('reasoning is kept', last('assistant').querySelector('details')
    .textContent, 'ReasoningHm, two.');
  check('fits', document.documentElement.scrollWidth <= innerWidth);
}

// The context has 128 tokens, of which messages take one for each character.
// Without `expects`, only the server's error tells that a prompt is too long.
async function checkFullContext(expects) {
  if (!expects) estimatedTokens = () => 0;
  await until(() => $('model').textContent !== '');
  enter('max_tokens', '3');
  await say('short');
  check('cut as set', last('assistant').querySelector('.note').textContent
    .includes('after 3 tokens'), last('assistant').textContent);
  check('no line yet', !document.querySelector('.left-out'));
  enter('max_tokens', '-1');
  await say('b'.repeat(80));
  await say('c'.repeat(80));
  equal('all are shown', texts('user').length, 3);
  equal('all were answered', texts('assistant').length, 3);
  equal('no error', $('status').textContent, '');
  const line = document.querySelector('.left-out');
  check('a line says where', line?.nextElementSibling === last('user'),
    $('messages').textContent);
  equal('only these are sent', sentMessages(state.chat, 's').map((m) => m.role)
    .join(), 'system,user,assistant');
  await say('d'.repeat(110));
  check('cut by the context', last('assistant').querySelector('.note').textContent
    .includes('the context is full'), last('assistant').textContent);
  await say('e'.repeat(200));
  equal('too long by itself: it comes back', $('input').value.length, 200);
  check('and is an error', $('status').textContent !== '');
  equal('the rest stays', texts('user').length, 4);
}

const checkFullContextByExpecting = () => checkFullContext(true);
const checkFullContextByError = () => checkFullContext(false);

async function runChecks(...checks) {
  try {
    for (const one of checks) await one();
  } catch (error) {
    check('no exception', false, error.stack);
  }
  check('no errors', errors.length === 0, errors.join('; '));
  report.append('finished\n');
  document.body.append(report);
  await fetch('/finished', {method: 'POST'});
}
