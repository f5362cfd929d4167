/** What `npm run release` refuses, in a repository that has what it reads before it builds anything. */

import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { root } from './steps.mjs';

const unreleased = '## [Unreleased]\n\n';
const section = '## [9.9.9] - 2026-11-19\n\n### Added\n\n- All.\n';

let folder;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-release-refusals-'));
  for (const path of ['scripts/release.mjs', 'scripts/release/changelog.mjs', 'scripts/steps.mjs'])
    cpSync(join(root, path), join(folder, path));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', version: '9.9.9' }));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function commit(changelog) {
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog);
  const git = (...args) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: folder });
  git('init', '--quiet');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'Begin');
}

/** A target that does not exist ends a run that refuses nothing else. */
function release(...args) {
  const words = ['scripts/release.mjs', '--target', 'no-target', ...args];
  const { status, stderr } = spawnSync(process.execPath, words, { cwd: folder, encoding: 'utf8' });
  return { code: status, stderr };
}

const goesOn = { code: 1, stderr: expect.stringContaining('package-lock.json') };

describe('[N23] a release', () => {
  it('is made where nothing is unreleased, and refused where something is', () => {
    commit(`${unreleased}${section}`);
    expect(release()).toMatchObject(goesOn);
    commit(`${unreleased}### Fixed\n\n- More.\n\n${section}`);
    expect(release()).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('[Unreleased] of CHANGELOG.md is not empty'),
    });
    expect(release('--allow-dirty')).toMatchObject(goesOn);
  });

  it('is refused for a version without a section', () => {
    commit(section.replace('9.9.9', '9.9.8'));
    expect(release()).toMatchObject({ code: 2, stderr: expect.stringContaining('no section for 9.9.9') });
  });

  it('is refused with changes that are not committed', () => {
    commit(section);
    expect(release()).toMatchObject(goesOn);
    mkdirSync(join(folder, 'new'));
    writeFileSync(join(folder, 'new/file'), '');
    expect(release()).toMatchObject({ code: 2, stderr: expect.stringContaining('not committed') });
    expect(release('--allow-dirty')).toMatchObject(goesOn);
  });
});
