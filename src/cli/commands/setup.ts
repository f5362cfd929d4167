/** `sally setup`: find, start or install an engine; `--status` and `--stop` for the private one. */

import { SallyportError } from '../../protocol/errors.ts';
import { type SetUp, setUpHere, statusHere, stopHere } from '../../setup/here.ts';
import type { PrivateEngineStatus } from '../../setup/private-engine/status.ts';
import type { StopResult } from '../../setup/private-engine/stop.ts';
import { askConsent } from '../ask.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { print, printJson } from '../output.ts';
import { progressLine } from '../progress-line.ts';

export interface SetupOptions {
  readonly status?: true;
  readonly stop?: true;
  readonly yes?: true;
  readonly json?: true;
}

export async function setupCommand(options: SetupOptions, context: CliContext): Promise<number> {
  if (options.status === true && options.stop === true) {
    throw new SallyportError('usage', '--status and --stop exclude each other');
  }
  if (options.status === true) return await showStatus(options, context);
  if (options.stop === true) return await stop(options);
  return await setUp(options, context);
}

async function setUp(options: SetupOptions, { signal }: CliContext): Promise<number> {
  const line = progressLine();
  const done = await setUpHere({
    progress: line.report,
    consent: async (plan, ci) => {
      line.done();
      const agreed = options.yes === true || ci;
      return await askConsent({ what: `${plan.packages.join(', ')} with apt-get`, agreed }, signal);
    },
    signal,
  }).finally(line.done);
  if (options.json === true) printJson(done);
  else {
    print(`engine  ${done.engine.source}, version ${done.engine.version} (API ${done.engine.api})`);
    print(`socket  ${done.engine.endpoint}`);
    print(`how     ${howWords[done.how]}, ${(done.durationMs / 1000).toFixed(1)} s`);
  }
  return exitCode.ok;
}

const howWords = {
  answered: 'it was running; nothing was started or installed',
  started: 'started',
  installed: 'installed and started',
} as const satisfies Record<SetUp['how'], string>;

const stateWords = {
  running: 'running',
  silent: 'its process is there, its socket does not answer',
  forbidden: 'running, its socket may not be opened by this user',
  stopped: 'not running',
} as const satisfies Record<PrivateEngineStatus['state'], string>;

async function showStatus(options: SetupOptions, { signal }: CliContext): Promise<number> {
  const status = await statusHere(signal);
  const { engine, problem, privateEngine } = status;
  if (options.json === true) printJson(status);
  else {
    const found = engine === null ? `none: ${problem}` : `${engine.source} at ${engine.endpoint}`;
    const pid = privateEngine.pid === undefined ? '' : ` (pid ${privateEngine.pid})`;
    print(`engine          ${found}`);
    print(`private engine  ${stateWords[privateEngine.state]}${pid}`);
    if (privateEngine.pid !== undefined) {
      print(`  socket        ${privateEngine.socket}`);
      print(`  data          ${privateEngine.dataRoot}`);
      print(`  log           ${privateEngine.logFile}`);
    }
  }
  return engine === null ? exitCode.failed : exitCode.ok;
}

async function stop(options: SetupOptions): Promise<number> {
  const line = progressLine();
  const result = await stopHere(line.report).finally(line.done);
  if (options.json === true) printJson(result);
  else print(stopWords(result, result.dataRoot));
  return exitCode.ok;
}

function stopWords({ wasRunning, killed, leftovers }: StopResult, dataRoot: string): string {
  if (wasRunning) {
    return `the private engine is stopped${killed ? ' (it had to be killed)' : ''}; its data is in ${dataRoot}`;
  }
  return leftovers === 0
    ? 'the private engine is not running'
    : `the private engine was not running; ${leftovers} processes that it had left were ended`;
}
