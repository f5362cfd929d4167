/**
 * A new SQLite database with one small table, as its file. Only what fits on one page is written: a table of more is refused, not cut.
 * The layout is that of https://www.sqlite.org/fileformat2.html.
 */

const pageBytes = 4096;
const fileHeadBytes = 100;
const pageHeadBytes = 8;
const leafOfTable = 0x0d;
/** Of the table itself; the first page has the schema. */
const tablePage = 2;

export interface SqliteRow {
  /** The value of the first column. */
  readonly id: number;
  /** Of the others, in their order. */
  readonly values: readonly (Buffer | undefined)[];
}

/** The first column is `id`, a number that is the row's own; the others hold bytes. Rows come in the order of their ids. */
export function sqliteFile(table: string, columns: readonly string[], rows: readonly SqliteRow[]): Buffer {
  const sql = `CREATE TABLE ${table} (id INTEGER PRIMARY KEY, ${columns.join(', ')})`;
  const schema = record([text('table'), text(table), text(table), byte(tablePage), text(sql)]);
  const cells = rows.map(({ id, values }) => cell(id, record([nothing, ...values.map(bytes)])));
  const first = leafPage([cell(1, schema)], fileHeadBytes);
  fileHead(2).copy(first);
  return Buffer.concat([first, leafPage(cells, 0)]);
}

function fileHead(pages: number): Buffer {
  const head = Buffer.alloc(fileHeadBytes);
  head.write('SQLite format 3\0', 'latin1');
  head.writeUInt16BE(pageBytes, 16);
  // Journal of the old kind for reading and writing; then three fractions that are the same in every file.
  head.set([1, 1, 0, 64, 32, 32], 18);
  const changes = 1;
  head.writeUInt32BE(changes, 24);
  head.writeUInt32BE(pages, 28);
  // Cookie and format of the schema.
  head.writeUInt32BE(1, 40);
  head.writeUInt32BE(4, 44);
  // UTF-8
  head.writeUInt32BE(1, 56);
  // The number of pages counts, as it was written with the last change; by a library of this version.
  head.writeUInt32BE(changes, 92);
  head.writeUInt32BE(3_040_001, 96);
  return head;
}

/** Cells lie at the end of the page, and a list of where they are at its beginning. */
function leafPage(cells: readonly Buffer[], headAt: number): Buffer {
  const page = Buffer.alloc(pageBytes);
  let end = pageBytes;
  cells.forEach((one, at) => {
    end -= one.length;
    if (end < headAt + pageHeadBytes + 2 * cells.length) throw new RangeError('more than one page of SQLite');
    one.copy(page, end);
    page.writeUInt16BE(end, headAt + pageHeadBytes + 2 * at);
  });
  page.writeUInt8(leafOfTable, headAt);
  page.writeUInt16BE(cells.length, headAt + 3);
  page.writeUInt16BE(end, headAt + 5);
  return page;
}

const cell = (id: number, content: Buffer): Buffer =>
  Buffer.concat([varint(content.length), varint(id), content]);

/** A value with the number that says what kind it is, and how long. */
interface Value {
  readonly kind: number;
  readonly content: Buffer;
}

const nothing: Value = { kind: 0, content: Buffer.alloc(0) };
const byte = (value: number): Value => ({ kind: 1, content: Buffer.from([value]) });
const bytes = (content: Buffer | undefined): Value =>
  content === undefined ? nothing : { kind: 12 + 2 * content.length, content };
const text = (words: string): Value => ({
  kind: 13 + 2 * words.length,
  content: Buffer.from(words, 'latin1'),
});

function record(values: readonly Value[]): Buffer {
  const kinds = Buffer.concat(values.map(({ kind }) => varint(kind)));
  // The length counts itself: two bytes of it from here on.
  const size = varint(kinds.length + (kinds.length < 127 ? 1 : 2));
  return Buffer.concat([size, kinds, ...values.map(({ content }) => content)]);
}

/** Seven bits a byte, the highest first; all but the last have the eighth set. */
function varint(value: number): Buffer {
  const parts = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) {
    parts.unshift((rest % 128) | 0x80);
  }
  return Buffer.from(parts);
}
