// What both canvases share: colours of the page's style, sharp pixels, zoom.

const FAMILIES = [
  ['products', /matmul/, 212],
  ['attention', /attention|softmax/, 275],
  ['norms', /norm/, 145],
  ['rounding and packing', /quantize|pack|concat|interleave/, 48],
  ['positions and cache', /rope|kv_write/, 18],
  ['rows', /embed|take_rows|slice/, 185],
  ['element by element', /(?:)/, 320],
];
const familyOf = (op) => FAMILIES.find(([, pattern]) => pattern.test(op));

// The colours of the scheme that is on now, from page.css.
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue('--' + name).trim();
  const colours = {};
  for (const name of ['back', 'panel', 'box', 'block', 'text', 'muted', 'line',
    'edge', 'accent', 'match', 'new', 'changed', 'bound']) {
    colours[name] = get(name);
  }
  for (const strength of ['light', 'strong']) {
    const light = get('family-' + strength);
    colours[strength] = (op) => `hsl(${familyOf(op)[2]} 62% ${light})`;
  }
  return colours;
}

// A canvas that is drawn when something changed, at most once a frame, in CSS
// pixels. `draw(context, width, height)`.
class Surface {
  constructor(canvas, draw) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.draw = draw;
    this.waiting = false;
    this.colours = readColours();
    new ResizeObserver(() => this.change()).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.colours = readColours();
      this.change();
    });
  }

  get width() { return this.canvas.clientWidth; }
  get height() { return this.canvas.clientHeight; }

  change() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    this.waiting = false;
    const ratio = window.devicePixelRatio || 1;
    const w = Math.round(this.width * ratio), h = Math.round(this.height * ratio);
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    this.draw(this.context, this.width, this.height);
  }
}

// Pointers on a canvas as what they mean: handlers.pan(dx, dy),
// handlers.zoom(factor, x, y), handlers.click(x, y), handlers.hover(x, y) or
// hover(null), handlers.double(x, y).
function listenToPointers(canvas, handlers) {
  const pointers = new Map();
  let moved = 0;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return Math.hypot(a[0] - b[0], a[1] - b[1]);
  };
  canvas.addEventListener('pointerdown', (event) => {
    if (pointers.size === 0) moved = 0;
    pointers.set(event.pointerId, at(event));
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const [x, y] = at(event);
    const old = pointers.get(event.pointerId);
    if (!old) return handlers.hover && handlers.hover(x, y);
    const before = pointers.size === 2 ? spread() : 0;
    pointers.set(event.pointerId, [x, y]);
    moved += Math.abs(x - old[0]) + Math.abs(y - old[1]);
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      handlers.zoom(spread() / Math.max(1, before), (a[0] + b[0]) / 2,
        (a[1] + b[1]) / 2);
    } else if (moved > 4) {
      handlers.pan(x - old[0], y - old[1]);
    }
  });
  const release = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    if (event.type === 'pointerup' && moved <= 4) handlers.click(...at(event));
  };
  canvas.addEventListener('pointerup', release);
  canvas.addEventListener('pointercancel', release);
  canvas.addEventListener('pointerleave', () =>
    handlers.hover && handlers.hover(null));
  canvas.addEventListener('dblclick', (event) =>
    handlers.double && handlers.double(...at(event)));
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    handlers.zoom(Math.exp(-event.deltaY * lines * 0.0016), ...at(event));
  }, {passive: false});
}
