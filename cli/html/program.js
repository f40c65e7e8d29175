// The data of the page (cli/html/program_data.h says what it is) as objects.

const blockOf = (name) => {
  const match = /^blk\.(\d{1,9})\./.exec(name);
  return match ? Number(match[1]) : -1;
};

// "12.3 MiB" and "4.5 G": for people.
function scaled(number, base, units) {
  let unit = 0;
  while (Math.abs(number) >= base && unit + 1 < units.length) {
    number /= base;
    ++unit;
  }
  const digits = unit === 0 || Math.abs(number) >= 100 ? 0 : 1;
  return number.toFixed(digits) + units[unit];
}
const bytesText = (n) => scaled(n, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB']);
const countText = (n) => scaled(n, 1000, ['', ' k', ' M', ' G', ' T', ' P']);

function unpackValue(record, data) {
  const [id, kind, name, type, bytes, offset, sources] = record;
  return {
    id, bytes, offset,
    kind: data.strings[kind],
    name: data.strings[name],
    type: data.strings[type],
    sources: (sources || []).map((s) => data.strings[s]),
  };
}

function unpackNode(record, data) {
  const [id, op, name, inputs, outputs, attributes, refused, bytes, operations,
    scratch] = record;
  const pairs = data.attributes[attributes];
  const node = {
    id, inputs, outputs, bytes, operations, scratch,
    op: data.strings[op],
    name: data.strings[name],
    attributes: [],
    kernel: '',
    refused: data.refusals[refused],
  };
  for (let i = 0; i < pairs.length; i += 2) {
    if (pairs[i] === 'kernel') {
      node.kernel = String(pairs[i + 1]);
    } else {
      node.attributes.push([pairs[i], pairs[i + 1]]);
    }
  }
  node.block = blockOf(node.name);
  return node;
}

// One point of the pipeline. `before` is the point before it, or null.
function unpackPoint(packed, data, nodeRecords, before) {
  const values = new Map(before ? before.values : []);
  for (const record of packed.values) {
    const value = unpackValue(data.values[record], data);
    values.set(value.id, value);
  }
  const point = {
    label: packed.label,
    total: packed.total,
    values,
    nodes: [],
    byId: new Map(),
    step: new Map(),       // by id of the node
    producer: new Map(),   // by id of the value: a node
    readers: new Map(),    // by id of the value: nodes
    outputs: packed.outputs.map(([name, id]) => ({name: data.strings[name], id})),
    arena: packed.arena || null,
    buffers: (packed.buffers || []).map(
      ([value, node, offset, bytes, first, last]) =>
        ({value, node, offset, bytes, first, last})),
    status: new Map(),     // by id of the node: 'new' or 'changed'
    counts: {new: 0, changed: 0, gone: 0},
  };
  for (const [record, count, step] of packed.nodes) {
    for (let i = 0; i < count; ++i) {
      const node = nodeRecords[record + i];
      point.nodes.push(node);
      point.byId.set(node.id, node);
      point.step.set(node.id, step + i);
      for (const id of node.outputs) point.producer.set(id, node);
      for (const id of new Set(node.inputs)) {
        if (!point.readers.has(id)) point.readers.set(id, []);
        point.readers.get(id).push(node);
      }
    }
  }
  if (before) {
    for (const node of point.nodes) {
      const old = before.byId.get(node.id);
      if (old === node) continue;
      const status = old ? 'changed' : 'new';
      point.status.set(node.id, status);
      ++point.counts[status];
    }
    for (const node of before.nodes) {
      if (!point.byId.has(node.id)) ++point.counts.gone;
    }
  }
  return point;
}

function unpackProgram(data) {
  const nodeRecords = data.nodes.map((record) => unpackNode(record, data));
  const points = [];
  for (const packed of data.points) {
    points.push(unpackPoint(packed, data, nodeRecords,
      points.length > 0 ? points[points.length - 1] : null));
  }
  return {title: data.title, name: data.name, tokens: data.tokens,
    context: data.context, points,
    times: data.times || []};
}

// What a node reads that is a weight.
const weightsOf = (point, node) =>
  node.inputs.map((id) => point.values.get(id))
    .filter((value) => value && value.kind === 'weight');

// How people call a value: its name, or what makes it.
function valueTitle(point, id) {
  const value = point.values.get(id);
  if (value && value.name) return value.name;
  const node = point.producer.get(id);
  return node ? node.name || node.op : 'value ' + id;
}

// Nodes in which the text stands: op, name, kernel, or a tensor's name.
function searchNodes(point, text) {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return [];
  const has = (s) => s.toLowerCase().includes(wanted);
  return point.nodes.filter((node) =>
    has(node.op) || has(node.name) || has(node.kernel) ||
    node.inputs.concat(node.outputs).some((id) => {
      const value = point.values.get(id);
      return value && (has(value.name) || value.sources.some(has));
    }));
}
