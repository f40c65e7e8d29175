// The arena over the schedule on a canvas: steps across, offsets up, a
// rectangle for each buffer from where it is written to where it is last read.

const ARENA_LEFT = 70, ARENA_RIGHT = 10, ARENA_TOP = 16, ARENA_BOTTOM = 20;

class ArenaView {
  // handlers: select(id of a node), describe(buffer or null, x, y).
  constructor(canvas, handlers) {
    this.surface = new Surface(canvas, (...rest) => this.draw(...rest));
    this.point = null;
    this.first = 0;  // the steps on the screen
    this.last = 1;
    this.selected = -1;  // id of a node
    listenToPointers(canvas, {
      pan: (dx) => this.pan(-dx / this.stepWidth()),
      zoom: (factor, x) => this.zoom(factor, this.stepAt(x)),
      click: (x, y) => {
        const buffer = this.bufferAt(x, y);
        if (buffer) handlers.select(this.owner(buffer));
      },
      hover: (x, y) =>
        handlers.describe(x === null ? null : this.bufferAt(x, y), x, y),
    });
  }

  show(point) {
    const steps = Math.max(1, point.total);
    if (!this.point || this.point.total !== point.total) {
      this.first = 0;
      this.last = steps;
    }
    this.point = point;
    this.surface.change();
  }

  // The node that writes a buffer.
  owner(buffer) {
    if (buffer.node >= 0) return buffer.node;
    const node = this.point.producer.get(buffer.value);
    return node ? node.id : -1;
  }

  pan(steps) {
    const total = Math.max(1, this.point.total), span = this.last - this.first;
    this.first = Math.min(total - span, Math.max(0, this.first + steps));
    this.last = this.first + span;
    this.surface.change();
  }

  zoom(factor, around = (this.first + this.last) / 2) {
    const total = Math.max(1, this.point.total);
    const span = Math.min(total,
      Math.max(Math.min(total, 4), (this.last - this.first) / factor));
    const share = (around - this.first) / (this.last - this.first);
    this.first = around - share * span;
    this.last = this.first + span;
    this.pan(0);
  }

  fit() {
    this.first = 0;
    this.last = Math.max(1, this.point.total);
    this.surface.change();
  }

  stepWidth() {
    return (this.surface.width - ARENA_LEFT - ARENA_RIGHT) /
      (this.last - this.first);
  }
  xOf(step) { return ARENA_LEFT + (step - this.first) * this.stepWidth(); }
  stepAt(x) { return this.first + (x - ARENA_LEFT) / this.stepWidth(); }
  yOf(bytes) {
    const height = this.surface.height - ARENA_TOP - ARENA_BOTTOM;
    const all = Math.max(1, this.point.arena[0], this.point.arena[1]);
    return this.surface.height - ARENA_BOTTOM - height * bytes / all;
  }

  boxOf(buffer) {
    const x = this.xOf(buffer.first), y = this.yOf(buffer.offset + buffer.bytes);
    return {x, y, w: this.xOf(buffer.last + 1) - x,
      h: this.yOf(buffer.offset) - y};
  }

  bufferAt(x, y) {
    if (!this.point || !this.point.arena || x < ARENA_LEFT) return null;
    return this.point.buffers.find((buffer) => {
      const box = this.boxOf(buffer);
      return x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h;
    }) || null;
  }

  draw(context, width, height) {
    if (!this.point) return;
    const colours = this.surface.colours;
    context.font = '12px ' + FONT;
    context.textBaseline = 'middle';
    context.fillStyle = colours.muted;
    if (!this.point.arena) {
      context.textAlign = 'center';
      context.fillText('Buffers have no places yet: they get them in plan-buffers.',
        width / 2, height / 2, width - 20);
      context.textAlign = 'left';
      return;
    }
    context.save();
    context.beginPath();
    context.rect(ARENA_LEFT, 0, width - ARENA_LEFT - ARENA_RIGHT, height);
    context.clip();
    const chosen = this.point.step.get(this.selected);
    if (chosen !== undefined) {
      context.fillStyle = colours.block;
      context.fillRect(this.xOf(chosen), ARENA_TOP, this.stepWidth(),
        height - ARENA_TOP - ARENA_BOTTOM);
    }
    for (const buffer of this.point.buffers) this.drawBuffer(context, buffer);
    context.restore();
    this.drawAxes(context, width, height);
  }

  drawBuffer(context, buffer) {
    const box = this.boxOf(buffer);
    if (box.x > this.surface.width || box.x + box.w < ARENA_LEFT) return;
    const colours = this.surface.colours;
    const node = this.point.byId.get(this.owner(buffer));
    const op = node ? node.op : '';
    // Scratch memory is hollow: it lives for one step.
    context.globalAlpha = buffer.node >= 0 ? 0.35 : 1;
    context.fillStyle = colours.light(op);
    context.fillRect(box.x, box.y, box.w, box.h);
    context.globalAlpha = 1;
    const isChosen = node && node.id === this.selected;
    context.strokeStyle = isChosen ? colours.accent : colours.strong(op);
    context.lineWidth = isChosen ? 3 : 1;
    const inset = context.lineWidth / 2;
    context.setLineDash(buffer.node >= 0 ? [3, 2] : []);
    context.strokeRect(box.x + inset, box.y + inset,
      Math.max(0.5, box.w - 2 * inset), Math.max(0.5, box.h - 2 * inset));
    context.setLineDash([]);
    if (!node || box.w < 60 || box.h < 14) return;
    const room = Math.floor((box.w - 8) / CHAR_WIDTH);
    const text = node.name.replace(/^blk\.\d+\./, '') || node.op;
    context.fillStyle = colours.text;
    context.fillText(text.length > room ? text.slice(0, room - 1) + '…' : text,
      box.x + 4, box.y + box.h / 2);
  }

  drawAxes(context, width, height) {
    const colours = this.surface.colours;
    const [peak, bound] = this.point.arena;
    const mark = (bytes, colour, dash) => {
      const y = Math.round(this.yOf(bytes)) + 0.5;
      context.strokeStyle = colour;
      context.lineWidth = 1;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(ARENA_LEFT, y);
      context.lineTo(width - ARENA_RIGHT, y);
      context.stroke();
      context.setLineDash([]);
    };
    mark(peak, colours.accent, []);
    mark(bound, colours.bound, [6, 4]);
    mark(0, colours.line, []);
    context.textAlign = 'right';
    context.fillStyle = colours.muted;
    for (const bytes of [0, peak / 2, peak]) {
      context.fillText(bytesText(bytes), ARENA_LEFT - 6, this.yOf(bytes));
    }
    context.textAlign = 'center';
    const every = Math.max(1, Math.ceil((this.last - this.first) * 50 / width));
    const shown = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((n) => n >= every) ||
      1000 * Math.ceil(every / 1000);
    for (let step = Math.ceil(this.first / shown) * shown; step < this.last;
      step += shown) {
      context.fillText(String(step), this.xOf(step + 0.5), height - 9);
    }
    context.textAlign = 'left';
  }
}
