import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bundleProgram } from '../../test/support/child-program.ts';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { startWriters } from '../../test/support/shared-writers.ts';
import { isApproved } from './approvals-file.ts';

describe('approved project files', () => {
  it('are all kept when several processes approve at once', async () => {
    const { outfile } = await bundleProgram('./shared-writer.ts');
    const folder = temporaryFolder();
    const writers = ['a', 'b', 'c', 'd'];
    const children = await startWriters(
      outfile,
      writers.map((who) => ({ kind: 'approvals', folder, who, count: 10 })),
    );
    for (const child of children) child.go();
    await Promise.all(children.map((child) => child.lines()));
    for (const who of writers) {
      for (let number = 1; number <= 10; number++) {
        expect(await isApproved(folder, `${who}-${number}`)).toBe(true);
      }
    }
    expect(readdirSync(folder)).toEqual(['approvals.json']);
  });
});
