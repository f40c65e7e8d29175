// The page: one state (point of the pipeline, open blocks, selection, search),
// and what follows from it.

const $ = (id) => document.getElementById(id);
// Blocks are open at first where a graph is small, and can be read as a whole.
const OPEN_NODES = 60;
const LISTED_MATCHES = 200;

const program = unpackProgram(JSON.parse($('program').textContent));
const state = {
  point: program.points[program.points.length - 1],
  open: new Set(),
  item: null,     // the item selected in the layout
  node: null,     // the node selected, also when its block is closed
  matches: [],    // nodes
  match: -1,
};
let layout = null;

const blocksOf = (point) =>
  new Set(point.nodes.map((node) => node.block).filter((block) => block >= 0));

const graphView = new GraphView($('graph-canvas'), {
  select: (item) => selectItem(item),
  toggle: (block) => toggleBlock(block),
});
const arenaView = new ArenaView($('arena-canvas'), {
  select: (id) => {
    const node = state.point.byId.get(id);
    if (node) selectNode(node);
  },
  describe: showTip,
});

// A new layout; what was in the middle of the screen stays there.
function arrange() {
  const anchor = layout && (state.item || graphView.middleItem());
  const {width, height} = graphView.surface;
  layout = layoutGraph(state.point, state.open, width / Math.max(1, height));
  const same = anchor && layout.items.find((item) => item.key === anchor.key ||
    (anchor.node && layout.itemOf.get(anchor.node.id) === item) ||
    (anchor.block !== undefined && item.node && item.node.block === anchor.block));
  graphView.show(layout);
  if (same) graphView.hold(anchor, same);
  state.item = layout.items.find((item) => state.item &&
    item.key === state.item.key) || null;
  if (state.node) state.item = layout.itemOf.get(state.node.id) || null;
  mark();
}

// Selection and matches, as the views show them.
function mark() {
  graphView.selected = state.item ? state.item.key : '';
  arenaView.selected = state.node ? state.node.id : -1;
  graphView.matches = new Set(state.matches.map((node) =>
    layout.itemOf.get(node.id).key));
  graphView.surface.change();
  arenaView.surface.change();
}

function showDetails() {
  const {point, node, item} = state;
  let parts;
  if (node) {
    parts = nodeDetails(point, node, selectNode);
  } else if (item && item.kind === 'block') {
    parts = blockDetails(item, selectNode);
  } else if (item) {
    parts = [element('h2', {text: item.kind === 'source' ? item.value.kind :
      'output'}), valueEntry(point, item.value.id, selectNode, true)];
  } else {
    parts = overview(program, point, selectNode);
  }
  $('details').replaceChildren(...parts);
}

function selectItem(item) {
  state.item = item;
  state.node = item && item.kind === 'node' ? item.node : null;
  mark();
  showDetails();
}

// Also one that is not on the screen, or in a closed block.
function selectNode(node) {
  if (node.block >= 0 && !state.open.has(node.block)) {
    state.open.add(node.block);
    arrange();
  }
  selectItem(layout.itemOf.get(node.id));
  graphView.center(state.item);
}

function toggleBlock(block) {
  const close = state.open.delete(block);
  if (!close) state.open.add(block);
  if (close && state.node && state.node.block === block) selectItem(null);
  arrange();
  showDetails();
}

function showPoint(index) {
  const old = state.node;
  state.point = program.points[index];
  const {point} = state;
  state.node = old ? point.byId.get(old.id) || null : null;
  if (!state.node) state.item = null;
  const {counts} = point;
  const text = [point.label, point.total + ' nodes'].concat(
    ['new', 'changed', 'gone'].filter((key) => counts[key] > 0)
      .map((key) => counts[key] + ' ' + key)).join(' · ');
  $('point-label').textContent = text;
  $('point').setAttribute('aria-valuetext', text);
  $('point').value = $('passes').value = String(index);
  const {arena} = point;
  $('arena-summary').textContent = arena ? bytesText(arena[0]) +
    ' (solid line), lower bound ' + bytesText(arena[1]) +
    ' (dashed), sum of intermediates ' + bytesText(arena[2]) : '';
  arenaView.show(point);
  search(false);
  arrange();
  showDetails();
}

function showTip(buffer, x, y) {
  const tip = $('arena-tip');
  tip.hidden = !buffer;
  if (!buffer) return;
  const node = state.point.byId.get(arenaView.owner(buffer));
  tip.textContent = (node ? nodeTitle(node) : 'value') +
    (buffer.node >= 0 ? ' (scratch)' : '') + ': ' + placeText(buffer);
  const canvas = $('arena-canvas');
  const left = canvas.offsetLeft + x, right = canvas.clientWidth - x;
  tip.style.left = x < right ? left + 12 + 'px' : '';
  tip.style.right = x < right ? '' : right + 20 + 'px';
  tip.style.bottom = canvas.clientHeight - y + 14 + 'px';
}

function search(jump) {
  state.matches = searchNodes(state.point, $('query').value);
  state.match = -1;
  const {matches} = state;
  $('match-count').textContent = $('query').value.trim() === '' ? '' :
    matches.length + (matches.length === 1 ? ' match' : ' matches');
  const list = matches.slice(0, LISTED_MATCHES).map((node, i) =>
    element('button', {class: 'link', text: nodeTitle(node),
      click: () => showMatch(i)}));
  $('matches').replaceChildren(...(list.length > 0 ? [listOf(list)] : []));
  if (jump) mark();
}

function showMatch(index) {
  const {matches} = state;
  if (matches.length === 0) return;
  state.match = (index + matches.length) % matches.length;
  $('match-count').textContent = state.match + 1 + ' of ' + matches.length;
  $('matches').querySelectorAll('button').forEach((button, i) => {
    button.setAttribute('aria-current', String(i === state.match));
    if (i === state.match) button.scrollIntoView({block: 'nearest'});
  });
  selectNode(matches[state.match]);
}

// The node `by` places further in the schedule.
function selectNext(by) {
  const {nodes} = state.point;
  if (nodes.length === 0) return;
  const at = state.node ? nodes.indexOf(state.node) + by : by > 0 ? 0 : -1;
  selectNode(nodes[(at + nodes.length) % nodes.length]);
}

function onGraphKey(event) {
  const far = 60;
  const moves = {ArrowUp: [0, far], ArrowDown: [0, -far], ArrowLeft: [far, 0],
    ArrowRight: [-far, 0]};
  const page = graphView.surface.height * 0.8;
  const actions = {
    ArrowUp: () => selectNext(-1),
    ArrowDown: () => selectNext(1),
    ArrowLeft: () => graphView.move(far, 0),
    ArrowRight: () => graphView.move(-far, 0),
    PageUp: () => graphView.move(0, page),
    PageDown: () => graphView.move(0, -page),
    '+': () => graphView.zoom(1.25),
    '=': () => graphView.zoom(1.25),
    '-': () => graphView.zoom(0.8),
    '0': () => graphView.fit(),
    Escape: () => selectItem(null),
    Enter: () => {
      const {item, node} = state;
      const block = item && item.kind === 'block' ? item.block :
        node ? node.block : -1;
      if (block >= 0) toggleBlock(block);
    },
  };
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const action = event.shiftKey && moves[event.key] ?
    () => graphView.move(...moves[event.key]) : actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function onArenaKey(event) {
  const actions = {
    ArrowLeft: () => selectNext(-1),
    ArrowRight: () => selectNext(1),
    '+': () => arenaView.zoom(1.5),
    '=': () => arenaView.zoom(1.5),
    '-': () => arenaView.zoom(1 / 1.5),
    '0': () => arenaView.fit(),
  };
  const action = actions[event.key];
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
}

function openAll(blocks) {
  state.open = blocks;
  if (state.node && !blocks.has(state.node.block) && state.node.block >= 0) {
    selectItem(null);
  }
  arrange();
  showDetails();
}

function showLegend() {
  const {light, strong} = graphView.surface.colours;
  const ops = new Map(FAMILIES.map(([name]) => [name, null]));
  for (const point of program.points) {
    for (const node of point.nodes) ops.set(familyOf(node.op)[0], node.op);
  }
  $('legend').replaceChildren(...[...ops].filter(([, op]) => op !== null)
    .map(([name, op]) => {
      const patch = element('i');
      patch.style.background = light(op);
      patch.style.border = '1px solid ' + strong(op);
      return element('span', {}, patch, name);
    }));
}

function start() {
  document.title = program.title + ' · weft';
  $('title').textContent = program.title;
  if (state.point.nodes.length <= OPEN_NODES) state.open = blocksOf(state.point);
  const last = program.points.length - 1;
  const slider = $('point');
  $('passes').replaceChildren(...program.points.map(({label}, i) =>
    new Option(label, String(i))));
  $('passes').addEventListener('input', () => showPoint(Number($('passes').value)));
  slider.max = String(last);
  slider.value = String(last);
  slider.disabled = last === 0;
  slider.addEventListener('input', () => showPoint(Number(slider.value)));
  $('query').addEventListener('input', () => search(true));
  $('search').addEventListener('submit', (event) => {
    event.preventDefault();
    showMatch(state.match + 1);
  });
  $('expand').addEventListener('click', () => openAll(blocksOf(state.point)));
  $('collapse').addEventListener('click', () => openAll(new Set()));
  $('zoom-in').addEventListener('click', () => graphView.zoom(1.25));
  $('zoom-out').addEventListener('click', () => graphView.zoom(0.8));
  $('fit').addEventListener('click', () => graphView.fit());
  $('graph-canvas').addEventListener('keydown', onGraphKey);
  $('arena-canvas').addEventListener('keydown', onArenaKey);
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target.tagName === 'INPUT') return;
    event.preventDefault();
    $('query').focus();
  });
  showLegend();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showLegend);
  showPoint(last);
  graphView.fit();
  if (graphView.scale < READABLE_SCALE && state.open.size > 0) {
    openAll(new Set());
  }
  graphView.fitReadable();
}

start();
