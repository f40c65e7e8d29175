// Markdown as elements. Texts become text nodes, addresses were checked when
// they were parsed, and no text ever becomes HTML.

// Children are texts, elements and lists of these.
function element(tag, className = '', ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const child of children.flat()) made.append(child);
  return made;
}

function button(text, label, act) {
  const made = element('button', '', text);
  made.type = 'button';
  made.title = label;
  made.setAttribute('aria-label', label);
  made.addEventListener('click', act);
  return made;
}

// The clipboard is for pages of this machine or of HTTPS; elsewhere the old way
// does it.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    return copied;
  }
}

// `text` is asked for the text when it is clicked.
function copyButton(text) {
  const made = button('Copy', 'Copy', async () => {
    made.textContent = await copyText(text()) ? 'Copied' : 'Not copied';
    setTimeout(() => { made.textContent = 'Copy'; }, 1500);
  });
  made.classList.add('copy');
  return made;
}

function appendRuns(parent, runs) {
  let link = null;
  for (const run of runs) {
    if (run.href !== (link?.address ?? null)) {
      link = null;
      if (run.href) {
        link = { address: run.href, made: element('a') };
        link.made.href = run.href;
        link.made.title = run.href;  // a text may say another one
        link.made.target = '_blank';
        link.made.rel = 'noopener noreferrer nofollow';
        parent.append(link.made);
      }
    }
    let inner = link?.made ?? parent;
    for (const tag of ['strong', 'em', 'del', 'code']) {
      if (!run[tag]) continue;
      const styled = element(tag);
      inner.append(styled);
      inner = styled;
    }
    inner.append(run.text);
  }
  return parent;
}

function codeElement(block) {
  const code = element('code', '', block.text);
  return element('div', 'code',
    element('div', 'code-head', element('span', '', block.language),
      copyButton(() => block.text)),
    element('pre', '', code));
}

function tableElement(block) {
  const [head, ...rows] = block.rows;
  const row = (tag, cells) => element('tr', '', cells.map((runs, i) =>
    appendRuns(element(tag, block.align[i] ?? ''), runs)));
  return element('div', 'table', element('table', '',
    element('thead', '', row('th', head)),
    element('tbody', '', rows.map((cells) => row('td', cells)))));
}

function blockElement(block) {
  switch (block.type) {
    case 'heading':
      // The page has a first heading of its own.
      return appendRuns(element(`h${Math.min(block.level + 1, 6)}`), block.runs);
    case 'rule':
      return element('hr');
    case 'code':
      return codeElement(block);
    case 'quote':
      return element('blockquote', '', block.blocks.map(blockElement));
    case 'list': {
      const list = element(block.ordered ? 'ol' : 'ul', '', block.items.map(
        (blocks) => element('li', '', blocks.map(blockElement))));
      if (block.ordered) list.start = block.start;
      return list;
    }
    case 'table':
      return tableElement(block);
    default:
      return appendRuns(element('p'), block.runs);
  }
}

// Shows the text in `parent`, whose content is this function's own. What it
// showed before stays as far as it is the same, so that a selection in it does.
function showMarkdown(parent, text) {
  const before = parent.blocks ?? [];
  const blocks = parseMarkdown(text);
  blocks.forEach((block, i) => {
    if (before[i]?.source === block.source) return;
    const made = blockElement(block);
    if (i < before.length) {
      parent.children[i].replaceWith(made);
    } else {
      parent.append(made);
    }
  });
  while (parent.children.length > blocks.length) parent.lastChild.remove();
  parent.blocks = blocks.map(({ source }) => ({ source }));
}
