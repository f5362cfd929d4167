/** The language of SQLite and its shell, as far as a statement only reads and writes tables of its own database. Pure. */

const token =
  /\s*(?:('(?:[^']|'')*')|("(?:[^"]|"")*"|\[[^\]]*\]|`(?:[^`]|``)*`)|([A-Za-z_]\w*)|(\d+(?:\.\d*)?|\.\d+)|(\|\||<>|[<>!=]=|<<|>>|->>?|[-+*/%&|~<>=.,()?:@$]))/y;

const begins =
  /^\s*(select|explain|with|values|insert|replace|update|delete|create\s+table|drop\s+(table|index)|pragma\s+(table_info|table_list|index_list|foreign_key_list|database_list|user_version|integrity_check|compile_options))\b/i;

/** Functions that compute, and words of the language that may stand before a bracket. */
const beforeBracket = new Set(
  (
    'abs avg ceil ceiling changes char coalesce concat concat_ws count cume_dist date datetime dense_rank exp first_value floor format glob ' +
    'group_concat hex ifnull iif instr json json_array json_array_length json_each json_extract json_group_array json_group_object json_object ' +
    'json_tree json_type json_valid julianday lag last_insert_rowid last_value lead length like likely ln log log10 log2 lower ltrim max min mod ' +
    'nth_value ntile nullif percent_rank pow power printf quote random rank replace round row_number rtrim sign sqrt strftime string_agg substr ' +
    'substring sum time timediff total trim typeof unicode unixepoch unlikely upper ' +
    'all and any as between by case cast check distinct else exists filter from group having in intersect into is join key like limit not offset ' +
    'on or order over partition primary references returning select set then union unique using values when where with varchar decimal numeric table_info index_list foreign_key_list'
  ).split(' '),
);

const dot = /^\s*\.(tables|schema|databases|indexes|indices)(\s+[\w*%]+)?\s*$/;

/** Plain statements. SECURITY: a call of any other function, a quoted name before a bracket and a comment are none. */
export const isPlainSql = (text: string): boolean =>
  dot.test(text) || (!/^\s*\./m.test(text) && statements(text)?.every((each) => begins.test(each)) === true);

/** Parted at semicolons; undefined where a token is not known. */
function statements(text: string): readonly string[] | undefined {
  const found: string[] = [];
  let from = 0;
  let name: string | undefined;
  let isTable = false;
  token.lastIndex = 0;
  for (let at = 0; at < text.length; at = token.lastIndex) {
    const end = /\s*(?:;|$)/y;
    end.lastIndex = at;
    if (end.test(text)) {
      if (text.slice(from, at).trim() !== '') found.push(text.slice(from, at));
      from = end.lastIndex;
      token.lastIndex = end.lastIndex;
      continue;
    }
    token.lastIndex = at;
    const match = token.exec(text);
    if (match === null) return undefined;
    const [, string, quoted, word, , sign] = match;
    const isComment = /^(--|\/\*)/.test(text.slice(token.lastIndex - 1, token.lastIndex + 1));
    if ((sign === '-' || sign === '/') && isComment) return undefined;
    // `insert into t (a)` and `create table t (a)` name a table; elsewhere a bracket behind a name is a call.
    if (sign === '(' && name !== undefined && !isTable && !beforeBracket.has(name)) return undefined;
    isTable = (quoted ?? word) !== undefined && /^(into|table|exists|references)$/.test(name ?? '');
    name = string ?? quoted ?? word?.toLowerCase();
  }
  if (text.slice(from).trim() !== '') found.push(text.slice(from));
  return found;
}
