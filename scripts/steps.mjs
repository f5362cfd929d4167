/** What the scripts share: running a program with its output shown, hashing inputs, and the two steps before any other. */

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Runs a program and resolves with its exit code; a signal that ended it counts as 128 + n. */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', ...options });
    // The child gets Ctrl-C from the terminal itself and cleans up; this process waits for it.
    const wait = () => {};
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, wait);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      for (const name of ['SIGINT', 'SIGTERM']) process.off(name, wait);
      resolve(code ?? (signal === 'SIGINT' ? 130 : 143));
    });
  });
}

/** As `run`, but a failure ends the script with the same code. */
export async function must(command, args, options) {
  const code = await run(command, args, options);
  if (code !== 0) process.exit(code);
}

export function hasProgram(name) {
  return spawnSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' }).status === 0;
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

export function hashText(text) {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

/** One hash over files and folders, by content. */
export function hashOf(paths) {
  const hash = createHash('sha256');
  const files = paths.flatMap((path) => {
    const full = join(root, path);
    if (!existsSync(full)) return [];
    return path.includes('.') || !readdirSafe(full) ? [full] : filesBelow(full);
  });
  for (const file of files.sort())
    hash
      .update(`${relative(root, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  return hash.digest('hex');
}

function readdirSafe(path) {
  try {
    readdirSync(path);
    return true;
  } catch {
    return false;
  }
}

/** Does the work only if its inputs changed since it last succeeded. */
export async function whenChanged(stampFile, inputs, work) {
  const hash = hashOf(inputs);
  const stamp = join(root, stampFile);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return false;
  await work();
  writeFileSync(stamp, hash);
  return true;
}

export async function ensureDependencies() {
  return await whenChanged('node_modules/.sallyport-lock', ['package-lock.json'], async () => {
    await must('npm', ['ci', '--no-audit', '--no-fund']);
  });
}

export function isRootOnDebian() {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version') && hasProgram('apt-get');
}

function isInstalled(name) {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query has placeholders of its own
  const { stdout } = spawnSync('dpkg-query', ['-W', '-f=${Status}', name], { encoding: 'utf8' });
  return stdout === 'install ok installed';
}

/** Installs what is missing of Debian's packages, saying so first. Only for what tests and builds need. */
export async function installDebianPackages(packages, why, more = []) {
  const missing = packages.filter((name) => !isInstalled(name));
  if (missing.length === 0) return;
  console.error(`sally: installing ${missing.join(', ')} with apt-get, ${why}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  // `apt-get update` does not wait for another one, whatever DPkg::Lock::Timeout says: the folder is a lock of our own.
  const aptGet = ['/var/cache/apt', 'apt-get', '-qq', '-o', 'DPkg::Lock::Timeout=120'];
  const stdio = ['ignore', 'ignore', 'inherit'];
  await must('flock', [...aptGet, 'update'], { env, stdio });
  await must('flock', [...aptGet, '-y', '--no-install-recommends', ...more, 'install', ...missing], {
    env,
    stdio,
  });
}

/** The major version of this Debian, infinite for testing and sid; undefined on Ubuntu and other distributions. */
export function debianVersion() {
  const release = readFileSync('/etc/os-release', 'utf8');
  if (!/^ID=debian$/m.test(release)) return undefined;
  const [, version] = /^VERSION_ID="?(\d+)/m.exec(release) ?? [];
  return version === undefined ? Number.POSITIVE_INFINITY : Number(version);
}

const backports = 'bookworm-backports';
const backportsFile = `/etc/apt/sources.list.d/sallyport-${backports}.sources`;

/**
 * The same from Debian 12's backports. Where no configured source has that suite, one is written into a file of its own;
 * packages of it are taken only when asked for by name, so nothing else of the machine changes.
 */
export async function installFromBackports(packages, why) {
  if (debianVersion() !== 12 || packages.every(isInstalled)) return;
  const { stdout } = spawnSync('apt-get', ['indextargets', '--format', '$(SUITE) $(CODENAME) $(RELEASE)'], {
    encoding: 'utf8',
  });
  if (!stdout.includes(backports)) {
    console.error(`sally: adding ${backports} in ${backportsFile}`);
    writeFileSync(backportsFile, backportsSource(debianMirror()));
  }
  await installDebianPackages(packages, why, ['-t', backports]);
}

/** Where this machine gets Debian itself from, as opposed to its security updates and other sources. */
export function debianMirror() {
  const format = ['indextargets', '--format', '$(SITE)', 'Created-By: Packages'];
  const { stdout } = spawnSync('apt-get', format, { encoding: 'utf8' });
  const site = stdout.split('\n').find((row) => /\/debian\/?$/.test(row));
  return site ?? 'http://deb.debian.org/debian';
}

function backportsSource(mirror) {
  return [
    'Types: deb',
    `URIs: ${mirror}`,
    `Suites: ${backports}`,
    'Components: main',
    'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg',
    '',
  ].join('\n');
}
