/**
 * The daemon's entry, and the only place that constructs it: engine, store, sandboxes, routes. One for each state folder:
 * whoever has the lock. What goes wrong before it listens is told to the one who started it, on the descriptor it named.
 */

import { closeSync, writeSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { boxBody } from '../engines/docker/box-body.ts';
import { dockerBoxEngine } from '../engines/docker/box-engine.ts';
import { readEngineEnvironment } from '../engines/docker/config.ts';
import { findEngine } from '../engines/docker/discover.ts';
import { dockerRunLine } from '../engines/docker/docker-run-line.ts';
import { describeEndpoint, type Endpoint } from '../engines/docker/endpoint/endpoint.ts';
import { dockerImageEngine } from '../engines/docker/image-engine.ts';
import { EngineBoxImages } from '../images/box-images.ts';
import { ownerId } from '../lib/owner.ts';
import { packageInfo } from '../lib/package-root.ts';
import { readPorterBinary } from '../porter/binary.ts';
import { SallyportError } from '../protocol/errors.ts';
import { Sandboxes } from '../sandboxes/sandboxes.ts';
import { readSetupEnvironment } from '../setup/config.ts';
import { privateEnginePaths } from '../setup/private-engine/paths.ts';
import { takeLock } from '../store/instance-lock.ts';
import { type LogFile, openLogFile } from '../store/log-file.ts';
import { openStore } from '../store/open-store.ts';
import { type ListenAddress, provideToken, readListenAddress } from './auth.ts';
import { type DaemonConfig, readDaemonConfig } from './config.ts';
import { checkpoints } from './crash-point.ts';
import { Daemon } from './daemon.ts';
import { errorBody, presentable } from './http-error.ts';
import { type Logger, logger } from './logger.ts';

/** A client that lost its daemon has so long to come back before its command is killed. */
const clientAbsenceMs = 10_000;

interface Arguments {
  readonly listen?: ListenAddress;
  readonly reportFd?: number;
}

function readArguments(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      listen: { type: 'string' },
      'dangerously-listen-anywhere': { type: 'boolean', default: false },
      'report-fd': { type: 'string' },
    },
  });
  const anywhere = values['dangerously-listen-anywhere'];
  const reportFd = values['report-fd'];
  return {
    ...(values.listen === undefined ? {} : { listen: readListenAddress(values.listen, anywhere) }),
    ...(reportFd === undefined ? {} : { reportFd: Number(reportFd) }),
  };
}

/** To whoever started this process; they may be gone, which is their affair. */
function report(fd: number | undefined, words: object): void {
  if (fd === undefined) return;
  try {
    writeSync(fd, JSON.stringify(words));
    closeSync(fd);
  } catch {
    // Nobody listens.
  }
}

async function run(args: Arguments, config: DaemonConfig, reported: () => void): Promise<void> {
  const { stateDir, uid } = config;
  const lock = await takeLock(stateDir);
  if ('heldBy' in lock) {
    throw new SallyportError('daemon_running', `process ${lock.heldBy} is the daemon of ${stateDir}`, {
      details: { pid: lock.heldBy, stateDir },
    });
  }
  const file = openLogFile(join(stateDir, 'daemon.log'));
  const log = logger(file);
  endOnFailure(log, file);
  try {
    const { store, sandboxes, daemon } = await construct(config, log);
    await sandboxes.recover();
    await daemon.listenOnSocket(join(stateDir, 'daemon.sock'));
    await listenOnPort(daemon, args.listen, stateDir, log);
    stopOnSignals(daemon, log);
    log.info('the daemon is ready', { pid: process.pid, version: packageInfo().version, uid });
    reported();
    report(args.reportFd, { ready: true, pid: process.pid });
    await daemon.stopped;
    await store.close();
    log.info('the daemon has stopped');
  } catch (error) {
    log.error('the daemon did not start', { error });
    throw error;
  } finally {
    file.close();
    lock.release();
  }
}

async function construct(config: DaemonConfig, log: Logger) {
  const { stateDir, uid, engineEnvironment, idleMs, crashAt, sshAgentPath } = config;
  const { socket } = privateEnginePaths(readSetupEnvironment());
  const environment = readEngineEnvironment();
  const { connection, endpoint } = await findEngine(environment, { privateSocket: socket });
  const engine = dockerBoxEngine(connection, readPorterBinary);
  const facts = await engine.facts();
  const owner = ownerId(uid, stateDir);
  const store = await openStore(stateDir, {
    onBroken: (broken) => log.error('a record could not be read and was moved aside', { ...broken }),
    onExecDropped: (sandbox, exec) => sandboxes.forgetExec(sandbox, exec),
  });
  const sandboxes = new Sandboxes(
    {
      engine,
      images: new EngineBoxImages(dockerImageEngine(connection)),
      store,
      owner,
      now: () => new Date().toISOString(),
      checkpoint: checkpoints(crashAt),
      sshAgent: { path: sshAgentPath, uid },
      clientAbsenceMs,
      report: (what, error) => log.error(`could not ${what}`, { error }),
    },
    {
      host: { uid, gid: process.getgid?.() ?? uid, platform: process.platform },
      home: homedir(),
      places: {
        platform: process.platform,
        homes: [homedir(), environment.home],
        stateDirs: [stateDir],
        engineSockets: [socket, ...socketOf(endpoint)],
      },
    },
  );
  const daemon = new Daemon({
    sandboxes,
    log,
    owner,
    engineEnvironment,
    idleMs,
    version: packageInfo().version,
    engine: { endpoint: describeEndpoint(endpoint), version: facts.version },
    describeBox: (box) => {
      const request = boxBody(box);
      return { request, docker_run: dockerRunLine(box.name, request) };
    },
  });
  return { store, sandboxes, daemon };
}

const socketOf = (endpoint: Endpoint): readonly string[] => (endpoint.kind === 'unix' ? [endpoint.path] : []);

async function listenOnPort(
  daemon: Daemon,
  listen: ListenAddress | undefined,
  stateDir: string,
  log: Logger,
): Promise<void> {
  if (listen === undefined) return;
  const port = await daemon.listenOnPort(listen, await provideToken(join(stateDir, 'token')));
  log.info('the daemon listens on a port', { host: listen.host, port });
}

/** The first signal stops the sandboxes and then the daemon; the second ends the process. */
function stopOnSignals(daemon: Daemon, log: Logger): void {
  let asked = false;
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (asked) process.exit(1);
      asked = true;
      log.info(`${name}: the daemon stops`);
      daemon.stop(false).catch((error: unknown) => log.error('the stop failed', { error }));
    });
  }
  // The terminal of whoever started it closes: that is not its end.
  process.on('SIGHUP', () => {});
}

/** A daemon in a state that nobody foresaw is worth less than the next one, which recovers what is on disk. */
function endOnFailure(log: Logger, file: LogFile): void {
  process.on('uncaughtException', (error) => {
    log.error('the daemon failed and ends', { error });
    file.close();
    process.exit(1);
  });
}

async function main(): Promise<void> {
  process.umask(0o077);
  let isReady = false;
  let reportFd: number | undefined;
  try {
    const args = readArguments(process.argv.slice(2));
    ({ reportFd } = args);
    await run(args, readDaemonConfig(), () => {
      isReady = true;
    });
    process.exit(0);
  } catch (error) {
    const shown = presentable(error);
    if (!isReady) report(reportFd, errorBody(shown));
    process.stderr.write(`${JSON.stringify(errorBody(shown))}\n`);
    process.exit(1);
  }
}

await main();
