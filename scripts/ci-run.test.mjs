/** `.ci/run` with lanes that are small scripts, in a repository that has what the script itself uses. */

import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requirementIds } from './mission-report.mjs';
import { documentNames } from './requirements/documents.mjs';
import { root } from './steps.mjs';

const lanes = ['check', 'clients', 'debian-12', 'debian-13', 'debian-sid', 'user'];
const title = `${requirementIds.map((id) => `[${id}]`).join('')} works`;

/** The JSON report of a run in which the only test ended so. */
const resultsWith = (status) =>
  JSON.stringify({
    testResults: [{ name: '/clone/all.test.ts', status, assertionResults: [{ fullName: title, status }] }],
  });

/** What a lane prints and leaves. `$1` is its name. */
const greenLane = `
  printf 'doctor begins\\nmachine of %s\\ndoctor ends\\n' "$1"
  echo 'lane-engine 20.10.24'; echo 'lane-node 20.20.2'
  mkdir -p .cache/test-results
  echo '${resultsWith('passed')}' >".cache/test-results/$1.json"
  printf 'left out by selection, run by npm test:\\n  a.test.ts: all tests\\n\\n'
  echo '3 passed, 0 failed, 1 skipped'
`;

let folder;
let clone;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-ci-'));
  clone = join(folder, 'clone');
  mkdirSync(clone);
  const used = [
    '.ci/run',
    '.gitignore',
    'package.json',
    'scripts/mission.mjs',
    'scripts/mission-report.mjs',
    'scripts/requirements/documents.mjs',
    'scripts/requirements/report.mjs',
    'scripts/steps.mjs',
    'scripts/test-sources.mjs',
  ];
  for (const path of used) cpSync(join(root, path), join(clone, path));
  for (const name of documentNames) {
    const sentence = `{ says: it works, id: G1, does: it does, tests: [{ all.test.ts: works }] }`;
    writeFileSync(
      join(clone, `scripts/requirements/${name}.yaml`),
      `title: ${name}\nsentences:\n  - ${sentence}\n`,
    );
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(clone, 'all.test.ts'), `it('${title}', () => {});\n`);
  const git = (...args) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: clone });
  git('init', '--quiet');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'Begin');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function runLanes(script, { args = [], env = {} } = {}) {
  const lane = join(folder, 'lane.sh');
  writeFileSync(lane, script);
  const { status, stdout, stderr } = spawnSync('bash', ['.ci/run', ...args], {
    cwd: clone,
    encoding: 'utf8',
    env: { ...process.env, CI_RUN_LANE_COMMAND: `bash ${lane}`, ...env },
  });
  return { code: status, output: stdout + stderr };
}

describe('.ci/run', () => {
  it('runs each lane, and ends with what each left out and a row for each', () => {
    const { code, output } = runLanes(greenLane);
    expect(code, output).toBe(0);
    const [before, table] = output.split(/^lane {8}end {4}engine {11}Node {7}minutes {2}tests$/m);
    for (const lane of lanes) {
      expect(before).toContain(`lane ${lane} begins\n`);
      expect(table).toMatch(
        new RegExp(
          `^${lane} +ok +20\\.10\\.24 +20\\.20\\.2 +\\d+\\.\\d {2}3 passed, 0 failed, 1 skipped$`,
          'm',
        ),
      );
      if (lane !== 'check') expect(before).toContain(`sally doctor in lane ${lane}\nmachine of ${lane}\n`);
    }
    expect(before).toContain(
      '----- lane user\nleft out by selection, run by npm test:\n  a.test.ts: all tests\n',
    );
    expect(table).toMatch(/\n18 passed, 0 failed, 6 skipped\n$/);
  });

  it('fails with a lane that fails, and shows its end', () => {
    const failing = `${greenLane}\n[ "$1" != user ] || { echo ' ✓ not shown'; echo 'the reason'; exit 3; }`;
    const { code, output } = runLanes(failing);
    expect(code).toBe(1);
    expect(output).toMatch(/^user +FAILED/m);
    expect(output).toMatch(/----- the end of lane user\n(.*\n)*the reason\n/);
    expect(output).not.toContain('not shown');
    expect(output.match(/----- the end of lane/g)).toHaveLength(1);
  });

  it('fails with a failed test of a lane, and not with one of a test run before', () => {
    mkdirSync(join(clone, '.cache/test-results'), { recursive: true });
    const earlier = ['.cache/test-results.json', '.cache/test-results/gone.json'].map((path) =>
      join(clone, path),
    );
    for (const file of earlier) writeFileSync(file, resultsWith('failed'));
    const green = runLanes(greenLane);
    expect(green.code, green.output).toBe(0);
    expect(earlier.filter((file) => existsSync(file))).toEqual([]);
    const red = runLanes(greenLane.replace(resultsWith('passed'), resultsWith('failed')));
    expect(red.code).toBe(1);
    expect(red.output).toMatch(/^ *FAIL/m);
  });

  it('ends a lane at the limit, and says so', () => {
    const env = { CI_RUN_MOST_SECONDS: '2' };
    const { code, output } = runLanes(`[ "$1" != clients ] || exec sleep 1000; ${greenLane}`, { env });
    expect(code).toBe(1);
    expect(output).toContain('lane clients was ended: all lanes together have 2 seconds');
    expect(output).toMatch(/^clients +FAILED/m);
  });

  it('kills a lane that does not end when it is told to', () => {
    const env = { CI_RUN_MOST_SECONDS: '2', CI_RUN_GRACE_SECONDS: '1' };
    const stubborn = `[ "$1" != clients ] || { trap '' TERM; while :; do sleep 1; done; }; ${greenLane}`;
    const { code, output } = runLanes(stubborn, { env });
    expect(code).toBe(1);
    expect(output).toContain('lane clients was killed');
    expect(output).toMatch(/^clients +FAILED/m);
  });

  it('refuses a lane that is not there, and a work tree with changes', () => {
    expect(runLanes(greenLane, { args: ['debian-11'] })).toEqual({
      code: 2,
      output: 'there is no lane debian-11; there are debian-12 clients user debian-13 debian-sid check\n',
    });
    writeFileSync(join(clone, 'all.test.ts'), '');
    const { code, output } = runLanes(greenLane);
    expect(code).toBe(2);
    expect(output).toContain('the work tree differs from HEAD');
  });
});
