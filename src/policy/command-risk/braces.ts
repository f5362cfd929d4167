/** Brace expansion: `{a,b}`, `{1..3}`, nested ones too. Pure. */

const mostChoices = 64;

/** Undefined: quotes, expansions or too many choices in it. */
export function expandBraces(text: string): readonly string[] | undefined {
  if (/['"\\$`]/.test(text)) return undefined;
  const found = expand(text, 0);
  return found === undefined || found.length > mostChoices ? undefined : found;
}

function expand(text: string, depth: number): readonly string[] | undefined {
  if (depth > 6) return undefined;
  const open = text.indexOf('{');
  if (open === -1) return [text];
  const inside = split(text.slice(open + 1));
  if (inside === undefined) return [text];
  const { items, rest } = inside;
  const tails = expand(rest, depth + 1);
  const heads = items.length === 1 ? range(items[0] ?? '') : nested(items, depth);
  if (tails === undefined || heads === undefined || heads.length * tails.length > mostChoices)
    return undefined;
  return heads.flatMap((head) => tails.map((tail) => text.slice(0, open) + head + tail));
}

function nested(items: readonly string[], depth: number): readonly string[] | undefined {
  const all = items.map((item) => expand(item, depth + 1));
  return all.every((each) => each !== undefined) ? all.flat() : undefined;
}

/** The items up to the closing brace, and the text behind it. */
function split(text: string): { readonly items: readonly string[]; readonly rest: string } | undefined {
  const items: string[] = [''];
  let depth = 0;
  for (const [at, letter] of [...text].entries()) {
    if (letter === '}' && depth === 0) return { items, rest: [...text].slice(at + 1).join('') };
    if (letter === '{') depth += 1;
    if (letter === '}') depth -= 1;
    if (letter === ',' && depth === 0) items.push('');
    else items[items.length - 1] += letter;
  }
  return undefined;
}

function range(item: string): readonly string[] | undefined {
  const found = /^(-?\d+|[a-zA-Z])\.\.(-?\d+|[a-zA-Z])(\.\.-?\d+)?$/.exec(item);
  if (found === null) return [`{${item}}`];
  const [, from = '', to = ''] = found;
  const isNumber = /\d/.test(from) && /\d/.test(to);
  const [first, last] = isNumber ? [Number(from), Number(to)] : [from.charCodeAt(0), to.charCodeAt(0)];
  const count = Math.abs(last - first) + 1;
  if (count > mostChoices) return undefined;
  const step = first <= last ? 1 : -1;
  return Array.from({ length: count }, (_, at) => {
    const value = first + at * step;
    return isNumber ? String(value) : String.fromCharCode(value);
  });
}
