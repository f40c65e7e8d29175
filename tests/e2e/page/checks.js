// Uses the page of `weft dump --format html` as a person would, and writes what
// it found into an element #report: a line "ok NAME" or "FAILED NAME: why" for
// each check, and "finished". `errors` was filled from before the page's own
// script on (page_test.cc).

const report = element('pre');
report.id = 'report';

function check(name, ok, why = '') {
  report.append((ok ? 'ok ' : 'FAILED ') + name + (ok ? '' : ': ' + why) + '\n');
}
function equal(name, got, wanted) {
  check(name, got === wanted, JSON.stringify(got) + ' is not ' +
    JSON.stringify(wanted));
}

// Gives what the browser does later (images, events) its time.
const pause = () => new Promise((done) => setTimeout(done, 500));

function enter(id, value) {
  $(id).value = value;
  $(id).dispatchEvent(new Event('input', {bubbles: true}));
}
function press(id, key, more = {}) {
  $(id).focus();
  $(id).dispatchEvent(new KeyboardEvent('keydown',
    {key, bubbles: true, cancelable: true, ...more}));
}
function point(canvas, type, x, y) {
  const box = $(canvas).getBoundingClientRect();
  $(canvas).dispatchEvent(new PointerEvent(type, {pointerId: 1, bubbles: true,
    clientX: box.left + x, clientY: box.top + y}));
}
function clickAt(canvas, x, y) {
  point(canvas, 'pointerdown', x, y);
  point(canvas, 'pointerup', x, y);
}
const detailsTitle = () => $('details').querySelector('h2').textContent.trim();
const detailsText = () => $('details').textContent;
const itemText = (item) => item.lines.map(([text]) => text).join(' ');

// The slider shows every graph, says how large it is and what is new.
function checkSlider() {
  const last = Number($('point').max);
  check('a point for each pass', last >= 15, last);
  const {x, y, scale, surface} = graphView;
  check('its top is in the window', x >= 0 && y >= 0);
  check('all of it, or what can be read', scale >= READABLE_SCALE ||
    (x + layout.w * scale <= surface.width &&
     y + layout.h * scale <= surface.height), scale);
  equal('starts at the end', $('point').value, String(last));
  check('says the pass', /^after plan-buffers · \d+ nodes/
    .test($('point-label').textContent), $('point-label').textContent);
  enter('point', '0');
  const first = state.point.nodes;
  enter('passes', '3');
  equal('a pass by its name', state.point.label,
    $('passes').selectedOptions[0].textContent);
  equal('the slider follows', $('point').value, '3');
  enter('point', '0');
  equal('the list follows', $('passes').value, '0');
  equal('the first graph', $('point-label').textContent,
    'as loaded · ' + first.length + ' nodes');
  check('is the textbook', first.some((n) => n.op === 'softmax') &&
    !first.some((n) => n.op === 'fused_matmul'));
  check('nothing is new in it', layout.items.every((item) => !item.status));
  for (let i = 1; i <= last; ++i) {
    enter('point', String(i));
    const {counts, nodes, total} = state.point;
    const before = program.points[i - 1];
    equal('new less gone, point ' + i, counts.new - counts.gone,
      nodes.length - before.nodes.length);
    check('total, point ' + i, $('point-label').textContent
      .includes(' · ' + total + ' nodes'));
    const all = nodes.flatMap((n) => n.inputs.concat(n.outputs));
    check('values, point ' + i, all.every((id) => state.point.values.has(id)));
  }
  const fuse = program.points.findIndex((p) => p.label === 'after fuse-attention');
  enter('point', String(fuse));
  $('expand').click();
  const fresh = layout.items.filter((item) => item.status === 'new');
  equal('new nodes are marked', fresh.length, state.point.counts.new);
  check('new nodes are the fused ones', fresh.length > 0 &&
    fresh.every((item) => item.node.op === 'attention'));
  enter('point', String(last));
}

function checkBlocks() {
  const blocks = [...blocksOf(state.point)];
  $('collapse').click();
  equal('closed: a box for each block',
    layout.items.filter((item) => item.kind === 'block').length, blocks.length);
  check('closed: none of their nodes', layout.items.every((item) =>
    item.kind !== 'node' || item.node.block < 0));
  $('expand').click();
  equal('open: a box for each node',
    layout.items.filter((item) => item.kind === 'node').length,
    state.point.nodes.length);
  equal('open: a frame for each block',
    layout.groups.filter((group) => group.framed).length, blocks.length);
  // By the title of a frame, and back by the keyboard.
  graphView.fit();
  const frameOf = layout.groups.find((group) => group.framed);
  clickAt('graph-canvas', graphView.x + (frameOf.x + 20) * graphView.scale,
    graphView.y + (frameOf.y + 8) * graphView.scale);
  equal('a click on the title closes', state.open.size, blocks.length - 1);
  const box = layout.items.find((item) => item.kind === 'block');
  graphView.fit();
  clickAt('graph-canvas', graphView.x + (box.x + 20) * graphView.scale,
    graphView.y + (box.y + 8) * graphView.scale);
  equal('a click on the box selects', detailsTitle(), 'blk.' + box.block);
  press('graph-canvas', 'Enter');
  equal('Enter opens', state.open.size, blocks.length);
}

function checkSearch() {
  $('collapse').click();
  enter('query', 'FFN_down');
  const wanted = state.point.nodes.filter((n) => n.name.includes('ffn_down') ||
    weightsOf(state.point, n).some((w) => w.name.includes('ffn_down')));
  equal('matches', $('match-count').textContent, wanted.length + ' matches');
  equal('are listed', $('matches').querySelectorAll('button').length,
    wanted.length);
  equal('are marked in closed blocks', graphView.matches.size,
    blocksOf(state.point).size);
  $('search').dispatchEvent(new Event('submit', {cancelable: true}));
  $('search').dispatchEvent(new Event('submit', {cancelable: true}));
  equal('jumps to the second', state.node, wanted[1]);
  check('its block is open', state.open.has(wanted[1].block));
  const [x, y] = graphView.toGraph(graphView.surface.width / 2,
    graphView.surface.height / 2);
  const at = state.item;
  check('it is in the middle', x >= at.x && x <= at.x + at.w && y >= at.y &&
    y <= at.y + at.h, [x, y, at.x, at.y]);
  for (const [text, op] of [['rope_kv_write_', 'rope_kv_write'],
    ['attn_k', 'fused_matmul']]) {
    enter('query', text);
    check('finds ' + text, state.matches.some((n) => n.op === op));
  }
  enter('query', 'no such thing');
  equal('none', $('match-count').textContent, '0 matches');
  enter('query', '');
  equal('emptied', $('match-count').textContent, '');
}

function checkDetails() {
  const node = state.point.nodes.find((n) => n.name.endsWith('attn_qkv') &&
    n.op === 'fused_matmul');
  selectNode(node);
  equal('title', detailsTitle().split(' ')[0], 'fused_matmul');
  const text = detailsText();
  for (const part of [node.name, node.kernel, 'eps', 'made of',
    'blk.0.attn_q, blk.0.attn_k, blk.0.attn_v', '{panel16}', 'offset', 'step',
    'operations']) {
    check('details have ' + part, text.includes(part), text);
  }
  const other = $('details').querySelector('li button.link');
  const title = other.textContent;
  other.click();
  equal('a link leads on', nodeTitle(state.node), title);
  equal('a family', kernelFamily('matmul_q8_0_3x16_avx512vnni'), 'matmul_q8_0');
  const refused = [['matmul_q8_0_1x2_isa', 'is close'],
    ['matmul_q4_0_1x2_isa', 'is of another type']];
  const told = nodeDetails(state.point,
    {...node, refused, kernel: 'matmul_q8_0_3x16_isa'}, selectNode)
    .map((part) => part.textContent).join();
  check('close kernels are told', told.includes('is close'), told);
  check('others are not', !told.includes('of another type'), told);
}

// The page has the times of a profile of the same model.
function checkTimes() {
  equal('both phases', program.times.map((phase) => phase.label).join(),
    'prefill,decode');
  const text = detailsText();
  check('the slowest are told', text.includes('Slowest, decode'), text);
  const node = state.point.nodes.find((n) => n.name.endsWith('attn_qkv'));
  selectNode(node);
  check('a node has its times', /decode[\d.]+ [um]?s, [\d.]+% of a step/
    .test(detailsText()), detailsText());
  check('and its share of a limit', /decode.*; [\d.]+% of (reading memory|arithmetic)/
    .test(detailsText()), detailsText());
  selectItem(null);
}

// Two profiles, a.json and b.json.
function checkTwoProfiles() {
  equal('phases of both', program.times.map((phase) => phase.label).join(),
    'prefill, a.json,decode, a.json,prefill, b.json,decode, b.json');
  const text = detailsText();
  check('what changed is told', text.includes('Changed most, decode'), text);
  const node = state.point.nodes.find((n) => n.name.endsWith('attn_qkv'));
  selectNode(node);
  for (const file of ['a.json', 'b.json']) {
    check('times of ' + file, detailsText().includes('decode, ' + file),
      detailsText());
  }
  selectItem(null);
}

function checkKeyboard() {
  press('graph-canvas', 'Escape');
  equal('Escape deselects', state.node, null);
  press('graph-canvas', 'ArrowDown');
  equal('down: the first node', state.node, state.point.nodes[0]);
  press('graph-canvas', 'ArrowDown');
  equal('down: the second node', state.node, state.point.nodes[1]);
  press('graph-canvas', 'ArrowUp');
  press('graph-canvas', 'ArrowUp');
  equal('up: around to the last', state.node,
    state.point.nodes[state.point.nodes.length - 1]);
  press('arena-canvas', 'ArrowLeft');
  equal('left in the chart: the one before', state.node,
    state.point.nodes[state.point.nodes.length - 2]);
  const {scale, x} = graphView;
  press('graph-canvas', '+');
  check('plus', graphView.scale > scale);
  press('graph-canvas', 'ArrowLeft', {shiftKey: true});
  check('shift and left moves', graphView.x !== x);
  press('graph-canvas', '/');
  equal('slash: to the search', document.activeElement, $('query'));
}

function checkArena() {
  const {buffers, arena} = state.point;
  check('buffers', buffers.length > 5, buffers.length);
  check('within the arena', buffers.every((b) => b.offset >= 0 &&
    b.offset + b.bytes <= arena[0] && b.first <= b.last &&
    b.last < state.point.total));
  check('no two overlap', buffers.every((a, i) => buffers.slice(0, i).every((b) =>
    a.first > b.last || b.first > a.last || a.offset >= b.offset + b.bytes ||
    b.offset >= a.offset + a.bytes || a.offset === b.offset)));
  check('summary', $('arena-summary').textContent
    .startsWith(bytesText(arena[0])), $('arena-summary').textContent);
  press('graph-canvas', 'Escape');
  arenaView.fit();
  const buffer = buffers.reduce((a, b) => a.bytes > b.bytes ? a : b);
  const box = arenaView.boxOf(buffer);
  const at = [box.x + box.w / 2, box.y + box.h / 2];
  point('arena-canvas', 'pointermove', ...at);
  check('a tip', !$('arena-tip').hidden &&
    $('arena-tip').textContent.includes(placeText(buffer)),
    $('arena-tip').textContent);
  clickAt('arena-canvas', ...at);
  equal('a click selects', state.node && state.node.id, arenaView.owner(buffer));
  enter('point', '0');
  equal('before planning: no numbers', $('arena-summary').textContent, '');
  enter('point', $('point').max);
}

// What is on the canvases is drawn: the colour in a box is that of its op.
function checkDrawing() {
  $('expand').click();
  const node = state.point.nodes.find((n) => n.kernel !== '');
  selectNode(node);
  selectItem(null);
  // At once: without a screen, a frame may be long in coming.
  graphView.surface.drawNow();
  arenaView.surface.drawNow();
  const item = layout.itemOf.get(node.id);
  const ratio = window.devicePixelRatio;
  const pixel = (context, x, y) => [...context.getImageData(
    Math.round(x * ratio), Math.round(y * ratio), 1, 1).data].join();
  const probe = document.createElement('canvas').getContext('2d');
  probe.fillStyle = graphView.surface.colours.light(node.op);
  probe.fillRect(0, 0, 8, 8);
  equal('a box has its colour', pixel(graphView.surface.context,
    graphView.x + (item.x + item.w - 8) * graphView.scale,
    graphView.y + (item.y + 6) * graphView.scale),
    [...probe.getImageData(1, 1, 1, 1).data].join());
  const buffer = state.point.buffers.find((b) => b.value >= 0);
  const box = arenaView.boxOf(buffer);
  check('a buffer is drawn', pixel(arenaView.surface.context,
    box.x + box.w / 2, box.y + 4) !== '0,0,0,0');
}

// At every point, with blocks open and closed: boxes apart, lines downwards
// within a column, both ends at boxes.
function checkLayouts() {
  for (const shown of program.points) {
    for (const open of [new Set(), blocksOf(shown)]) {
      const {items, lines, w, h} = layoutGraph(shown, open, 1.5);
      const where = shown.label + ', ' + open.size + ' open: ';
      let apart = true, inside = true;
      items.forEach((a, i) => {
        inside = inside && a.x >= -0.01 && a.y >= -0.01 && a.x + a.w <= w + 0.01 &&
          a.y + a.h <= h + 0.01;
        for (const b of items.slice(0, i)) apart = apart && !overlaps(a, b);
      });
      check(where + 'boxes apart', apart);
      check(where + 'all inside', inside);
      check(where + 'lines', lines.length > 0 && lines.every((line) => {
        const [x0, y0] = line.points[0];
        const [x1, y1] = line.points[line.points.length - 1];
        return x0 >= line.from.x && x0 <= line.from.x + line.from.w &&
          y0 === line.from.y + line.from.h && x1 >= line.to.x &&
          x1 <= line.to.x + line.to.w && y1 === line.to.y &&
          (line.from.group.column !== line.to.group.column || y0 < y1);
      }));
    }
  }
}

async function checkHostileNames() {
  equal('one image at most', document.images.length, 0);
  equal('nothing ran', window.attacked, undefined);
  const node = state.point.nodes.find((n) => n.name.includes('onerror'));
  selectNode(node);
  check('the name is text', detailsText().includes(
    '<\/script><img src=x onerror=attacked=1>'), detailsText());
  enter('query', 'onerror');
  check('in the list, too', $('matches').textContent.includes('<img'),
    $('matches').textContent);
  await pause();
  equal('still no image', document.images.length, 0);
  equal('still nothing ran', window.attacked, undefined);
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
}
