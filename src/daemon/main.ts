/**
 * The daemon's entry, and the only place that constructs it: engine, store, sandboxes, routes. There is one for each engine of a
 * state folder: the process that holds the lock. A failure before it listens is reported to the process that started it, on the
 * descriptor that it named.
 */

import { closeSync, readFileSync, writeSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { knownAgents } from '../agents/find-agent.ts';
import { CloneFolders } from '../agents/git/clone-folders.ts';
import { gitEnvironment } from '../agents/git/config.ts';
import { boxBody } from '../engines/docker/box-body.ts';
import { dockerBoxEngine } from '../engines/docker/box-engine.ts';
import { dockerBuildTurns } from '../engines/docker/build-turns.ts';
import { type EngineEnvironment, readEngineEnvironment } from '../engines/docker/config.ts';
import { dockerRunLine } from '../engines/docker/docker-run-line.ts';
import { describeEndpoint, type Endpoint } from '../engines/docker/endpoint/endpoint.ts';
import { dockerImageEngine } from '../engines/docker/image-engine.ts';
import { networkTraits } from '../engines/docker/network-traits.ts';
import { dockerServiceEngine } from '../engines/docker/service-engine.ts';
import { StorageSize } from '../engines/docker/storage-size.ts';
import type { EngineConnection } from '../engines/docker/wire/connection.ts';
import { serviceAsker } from '../gate/ask-service.ts';
import { KnownValues } from '../gate/credentials/known-values.ts';
import { PhantomRegistry } from '../gate/credentials/phantoms.ts';
import { EgressGate } from '../gate/gate.ts';
import type { UpstreamTls } from '../gate/http/upstream.ts';
import { dnsResolver } from '../gate/resolver.ts';
import { GateThread } from '../gate/thread/gate-thread.ts';
import { upstreamTls } from '../gate/tls/system-roots.ts';
import { TorClient } from '../gate/tor/tor-client.ts';
import { readGuardEnvironment } from '../guard/config.ts';
import { agentTemplates } from '../images/agent-templates.ts';
import { EngineBoxImages } from '../images/box-images.ts';
import { ProvisionGate } from '../images/gate.ts';
import { ImageCatalogue } from '../images/image-catalogue.ts';
import { ProjectImages } from '../images/project/project-images.ts';
import { provisionVersion } from '../images/provision.ts';
import { RegistryCredentials } from '../images/registry-credentials.ts';
import { harmlessJson } from '../lib/harmless-json.ts';
import { ownerId } from '../lib/owner.ts';
import { packageInfo } from '../lib/package-root.ts';
import type { Progress } from '../lib/progress.ts';
import { runningPrograms } from '../lib/running-programs.ts';
import { readPorterBinary } from '../porter/binary.ts';
import { protocolMajor } from '../porter/greeting.ts';
import { SallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import { Sandboxes } from '../sandboxes/sandboxes.ts';
import { DaemonClient } from '../sdk/client.ts';
import { readSetupEnvironment } from '../setup/config.ts';
import { findOrStartEngine } from '../setup/ensure-engine.ts';
import { privateEnginePaths } from '../setup/private-engine/paths.ts';
import { searchAudit, verifyAudit } from '../store/audit-reader.ts';
import { GateKeyFiles } from '../store/gate-keys.ts';
import { ImageRecordFiles } from '../store/image-records.ts';
import { systemKeyring } from '../store/keyring.ts';
import { type LogFile, openLogFile } from '../store/log-file.ts';
import { McpProfileFile } from '../store/mcp-profiles.ts';
import { openStore } from '../store/open-store.ts';
import { PassedImages } from '../store/passed-images.ts';
import { processHolder } from '../store/process-identity.ts';
import { openSecrets, type Secrets } from '../store/secrets.ts';
import { type ListenAddress, provideToken, readListenAddress } from './auth.ts';
import { chooseEngine } from './choose-engine.ts';
import { type DaemonConfig, readDaemonConfig } from './config.ts';
import { checkpoints } from './crash-point.ts';
import { Daemon } from './daemon.ts';
import { type EngineHome, takeEngineHome } from './engine-home.ts';
import { bubblewrapParts, type EngineParts } from './engine-parts.ts';
import { firstLiveNote } from './first-live-note.ts';
import type { GateThreadData } from './gate-thread-data.ts';
import { guardSurface } from './guard-surface.ts';
import { errorBody, presentable } from './http-error.ts';
import { imageSurface } from './image-surface.ts';
import { type Logger, logger } from './logger.ts';
import { McpEndpoint } from './mcp/mcp-endpoint.ts';
import { LaunchFiles } from './previews/launch-files.ts';
import { Previews } from './previews/previews.ts';

/** A client that lost its daemon has so long to come back before its command is killed. */
const clientAbsenceMs = 10_000;
const overduePatienceMs = 60_000;

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
  tell(fd, words);
  try {
    closeSync(fd);
  } catch {
    // Nobody listens.
  }
}

/** A line of its own, and more may follow. */
function tell(fd: number | undefined, words: object): void {
  if (fd === undefined) return;
  try {
    writeSync(fd, `${JSON.stringify(words)}\n`);
  } catch {
    // Nobody listens.
  }
}

async function run(args: Arguments, config: DaemonConfig, reported: () => void): Promise<void> {
  const { uid, choice } = config;
  const home = await takeEngineHome(config.stateDir, choice);
  if ('heldBy' in home) {
    throw new SallyportError('daemon_running', `process ${home.heldBy} is the daemon of ${home.path}`, {
      details: { pid: home.heldBy, stateDir: home.path },
    });
  }
  const file = openLogFile(join(home.path, 'daemon.log'));
  const log = logger(file);
  endOnFailure(log, file);
  try {
    const started = await construct(config, home, log, ({ step, message }) => {
      log.info(message, { step });
      tell(args.reportFd, { progress: { step, message } });
    });
    const { store, sandboxes, daemon, tor, gateThread, mcp } = started;
    await sandboxes.recover();
    await daemon.listenOnSocket(join(home.path, 'daemon.sock'));
    await listenOnPort(daemon, args.listen, home.path, log);
    await mcp.resume();
    stopOnSignals(daemon, log);
    log.info('the daemon is ready', { pid: process.pid, version: packageInfo().version, uid });
    reported();
    report(args.reportFd, { ready: true, pid: process.pid });
    await daemon.stopped;
    await tor.close();
    await gateThread.close();
    await store.close();
    log.info('the daemon has stopped');
  } catch (error) {
    log.error('the daemon did not start', { error });
    home.abandon();
    throw error;
  } finally {
    file.close();
    home.release();
  }
}

async function construct(config: DaemonConfig, home: EngineHome, log: Logger, starting: Progress) {
  // Secrets, audit and the approver's token are shared by the daemons of all engines; everything else is this engine's.
  const { stateDir: shared, uid, choice, idleMs, crashAt, sshAgentPath } = config;
  const stateDir = home.path;
  const setup = readSetupEnvironment();
  const { socket } = privateEnginePaths(setup);
  const environment = readEngineEnvironment();
  const guardEnvironment = readGuardEnvironment();
  const store = await openStore(stateDir, {
    auditDir: shared,
    onBroken: (broken) => log.error('a record could not be read and was moved aside', { ...broken }),
    onExecDropped: (sandbox, exec) => sandboxes.forgetExec(sandbox, exec),
  });
  const owner = ownerId(uid, stateDir);
  const checkpoint = checkpoints(crashAt);
  // Whoever names an address means that engine and no other.
  const isNamed = (environment.dockerHost ?? environment.dockerContext) !== undefined;
  const wanted = config.engine === 'auto' && isNamed ? 'docker' : config.engine;
  const progress: Progress = (event) => {
    store.events.append({ type: 'engine.progress', step: event.step, message: event.message });
    starting(event);
  };
  const parts = await chooseEngine(wanted, {
    docker: () => dockerParts({ environment, setup, progress }, { stateDir, owner, log }),
    bubblewrap: () => bubblewrapParts({ stateDir, uid, checkpoint }),
  });
  const { engine } = parts;
  const facts = await engine.facts();
  home.reached({ endpoint: parts.endpoint, ...(facts.id === undefined ? {} : { id: facts.id }) });
  const extraRoots = config.extraRoots === undefined ? [] : [readFileSync(config.extraRoots, 'utf8')];
  const tls = upstreamTls(extraRoots);
  const secrets = openSecrets(
    shared,
    () => new Date(),
    systemKeyring(process.platform),
    serviceAsker(dnsResolver(config.dnsServers), tls),
  );
  const tor = new TorClient({
    folder: join(stateDir, 'tor'),
    programFolders: config.programFolders,
    userSettings: config.torSettings,
  });
  const threadData: GateThreadData = { stateDir: shared, dnsServers: config.dnsServers, extraRoots };
  const gateThread = new GateThread({
    entry: new URL('./gate-thread.js', import.meta.url),
    data: threadData,
    report: (what, error) => log.error(`could not ${what}`, { error }),
  });
  const sandboxes: Sandboxes = new Sandboxes(
    {
      engine,
      services: parts.services,
      images: parts.images,
      store,
      gate: constructGate({ ...config, stateDir }, secrets, tor, tls, gateThread),
      clones: await CloneFolders.open(join(stateDir, 'clones'), gitEnvironment()),
      owner,
      now: () => new Date().toISOString(),
      checkpoint,
      sshAgent: { path: sshAgentPath, uid },
      firstLiveNote: () => firstLiveNote(shared, setup),
      clientAbsenceMs,
      overduePatienceMs,
      report: (what, error) => log.error(`could not ${what}`, { error }),
    },
    {
      host: { uid, gid: process.getgid?.() ?? uid, platform: process.platform },
      home: homedir(),
      definedAgents: () => knownAgents({ userFolder: dirname(guardEnvironment.userFile) }),
      places: {
        platform: process.platform,
        homes: [homedir(), environment.home],
        stateDirs: [shared],
        engineSockets: [socket, ...parts.sockets],
        programs: runningPrograms(),
      },
    },
  );
  const mcp: McpEndpoint = new McpEndpoint({
    file: new McpProfileFile(stateDir),
    client: () =>
      new DaemonClient(
        { stateDir, startDaemon: false, anyEngine: true },
        { answers: { ask: (call) => daemon.ask(call), close: () => {} } },
      ),
    log,
    version: packageInfo().version,
  });
  const daemon: Daemon = new Daemon({
    mcp,
    sandboxes,
    secrets,
    images: parts.imageSurface(() =>
      sandboxes.list().map(({ record: { name, imageId } }) => ({ name, imageId })),
    ),
    previews: new Previews({
      find: (id) => sandboxes.list().find((sandbox) => sandbox.id === id),
      files: new LaunchFiles(join(stateDir, 'previews')),
      now: () => Date.now(),
    }),
    guard: guardSurface({
      environment: guardEnvironment,
      approverToken: await provideToken(join(shared, 'approver-token')),
      tell: (event) => void store.events.append(event),
      record: (entry) => store.record(entry),
      audit: {
        search: (query) => searchAudit(shared, query),
        verify: (head) => verifyAudit(shared, head),
      },
      report: (what, error) => log.error(`could not ${what}`, { error }),
    }),
    log,
    owner,
    engineKey: choice.key,
    idleMs,
    version: packageInfo().version,
    engine: { name: facts.name, endpoint: parts.endpoint, version: facts.version },
    describeBox: parts.describeBox,
  });
  return { store, sandboxes, daemon, tor, gateThread, mcp };
}

async function dockerParts(
  finding: Parameters<typeof findOrStartEngine>[0],
  { stateDir, owner, log }: { readonly stateDir: string; readonly owner: string; readonly log: Logger },
): Promise<EngineParts> {
  const { environment } = finding;
  const { connection, endpoint } = await findOrStartEngine(finding);
  const storage = new StorageSize(connection);
  const engine = dockerBoxEngine(connection, readPorterBinary, storage);
  const { projects, records, boxImages, imageEngine } = constructImages(
    connection,
    environment,
    stateDir,
    owner,
    (message) => log.error(message),
  );
  return {
    engine,
    services: dockerServiceEngine(connection, storage),
    images: boxImages,
    imageSurface: (sandboxes) =>
      imageSurface({
        projects,
        records,
        catalogue: new ImageCatalogue({ engine: imageEngine, records, owner, sandboxes }),
      }),
    endpoint: describeEndpoint(endpoint),
    sockets: socketOf(endpoint),
    describeBox: async (box) => {
      const { version } = await engine.facts();
      const body = boxBody(box, undefined, networkTraits(version).sysctls);
      // The image may be missing.
      const request = await storage.held(body, box.limits.diskBytes).catch(() => body);
      return { request, docker_run: dockerRunLine(box.name, request) };
    },
  };
}

function constructGate(
  { stateDir, dnsServers }: DaemonConfig,
  source: Secrets,
  tor: TorClient,
  tls: UpstreamTls,
  thread: GateThread,
): EgressGate {
  return new EgressGate({
    connections: (parts, box) => thread.open(parts, box),
    ...(dnsServers === undefined ? {} : { dnsServers }),
    tor,
    secrets: {
      source,
      registry: new PhantomRegistry(),
      values: new KnownValues(),
      keys: new GateKeyFiles(stateDir),
      upstreamTls: tls,
    },
  });
}

function constructImages(
  connection: EngineConnection,
  { dockerConfigDir }: EngineEnvironment,
  stateDir: string,
  owner: string,
  report: (message: string) => void,
) {
  const imageEngine = dockerImageEngine(connection);
  const records = new ImageRecordFiles(stateDir);
  const credentials = new RegistryCredentials(dockerConfigDir);
  const projects = new ProjectImages({
    engine: imageEngine,
    records,
    credentials,
    turns: dockerBuildTurns(connection, processHolder()),
    porterVersion: String(protocolMajor),
    now: () => new Date(),
    labels: { [label.owner]: owner },
  });
  const gate = new ProvisionGate({
    engine: imageEngine,
    passed: new PassedImages(join(stateDir, 'passed-images'), provisionVersion),
    report,
  });
  const templates = agentTemplates(imageEngine);
  const boxImages = new EngineBoxImages(imageEngine, { projects, credentials, gate, templates });
  return { imageEngine, records, projects, boxImages };
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
    process.stderr.write(`${harmlessJson(errorBody(shown))}\n`);
    process.exit(1);
  }
}

await main();
