import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { chosenSuite, listLeftOutFiles, onBubblewrap, unitTests } from './test/suites.ts';

/** Needs the engine to itself, or times what other work beside it would spoil. */
const alone = 'test/**/*.alone.test.ts';

const setupFiles = ['test/support/bounded-children.ts'];

const withEngine = {
  setupFiles,
  globalSetup: ['test/support/global-setup.ts'],
  // Against a test that hangs; on a busy machine all of them take many times as long as alone.
  testTimeout: 180_000,
  hookTimeout: 300_000,
  // Secrets of tests do not belong in the keyring of whoever runs them.
  env: { DBUS_SESSION_BUS_ADDRESS: 'disabled:' },
};

/** More than two cores keep busy: many tests wait for an engine, a daemon or a deadline. CI runs two machines side by side. */
const workers = Number(process.env['SALLYPORT_TEST_WORKERS'] ?? 4);

const full = process.env['SALLYPORT_FULL'] === '1';
const suite = chosenSuite(process.env['SALLYPORT_TEST_SUITE']);
listLeftOutFiles({ suite, full });

const hasBubblewrap = existsSync('/usr/bin/bwrap');
if (!hasBubblewrap && process.env['SALLYPORT_MUST_WORK'] === '1') {
  throw new Error('bubblewrap is missing, and SALLYPORT_MUST_WORK=1 forbids to leave its tests out');
}

/**
 * `unit` needs nothing but Node. `integration` and `alone` need a real engine, which their global set-up finds, starts or
 * installs. What is not named `*.alone.test.ts` shares the engine with whichever file runs beside it.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: [...(suite?.unit ?? unitTests)],
          setupFiles,
          testTimeout: 120_000,
          maxWorkers: workers,
          // Modules have no state of their own, so files share them: a process per file takes twice the processor time.
          isolate: false,
        },
      },
      {
        test: {
          name: 'integration',
          include: [...(suite?.integration ?? ['test/**/*.test.ts'])],
          exclude: [alone],
          maxWorkers: workers,
          ...withEngine,
        },
      },
      {
        test: {
          name: 'bubblewrap',
          include: hasBubblewrap ? [...(suite?.bubblewrap ?? onBubblewrap(full))] : [],
          maxWorkers: workers,
          ...withEngine,
          env: { ...withEngine.env, SALLYPORT_TEST_ENGINE: 'bubblewrap' },
        },
      },
      {
        test: {
          name: 'alone',
          include: [...(suite?.alone ?? [alone])],
          fileParallelism: false,
          sequence: { groupOrder: 1 },
          ...withEngine,
        },
      },
    ],
  },
});
