// As much of a document as the page's scripts use to show text, without a
// browser: what is made can be written as HTML. There is no innerHTML, so a
// script that set it would show nothing.

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  .replaceAll('>', '&gt;').replaceAll('"', '&quot;');

class Element {
  constructor(tag) {
    this.tag = tag;
    this.children = [];  // texts, too
    this.parent = null;
    this.attributes = {};
    this.classList = { add: (name) => {
      this.className = `${this.className ?? ''} ${name}`.trim();
    } };
  }
  append(...added) {
    for (const child of added) {
      if (child instanceof Element) child.parent = this;
      this.children.push(child instanceof Element ? child : String(child));
    }
  }
  get lastChild() {
    return this.children[this.children.length - 1];
  }
  replaceWith(other) {
    other.parent = this.parent;
    this.parent.children[this.parent.children.indexOf(this)] = other;
  }
  remove() {
    this.parent.children.splice(this.parent.children.indexOf(this), 1);
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  addEventListener() {}
  set textContent(text) {
    this.children = [String(text)];
  }

  get html() {
    const names = { className: 'class', href: 'href', start: 'start' };
    const attributes = Object.entries(names)
      .filter(([property]) => this[property] !== undefined)
      .map(([property, name]) => ` ${name}="${escaped(String(this[property]))}"`);
    if (this.tag === 'button') return '';
    return `<${this.tag}${attributes.join('')}>${this.inner}</${this.tag}>`;
  }
  get inner() {
    return this.children.map((child) =>
      child instanceof Element ? child.html : escaped(child)).join('');
  }
}

export const fakeDocument = { createElement: (tag) => new Element(tag) };
