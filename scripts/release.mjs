/**
 * `npm run release`: makes the files of a release from this commit. It publishes nothing.
 *
 *   npm run release                     into release/
 *   npm run release -- --out FOLDER
 *   npm run release -- --target linux-x64    with this archive only (default: both)
 *   npm run release -- --allow-dirty    also with changes that are not committed, or not in the version's section yet
 *
 * Two runs on one commit, with the same compilers and the same Node.js, give the same bytes. docs/release.md has the rest.
 */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { changelogDate, changelogHasUnreleased, changelogSection } from './release/changelog.mjs';
import { ensureDependencies, must, root } from './steps.mjs';

const { values: options } = parseArgs({
  options: {
    out: { type: 'string', default: 'release' },
    target: { type: 'string', multiple: true },
    'allow-dirty': { type: 'boolean', default: false },
  },
});
const out = resolve(options.out);
const { version, license } = readJson('package.json');
const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
const section = changelogSection(changelog, version);
if (section === undefined) {
  refuse(
    `CHANGELOG.md has no section for ${version}`,
    `Add "## [${version}] - YYYY-MM-DD" with what changed.`,
  );
}
if (changelogHasUnreleased(changelog) && !options['allow-dirty']) {
  refuse(
    'the section [Unreleased] of CHANGELOG.md is not empty',
    `Move its entries into the section of ${version}, or add --allow-dirty.`,
  );
}
if (git('status', '--porcelain') !== '' && !options['allow-dirty']) {
  refuse('the working tree has changes that are not committed', 'Commit them, or add --allow-dirty.');
}
const commit = git('rev-parse', 'HEAD');
const date = new Date(Number(git('log', '-1', '--format=%ct')) * 1000);

const work = mkdtempSync(join(tmpdir(), 'sallyport-release-'));
try {
  await release();
} finally {
  rmSync(work, { recursive: true, force: true });
}

async function release() {
  await ensureDependencies();
  mkdirSync(out, { recursive: true });
  const quiet = { stdio: ['ignore', 'ignore', 'inherit'] };
  // `prepack` builds with --release. npm gives what it packs a fixed date.
  await must('npm', ['pack', '--silent', '--pack-destination', out], quiet);
  const files = [`sallyport-${version}.tgz`, ...(await makeArchives(join(out, `sallyport-${version}.tgz`)))];
  files.push(write(`sallyport-${version}.sbom.json`, toJson(await describeParts())));
  files.push(write(`CHANGELOG-${version}.md`, `# Sallyport ${version}\n\n${section}\n`));
  const facts = files.map((name) => factsOf(name));
  const latest = { version, date: changelogDate(changelog, version), files: facts, changelog: section };
  const sums = [...facts, factsOf(write('latest.json', toJson(latest)))];
  write('SHA256SUMS', sums.map(({ sha256, name }) => `${sha256}  ${name}\n`).join(''));
  for (const { name, size } of sums) console.log(`${(size / 1e6).toFixed(2).padStart(8)} MB  ${name}`);
  console.log(`sallyport ${version} of commit ${commit.slice(0, 12)} is in ${out}`);
}

async function makeArchives(tarball) {
  const { dependencyEntries, makeArchive, packageEntries } = await import('./release/archive.mjs');
  const { fetchNode } = await import('./release/node-runtime.mjs');
  for (const name of ['package.json', 'package-lock.json', '.npmrc'])
    cpSync(join(root, name), join(work, name));
  const install = ['ci', '--silent', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'];
  await must('npm', install, { cwd: work, stdio: ['ignore', 'ignore', 'inherit'] });
  const contents = [
    ...(await packageEntries(readFileSync(tarball))),
    ...dependencyEntries(join(work, 'node_modules')),
  ];
  const installer = readFileSync(join(root, 'scripts/release/install.sh'));
  return await Promise.all(
    (await wantedTargets()).map(async (target) => {
      const node = await fetchNode(target, work);
      const name = `sallyport-${version}-${target}`;
      return write(
        `${name}.tar.gz`,
        await makeArchive({ name, version, target, installer, files: contents, node, date }),
      );
    }),
  );
}

async function describeParts() {
  const { makeSbom } = await import('./release/sbom.mjs');
  const { nodeRuntime } = await import('./release/node-runtime.mjs');
  const programs = ['porter', 'keeper'].flatMap((name) =>
    ['amd64', 'arm64'].map((architecture) => join(root, 'porter/build', `${name}-${architecture}`)),
  );
  const lock = readJson('package-lock.json');
  const runtimes = (await wantedTargets()).map(nodeRuntime);
  return makeSbom({ version, license, lock, runtimes, programs, date, commit });
}

async function wantedTargets() {
  const { targets } = await import('./release/node-runtime.mjs');
  const unknown = options.target?.find((target) => !targets.includes(target));
  if (unknown !== undefined) refuse(`--target ${unknown} is unknown`, `Use one of ${targets.join(', ')}.`);
  return options.target ?? targets;
}

function write(name, content) {
  writeFileSync(join(out, name), content);
  return name;
}

function factsOf(name) {
  const bytes = readFileSync(join(out, name));
  return { name, size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
}

function git(...args) {
  const { stdout, status } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) refuse('this is not a git checkout with a commit', 'Make a release from a clone.');
  return stdout.trim();
}

function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'));
}

function toJson(value) {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function refuse(problem, advice) {
  console.error(`sally: ${problem}\nsally: ${advice}`);
  process.exit(2);
}
