import { defineConfig } from 'vitest/config';

/** `unit` needs nothing but Node; `integration` needs a real engine, which its global set-up finds, starts or installs. */
export default defineConfig({
  test: {
    projects: [
      {
        test: { name: 'unit', include: ['src/**/*.test.ts'], testTimeout: 20_000 },
      },
      {
        test: {
          name: 'integration',
          include: ['test/**/*.test.ts'],
          globalSetup: ['test/support/global-setup.ts'],
          // One engine, and figures that other work beside them would spoil.
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
