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
  equal('both are remembered', state.messages.map((m) => m.role).join(),
    'user,assistant');
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
  equal('and is not remembered', state.messages.length, 0);
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

async function checkHostileText() {
  const shown = showMessage('assistant', '<img src=x onerror=attacked=1>');
  equal('text stays text', shown.body.children.length, 0);
  equal('nothing ran', window.attacked, undefined);
  shown.message.remove();
}

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
