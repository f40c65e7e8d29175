// Takes the pictures of docs/pictures. Called by pictures.sh, which makes what
// it shows:
//   node --experimental-websocket pictures.mjs SERVER PAGE.html SCREEN.txt OUT
// SERVER: the address of a chat page; PAGE.html: of `weft dump`; SCREEN.txt: a
// terminal's screen, with its colours.
// Chromium is driven by https://chromedevtools.github.io/devtools-protocol/.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const [server, page, screen, out] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), 'weft-pictures-'));

function startChromium() {
  const browser = spawn('chromium', ['--headless', '--no-sandbox', '--disable-gpu',
    '--hide-scrollbars', '--remote-debugging-port=0', '--disable-dev-shm-usage',
    `--user-data-dir=${profile}`, 'about:blank']);
  return new Promise((done, failed) => {
    let text = '';
    browser.on('exit', (code) => failed(new Error(`chromium ended: ${code}`)));
    browser.stderr.on('data', (data) => {
      text += data;
      const found = /listening on (ws:\/\/\S+)/.exec(text);
      if (found) done({ browser, port: new URL(found[1]).port });
    });
  });
}

async function openPage(port) {
  const response = await fetch(`http://127.0.0.1:${port}/json/new?about:blank`,
    { method: 'PUT' });
  const { webSocketDebuggerUrl } = await response.json();
  const socket = new WebSocket(webSocketDebuggerUrl);
  await new Promise((done) => { socket.onopen = done; });
  const waiting = new Map();
  let loaded = () => {};
  socket.onmessage = ({ data }) => {
    const { id, method, result, error } = JSON.parse(data);
    if (method === 'Page.loadEventFired') loaded();
    const answer = waiting.get(id);
    waiting.delete(id);
    if (answer) error ? answer.failed(new Error(error.message)) : answer.done(result);
  };
  let count = 0;
  const ask = (method, params = {}) => new Promise((done, failed) => {
    waiting.set(++count, { done, failed });
    socket.send(JSON.stringify({ id: count, method, params }));
  });
  await ask('Page.enable');
  return {
    size: (width, height) => ask('Emulation.setDeviceMetricsOverride',
      { width, height, deviceScaleFactor: 1, mobile: false }),
    async open(url) {
      const done = new Promise((resolved) => { loaded = resolved; });
      await ask('Page.navigate', { url });
      await done;
    },
    async run(expression) {
      const { result, exceptionDetails } = await ask('Runtime.evaluate',
        { expression: `(async () => {${expression}})()`, awaitPromise: true });
      if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
      return result.value;
    },
    async picture(name) {
      await new Promise((done) => setTimeout(done, 500));
      const { data } = await ask('Page.captureScreenshot', { format: 'png' });
      const bytes = Buffer.from(data, 'base64');
      writeFileSync(join(out, name), bytes);
      console.log(`${name}: ${bytes.length} bytes`);
    },
  };
}

// A terminal's screen (ECMA-48's colours) as a page.
function screenPage(text) {
  const colours = ['#3b4252', '#bf616a', '#8fbf7f', '#ebcb8b', '#81a1c1', '#b48ead',
    '#88c0d0', '#e5e9f0'];
  const escaped = (s) => s.replace(/[&<]/g, (c) => c === '&' ? '&amp;' : '&lt;');
  let style = {}, html = '';
  for (const [, codes, plain] of text.matchAll(/(?:\x1b\[([\d;]*)m)|([^\x1b]+)/g)) {
    if (plain !== undefined) {
      const [front, back] = style.reverse ? ['#10141a', '#c9d1dc'] :
        [style.front ?? '#c9d1dc', style.back ?? 'transparent'];
      html += `<span style="color:${front};background:${back};` +
        `font-weight:${style.bold ? 'bold' : 'normal'};` +
        `opacity:${style.faint ? 0.6 : 1}">${escaped(plain)}</span>`;
      continue;
    }
    for (const code of (codes || '0').split(';').map(Number)) {
      if (code === 0) style = {};
      if (code === 1) style.bold = true;
      if (code === 2) style.faint = true;
      if (code === 7) style.reverse = true;
      if (code >= 30 && code < 38) style.front = colours[code - 30];
      if (code >= 90 && code < 98) style.front = colours[code - 90];
      if (code === 39) style.front = undefined;
      if (code >= 40 && code < 48) style.back = colours[code - 40];
    }
  }
  return `<!doctype html><meta charset="utf-8"><body style="margin:0;` +
    `background:#10141a"><pre style="margin:14px;font:14px/1.35 'DejaVu Sans Mono',` +
    `monospace">${html}</pre>`;
}

const { browser, port } = await startChromium();
browser.removeAllListeners('exit');
try {
  const tab = await openPage(port);
  await tab.size(1180, 860);
  await tab.open(server);
  await tab.run(`
    const idle = () => new Promise((done) => {
      const timer = setInterval(() => {
        if (state.running) return;
        clearInterval(timer);
        done();
      }, 50);
    });
    while (!$('model').value) await new Promise((done) => setTimeout(done, 50));
    for (const text of ['What is RMSNorm for?', 'Show me RMSNorm in a few lines.']) {
      if (state.chat.messages.length > 0) openChat(newChat());
      $('input').value = text;
      send();
      await idle();
    }
    document.querySelector('details').open = true;
    $('messages').scrollTop = 0;
    document.activeElement.blur();`);
  await tab.picture('chat.png');
  await tab.size(400, 860);
  await tab.run(`showPanel(false); setTheme('dark'); $('messages').scrollTop = 130;
    document.querySelector('details').open = false;`);
  await tab.picture('chat-dark.png');
  await tab.size(1320, 860);
  await tab.open(`file://${resolve(page)}`);
  await tab.run(`openAll(new Set([0])); graphView.fitReadable();
    selectItem(layout.itemOf.get(state.point.nodes.find((node) =>
      node.name.endsWith('attn_qkv')).id));`);
  await tab.picture('dump.png');
  const shown = join(profile, 'screen.html');
  writeFileSync(shown, screenPage(readFileSync(screen, 'utf8')));
  await tab.size(870, 450);
  await tab.open(`file://${shown}`);
  await tab.picture('terminal.png');
} finally {
  browser.kill();
  await new Promise((done) => setTimeout(done, 500));
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}
