// What the page says in words: elements made of text, never of markup, since
// names come from files.

function element(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  if (options.class) node.className = options.class;
  if (options.text !== undefined) node.textContent = options.text;
  if (options.click) node.addEventListener('click', options.click);
  if (tag === 'button') node.type = 'button';
  node.append(...children);
  return node;
}

const listOf = (children) =>
  element('ul', {}, ...children.map((child) => element('li', {}, child)));

// Rows of [name, text or element]; those without content are left out.
function tableOf(rows) {
  const body = element('tbody');
  for (const [name, content] of rows) {
    if (content === '' || content === null || content === undefined) continue;
    body.append(element('tr', {}, element('th', {text: name}),
      element('td', {}, content)));
  }
  return element('table', {}, body);
}

// What was measured of a node in all steps of a phase, [seconds, share of
// bandwidth, share of arithmetic]; undefined: nothing.
const measured = (phase, node) =>
  Object.hasOwn(phase.nodes, node.name || node.op) ?
    phase.nodes[node.name || node.op] : undefined;

// Seconds of a node in a step of a phase that was measured; undefined: none.
function stepSeconds(phase, node) {
  const all = measured(phase, node);
  return all && all[0] / Math.max(1, phase.steps);
}

const phaseSeconds = (phase) => Object.values(phase.nodes)
  .reduce((sum, [seconds]) => sum + seconds, 0) / Math.max(1, phase.steps);

const secondsText = (seconds) =>
  scaled(seconds * 1e6, 1000, [' us', ' ms', ' s']);

const percentText = (share) => (100 * share).toFixed(share < 0.1 ? 1 : 0) + '%';

// "31 us, 4.2% of a step; 80% of reading memory": of a step.
function timeText(phase, node) {
  const seconds = stepSeconds(phase, node);
  if (seconds === undefined) return '';
  const [, bandwidth, arithmetic] = measured(phase, node);
  const share = 100 * seconds / Math.max(phaseSeconds(phase), 1e-12);
  const shares = [[bandwidth, ' of reading memory'], [arithmetic, ' of arithmetic']]
    .filter(([of]) => of > 0).sort((a, b) => b[0] - a[0]).slice(0, 1)
    .map(([of, what]) => '; ' + percentText(of) + what);
  return secondsText(seconds) + ', ' + share.toFixed(1) + '% of a step' +
    shares.join('');
}

const nodeList = (nodes, select, textOf) => listOf(nodes.slice(0, 8).map((node) =>
  element('div', {}, nodeLink(node, select),
    element('div', {class: 'muted', text: textOf(node)}))));

// The nodes that took longest, with their times.
function slowest(program, point, select) {
  const parts = [];
  for (const phase of program.times) {
    const timed = point.nodes.filter((node) => stepSeconds(phase, node) > 0)
      .sort((a, b) => stepSeconds(phase, b) - stepSeconds(phase, a));
    if (timed.length === 0) continue;
    parts.push(element('h3', {text: 'Slowest, ' + phase.label}),
      nodeList(timed, select, (node) => timeText(phase, node)));
  }
  return parts;
}

// Where the first two profiles differ most, phase by phase.
function changes(program, point, select) {
  const parts = [];
  for (const name of new Set(program.times.map((phase) => phase.phase))) {
    const [one, other] = program.times.filter((phase) => phase.phase === name);
    if (!other) continue;
    const change = (node) => stepSeconds(other, node) - stepSeconds(one, node);
    const both = point.nodes.filter((node) => Number.isFinite(change(node)))
      .sort((a, b) => Math.abs(change(b)) - Math.abs(change(a)));
    if (both.length === 0) continue;
    parts.push(element('h3', {text: 'Changed most, ' + name}),
      element('p', {class: 'muted', text: 'a step: ' +
        secondsText(phaseSeconds(one)) + ' and ' + secondsText(phaseSeconds(other))}),
      nodeList(both, select, (node) => secondsText(stepSeconds(one, node)) +
        ' and ' + secondsText(stepSeconds(other, node))));
  }
  return parts;
}

const nodeTitle = (node) => node.name ? node.op + '  ' + node.name : node.op;

function nodeLink(node, select) {
  return element('button', {class: 'link', text: nodeTitle(node),
    click: () => select(node)});
}

// Where a buffer lies and how long it lives.
function placeText(buffer) {
  return 'offset ' + buffer.offset + ', ' + bytesText(buffer.bytes) +
    (buffer.first === buffer.last ? ', step ' + buffer.first :
      ', steps ' + buffer.first + '..' + buffer.last);
}

// One operand or result: who makes it, its type, its place, its sources.
function valueEntry(point, id, select, showReaders) {
  const value = point.values.get(id);
  const entry = element('div');
  if (!value) {
    entry.append(element('span', {class: 'muted', text: 'not shown'}));
    return entry;
  }
  const maker = point.producer.get(id);
  entry.append(maker && !showReaders ? nodeLink(maker, select) :
    element('b', {text: value.name || (showReaders ? '' : 'value ' + id)}));
  if (value.kind !== 'temporary') {
    entry.append(' ', element('span', {class: 'muted', text: value.kind}));
  }
  entry.append(element('div', {class: 'type', text: value.type + ', ' +
    bytesText(value.bytes)}));
  if (value.sources.length > 0) {
    entry.append(element('div', {class: 'muted',
      text: 'made of ' + value.sources.join(', ')}));
  }
  const buffer = point.buffers.find((b) => b.value === id);
  if (buffer) {
    entry.append(element('div', {class: 'muted', text: placeText(buffer)}));
  } else if (value.offset >= 0) {
    entry.append(element('div', {class: 'muted',
      text: 'view at offset ' + value.offset}));
  }
  if (showReaders) {
    const readers = point.readers.get(id) || [];
    if (readers.length > 0) {
      entry.append(element('div', {class: 'muted', text: 'read by'}),
        listOf(readers.slice(0, 40).map((node) => nodeLink(node, select))));
    }
    if (readers.length > 40) {
      entry.append(element('div', {class: 'muted',
        text: 'and ' + (readers.length - 40) + ' more'}));
    }
  }
  return entry;
}

// "<op>_<weight type>" of a kernel's name, before its tile and instruction set.
const kernelFamily = (name) => name.split('_').slice(0, -2).join('_');

// Kernels that would have come first and compute the same of the same types;
// all others were never near.
const nearlyChosen = (node) => node.refused.filter(([kernel]) =>
  kernelFamily(kernel) === kernelFamily(node.kernel));

function nodeDetails(point, node, select) {
  const status = point.status.get(node.id);
  const title = element('h2', {text: node.op + ' '});
  if (status) title.append(element('span', {class: 'tag ' + status, text: status}));
  const parts = [title];
  const scratch = point.buffers.find((b) => b.node === node.id);
  const perByte = node.bytes > 0 ? node.operations / node.bytes : 0;
  parts.push(tableOf([
    ['name', node.name],
    ['block', node.block >= 0 ? String(node.block) : ''],
    ['step', String(point.step.get(node.id))],
    ['kernel', node.kernel && element('span', {class: 'code', text: node.kernel})],
    ...program.times.map((phase) => [phase.label, timeText(phase, node)]),
    ['operations', countText(node.operations)],
    ['bytes', bytesText(node.bytes) + (perByte > 0 ?
      ', ' + perByte.toFixed(perByte < 10 ? 1 : 0) + ' operations each' : '')],
    ['scratch', scratch ? placeText(scratch) : ''],
  ]));
  if (node.attributes.length > 0) {
    parts.push(element('h3', {text: 'Attributes'}), tableOf(
      node.attributes.map(([name, value]) =>
        [name, element('span', {class: 'code', text: String(value)})])));
  }
  parts.push(element('h3', {text: 'Reads'}), listOf(
    node.inputs.map((id) => valueEntry(point, id, select, false))));
  parts.push(element('h3', {text: 'Makes'}), listOf(
    node.outputs.map((id) => valueEntry(point, id, select, true))));
  const near = nearlyChosen(node);
  if (near.length > 0) {
    parts.push(element('h3', {text: 'Kernels that were close'}), listOf(
      near.map(([kernel, reason]) => element('div', {},
        element('div', {class: 'code', text: kernel}),
        element('div', {class: 'muted', text: reason})))));
  }
  return parts;
}

function blockDetails(item, select) {
  return [element('h2', {text: 'blk.' + item.block}),
    element('p', {class: 'muted', text: item.lines[1][0]}),
    listOf(item.nodes.map((node) => nodeLink(node, select)))];
}

function overview(program, point, select) {
  const ops = new Map();
  for (const node of point.nodes) ops.set(node.op, (ops.get(node.op) || 0) + 1);
  return [element('h2', {text: point.label}), tableOf([
    ['nodes', point.nodes.length + (point.total > point.nodes.length ?
      ' of ' + point.total : '')],
    ['tokens', 'at most ' + program.tokens],
    ['context', 'at most ' + program.context],
    ['operations', countText(point.nodes.reduce((s, n) => s + n.operations, 0)) +
      ' in a step of ' + program.tokens + ' tokens'],
  ]), element('h3', {text: 'Ops'}), tableOf(
    [...ops].sort((a, b) => b[1] - a[1]).map(([op, n]) => [String(n), op])),
  ...changes(program, point, select),
  ...slowest(program, point, select),
  element('p', {class: 'muted',
    text: 'Select a node to see its types, kernel, cost and memory.'})];
}
