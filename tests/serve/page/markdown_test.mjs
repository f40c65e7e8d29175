// What is shown of Markdown that models write, hostile Markdown included.
//   WEFT_PAGE_FOLDER=serve/page node --test tests/serve/page/markdown_test.mjs
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fakeDocument } from './fake_document.mjs';

const folder = process.env.WEFT_PAGE_FOLDER;
const source = ['markdown.js', 'markdown_view.js']
  .map((name) => readFileSync(`${folder}/${name}`, 'utf8')).join('\n');
const { parseMarkdown, showMarkdown } = new Function('document',
  `'use strict';${source}; return { parseMarkdown, showMarkdown };`)(fakeDocument);

function html(text) {
  const parent = fakeDocument.createElement('div');
  showMarkdown(parent, text);
  return parent.inner;
}

// [what it is, Markdown, HTML]
const CASES = [
  ['a paragraph keeps its lines', 'one\ntwo\n\nthree',
    '<p>one\ntwo</p><p>three</p>'],
  ['headings go one down', '# A\n### B ###\n#no\n####### no',
    '<h2>A</h2><h4>B</h4><p>#no\n####### no</p>'],
  ['a rule', 'a\n\n---\n* * *', '<p>a</p><hr></hr><hr></hr>'],
  ['emphasis', '*a* **b** ***c*** _d_ ~~e~~',
    '<p><em>a</em> <strong>b</strong> <strong><em>c</em></strong> <em>d</em> ' +
    '<del>e</del></p>'],
  ['emphasis within emphasis', '**a *b* c**',
    '<p><strong>a </strong><strong><em>b</em></strong><strong> c</strong></p>'],
  ['no emphasis within words', 'snake_case_name 2*3*4 a * b * c',
    '<p>snake_case_name 2<em>3</em>4 a * b * c</p>'],
  ['marks without a partner', '**open and *both', '<p>**open and *both</p>'],
  ['escaped marks', '\\*a\\* \\<b\\> \\q', '<p>*a* &lt;b&gt; \\q</p>'],
  ['code in a line', '`a*b*` ``c ` d`` ` e',
    '<p><code>a*b*</code> <code>c ` d</code> ` e</p>'],
  ['no emphasis in code', '*a `b* c`', '<p>*a <code>b* c</code></p>'],
  ['a fence with its language', '```python title\nif a < b:\n\n  *x*\n```\nend',
    '<div class="code"><div class="code-head"><span>python</span></div><pre>' +
    '<code>if a &lt; b:\n\n  *x*</code></pre></div><p>end</p>'],
  ['a fence that is not closed yet', '~~~\na\n```\n',
    '<div class="code"><div class="code-head"><span></span></div><pre>' +
    '<code>a\n```\n</code></pre></div>'],
  ['code keeps its tabs', '```\n\ta\n```',
    '<div class="code"><div class="code-head"><span></span></div><pre>' +
    '<code>\ta</code></pre></div>'],
  ['lists', '- a\n- b\n\n3. c\n4. d',
    '<ul><li><p>a</p></li><li><p>b</p></li></ul>' +
    '<ol start="3"><li><p>c</p></li><li><p>d</p></li></ol>'],
  ['a list within a list', '1. a\n   - b\n     goes on\n\n   c\n2. d',
    '<ol start="1"><li><p>a</p><ul><li><p>b\ngoes on</p></li></ul><p>c</p></li>' +
    '<li><p>d</p></li></ol>'],
  ['a list by tabs', '- a\n\t- b',
    '<ul><li><p>a</p><ul><li><p>b</p></li></ul></li></ul>'],
  ['code in a list', '- a\n  ```sh\n    ls\n  ```\n- b',
    '<ul><li><p>a</p><div class="code"><div class="code-head"><span>sh</span>' +
    '</div><pre><code>  ls</code></pre></div></li><li><p>b</p></li></ul>'],
  ['a list that ends a paragraph', 'a:\n- b\n1986. no',
    '<p>a:</p><ul><li><p>b</p></li></ul><ol start="1986"><li><p>no</p></li></ol>'],
  ['a year that begins a line is text', 'in\n1986. So',
    '<p>in\n1986. So</p>'],
  ['quotes', '> a\n> > b\n>\n> c\n\nd',
    '<blockquote><p>a</p><blockquote><p>b</p></blockquote><p>c</p></blockquote>' +
    '<p>d</p>'],
  ['tables', '| a | b\\|c |\n|:--|--:|\n| *d* | `e` |\n| f |\n\ng',
    '<div class="table"><table><thead><tr><th class="left">a</th>' +
    '<th class="right">b|c</th></tr></thead><tbody><tr><td class="left">' +
    '<em>d</em></td><td class="right"><code>e</code></td></tr><tr>' +
    '<td class="left">f</td></tr></tbody></table></div><p>g</p>'],
  ['a table that is not there yet', '| a | b |\n|--', '<p>| a | b |\n|--</p>'],
  ['a line end in a cell', '|a|\n|-|\n|b<br>c|',
    '<div class="table"><table><thead><tr><th>a</th></tr></thead><tbody><tr>' +
    '<td>b\nc</td></tr></tbody></table></div>'],
  ['links', '[a *b*](https://x.org/y_(z) "t") <mailto:a@b.c>',
    '<p><a href="https://x.org/y_(z)">a <em>b</em></a> ' +
    '<a href="mailto:a@b.c">mailto:a@b.c</a></p>'],
  ['addresses in a text', '(see https://x.org/a_(b)), **https://x.org/c**.',
    '<p>(see <a href="https://x.org/a_(b)">https://x.org/a_(b)</a>), ' +
    '<a href="https://x.org/c"><strong>https://x.org/c</strong></a>.</p>'],
  ['an address is the text of a link',
    '[https://x.org](https://x.org) [see https://x.org/a](https://y.org/) ' +
    '[**https://x.org/b**](https://x.org/b) [https://x.org/c]',
    '<p><a href="https://x.org/">https://x.org</a> ' +
    '<a href="https://y.org/">see https://x.org/a</a> ' +
    '<a href="https://x.org/b"><strong>https://x.org/b</strong></a> ' +
    '[<a href="https://x.org/c">https://x.org/c</a>]</p>'],
  ['no links within links', '[a [b](http://x.org/) c](http://y.org/)',
    '<p>[a <a href="http://x.org/">b</a> c](' +
    '<a href="http://y.org/">http://y.org/</a>)</p>'],
  ['an image is a link', '![alt](https://x.org/i.png)',
    '<p><a href="https://x.org/i.png">alt</a></p>'],
  ['an image in a link', '[![alt](https://x.org/i.png)](https://y.org/)',
    '<p><a href="https://y.org/">alt</a></p>'],
  // Hostile ones.
  ['HTML is text', '<script>attack()</script>\n<img src=x onerror=attack()>',
    '<p>&lt;script&gt;attack()&lt;/script&gt;\n' +
    '&lt;img src=x onerror=attack()&gt;</p>'],
  ['HTML in code and in a language', '```"><script>\n</code><script>\n```',
    '<div class="code"><div class="code-head"><span>&quot;&gt;&lt;script&gt;' +
    '</span></div><pre><code>&lt;/code&gt;&lt;script&gt;</code></pre></div>'],
  ['scripts as addresses', '[a](javascript:attack()) <javascript:attack()> ' +
    '[b](JaVaScRiPt:x) [c](data:text/html,x) [d](//x.org) [e](/v1/models) ' +
    '[f](java\tscript:x) [g](&#106;avascript:x) [h](vbscript:x) [i](file:///x)',
    '<p>[a](javascript:attack()) &lt;javascript:attack()&gt; ' +
    '[b](JaVaScRiPt:x) [c](data:text/html,x) [d](//x.org) [e](/v1/models) ' +
    '[f](java\tscript:x) [g](&amp;#106;avascript:x) [h](vbscript:x) ' +
    '[i](file:///x)</p>'],
  ['quotation marks in addresses', '[a](https://x.org/"onmouseover="attack())',
    '<p><a href="https://x.org/%22onmouseover=%22attack()">a</a></p>'],
  ['no name of an object is special', '__proto__ constructor\n```__proto__\n',
    '<p><strong>proto</strong> constructor</p><div class="code">' +
    '<div class="code-head"><span>__proto__</span></div><pre><code></code>' +
    '</pre></div>'],
  ['zero bytes and halves of characters', '\u0000 \ud800 *\udc00*',
    '<p>\u0000 \ud800 <em>\udc00</em></p>'],
];

for (const [name, text, wanted] of CASES) {
  test(name, () => assert.equal(html(text), wanted));
}

test('a text that grows is what it is at once, whatever its parts', () => {
  const text = CASES.map(([, markdown]) => markdown).join('\n\n');
  const parent = fakeDocument.createElement('div');
  for (let end = 0; end < text.length; end += 7) {
    showMarkdown(parent, text.slice(0, end));
    assert.equal(parent.inner, html(text.slice(0, end)));
  }
  showMarkdown(parent, 'short');
  assert.equal(parent.inner, '<p>short</p>');
});

test('what is shown stays while more comes', () => {
  const parent = fakeDocument.createElement('div');
  showMarkdown(parent, '# A\n\nb');
  const [heading, paragraph] = parent.children;
  showMarkdown(parent, '# A\n\nb c');
  assert.equal(parent.children[0], heading);
  assert.notEqual(parent.children[1], paragraph);
});

test('no text is lost, but marks', () => {
  const text = 'a *b* [c](d "e) `f ![g](h)\n> i\n- j\n| k | l\n\n~~~ m';
  const shown = html(text);
  for (const letter of 'abcdefghijkl') assert.ok(shown.includes(letter), letter);
});

test('lists and quotes are as deep as they may be, and text beyond', () => {
  for (const mark of ['> ', '- ', '1. ', '- > ']) {
    const shown = html(`${mark.repeat(30)}end`);
    const depth = shown.split('<blockquote>').length + shown.split('<li>').length - 2;
    assert.equal(depth, 8);
    assert.ok(shown.includes('end'));
  }
});

// A megabyte of each takes a second or so; were the work quadratic, hours, and
// the test would never end.
const MEGABYTE = 1 << 20;
for (const part of ['[', ']', '![', '[](', '[](a ', '[](<', '[](a "', "[](a '",
  '[a](https://x.org/', '`', '`` ` ', '*', '_', '*a ', '*a* ', '**a *b ', '_a',
  '~~', '~~a', '<', '<https://', '<a', '\\', '(', 'http', 'http://', 'http://%',
  'https://x.org/)', '> ', '- ', '- a\n', '> a\n', '1. ', '* * ', '|', '|-', 'a|\n',
  '|a|\n|-|\n', '\n', ' ', '\t', '- \n', '-\n\n', '```\n', '```a`\n', '~', '#', '# ',
  '#\n', '&', '\r', '  - a\n', '> - ', '[a]: b\n', '\u0000', '*_', '**_ ', 'a_b*']) {
  test(`a megabyte of ${JSON.stringify(part)}`, () => {
    const text = part.repeat(MEGABYTE / part.length);
    const blocks = parseMarkdown(text);
    if (text.trim()) assert.ok(blocks.length > 0);
    html(text.slice(0, 1 << 16));
  });
}
