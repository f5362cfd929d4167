import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { bareTools, toolHome } from '../../test/support/tool-home.ts';
import { parseSpec } from '../protocol/parse-spec.ts';
import { escapingLink } from './escaping-link.ts';
import { lookAtSpec } from './look-at-spec.ts';

const known = { isPlaceholder: () => false, programs: [] };
const spec = parseSpec({ builtin_tools: ['codex'] });

describe("[A6] the search for links that lead out of a tool's folder", () => {
  it('finds one in a folder of as many entries as it looks at, and refuses a folder of more', async () => {
    const root = temporaryFolder();
    for (const name of ['a', 'b']) writeFileSync(join(root, name), '');
    mkdirSync(join(root, 'c'));
    symlinkSync('../a', join(root, 'c/inside'));
    expect(await escapingLink(root, { hidden: [], mostEntries: 4 })).toBeUndefined();
    symlinkSync('/etc', join(root, 'c/out'));
    expect(await escapingLink(root, { hidden: [], mostEntries: 5 })).toBe('c/out');
    await expect(escapingLink(root, { hidden: [], mostEntries: 4 })).rejects.toMatchObject({
      code: 'refused_by_policy',
      message: expect.stringContaining(`${root} has more than 4 files and folders`),
      details: { field: 'builtin_tools' },
    });
    // What is hidden does not count.
    expect(await escapingLink(root, { hidden: ['/c'], mostEntries: 2 })).toBeUndefined();
  });

  it('ends when the call is cancelled', async () => {
    const home = toolHome({ ...bareTools, '.codex/x': '' });
    const leaving = new AbortController();
    const look = () => lookAtSpec(spec, home, known, leaving.signal);
    await look();
    leaving.abort(new Error('left'));
    await expect(look()).rejects.toThrow('left');
  });
});
