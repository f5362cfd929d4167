import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { chosenSuite, leftOutFiles, onBubblewrap, unitTests } from '../test/suites.ts';
import { root } from './steps.mjs';

const names = ['core', 'cgroup2', 'clients', 'user'];

describe('the parts of the test run', () => {
  it.each(names)('%s has files that exist, and lists every other one with the run that has it', (name) => {
    const suite = chosenSuite(name);
    const own = [...suite.integration, ...suite.alone];
    for (const file of [...own, ...suite.bubblewrap]) expect(existsSync(join(root, file)), file).toBe(true);
    expect(new Set(own).size).toBe(own.length);
    const leftOut = leftOutFiles(suite, false).filter(({ name }) => name === 'all tests');
    const clients = chosenSuite('clients');
    const ofClients = [...clients.integration, ...clients.alone];
    for (const { file, runsIn } of leftOut) {
      expect([...own, ...suite.unit]).not.toContain(file);
      expect(runsIn, file).toBe(ofClients.includes(file) ? 'npm test -- --suite clients' : 'npm test');
    }
    const listed = leftOut.map(({ file }) => file);
    if (name !== 'clients') expect(listed).toEqual(expect.arrayContaining(ofClients));
    expect(leftOut.map(({ file }) => file)).toContain('test/security/noisy.test.ts');
  });

  it('are unknown by any other name', () => {
    expect(() => chosenSuite('cor')).toThrow('there is no suite cor; there are core, cgroup2, clients, user');
  });

  it('leave out nothing of the whole run but files that run once more on bubblewrap with the big sizes', () => {
    const leftOut = leftOutFiles(undefined, false);
    expect(new Set(leftOut.map(({ runsIn }) => runsIn))).toEqual(new Set(['npm run test:full']));
    expect([...onBubblewrap(false), ...leftOut.map(({ file }) => file)]).toEqual(onBubblewrap(true));
    expect(leftOutFiles(undefined, true)).toEqual([]);
    expect(unitTests.length).toBe(2);
  });
});
