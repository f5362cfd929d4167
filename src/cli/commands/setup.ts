/** `sally setup`: find, start or install an engine; `--status` and `--stop` for the private one. */

import { readEngineEnvironment } from '../../engines/docker/config.ts';
import { discoverEngine, discoveryError } from '../../engines/docker/discover.ts';
import { describeEndpoint } from '../../engines/docker/endpoint/endpoint.ts';
import { engineVersion } from '../../engines/docker/system/version.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { askConsent } from '../../setup/ask-consent.ts';
import { readSetupEnvironment } from '../../setup/config.ts';
import { ensureEngine, type ReadyEngine } from '../../setup/ensure-engine.ts';
import { privateEnginePaths } from '../../setup/private-engine/paths.ts';
import { type PrivateEngineStatus, privateEngineStatus } from '../../setup/private-engine/status.ts';
import { type StopResult, stopPrivateEngine } from '../../setup/private-engine/stop.ts';
import { exitCode } from '../exit-codes.ts';
import { note, print, printJson } from '../output.ts';
import type { CliContext } from '../program.ts';
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
  const setup = readSetupEnvironment();
  const startedAt = performance.now();
  const line = progressLine();
  let ready: ReadyEngine;
  try {
    ready = await ensureEngine({
      environment: readEngineEnvironment(),
      setup,
      progress: line.report,
      consent: async (plan) => {
        line.done();
        return await askConsent(
          {
            what: `${plan.packages.join(', ')} with apt-get`,
            agreed: options.yes === true || setup.ci,
            say: note,
          },
          signal,
        );
      },
      signal,
    });
  } finally {
    line.done();
  }
  const durationMs = Math.round(performance.now() - startedAt);
  const version = await engineVersion(ready.found.connection, { signal });
  const endpoint = describeEndpoint(ready.found.endpoint);
  if (options.json === true) {
    const { how, privateEngine } = ready;
    const engine = { source: ready.found.source, endpoint, version: version.engine, api: version.api };
    printJson({ engine, how, privateEngine, durationMs });
  } else {
    print(`engine  ${ready.found.source}, version ${version.engine} (API ${version.api})`);
    print(`socket  ${endpoint}`);
    print(`how     ${howWords[ready.how]}, ${(durationMs / 1000).toFixed(1)} s`);
  }
  return exitCode.ok;
}

const howWords = {
  answered: 'it was running; nothing was started or installed',
  started: 'started',
  installed: 'installed and started',
} as const satisfies Record<ReadyEngine['how'], string>;

const stateWords = {
  running: 'running',
  silent: 'its process is there, its socket does not answer',
  forbidden: 'running, its socket may not be opened by this user',
  stopped: 'not running',
} as const satisfies Record<PrivateEngineStatus['state'], string>;

async function showStatus(options: SetupOptions, { signal }: CliContext): Promise<number> {
  const paths = privateEnginePaths(readSetupEnvironment());
  const { found, attempts } = await discoverEngine(readEngineEnvironment(), {
    privateSocket: paths.socket,
    signal,
  });
  const privateEngine = await privateEngineStatus(paths, { signal });
  const engine =
    found === undefined ? null : { source: found.source, endpoint: describeEndpoint(found.endpoint) };
  if (options.json === true) {
    const tried = attempts.map(({ source, endpoint, outcome, error }) => ({
      source,
      endpoint,
      outcome,
      ...(error === undefined ? {} : { code: error.code, message: error.message }),
    }));
    printJson({ engine, privateEngine, tried });
  } else {
    print(
      `engine          ${engine === null ? `none: ${discoveryError(attempts).message}` : `${engine.source} at ${engine.endpoint}`}`,
    );
    const pid = privateEngine.pid === undefined ? '' : ` (pid ${privateEngine.pid})`;
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
  const setup = readSetupEnvironment();
  const paths = privateEnginePaths(setup);
  const line = progressLine();
  const result = await stopPrivateEngine(paths, {
    environment: setup.childVariables,
    progress: line.report,
  }).finally(line.done);
  if (options.json === true) printJson(result);
  else print(stopWords(result, paths.dataRoot));
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
