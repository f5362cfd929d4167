/**
 * `npm test`: sets up everything, then runs the unit and integration tests against a real engine. `--full` adds the big
 * sizes. Other arguments go to vitest (`npm test -- src/lib`).
 *
 * What the tests need besides the product itself (cross compiler, registry, ssh server, Podman, gVisor) is installed here, on Debian as
 * root, and said. Elsewhere a test whose part is missing reports that; with SALLYPORT_MUST_WORK=1 that is a failure.
 */

import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  ensureDependencies,
  installDebianPackages,
  installFromBackports,
  isRootOnDebian,
  must,
  root,
  run,
} from './steps.mjs';

const testPackages = [
  'make',
  'musl-tools',
  'gcc-aarch64-linux-gnu',
  'libc6-dev-arm64-cross',
  'qemu-user-static',
  'docker-registry',
  'openssh-server',
  'openssh-client',
  'podman',
  'bubblewrap',
  'tor',
  'chromium-headless-shell',
];
/** Debian 12's own gVisor is too old for newer kernels. */
const backportedPackages = ['runsc'];

const args = process.argv.slice(2);
const full = args.includes('--full');
const report = join(root, '.cache', 'test-results.json');

await ensureDependencies();
if (isRootOnDebian()) {
  await installDebianPackages(testPackages, 'which the tests use');
  await installFromBackports(backportedPackages, 'which the tests use');
}
await must(process.execPath, [join(root, 'scripts/build.mjs')]);
mkdirSync(join(root, '.cache'), { recursive: true });
// Of another run it would say what is not so, if this one is ended before it writes its own.
rmSync(report, { force: true });

const code = await run(
  process.execPath,
  [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--reporter=default',
    '--reporter=json',
    `--reporter=${join(root, 'scripts/stall-reporter.mjs')}`,
    `--outputFile.json=${report}`,
    ...args.filter((arg) => arg !== '--full'),
  ],
  { env: { ...process.env, ...(full ? { SALLYPORT_FULL: '1' } : {}) } },
);
process.exitCode = code;
if (existsSync(report)) {
  const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, 'utf8'));
  console.log(`${numPassedTests} passed, ${numFailedTests} failed, ${numPendingTests} skipped`);
} else {
  console.log('the tests were ended before their end');
  process.exitCode ||= 1;
}
