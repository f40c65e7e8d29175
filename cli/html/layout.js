// Where boxes and lines of the graph stand: a layered layout, block by block.
//
// A model is nearly a chain. Its blocks, and what stands between them, are
// groups one below the other, in as many columns as make the whole about as
// wide and high as the screen. In a group, a box stands one layer below the
// lowest that it reads; lines that pass a layer get a place in it like a box
// ("bend"); boxes of a layer are sorted by the middle of what they are joined
// to, then moved as near to it as their order and sizes let them.

const LAYER_GAP = 30, BOX_GAP = 22, GROUP_GAP = 34, GROUP_PAD = 16;
const COLUMN_GAP = 70;
const TITLE_HEIGHT = 26;

// Layers of the items of one group; `edges` end in it.
function setLayers(group, edges) {
  for (const item of group.items) item.layer = 0;
  // Items of nodes stand in order of execution.
  const into = new Map(group.items.map((item) => [item, []]));
  for (const edge of edges) {
    if (edge.from.group !== group) continue;
    for (const reader of edge.readers) {
      if (reader.group === group) into.get(reader).push(edge.from);
    }
  }
  const isSource = (item) => item.kind === 'source';
  for (const item of group.items) {
    if (isSource(item)) continue;
    for (const from of into.get(item)) {
      if (!isSource(from)) item.layer = Math.max(item.layer, from.layer + 1);
    }
  }
  // A source stands right above its first reader.
  for (const edge of edges) {
    if (!isSource(edge.from) || edge.from.group !== group) continue;
    const here = [...edge.readers].filter((r) => r.group === group);
    if (here.length === 0) continue;
    edge.from.layer = Math.min(...here.map((r) => r.layer)) - 1;
  }
  const first = Math.min(...group.items.map((item) => item.layer));
  for (const item of group.items) item.layer -= first;
}

// Boxes and bends of a group, in layers; each knows its neighbours above and
// below. Gives the edge's bends a list: edge.bends.get(group) by layer.
function makeLayers(group, edges) {
  const depth = Math.max(...group.items.map((item) => item.layer)) + 1;
  const layers = Array.from({length: depth}, () => []);
  const placeOf = new Map();
  for (const item of group.items) {
    const place = {item, w: item.w, x: 0, up: [], down: []};
    placeOf.set(item, place);
    layers[item.layer].push(place);
  }
  const join = (above, below) => {
    if (!above || !below) return;
    above.down.push(below);
    below.up.push(above);
  };
  for (const edge of edges) {
    const inside = edge.from.group === group;
    const here = [...edge.readers].filter((r) => r.group === group);
    const leaves = inside && [...edge.readers].some((r) => r.group !== group);
    const start = inside ? edge.from.layer : -1;
    const end = leaves ? depth : Math.max(...here.map((r) => r.layer));
    const bends = new Map();
    let above = inside ? placeOf.get(edge.from) : null;
    for (let layer = start + 1; layer <= end; ++layer) {
      for (const reader of here) {
        if (reader.layer === layer) join(above, placeOf.get(reader));
      }
      if (layer === end || layer >= depth) break;
      const bend = {item: null, chain: edge.id, w: 10, x: 0, up: [], down: []};
      join(above, bend);
      layers[layer].push(bend);
      bends.set(layer, bend);
      above = bend;
    }
    edge.bends.set(group, bends);
  }
  return layers;
}

const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;

// Moves the places of a layer as near to their wishes as their order and widths
// let them (least squares: neighbours that would overlap are pooled). Bends
// weigh more than boxes where lines are to be straight.
function settle(layer, wish, bendWeight = 1) {
  const pools = [];
  let shift = 0;
  layer.forEach((place, i) => {
    if (i > 0) shift += (layer[i - 1].w + place.w) / 2 + BOX_GAP;
    place.shift = shift;
    const weight = place.item ? 1 : bendWeight;
    let pool = {sum: (wish(place) - shift) * weight, count: weight, first: i};
    while (pools.length > 0 &&
        pools[pools.length - 1].sum / pools[pools.length - 1].count >
        pool.sum / pool.count) {
      const left = pools.pop();
      pool = {sum: left.sum + pool.sum, count: left.count + pool.count,
        first: left.first};
    }
    pools.push(pool);
  });
  pools.forEach((pool, k) => {
    const end = k + 1 < pools.length ? pools[k + 1].first : layer.length;
    for (let i = pool.first; i < end; ++i) {
      layer[i].x = pool.sum / pool.count + layer[i].shift;
    }
  });
}

function placeAcross(layers) {
  const wish = (side) => (place) =>
    place[side].length > 0 ? mean(place[side].map((p) => p.x)) : place.x;
  const both = (place) => {
    const near = place.up.concat(place.down);
    return near.length > 0 ? mean(near.map((p) => p.x)) : place.x;
  };
  for (const layer of layers) settle(layer, () => 0);
  for (let round = 0; round < 4; ++round) {
    for (const [list, side] of [[layers, 'up'],
      [[...layers].reverse(), 'down']]) {
      for (const layer of list) {
        const key = wish(side);
        const keys = new Map(layer.map((place) => [place, key(place)]));
        layer.sort((a, b) => keys.get(a) - keys.get(b));
        settle(layer, key);
      }
    }
  }
  for (let round = 0; round < 3; ++round) {
    for (const layer of layers) settle(layer, both);
  }
  // Bends of one line stand below each other, where the widest layer lets them.
  for (let round = 0; round < 3; ++round) {
    const straight = new Map();
    for (const place of layers.flat()) {
      if (place.item) continue;
      const chain = straight.get(place.chain) || [];
      chain.push(place.x);
      straight.set(place.chain, chain);
    }
    for (const layer of layers) {
      settle(layer, (place) => {
        if (place.item) return both(place);
        const xs = straight.get(place.chain);
        return mean(xs) > 0 ? Math.max(...xs) : Math.min(...xs);
      }, 8);
    }
  }
}

// How far a group reaches from its middle, and how high it is.
function measureGroup(group, layers) {
  const places = layers.flat(), pad = group.framed ? GROUP_PAD : 0;
  group.left = Math.min(...places.map((p) => p.x - p.w / 2)) - pad;
  group.right = Math.max(...places.map((p) => p.x + p.w / 2)) + pad;
  group.h = layers.reduce((sum, layer) => sum + layerHeight(layer), 0) +
    LAYER_GAP * (layers.length - 1) +
    (group.framed ? TITLE_HEIGHT + 2 * GROUP_PAD : 0);
}

const layerHeight = (layer) =>
  Math.max(10, ...layer.map((place) => place.item ? place.item.h : 0));

// Groups into columns: the number of the column of each.
function makeColumns(groups, aspect) {
  const total = groups.reduce((sum, group) => sum + group.h + GROUP_GAP, 0);
  const width = Math.max(...groups.map((g) => g.right - g.left)) + COLUMN_GAP;
  const columns = Math.max(1, Math.round(Math.sqrt(aspect * total / width)));
  let above = 0;
  for (const group of groups) {
    group.column = Math.min(columns - 1,
      Math.floor((above + group.h / 2) / total * columns));
    above += group.h + GROUP_GAP;
  }
}

// Gives the items of a group their places; `middle` and `top` are the group's.
function placeGroup(group, layers, middle, top) {
  let y = top + (group.framed ? TITLE_HEIGHT + GROUP_PAD : 0);
  group.layerTop = [];
  group.layerBottom = [];
  for (const layer of layers) {
    const height = layerHeight(layer);
    group.layerTop.push(y);
    group.layerBottom.push(y + height);
    for (const place of layer) {
      place.x += middle;
      if (!place.item) continue;
      place.item.x = place.x - place.w / 2;
      place.item.y = y + (height - place.item.h) / 2;
    }
    y += height + LAYER_GAP;
  }
  group.x = middle + group.left;
  group.y = top;
  group.w = group.right - group.left;
}

// All groups; returns the size of the whole.
function placeGroups(groups, layersOf, aspect) {
  for (const group of groups) measureGroup(group, layersOf.get(group));
  makeColumns(groups, aspect);
  let x = 0, h = 0;
  for (const column of new Set(groups.map((group) => group.column))) {
    const here = groups.filter((group) => group.column === column);
    const middle = x - Math.min(...here.map((group) => group.left));
    let y = 0;
    for (const group of here) {
      placeGroup(group, layersOf.get(group), middle, y);
      group.columnX = x;
      y += group.h + GROUP_GAP;
    }
    h = Math.max(h, y - GROUP_GAP);
    x = middle + Math.max(...here.map((group) => group.right)) + COLUMN_GAP;
  }
  return {w: x - COLUMN_GAP, h};
}

// From the bottom of a column to the top of another, through the gap before it.
function turn(from, to, points) {
  const below = from.y + from.h + GROUP_GAP / 2, above = to.y - GROUP_GAP / 2;
  const gap = to.columnX - COLUMN_GAP / 2;
  points.push([points[points.length - 1][0], below], [gap, below], [gap, above]);
}

// The points of each line, from the bottom of a box to the top of another.
function drawLines(edges) {
  const lines = [];
  for (const edge of edges) {
    for (const to of edge.readers) {
      const points = [[edge.from.x + edge.from.w / 2, edge.from.y + edge.from.h]];
      const follow = (group, from, until) => {
        const bends = edge.bends.get(group);
        if (!bends) return;
        for (const [layer, bend] of bends) {
          if (layer <= from || layer >= until) continue;
          points.push([bend.x, group.layerTop[layer]]);
          points.push([bend.x, group.layerBottom[layer]]);
        }
      };
      if (edge.from.group === to.group) {
        follow(to.group, edge.from.layer, to.layer);
      } else {
        follow(edge.from.group, edge.from.layer, Infinity);
        if (edge.from.group.column !== to.group.column) {
          turn(edge.from.group, to.group, points);
        }
        follow(to.group, -1, to.layer);
      }
      points.push([to.x + to.w / 2, to.y]);
      lines.push({id: edge.id, from: edge.from, to, points});
    }
  }
  spreadEnds(lines, 'to', (line) => line.points.length - 1);
  spreadEnds(lines, 'from', () => 0);
  for (const line of lines) {
    const xs = line.points.map((p) => p[0]), ys = line.points.map((p) => p[1]);
    line.x = Math.min(...xs);
    line.y = Math.min(...ys);
    line.w = Math.max(...xs) - line.x;
    line.h = Math.max(...ys) - line.y;
  }
  return lines;
}

// Lines that meet at a box end side by side, in order of where they come from;
// those of one value leave a box together.
function spreadEnds(lines, end, at) {
  const byItem = new Map();
  for (const line of lines) {
    if (!byItem.has(line[end])) byItem.set(line[end], []);
    byItem.get(line[end]).push(line);
  }
  for (const [item, list] of byItem) {
    const next = (line) => line.points[at(line) === 0 ? 1 : at(line) - 1][0];
    const keys = end === 'from' ? [...new Set(list.map((l) => l.id))] : list;
    if (keys.length < 2) continue;
    const first = (key) => end === 'from' ?
      next(list.find((line) => line.id === key)) : next(key);
    keys.sort((a, b) => first(a) - first(b));
    const gap = Math.min(26, item.w * 0.7 / keys.length);
    for (const line of list) {
      const i = keys.indexOf(end === 'from' ? line.id : line);
      line.points[at(line)][0] += (i - (keys.length - 1) / 2) * gap;
    }
  }
}

// The picture of a point, with the blocks in `open` opened, for a screen that is
// `aspect` times as wide as high: {items, lines, groups, itemOf (by id of the
// node), sources (by id of the value), w, h}; it begins at 0, 0.
function layoutGraph(point, open, aspect) {
  const groups = makeGroups(point);
  const isCrowded = (id) => {
    const value = point.values.get(id);
    return value !== undefined && value.kind === 'input' &&
      (point.readers.get(id) || []).length > MOST_LINES;
  };
  if (groups.length === 0 || groups[0].block >= 0) {
    groups.unshift({key: 'after0', block: -1, nodes: []});
  }
  const itemOf = new Map(), groupOf = new Map();
  for (const group of groups) {
    group.collapsed = group.block >= 0 && !open.has(group.block);
    group.framed = group.block >= 0 && !group.collapsed;
    group.items = group.collapsed ?
      [blockItem(point, group.block, group.nodes)] :
      group.nodes.map((node) => nodeItem(point, node, isCrowded));
    for (const item of group.items) item.group = group;
    group.nodes.forEach((node, i) => {
      groupOf.set(node.id, group);
      itemOf.set(node.id, group.items[group.collapsed ? 0 : i]);
    });
  }
  const sources = addEnds(point, groups, groupOf, isCrowded);
  const full = groups.filter((group) => group.items.length > 0);
  const items = full.flatMap((group) => group.items);
  const edges = findEdges(point, itemOf, sources,
    items.filter((item) => item.kind === 'output'), isCrowded);
  for (const edge of edges) edge.bends = new Map();
  const touching = new Map(full.map((group) => [group, []]));
  for (const edge of edges) {
    for (const group of new Set([edge.from.group,
      ...[...edge.readers].map((r) => r.group)])) {
      touching.get(group).push(edge);
    }
  }
  const layersOf = new Map();
  for (const group of full) {
    setLayers(group, touching.get(group));
    layersOf.set(group, makeLayers(group, touching.get(group)));
    placeAcross(layersOf.get(group));
  }
  const size = placeGroups(full, layersOf, aspect);
  return {items, lines: drawLines(edges), groups: full, itemOf, sources, ...size};
}
