// The boxes of the graph before they have places: what each says, the groups
// that they stand in, and which values join them.
//
// A node is a box that names its weights; an input that many nodes read is named
// in their boxes, too, instead of being joined to them. A closed block is one
// box. Sources (inputs, states) and outputs have boxes of their own.

const LINE_HEIGHT = 15, CHAR_WIDTH = 7.3;
const MOST_CHARS = 44;
// An input with more readers is named in their boxes instead of joined to them.
const MOST_LINES = 3;

const shorten = (text) =>
  text.length > MOST_CHARS ? text.slice(0, MOST_CHARS - 1) + '…' : text;

// `lines` are [text, role]; the first is the title.
function makeItem(kind, key, lines, rest) {
  const item = {kind, key, lines: lines.map(([t, role]) => [shorten(t), role]),
    x: 0, y: 0, ...rest};
  const longest = Math.max(...item.lines.map(([text]) => text.length));
  item.w = Math.max(90, longest * CHAR_WIDTH + 24);
  item.h = 12 + item.lines.length * LINE_HEIGHT;
  return item;
}

function nodeItem(point, node, isCrowded) {
  const short = (name) => node.block >= 0 ?
    name.replace('blk.' + node.block + '.', '') : name;
  const lines = [[node.op, 'title']];
  if (node.name) lines.push([short(node.name), 'name']);
  for (const weight of weightsOf(point, node)) {
    lines.push(['▪ ' + short(weight.name) + ' ' + weight.type, 'weight']);
  }
  const crowded = node.inputs.filter(isCrowded)
    .map((id) => valueTitle(point, id));
  if (crowded.length > 0) lines.push(['◂ ' + crowded.join(', '), 'input']);
  if (node.kernel) lines.push([node.kernel, 'kernel']);
  for (const id of node.outputs) {
    const value = point.values.get(id);
    if (value) lines.push(['→ ' + value.type, 'type']);
  }
  return makeItem('node', 'n' + node.id, lines,
    {node, status: point.status.get(node.id)});
}

function blockItem(point, block, nodes) {
  const count = (status) =>
    nodes.filter((node) => point.status.get(node.id) === status).length;
  const operations = nodes.reduce((sum, node) => sum + node.operations, 0);
  const bytes = nodes.reduce((sum, node) => sum + node.bytes, 0);
  const lines = [
    ['▸ blk.' + block, 'title'],
    [nodes.length + ' nodes, ' + countText(operations) + ' operations, ' +
      bytesText(bytes), 'name']];
  const changes = ['new', 'changed'].filter((status) => count(status) > 0);
  if (changes.length > 0) {
    lines.push([changes.map((s) => count(s) + ' ' + s).join(', '), changes[0]]);
  }
  return makeItem('block', 'b' + block, lines,
    {block, nodes, status: changes[0]});
}

// The nodes in groups: a block, or what stands before, between or after blocks.
function makeGroups(point) {
  const groups = new Map(), blocks = new Set();
  for (const node of point.nodes) {
    if (node.block >= 0) blocks.add(node.block);
    const key = node.block >= 0 ? 'b' + node.block : 'after' + blocks.size;
    if (!groups.has(key)) groups.set(key, {key, block: node.block, nodes: []});
    groups.get(key).nodes.push(node);
  }
  return [...groups.values()];
}

// Boxes of sources (inputs, states, values from elsewhere) and of outputs.
function addEnds(point, groups, groupOf, isCrowded) {
  const add = (group, item) => {
    item.group = group;
    group.items.push(item);
    return item;
  };
  const sources = new Map();
  for (const value of point.values.values()) {
    const readers = point.readers.get(value.id) || [];
    if (value.kind === 'weight' || point.producer.has(value.id)) continue;
    if (readers.length === 0 && value.kind !== 'input') continue;
    const homes = new Set(readers.map((node) => groupOf.get(node.id)));
    let group = [...homes][0] || groups[0];
    if (value.kind === 'input' && (homes.size > 1 || group.collapsed)) {
      group = groups[0];
    }
    if (group.collapsed) continue;
    const lines = [[value.name || valueTitle(point, value.id), 'title'],
      [value.kind === 'temporary' ? 'from a block not shown' :
        value.kind, 'name'],
      [value.type, 'type']];
    if (isCrowded(value.id)) lines[1][0] += ', ' + readers.length + ' readers';
    sources.set(value.id, add(group,
      makeItem('source', 'v' + value.id, lines, {value})));
  }
  for (const {name, id} of point.outputs) {
    const producer = point.producer.get(id);
    const group = producer && groupOf.get(producer.id);
    if (!group || group.collapsed) continue;
    const value = point.values.get(id);
    add(group, makeItem('output', 'o' + name,
      [[name, 'title'], ['output', 'name']], {value, reads: id}));
  }
  return sources;
}

// [value id, item that makes it, items that read it]
function findEdges(point, itemOf, sources, outputs, isCrowded) {
  const edges = [];
  for (const value of point.values.values()) {
    if (value.kind === 'weight' || isCrowded(value.id)) continue;
    const producer = point.producer.get(value.id);
    const from = producer ? itemOf.get(producer.id) : sources.get(value.id);
    if (!from) continue;
    const readers = new Set((point.readers.get(value.id) || [])
      .map((node) => itemOf.get(node.id)));
    for (const item of outputs) if (item.reads === value.id) readers.add(item);
    readers.delete(from);
    if (readers.size > 0) edges.push({id: value.id, from, readers});
  }
  return edges;
}
