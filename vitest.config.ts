import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { chosenSuite } from './test/suites.ts';

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

/** Run once more on the other engine; test/support/engine-under-test.ts. The slow ones only with the big sizes. */
const onBothEngines = [
  'test/integration/guard.test.ts',
  'test/security/egress-credentials.test.ts',
  'test/security/egress-hosts.test.ts',
  'test/security/preflight.test.ts',
  ...(full
    ? [
        'test/integration/apply.test.ts',
        'test/integration/builtin-tools.test.ts',
        'test/integration/cli-files.test.ts',
        'test/integration/copies.test.ts',
        'test/integration/inject.test.ts',
        'test/integration/mcp.test.ts',
        'test/integration/ports.test.ts',
        'test/integration/previews.test.ts',
        'test/integration/run.test.ts',
        'test/integration/sandboxes.test.ts',
        'test/integration/sdk.test.ts',
        'test/integration/ssh-agent.test.ts',
        'test/recovery/crash-points.test.ts',
        'test/security/egress-streams.test.ts',
        'test/security/exec-battery.test.ts',
        'test/security/files.test.ts',
        'test/security/live-workspace.test.ts',
        'test/security/own-program.test.ts',
        'test/security/planted.test.ts',
        'test/security/sandbox-boundary.test.ts',
        'test/security/strict-profile.test.ts',
        'test/security/tool-copies.test.ts',
        'test/security/tool-folders.test.ts',
        'test/security/tool-placeholders.test.ts',
      ]
    : []),
];

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
          include: [...(suite?.unit ?? ['src/**/*.test.ts', 'scripts/**/*.test.mjs'])],
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
          include: existsSync('/usr/bin/bwrap') ? [...(suite?.bubblewrap ?? onBothEngines)] : [],
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
