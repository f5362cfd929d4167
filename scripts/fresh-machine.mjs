/**
 * Tries Sallyport on a bare machine, as a newcomer would: a minimal Debian in a folder, with its own processes, network,
 * devices and engine, in which the two commands of README run in a new clone of this repository's HEAD. Nothing of it is
 * left afterwards, and this machine is compared before and after. Needs root.
 *
 *   node scripts/fresh-machine.mjs debian-13                        npm start, sally doctor, npm test
 *   node scripts/fresh-machine.mjs debian-13 --script 'npm start'   another shell script, in the clone
 *   node scripts/fresh-machine.mjs debian-13 --results FILE         copies the test results there
 *   node scripts/fresh-machine.mjs debian-12-bare --source FOLDER --script 'ls /mnt/source'    no clone, and another folder
 */

import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { distributionNamed } from './fresh-machine/distributions.mjs';
import { cacheFolder, FreshMachine, logInEnvironment, removeAbandoned } from './fresh-machine/machine.mjs';
import { differences, readMachineState } from './fresh-machine/machine-state.mjs';
import { connectNetwork } from './fresh-machine/network.mjs';
import { makeRootFolder } from './fresh-machine/root-folder.mjs';
import { makeUserModeMachine, runInUserMode } from './fresh-machine/user-mode.mjs';
import { installDebianPackages, isRootOnDebian } from './steps.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { script: { type: 'string' }, results: { type: 'string' }, source: { type: 'string' } },
});
const distribution = distributionNamed(positionals[0]);
const script = values.script ?? 'sh scripts/fresh-machine/begin.sh && npm test';
const expected = `export EXPECTED_NODE=v${distribution.node}. EXPECTED_ENGINE=${distribution.engine ?? ''}`;
const begin =
  values.source === undefined
    ? `${expected}; cd /root && git clone --quiet /mnt/source sallyport && cd sallyport`
    : 'cd /root';

if (!isRootOnDebian()) {
  console.error('sally: a fresh machine is made from Debian packages, and needs root');
  console.error('sally: run this as root on Debian');
  process.exit(1);
}
await installDebianPackages(
  ['mmdebstrap', 'slirp4netns', 'iproute2', 'util-linux', 'e2fsprogs'],
  'which fresh machines need',
);
await removeAbandoned();

const machine = new FreshMachine(values.source && resolve(values.source));
const before = readMachineState(machine);
let interrupted;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    interrupted ??= signal === 'SIGINT' ? 130 : 143;
    void machine.stop();
  });
}

let code = 1;
try {
  const from = performance.now();
  const withNode = distribution.node === undefined ? '' : ` with Node.js ${distribution.node}`;
  if (distribution.kernel) await makeUserModeMachine(distribution, { machine, cacheFolder });
  else await makeRootFolder(distribution, { folder: machine.root, cacheFolder });
  console.error(`sally: made ${distribution.name}${withNode} in ${seconds(performance.now() - from)}`);
  if (interrupted === undefined) {
    code = await runScript(`set -e; ${begin}; ${script}`, (bytes) => process.stdout.write(bytes));
    keepResults();
  }
} finally {
  const left = await machine.close();
  const changed = differences(before, readMachineState(machine));
  for (const item of [...left, ...changed]) console.error(`sally: the fresh machine left ${item}`);
  process.exitCode = left.length + changed.length > 0 ? 1 : (interrupted ?? code);
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

async function runScript(text, onOutput) {
  if (distribution.kernel)
    return await runInUserMode(machine, text, { environment: logInEnvironment(), onOutput });
  return await machine.run(['/bin/sh', '-c', text], { connect: connectNetwork, onOutput });
}

function keepResults() {
  const inside = distribution.kernel ? 'shared' : 'root/sallyport/.cache';
  const made = join(machine.root, inside, 'test-results.json');
  if (values.results === undefined || !existsSync(made)) return;
  mkdirSync(dirname(values.results), { recursive: true });
  copyFileSync(made, values.results);
}
