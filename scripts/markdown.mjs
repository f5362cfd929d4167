/** As much of Markdown as the checks of the documents need: headings, links, prose, tables, inline code. Pure; lines count from 1. */

/** Everything of one document. Fenced code and comments are no part of it. */
export function parseMarkdown(source) {
  const text = withoutFences(withoutComments(source));
  const lines = text.split('\n');
  return {
    anchors: anchorsOf(lines),
    headings: headingsOf(lines),
    links: linksOf(text),
    codeWords: codeWordsOf(text),
    ...blocksOf(lines),
  };
}

const blank = (text) => text.replace(/[^\n]/g, ' ');
const withoutComments = (text) => text.replace(/<!--[\s\S]*?(-->|$)/g, blank);

function withoutFences(text) {
  let fence;
  return text
    .split('\n')
    .map((line) => {
      const mark = /^\s*(?:>\s*)?(`{3,}|~{3,})/.exec(line)?.[1];
      if (fence === undefined && mark === undefined) return line;
      if (fence === undefined) fence = mark;
      else if (mark?.startsWith(fence) && line.trim() === mark) fence = undefined;
      return '';
    })
    .join('\n');
}

/** Also where inline code is: what is in it is neither a link nor prose. A span does not go over an empty line. */
const codeSpan = /(?<!`)(`+)(?!`)((?:(?!\n\s*\n)[\s\S])*?[^`])\1(?!`)/g;

const heading = /^\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;

/** What `#…` may name: the headings as GitHub calls them, the second of a name with `-1`, and explicit anchors. */
function anchorsOf(lines) {
  const seen = new Map();
  const anchors = new Set();
  for (const line of lines) {
    for (const [, name] of line.matchAll(/<a\s[^>]*(?:id|name)="([^"]+)"/g)) anchors.add(name);
    const title = heading.exec(line)?.[2];
    if (title === undefined) continue;
    const slug = slugOf(title);
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    anchors.add(count === 0 ? slug : `${slug}-${count}`);
  }
  return anchors;
}

const headingsOf = (lines) =>
  lines.flatMap((line, index) => {
    const title = heading.exec(line)?.[2];
    return title === undefined ? [] : [{ line: index + 1, title }];
  });

export function slugOf(title) {
  return title
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');
}

function linksOf(text) {
  const plain = text.replace(codeSpan, (span) => span.replace(/[^\n]/g, 'x'));
  const inline = /\[(?:[^\][]|\[[^\]]*\])*\]\(\s*(<[^>\n]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)[^)]*\)/g;
  const reference = /^\s{0,3}\[[^\]\n]+\]:\s*(\S+)/gm;
  return [...plain.matchAll(inline), ...plain.matchAll(reference)].map((match) => ({
    line: lineAt(plain, match.index),
    target: match[1].replace(/^<|>$/g, ''),
  }));
}

function codeWordsOf(text) {
  return [...text.matchAll(codeSpan)].flatMap((match) =>
    match[2]
      .split(/\s+/)
      .filter((word) => word !== '')
      .map((word) => ({ line: lineAt(text, match.index), word })),
  );
}

const lineAt = (text, index) => text.slice(0, index).split('\n').length;

const itemStart = /^\s*(?:[-*+]|\d+[.)])\s+/;
const tableLine = /^\s*\|/;
const separator = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

/** Paragraphs and list items as `blocks`, tables as header and rows. */
function blocksOf(lines) {
  const blocks = [];
  const tables = [];
  let open;
  lines.forEach((line, index) => {
    const at = index + 1;
    if (tableLine.test(line)) {
      open = undefined;
      if (separator.test(line)) return;
      // A header may follow the rows of another table at once: two tables were put one behind the other.
      const begins = separator.test(lines[index + 1] ?? '');
      if (begins) tables.push({ line: at, header: cellsOf(line), rows: [] });
      else tables.at(-1)?.rows.push({ line: at, cells: cellsOf(line) });
      return;
    }
    if (line.trim() === '' || heading.test(line)) {
      open = undefined;
      return;
    }
    if (open === undefined || itemStart.test(line)) {
      open = { line: at, text: '' };
      blocks.push(open);
    }
    open.text += ` ${line.replace(itemStart, '')}`;
  });
  return { blocks: blocks.map(({ line, text }) => ({ line, text: oneLine(text) })), tables };
}

function cellsOf(line) {
  const inside = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  return inside.split(/(?<!\\)\|/).map(oneLine);
}

const oneLine = (text) => text.replace(/\s+/g, ' ').trim();

/** What a reader reads of a text: without code, without where links lead, without signs. */
export function proseOf(text) {
  return oneLine(
    text
      .replace(codeSpan, ' ')
      .replace(/\]\([^)]*\)/g, ' ')
      .replace(/[^\p{L}\p{N}.,;:'’ -]/gu, ' '),
  );
}
