/**
 * `npm test`: sets up everything, then runs the unit and integration tests against a real engine.
 *
 *   npm test                       everything but the big sizes and the programs of others
 *   npm test -- --suite core       a part: core, cgroup2, clients or user (test/suites.ts)
 *   npm test -- --full             everything, with the big sizes
 *   npm test -- src/lib            other arguments go to vitest
 *
 * On Debian as root the script installs what the tests need besides the product itself (cross compiler, registry, ssh server,
 * Podman, gVisor) and says so. Elsewhere a test whose part is missing is skipped; with SALLYPORT_MUST_WORK=1 a skip is a failure.
 */

import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  debianVersion,
  ensureDependencies,
  installDebianPackages,
  installFromBackports,
  isRootOnDebian,
  must,
  root,
  run,
} from './steps.mjs';
import { leftOutLines, resultsOf } from './test-results.mjs';

/** Suites that need no more than `corePackages`. */
const smallSuites = ['core', 'cgroup2'];
const corePackages = ['make', 'bubblewrap', 'iproute2', 'python3'];
const allPackages = [
  ...corePackages,
  'gcc-aarch64-linux-gnu',
  'libc6-dev-arm64-cross',
  'docker-registry',
  'openssh-server',
  'openssh-client',
  'openssl',
  'curl',
  'podman',
  'tor',
  'e2fsprogs',
  'btrfs-progs',
  'chromium-headless-shell',
  // Other compilers for porter.
  'clang',
  'musl-tools',
];
/** Debian 12's own gVisor is too old for newer kernels. */
const backportedPackages = ['runsc'];
const packagesToDebian12 = ['qemu-user-static'];
/** Debian 13 moved the `docker` command out of docker.io and merged qemu-user-static into qemu-user. */
const packagesSinceDebian13 = ['qemu-user', 'docker-cli', ...backportedPackages];

const { values, tokens } = parseArgs({
  strict: false,
  tokens: true,
  allowPositionals: true,
  options: { full: { type: 'boolean' }, suite: { type: 'string' } },
});
const own = ['full', 'suite'];
const forVitest = tokens.flatMap(({ kind, name, rawName, value, inlineValue }) => {
  if (kind === 'positional') return [value];
  if (kind !== 'option' || own.includes(name)) return [];
  if (value === undefined) return [rawName];
  return inlineValue ? [`${rawName}=${value}`] : [rawName, value];
});

const report = join(root, '.cache', 'test-results.json');
const leftOut = join(root, '.cache', 'left-out.jsonl');

await ensureDependencies();
if (isRootOnDebian()) {
  const why = 'which the tests use';
  if (smallSuites.includes(values.suite)) await installDebianPackages(corePackages, why);
  else {
    const ofRelease = debianVersion() >= 13 ? packagesSinceDebian13 : packagesToDebian12;
    await installDebianPackages([...allPackages, ...ofRelease], why);
    await installFromBackports(backportedPackages, why);
  }
}
await must(process.execPath, [join(root, 'scripts/build.mjs')]);
mkdirSync(join(root, '.cache'), { recursive: true });
// A run that is ended before its end must not leave the results of another one.
for (const file of [report, leftOut]) rmSync(file, { force: true });

const started = performance.now();
process.exitCode = await run(
  process.execPath,
  [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--reporter=default',
    '--reporter=json',
    `--reporter=${join(root, 'scripts/stall-reporter.mjs')}`,
    `--outputFile.json=${report}`,
    // A file of which this run has no part is empty: test/support/selection.ts. countResults fails a run without tests.
    '--passWithNoTests',
    // A sandbox or an engine that hangs takes the whole limit of each test that uses it, so a run ends after about ten
    // failures; vitest counts the file and the group of a failed test as well. A full run is made for its list of failures.
    ...(process.env.CI === undefined ? [] : [`--bail=${values.full ? 100 : 30}`]),
    ...forVitest,
  ],
  {
    env: {
      ...process.env,
      // Whoever names files has selected them.
      ...(forVitest.length === 0 ? { SALLYPORT_LEFT_OUT: leftOut } : {}),
      ...(values.full ? { SALLYPORT_FULL: '1' } : {}),
      ...(values.suite === undefined ? {} : { SALLYPORT_TEST_SUITE: values.suite }),
    },
  },
);
if (existsSync(leftOut)) for (const line of leftOutLines(readLines(leftOut), root)) console.log(line);
countResults();

function readLines(path) {
  return readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

function countResults() {
  if (!existsSync(report)) {
    console.log('the tests were ended before their end');
    process.exitCode ||= 1;
    return;
  }
  const { passed, failed, skipped } = resultsOf(JSON.parse(readFileSync(report, 'utf8')), root);
  if (skipped.length > 0 && process.env.SALLYPORT_MUST_WORK === '1') {
    console.log(`skipped, which SALLYPORT_MUST_WORK=1 forbids:\n  ${skipped.join('\n  ')}`);
    process.exitCode ||= 1;
  }
  if (passed === 0) process.exitCode ||= 1;
  const minutes = ((performance.now() - started) / 60_000).toFixed(1);
  console.log(`${minutes} minutes`);
  console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
}
