/** The allow-lists of tar and patch: what they bring is not seen, where they write is. */

import type { Call } from '../call.ts';
import { strangeTarget } from '../grammars/patch.ts';
import { readCall } from './option-list.ts';
import { type Allowed, byOptions, optionList, refused, type Verdict } from './verdict.ts';
import { writerOptions } from './writers.ts';

const tarOptions =
  '-cxtruzjJavpmkOhwSZ -f: -C> -X< -b: --list --extract --get --create --append --update --gzip --gunzip --bzip2 --xz --zstd --verbose --file: --directory> --exclude: --exclude-vcs --strip-components: --no-same-owner --no-same-permissions --keep-old-files --wildcards --auto-compress --totals --one-top-level? --to-stdout --same-permissions --preserve-permissions --numeric-owner --owner: --group: --mtime: --sort: --touch --skip-old-files --overwrite --no-recursion --full-time --utc dashes write';

/** The first word may be letters without a dash. */
export const tar: Allowed = (call) => {
  const [first, ...rest] = call.args;
  if (first === undefined) return {};
  const isBare = first.known && /^[A-Za-z]+$/.test(first.text);
  // Letters without a dash take their values in order; with one value it is the same as behind a dash.
  if (
    isBare &&
    (/[CXbFIg].*f|f.*[CXbFIg]/.test(first.text) || !/^[^f]*f?$/.test(first.text.replace(/f(?=.)/g, '')))
  )
    return refused('letters of tar that take several values', first);
  const letters = first.text.replace('f', '');
  const args = isBare
    ? [{ ...first, text: `-${letters}${first.text.includes('f') ? 'f' : ''}` }, ...rest]
    : call.args;
  const { problem, values, names, written } = readCall(
    { program: call.program, args },
    optionList(tarOptions),
  );
  if (problem !== undefined) return { problem };
  const top = values.get('one-top-level');
  const places = top === undefined ? written : [...written, top];
  if (places.length > 0) call.writes(places);
  const file = values.get('f') ?? values.get('file');
  const unpacks = ['x', 'extract', 'get'].some((name) => names.has(name)) && !names.has('O');
  if (unpacks && (file === undefined || file.text === '-'))
    return refused('what an archive brings shows only when it is unpacked');
  if (file !== undefined && (!file.known || /:/.test(file.text)))
    return refused('an archive on another machine', file);
  const creates = ['c', 'r', 'u', 'create', 'append', 'update'].some((name) => names.has(name));
  if (creates && file !== undefined && file.text !== '-') call.writes([file]);
  return {};
};

/** A patch whose text is known: where it writes. What a file brings shows only when it is read. */
export const patched = (call: Call): Verdict => {
  const target = call.input === undefined ? undefined : strangeTarget(call.input);
  return target === undefined ? {} : refused(`a patch that writes to ${target}`);
};

export const patch: Allowed = (call) => {
  const verdict = byOptions(writerOptions['patch'] ?? 'none')(call);
  return verdict.problem === undefined ? patched(call) : verdict;
};
