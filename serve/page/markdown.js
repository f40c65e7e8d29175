// Markdown as models write it: text becomes a tree of plain objects, which
// markdown_view.js makes elements of.
//
// After CommonMark (https://spec.commonmark.org/0.31.2/) and the tables and
// strikethrough of https://github.github.com/gfm/: headings with #, rules,
// fences, quotes, lists, tables, paragraphs; code spans, emphasis, links.
// Otherwise than there: line ends in paragraphs stay; HTML is text (but <br>
// ends a line); indented code and lines under headings are paragraphs; two
// columns more make a list an inner one; images are links, as nothing is
// fetched. Emphasis is a property of runs of text and no tree, so it has no
// depth; quotes and lists have MOST_DEPTH, and are text beyond it.
//
// A text is untrusted, and is parsed again and again while it grows: what is not
// closed yet is text or, for a fence, code; and the work is linear in the
// text's length.
//
// Blocks: {type: 'paragraph' | 'heading', runs, level}, {type: 'rule'},
// {type: 'code', language, text}, {type: 'quote', blocks},
// {type: 'list', ordered, start, items: [blocks]},
// {type: 'table', align: ['' | 'left' | 'center' | 'right'], rows: [[runs]]}.
// Those of a whole text also have `source`, its lines.
// Runs: {text, strong, em, del, code, href}.

const MOST_DEPTH = 8;

function indentOf(line) {
  let columns = 0;
  while (line[columns] === ' ') ++columns;
  return columns;
}

const isBlank = (line) => line.trim() === '';

// Each of these looks at one line and gives null or what it begins.

function fenceOf(line) {
  const found = /^ {0,3}(`{3,}|~{3,})([^]*)$/.exec(line);
  if (!found || (found[1][0] === '`' && found[2].includes('`'))) return null;
  return { mark: found[1][0], length: found[1].length, indent: indentOf(line),
    language: found[2].trim().split(/\s/, 1)[0] };
}

function closesFence(line, fence) {
  const text = line.trim();
  return indentOf(line) < 4 && text.length >= fence.length &&
    text === fence.mark.repeat(text.length);
}

function headingOf(line) {
  const found = /^ {0,3}(#{1,6})(?:[ \t]|$)/.exec(line);
  if (!found) return null;
  let text = line.slice(found[0].length).trim();
  let end = text.length;
  while (text[end - 1] === '#') --end;
  if (end === 0 || text[end - 1] === ' ') text = text.slice(0, end).trim();
  return { level: found[1].length, text };
}

function isRule(line) {
  const marks = line.replace(/[ \t]/g, '');
  return indentOf(line) < 4 && marks.length >= 3 && '-*_'.includes(marks[0]) &&
    marks === marks[0].repeat(marks.length);
}

function itemOf(line) {
  if (isRule(line)) return null;
  const found = /^( {0,3})(?:([-*+])|(\d{1,9})([.)]))(?: |$)/.exec(line);
  if (!found) return null;
  const marked = found[0].trimEnd().length;
  const rest = line.slice(marked);
  // Spaces behind the mark: one to four, else what follows has an indent.
  const spaces = indentOf(rest);
  const width = isBlank(rest) || spaces > 4 ? 1 : spaces;
  return { kind: found[2] ?? found[4], ordered: found[3] !== undefined,
    start: Number(found[3] ?? 0), text: rest.slice(width),
    content: Math.min(marked + width, indentOf(line) + 2) };
}

const isQuote = (line) => /^ {0,3}>/.test(line);

function cellsOf(line) {
  const cells = [];
  let cell = '';
  const text = line.trim();
  for (let i = text[0] === '|' ? 1 : 0; i < text.length; ++i) {
    if (text[i] === '\\' && text[i + 1] === '|') {
      cell += '|';
      ++i;
    } else if (text[i] === '|') {
      cells.push(cell.trim());
      cell = '';
    } else {
      cell += text[i];
    }
  }
  if (cell.trim() !== '') cells.push(cell.trim());
  return cells;
}

// The columns' places when `line` is what stands below a table's head of
// `count` cells.
function alignOf(line, count) {
  if (!line.includes('|')) return null;
  const cells = cellsOf(line);
  if (cells.length !== count) return null;
  const align = [];
  for (const cell of cells) {
    if (!/^:?-+:?$/.test(cell)) return null;
    const [left, right] = [cell[0] === ':', cell.endsWith(':')];
    align.push(left && right ? 'center' : right ? 'right' : left ? 'left' : '');
  }
  return align;
}

function tableAt(lines, at) {
  if (at + 1 >= lines.length || !lines[at].includes('|')) return null;
  const head = cellsOf(lines[at]);
  return head.length > 0 ? alignOf(lines[at + 1], head.length) : null;
}

// Whether this line ends the paragraph before it.
function interrupts(lines, at, depth) {
  const line = lines[at];
  if (fenceOf(line) || headingOf(line) || isRule(line)) return true;
  if (depth < MOST_DEPTH) {
    if (isQuote(line)) return true;
    const item = itemOf(line);
    if (item) return item.text !== '' && (!item.ordered || item.start === 1);
  }
  return tableAt(lines, at) !== null;
}

// The item's lines from `at` on, without its indent, and where they end.
function itemLines(lines, at, item, depth) {
  const inner = [item.text];
  let fence = fenceOf(item.text);
  let end = at + 1;
  for (; end < lines.length; ++end) {
    const line = lines[end];
    if (isBlank(line)) {
      inner.push('');
      continue;
    }
    const indent = indentOf(line);
    if (indent >= item.content) {
      const text = line.slice(item.content);
      if (fence) {
        if (closesFence(text, fence)) fence = null;
      } else {
        fence = fenceOf(text);
      }
      inner.push(text);
      continue;
    }
    // A paragraph may go on without the indent.
    if (fence || isBlank(lines[end - 1]) || itemOf(line) ||
      interrupts(lines, end, depth)) break;
    inner.push(line);
  }
  while (end > at + 1 && isBlank(lines[end - 1])) {
    --end;
    inner.pop();
  }
  return { inner, end };
}

function parseList(lines, at, first, depth) {
  const items = [];
  let item = first;
  for (;;) {
    const { inner, end } = itemLines(lines, at, item, depth);
    items.push(parseBlocks(inner, depth + 1));
    at = end;
    let next = at;
    while (next < lines.length && isBlank(lines[next])) ++next;
    item = next < lines.length ? itemOf(lines[next]) : null;
    if (!item || item.kind !== first.kind) break;
    at = next;
  }
  return { block: { type: 'list', ordered: first.ordered, start: first.start,
    items }, end: at };
}

// The block that begins at this line, which is not blank, and where it ends.
function blockAt(lines, at, depth) {
  const line = lines[at];
  const fence = fenceOf(line);
  if (fence) {
    let end = at + 1;
    const code = [];
    for (; end < lines.length && !closesFence(lines[end], fence); ++end) {
      code.push(lines[end].slice(Math.min(indentOf(lines[end]), fence.indent)));
    }
    return { block: { type: 'code', language: fence.language,
      text: code.join('\n') }, end: Math.min(end + 1, lines.length) };
  }
  const heading = headingOf(line);
  if (heading) {
    return { block: { type: 'heading', level: heading.level,
      runs: parseRuns(heading.text) }, end: at + 1 };
  }
  if (isRule(line)) return { block: { type: 'rule' }, end: at + 1 };
  if (depth < MOST_DEPTH) {
    if (isQuote(line)) {
      const inner = [];
      let end = at;
      for (; end < lines.length && isQuote(lines[end]); ++end) {
        inner.push(lines[end].replace(/^ {0,3}> ?/, ''));
      }
      return { block: { type: 'quote', blocks: parseBlocks(inner, depth + 1) },
        end };
    }
    const item = itemOf(line);
    if (item) return parseList(lines, at, item, depth);
  }
  const align = tableAt(lines, at);
  if (align) {
    const rows = [cellsOf(line).map(parseRuns)];
    let end = at + 2;
    for (; end < lines.length && lines[end].includes('|'); ++end) {
      rows.push(cellsOf(lines[end]).map(parseRuns));
    }
    return { block: { type: 'table', align, rows }, end };
  }
  const paragraph = [line.trim()];
  let end = at + 1;
  for (; end < lines.length && !isBlank(lines[end]) &&
    !interrupts(lines, end, depth); ++end) {
    paragraph.push(lines[end].trim());
  }
  return { block: { type: 'paragraph', runs: parseRuns(paragraph.join('\n')) },
    end };
}

function parseBlocks(lines, depth) {
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    if (isBlank(lines[at])) {
      ++at;
      continue;
    }
    const { block, end } = blockAt(lines, at, depth);
    if (depth === 0) block.source = lines.slice(at, end).join('\n');
    blocks.push(block);
    at = end;
  }
  return blocks;
}

function parseMarkdown(text) {
  let fence = null;
  const lines = text.replace(/\r\n?/g, '\n').split('\n').map((line) => {
    const inner = line.trimStart();
    if (fence) {
      if (closesFence(inner, fence)) fence = null;
      return line;  // code keeps its tabs
    }
    fence = fenceOf(inner);
    // Tabs before a text are four columns.
    return line.slice(0, line.length - inner.length).replaceAll('\t', '    ') +
      inner;
  });
  return parseBlocks(lines, 0);
}

// An address that may be opened, else null: only these, and none that is
// relative, since it would be one of this server's.
function safeAddress(text) {
  if (!/^(?:https?:\/\/|mailto:)/i.test(text)) return null;
  try {
    const { protocol, href } = new URL(text);
    return ['http:', 'https:', 'mailto:'].includes(protocol) ? href : null;
  } catch {
    return null;
  }
}

// What stands in brackets behind "](": the address, and where it ends, or null.
// It ends at the next "<" or unmatched ")", so that no text is read often.
function targetAt(text, at) {
  const skip = () => { while (text[at] === ' ' || text[at] === '\n') ++at; };
  skip();
  const begin = at;
  for (let depth = 0; at < text.length; ++at) {
    const c = text[at];
    if (c === '(' && ++depth > 32) return null;
    if (c === ')' && --depth < 0) break;
    if (c === '<' || c <= ' ') break;
  }
  const address = text.slice(begin, at);
  skip();
  if (text[at] === '"' || text[at] === "'") {
    at = text.indexOf(text[at], at + 1);
    if (at < 0) return null;
    ++at;
    skip();
  }
  return text[at] === ')' ? { address, end: at + 1 } : null;
}

// An address in plain text, without the marks that end a sentence: its text
// and, if it can be opened, where it leads. In brackets it may be the text of a
// link, and ends with them.
function bareAddress(text, at, inBrackets) {
  const pattern = inBrackets ? /https?:\/\/[^\s<>"`\]]+/y
    : /https?:\/\/[^\s<>"`]+/y;
  pattern.lastIndex = at;
  let found = pattern.exec(text)?.[0];
  if (!found) return null;
  let open = 0;
  for (const c of found) open += (c === '(') - (c === ')');
  let end = found.length;
  for (; end > 0; --end) {
    const last = found[end - 1];
    if (last === ')' ? open < 0 : '.,;:!?*_~\'|]'.includes(last)) {
      if (last === ')') ++open;
      continue;
    }
    break;
  }
  found = found.slice(0, end);
  return { address: found, href: safeAddress(found) };
}

// For each run of backticks where the next of its length begins.
function codeEnds(text) {
  const runs = [];
  for (let at = text.indexOf('`'); at >= 0; at = text.indexOf('`', at)) {
    const begin = at;
    while (text[at] === '`') ++at;
    runs.push({ begin, length: at - begin });
  }
  const next = new Map(), ends = new Map();
  for (const run of runs.reverse()) {
    ends.set(run.begin, next.get(run.length) ?? -1);
    next.set(run.length, run.begin);
  }
  return ends;
}

const isSpace = (c) => c === '' || /\s/.test(c);
const isPunctuation = (c) => /[\p{P}\p{S}]/u.test(c);

// Whether marks between these two may open and close emphasis.
function flanks(mark, before, after) {
  const left = !isSpace(after) &&
    (!isPunctuation(after) || isSpace(before) || isPunctuation(before));
  const right = !isSpace(before) &&
    (!isPunctuation(before) || isSpace(after) || isPunctuation(after));
  if (mark !== '_') return { opens: left, closes: right };
  return { opens: left && (!right || isPunctuation(before)),
    closes: right && (!left || isPunctuation(after)) };
}

// Cuts the text into pieces: {text}, code, marks of emphasis; and the ranges of
// pieces that are links.
function piecesOf(text) {
  const pieces = [], links = [];
  const brackets = [];  // that may begin a link: numbers of their pieces
  const ends = codeEnds(text);
  let plain = '';
  const flush = () => {
    if (plain) pieces.push({ text: plain });
    plain = '';
  };
  const link = (begin, href) => links.push({ begin, end: pieces.length, href });
  for (let at = 0; at < text.length;) {
    const c = text[at];
    if (c === '\\' && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? '')) {
      plain += text[at + 1];
      at += 2;
    } else if (c === '`') {
      let begin = at;
      while (text[begin] === '`') ++begin;
      const end = ends.get(at);
      if (end < 0) {
        plain += text.slice(at, begin);
        at = begin;
        continue;
      }
      flush();
      let code = text.slice(begin, end).replaceAll('\n', ' ');
      if (code.trim() && code[0] === ' ' && code.endsWith(' ')) {
        code = code.slice(1, -1);
      }
      pieces.push({ text: code, code: true });
      at = end + begin - at;
    } else if (c === '*' || c === '_' || c === '~') {
      let end = at;
      while (text[end] === c) ++end;
      const count = end - at;
      if (c === '~' && count !== 2) {
        plain += text.slice(at, end);
      } else {
        flush();
        pieces.push({ text: text.slice(at, end), mark: c, count, whole: count,
          ...flanks(c, text[at - 1] ?? '', text[end] ?? '') });
      }
      at = end;
    } else if (c === '[' || (c === '!' && text[at + 1] === '[')) {
      flush();
      const image = c === '!';
      brackets.push({ piece: pieces.length, image });
      pieces.push({ text: image ? '![' : '[' });
      at += image ? 2 : 1;
    } else if (c === ']' && brackets.length > 0) {
      const { piece, image } = brackets.pop();
      const target = text[at + 1] === '(' ? targetAt(text, at + 2) : null;
      const href = target && safeAddress(target.address);
      if (!href) {
        plain += c;
        ++at;
        continue;
      }
      flush();
      // An image within is the link's.
      while (links.length > 0 && links[links.length - 1].begin > piece) {
        links.pop();
      }
      // Without a text it is its own.
      if (pieces.length === piece + 1) pieces.push({ text: href });
      pieces[piece].text = '';
      link(piece + 1, href);
      if (!image) brackets.length = 0;  // no links within links
      at = target.end;
    } else if (c === '<') {
      const pattern = /<(?:br ?\/?>|((?:https?:\/\/|mailto:)[^\s<>]*)>)/iy;
      pattern.lastIndex = at;
      const found = pattern.exec(text);
      const href = found?.[1] && safeAddress(found[1]);
      if (href) {
        flush();
        pieces.push({ text: found[1] });
        link(pieces.length - 1, href);
      } else {
        plain += found && !found[1] ? '\n' : c;
      }
      at += found && (href || !found[1]) ? found[0].length : 1;
    } else if (c === 'h' && !/[\p{L}\p{N}]/u.test(text[at - 1] ?? '') &&
      text.startsWith('http', at)) {
      const { address, href } = bareAddress(text, at, brackets.length > 0) ??
        { address: 'http', href: null };
      if (href) {
        flush();
        pieces.push({ text: address });
        link(pieces.length - 1, href);
      } else {
        plain += address;
      }
      at += address.length;
    } else {
      // All that can be nothing else, at once.
      let end = at + 1;
      while (end < text.length && !'\\`*_~[]!<h'.includes(text[end])) ++end;
      plain += text.slice(at, end);
      at = end;
    }
  }
  flush();
  return { pieces, links };
}

// Pairs the marks of emphasis: CommonMark's "process emphasis", where a search
// that found nothing is not made again over the same marks.
function pairMarks(pieces) {
  const ranges = [];  // {style, begin, end}: pieces between two marks
  const open = [];
  const bottom = new Map();  // by kind of closing mark: marks up to this are not
  for (let i = 0; i < pieces.length; ++i) {
    const piece = pieces[i];
    if (!piece.mark) continue;
    while (piece.closes && piece.count > 0) {
      const kind = `${piece.mark}${piece.opens}${piece.whole % 3}`;
      const least = bottom.get(kind) ?? -1;
      let k = open.length - 1;
      for (; k >= 0 && open[k] > least; --k) {
        const other = pieces[open[k]];
        if (other.mark !== piece.mark) continue;
        if ((other.closes || piece.opens) && piece.mark !== '~' &&
          (other.whole + piece.whole) % 3 === 0 &&
          (other.whole % 3 !== 0 || piece.whole % 3 !== 0)) continue;
        break;
      }
      if (k < 0 || open[k] <= least) {
        bottom.set(kind, open.length > 0 ? open[open.length - 1] : least);
        break;
      }
      const other = pieces[open[k]];
      const used = piece.count >= 2 && other.count >= 2 ? 2 : 1;
      const style = piece.mark === '~' ? 'del' : used === 2 ? 'strong' : 'em';
      ranges.push({ style, begin: open[k] + 1, end: i });
      piece.count -= used;
      other.count -= used;
      open.length = other.count > 0 ? k + 1 : k;
    }
    if (piece.opens && piece.count > 0) open.push(i);
  }
  for (const piece of pieces) {
    if (piece.mark) piece.text = piece.mark.repeat(piece.count);
  }
  return ranges;
}

function parseRuns(text) {
  const { pieces, links } = piecesOf(text);
  const ranges = pairMarks(pieces);
  const changes = pieces.map(() => null);
  const change = (at, style, by) => {
    if (at >= pieces.length) return;
    changes[at] ??= { strong: 0, em: 0, del: 0 };
    changes[at][style] += by;
  };
  for (const { style, begin, end } of ranges) {
    change(begin, style, 1);
    change(end, style, -1);
  }
  const deep = { strong: 0, em: 0, del: 0 };
  const runs = [];
  let link = 0;
  pieces.forEach((piece, i) => {
    for (const style of Object.keys(deep)) deep[style] += changes[i]?.[style] ?? 0;
    while (link < links.length && links[link].end <= i) ++link;
    if (!piece.text) return;
    const inside = link < links.length && links[link].begin <= i;
    const run = { text: piece.text, strong: deep.strong > 0, em: deep.em > 0,
      del: deep.del > 0, code: piece.code === true,
      href: inside ? links[link].href : null };
    const last = runs[runs.length - 1];
    if (last && ['strong', 'em', 'del', 'code', 'href']
      .every((name) => last[name] === run[name]) && !run.code) {
      last.text += run.text;
    } else {
      runs.push(run);
    }
  });
  return runs;
}
