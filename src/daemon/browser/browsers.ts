/**
 * Chromium in sandboxes, driven by clients of the DevTools protocol on this machine. The browser is a command like any other. Of two
 * clients that start it at once both get the same one.
 */

import { Serial } from '../../lib/serial.ts';
import { browserHome, gateFolder } from '../../protocol/box.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { type BrowserBody, execBody } from '../../protocol/requests.ts';
import type { BrowserView } from '../../protocol/views.ts';
import { devToolsPort, isBrowser } from '../../sandboxes/browser-port.ts';
import { connectInside } from '../inside-connection.ts';
import { readRawLog } from '../raw-log.ts';
import type { ExecSurface, SandboxSurface } from '../surface.ts';
import { browserCommand, devToolsPath } from './browser-command.ts';
import { DevToolsDoor } from './devtools-door.ts';

const killGraceMs = 5000;

export class Browsers {
  /** By sandbox, while someone waits in it. */
  readonly #serials = new Map<string, { readonly serial: Serial; waiting: number }>();
  /** By exec. */
  readonly #doors = new Map<string, DevToolsDoor[]>();

  /** Resolves when it can be driven. One that runs already is used as it is. */
  async start(sandbox: SandboxSurface, body: BrowserBody, signal: AbortSignal): Promise<BrowserView> {
    return await this.#inTurn(sandbox, async () => {
      signal.throwIfAborted();
      refusePublished(sandbox);
      const exec = running(sandbox)[0] ?? (await launch(sandbox, body));
      const path = await listeningPath(sandbox, exec, signal);
      const door = await this.#door(sandbox, exec, body.port);
      return {
        endpoint: `ws://${door.address}${path}`,
        url: `http://${door.address}`,
        port: door.port,
        exec_id: exec.id,
      };
    });
  }

  /** Resolves when it is over. None that runs is no error. */
  async stop(sandbox: SandboxSurface): Promise<void> {
    await this.#inTurn(sandbox, async () => {
      for (const exec of running(sandbox)) await exec.kill(killGraceMs);
    });
  }

  close(): void {
    for (const exec of this.#doors.keys()) this.#shut(exec);
  }

  async #door(sandbox: SandboxSurface, exec: ExecSurface, port: number | undefined): Promise<DevToolsDoor> {
    const doors = this.#doors.get(exec.id) ?? [];
    const known = doors.find((door) => port === undefined || door.port === port);
    if (known !== undefined) return known;
    const door = await DevToolsDoor.open({
      port,
      connect: (asker, open) => connectInside(sandbox, devToolsPort, asker, open),
    });
    this.#doors.set(exec.id, [...doors, door]);
    void exec.ended.then(() => this.#shut(exec.id));
    return door;
  }

  #shut(exec: string): void {
    for (const door of this.#doors.get(exec) ?? []) door.close();
    this.#doors.delete(exec);
  }

  async #inTurn<T>({ id }: SandboxSurface, work: () => Promise<T>): Promise<T> {
    const turn = this.#serials.get(id) ?? { serial: new Serial(), waiting: 0 };
    this.#serials.set(id, turn);
    turn.waiting++;
    try {
      return await turn.serial.run(work);
    } finally {
      if (--turn.waiting === 0) this.#serials.delete(id);
    }
  }
}

/** Oldest first. */
function running(sandbox: SandboxSurface): readonly ExecSurface[] {
  return sandbox.execs().filter((exec) => {
    const { state, argv } = exec.view();
    return state === 'running' && isBrowser(argv);
  });
}

async function launch(sandbox: SandboxSurface, body: BrowserBody): Promise<ExecSurface> {
  const { services, user } = sandbox.view();
  const names = services.map(({ name }) => name);
  const exec = await sandbox.exec(
    execBody.parse({
      argv: browserCommand(body, names),
      // There is the database that has it trust the sandbox's CA, where the gate opens TLS.
      envs: { HOME: `${user.home}/${gateFolder}/${browserHome}` },
      background: true,
      timeout_ms: 0,
      reason: 'a browser to be driven from outside',
    }),
  );
  try {
    // The port may have been published meanwhile. From here on the running browser refuses that.
    refusePublished(sandbox);
  } catch (error) {
    await exec.kill(killGraceMs);
    throw error;
  }
  return exec;
}

/** Of the browser's own WebSocket, when Chromium listens there. */
async function listeningPath(
  sandbox: SandboxSurface,
  exec: ExecSurface,
  signal: AbortSignal,
): Promise<string> {
  let said = '';
  for await (const piece of readRawLog(await exec.log(), { stream: 'stderr', follow: true, signal })) {
    said += piece.toString('utf8');
    const path = devToolsPath(said);
    if (path !== undefined) return path;
    if (said.includes('Cannot start http server for devtools')) break;
  }
  signal.throwIfAborted();
  await exec.kill(killGraceMs);
  const { name } = sandbox;
  const { state, error } = exec.view();
  const isRefused = state === 'refused' && error !== undefined;
  const why = isRefused ? error.message : 'it does not listen';
  throw new SallyportError('browser_failed', `no browser in sandbox ${name}: ${why}`, {
    details: { sandbox: name, exec: exec.id, said: said.slice(-500) },
    ...(isRefused ? {} : { advice: `\`sally logs ${name} ${exec.id}\` shows what it said.` }),
  });
}

/** SECURITY: whoever connects to a published port needs no token. */
function refusePublished(sandbox: SandboxSurface): void {
  const { name } = sandbox;
  const open = sandbox.view().ports.find(({ box }) => box === devToolsPort);
  if (open === undefined) return;
  throw new SallyportError(
    'browser_failed',
    `no browser in sandbox ${name}: port ${devToolsPort} inside, where its DevTools would listen, is published as ${open.host} for every user of this machine`,
    {
      details: { sandbox: name, host: open.host },
      advice: `Take the port back first: \`sally ports ${name} --unpublish ${open.host}\`.`,
    },
  );
}
