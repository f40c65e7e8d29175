// The graph on a canvas: drawing, zoom, what is under the pointer.

const FONT = 'ui-monospace, Menlo, Consolas, monospace';
// Below these scales text is too small to read, and is left out.
const TEXT_SCALE = 0.45, TITLE_SCALE = 0.2, READABLE_SCALE = 0.8;

const overlaps = (a, b) =>
  a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

class GraphView {
  // handlers: select(item or null), toggle(block).
  constructor(canvas, handlers) {
    this.surface = new Surface(canvas, (...rest) => this.draw(...rest));
    this.layout = null;
    this.scale = 1;
    this.x = this.y = 0;  // of the graph's origin on the canvas
    this.selected = '';   // key of an item
    this.matches = new Set();  // keys of items
    listenToPointers(canvas, {
      pan: (dx, dy) => this.move(dx, dy),
      zoom: (factor, x, y) => this.zoom(factor, x, y),
      click: (x, y) => {
        const group = this.titleAt(x, y);
        if (group) return handlers.toggle(group.block);
        handlers.select(this.itemAt(x, y));
      },
      double: (x, y) => {
        const item = this.itemAt(x, y);
        if (item && item.kind === 'block') handlers.toggle(item.block);
      },
    });
  }

  show(layout) {
    this.layout = layout;
    this.surface.change();
  }

  move(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.surface.change();
  }

  zoom(factor, x = this.surface.width / 2, y = this.surface.height / 2) {
    const scale = Math.min(4, Math.max(0.02, this.scale * factor));
    this.x = x - (x - this.x) * scale / this.scale;
    this.y = y - (y - this.y) * scale / this.scale;
    this.scale = scale;
    this.surface.change();
  }

  // All of it.
  fit() {
    const {w, h} = this.layout;
    const width = this.surface.width - 40, height = this.surface.height - 90;
    this.scale = Math.min(1, width / Math.max(w, 1), height / Math.max(h, 1));
    this.x = 20 + (width - w * this.scale) / 2;
    this.y = 50 + (height - h * this.scale) / 2;
    this.surface.change();
  }

  // All of it where that can be read; else its width, or what of it can be read,
  // from the top.
  fitReadable() {
    this.fit();
    if (this.scale >= READABLE_SCALE) return;
    const {w} = this.layout, width = this.surface.width - 40;
    this.scale = Math.min(1, Math.max(READABLE_SCALE, width / Math.max(w, 1)));
    this.x = 20 + Math.max(0, width - w * this.scale) / 2;
    this.y = 50;
    this.surface.change();
  }

  center(item) {
    if (this.scale < 0.5) this.scale = 0.8;
    this.x = this.surface.width / 2 - (item.x + item.w / 2) * this.scale;
    this.y = this.surface.height / 2 - (item.y + item.h / 2) * this.scale;
    this.surface.change();
  }

  // Keeps an item where it is on the screen when the layout changes.
  hold(before, after) {
    this.x += (before.x + before.w / 2 - after.x - after.w / 2) * this.scale;
    this.y += (before.y - after.y) * this.scale;
    this.surface.change();
  }

  // The item nearest to the middle of the screen.
  middleItem() {
    const [x, y] = this.toGraph(this.surface.width / 2, this.surface.height / 2);
    let best = null, least = Infinity;
    for (const item of this.layout.items) {
      const d = Math.hypot(item.x + item.w / 2 - x, item.y + item.h / 2 - y);
      if (d < least) [best, least] = [item, d];
    }
    return best;
  }

  toGraph(x, y) {
    return [(x - this.x) / this.scale, (y - this.y) / this.scale];
  }

  itemAt(x, y) {
    const [gx, gy] = this.toGraph(x, y);
    return this.layout.items.find((item) => gx >= item.x &&
      gx <= item.x + item.w && gy >= item.y && gy <= item.y + item.h) || null;
  }

  titleAt(x, y) {
    const [gx, gy] = this.toGraph(x, y);
    return this.layout.groups.find((group) => group.framed && gx >= group.x &&
      gx <= group.x + group.w && gy >= group.y &&
      gy <= group.y + TITLE_HEIGHT) || null;
  }

  draw(context, width, height) {
    if (!this.layout) return;
    const colours = this.surface.colours;
    context.save();
    context.translate(this.x, this.y);
    context.scale(this.scale, this.scale);
    const [x, y] = this.toGraph(0, 0);
    const window = {x, y, w: width / this.scale, h: height / this.scale};
    for (const group of this.layout.groups) {
      if (group.framed && overlaps(group, window)) {
        this.drawFrame(context, colours, group);
      }
    }
    const chosen = [];
    context.lineWidth = 1.3;
    context.strokeStyle = colours.edge;
    context.fillStyle = colours.edge;
    for (const line of this.layout.lines) {
      if (!overlaps(line, window)) continue;
      const isChosen = line.from.key === this.selected ||
        line.to.key === this.selected;
      if (isChosen) chosen.push(line);
      else this.drawLine(context, line);
    }
    context.lineWidth = 2.5;
    context.strokeStyle = colours.accent;
    context.fillStyle = colours.accent;
    for (const line of chosen) this.drawLine(context, line);
    for (const item of this.layout.items) {
      if (overlaps(item, window)) this.drawItem(context, colours, item);
    }
    context.restore();
  }

  drawFrame(context, colours, group) {
    context.fillStyle = colours.block;
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(group.x, group.y, group.w, group.h, 8);
    context.fill();
    context.stroke();
    context.fillStyle = colours.muted;
    const size = Math.min(40, Math.max(13, 11 / this.scale));
    context.font = `bold ${size}px ${FONT}`;
    context.textBaseline = 'top';
    context.fillText('▾ blk.' + group.block, group.x + 12, group.y + 8);
  }

  drawLine(context, line) {
    const points = line.points;
    context.beginPath();
    context.moveTo(points[0][0], points[0][1]);
    for (let i = 1; i < points.length; ++i) {
      const [x0, y0] = points[i - 1], [x1, y1] = points[i];
      const middle = (y0 + y1) / 2;
      if (x0 === x1 || y0 === y1) context.lineTo(x1, y1);
      else context.bezierCurveTo(x0, middle, x1, middle, x1, y1);
    }
    context.stroke();
    if (this.scale < TITLE_SCALE) return;
    const [x, y] = points[points.length - 1];
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - 4, y - 8);
    context.lineTo(x + 4, y - 8);
    context.fill();
  }

  drawItem(context, colours, item) {
    const isNode = item.kind === 'node';
    context.fillStyle = isNode ? colours.light(item.node.op) :
      item.kind === 'block' ? colours.block : colours.box;
    context.lineJoin = 'round';
    context.strokeStyle = isNode ? colours.strong(item.node.op) : colours.edge;
    context.lineWidth = 1;
    if (this.matches.has(item.key)) {
      context.strokeStyle = colours.match;
      context.lineWidth = 4;
    }
    if (item.key === this.selected) {
      context.strokeStyle = colours.accent;
      context.lineWidth = Math.max(3, 2 / this.scale);
    }
    const radius = item.kind === 'source' || item.kind === 'output' ?
      item.h / 2 : 5;
    context.beginPath();
    context.roundRect(item.x, item.y, item.w, item.h, radius);
    context.fill();
    context.stroke();
    if (item.status) {
      context.fillStyle = colours[item.status];
      context.fillRect(item.x, item.y + 4, 5, item.h - 8);
    }
    if (this.scale < TITLE_SCALE) return;
    context.textBaseline = 'top';
    item.lines.forEach(([text, role], i) => {
      if (i > 0 && this.scale < TEXT_SCALE) return;
      context.font = (role === 'title' ? 'bold ' : '') + '12px ' + FONT;
      context.fillStyle = role === 'title' || isNode ? colours.text :
        colours[role] || colours.muted;
      context.fillText(text, item.x + 12, item.y + 7 + i * LINE_HEIGHT);
    });
  }
}
