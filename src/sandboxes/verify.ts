/**
 * Reads back from inside what is really in force, and compares it with what was asked for. It trusts no program of the image:
 * porter prints its own files, run as every command of the sandbox is run.
 */

import { unlessAborted } from '../lib/unless-aborted.ts';
import type { Porter } from '../porter/porter.ts';
import { boxHostname, porterMount, porterPath } from '../protocol/box.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { VerifyCheck, VerifyView, WorkspaceScanView } from '../protocol/views.ts';
import {
  asShown,
  type Expectation,
  expectations,
  forgetsRootAtStop,
  hostsOfMachine,
  type Shown,
} from './expectations.ts';
import { type PinnedSources, shownOfMounts } from './pinned-sources.ts';
import type { BoxGate } from './ports.ts';
import type { SandboxRecord } from './records.ts';

const shownFiles = [
  '/proc/self/status',
  '/proc/self/mountinfo',
  '/proc/self/limits',
  '/proc/net/dev',
  '/etc/resolv.conf',
  '/etc/hosts',
  '/sys/fs/cgroup/memory/memory.limit_in_bytes',
  '/sys/fs/cgroup/memory.max',
  '/sys/fs/cgroup/pids/pids.max',
  '/sys/fs/cgroup/pids.max',
  '/sys/fs/cgroup/cpu/cpu.cfs_quota_us',
  '/sys/fs/cgroup/cpu/cpu.cfs_period_us',
  '/sys/fs/cgroup/cpu.max',
];
/**
 * Last, because their size is in the hands of the programs inside, and what is beyond the bound is cut off. SECURITY: the very last has
 * names that programs choose, with line breaks in them; what follows it could be forged.
 */
const shownLast = ['/proc/net/udp', '/proc/net/tcp', '/proc/net/unix'];
const rootIsForgotten = {
  code: 'root_forgotten_at_stop',
  message:
    'this runtime forgets what is written outside of the workspace and the mounts when the sandbox stops; gVisor keeps it with `--overlay2=none`',
};
const hostsAreShared = {
  code: 'hosts_shared',
  message:
    'the engine put the names of its own /etc/hosts into the sandbox; Podman does not with `base_hosts_file = "none"` in containers.conf',
};
const mostShownBytes = 1024 * 1024;
const deadlineMs = 10_000;
/** Of this side, where porter does not keep to that. */
const patienceMs = 20_000;

/** With a gate, also what is reached by it and what is not (R9). */
export async function verifyBox(
  porter: Porter,
  record: SandboxRecord,
  gate?: Pick<BoxGate, 'preflight'>,
): Promise<VerifyView> {
  const [shown, reached = []] = await Promise.all([showInForce(porter), gate?.preflight(porter)]);
  const checks = [...verified(shown, record).checks, ...quotaRow(porter, record), ...reached];
  return { ok: checks.every(({ status }) => status !== 'failed'), checks };
}

/** Whose quotas of epoll and inotify its programs use up; only where its uid is not its own. */
function quotaRow({ welcome }: Porter, { plan: { lender, user } }: SandboxRecord): VerifyView['checks'] {
  if (lender === undefined) return [];
  const expected = `of uid ${lender.uid}`;
  const name = 'epoll and inotify quotas';
  if (welcome.borrows) return [{ name, expected, found: expected, status: 'ok' }];
  const advice = 'Linux 5.14 or newer keeps them apart; see docs/limitations.md.';
  return [{ name, expected, found: `shared with uid ${user.uid}`, status: 'unknown', advice }];
}

/** With what a scan of the live workspace and of tools' folders found, which is not to be seen from inside. */
export function withScan(
  { checks }: VerifyView,
  scan: WorkspaceScanView | undefined,
  { spec }: Pick<SandboxRecord, 'spec'>,
): VerifyView {
  const name = spec.workspace?.mode === 'live' ? 'workspace scan' : 'tools scan';
  return withRows({ ok: true, checks }, scan === undefined ? [] : scanRows(name, scan));
}

/** With rows of checks from outside. */
export function withRows({ checks }: VerifyView, rows: readonly VerifyCheck[]): VerifyView {
  const all = [...checks, ...rows];
  return { ok: all.every(({ status }) => status !== 'failed'), checks: all };
}

const mostScanRows = 50;

function scanRows(name: string, { finished, incomplete, planted }: WorkspaceScanView): VerifyView['checks'] {
  const expected = 'nothing planted';
  const rows = planted.slice(0, mostScanRows).map(({ path, tool, kind, how, advice }) => ({
    name: tool === undefined ? `workspace ${path}` : `tool ${path}`,
    expected,
    found: `${kind}, ${how}`,
    status: 'failed' as const,
    advice,
  }));
  if (!finished) return [...rows, { name, expected, found: 'scan not finished', status: 'unknown' }];
  if (incomplete !== undefined)
    return [...rows, { name, expected, found: `scan incomplete: ${incomplete}`, status: 'unknown' }];
  if (planted.length > 0) {
    const found = `${planted.length} planted`;
    return [...rows, { name, expected, found, status: 'failed' }];
  }
  return [{ name, expected, found: expected, status: 'ok' }];
}

function verified(shown: Shown, record: SandboxRecord): VerifyView {
  const checks = expectations(record, porterMount).map((expectation) => check(expectation, shown));
  return { ok: checks.every(({ status }) => status !== 'failed'), checks };
}

/** Fails closed: a box in which something is not as it was asked for is not used. Returns what its user should know of it. */
export async function requireInForce(
  porter: Porter,
  record: SandboxRecord,
  sources: PinnedSources,
  isLocal: () => Promise<boolean>,
): Promise<readonly { readonly code: string; readonly message: string }[]> {
  const shown = await showInForce(porter, shownOfMounts(record.plan.mounts));
  const failed = verified(shown, record).checks.filter(({ status }) => status === 'failed');
  if (failed.length === 0) {
    await sources.requireMounted(shown, isLocal);
    const isShared = hostsOfMachine(shown, [boxHostname, record.containerName]).length > 0;
    return [...(forgetsRootAtStop(shown) ? [rootIsForgotten] : []), ...(isShared ? [hostsAreShared] : [])];
  }
  const list = failed.map(({ name, expected, found }) => `${name} is ${found}, not ${expected}`);
  throw new SallyportError('isolation_missing', `in sandbox ${record.name} ${list.join('; ')}`, {
    details: { sandbox: record.name, checks: failed.map(({ name }) => name) },
  });
}

function check({ name, expected, find, fits }: Expectation, shown: Shown): VerifyView['checks'][number] {
  const found = find(shown);
  if (found === undefined) return { name, expected, found: 'not shown by this runtime', status: 'unknown' };
  return { name, expected, found, status: (fits?.(found) ?? found === expected) ? 'ok' : 'failed' };
}

/** What a sandbox shows at its start, in the order of `shownFiles`. */
export async function showInForce(porter: Porter, more: readonly string[] = []): Promise<Shown> {
  const asked = [...shownFiles, ...more, ...shownLast];
  const chunks: Buffer[] = [];
  let bytes = 0;
  const exec = porter.exec(
    { argv: [porterPath, 'show', ...asked], env: {}, cwd: '/', deadlineMs },
    {
      write: async (channel, _offset, data) => {
        bytes += data.length;
        if (channel === 'stdout' && bytes <= mostShownBytes) chunks.push(data);
      },
      end: () => {},
    },
  );
  const { exitCode } = await unlessAborted(exec.result, AbortSignal.timeout(patienceMs)).catch(
    (cause: unknown) => {
      if (isSallyportError(cause)) throw cause;
      throw new SallyportError('sandbox_state', 'the sandbox did not show in time what is in force', {
        cause,
      });
    },
  );
  exec.forget();
  if (exitCode !== 0) {
    throw new SallyportError('porter_protocol', 'the sandbox did not show what is in force');
  }
  return parseShown(Buffer.concat(chunks).toString('latin1'), asked.map(asShown));
}

/**
 * Before each file a line "== PATH", with " +" where it could be opened. They come in the order in which they were asked for: a line in a
 * file that looks like one of them counts only if it is the next.
 */
export function parseShown(text: string, asked: readonly string[]): Shown {
  const shown = new Map<string, string>();
  let head = findHead(text, asked[0], 0);
  for (const [index, path] of asked.entries()) {
    if (head === undefined) break;
    const next = findHead(text, asked[index + 1], head.end - 1);
    // Without the line break that ends it.
    if (head.isOpen) shown.set(path, text.slice(head.end, next === undefined ? -1 : next.start - 1));
    head = next;
  }
  return shown;
}

interface Head {
  readonly start: number;
  readonly end: number;
  readonly isOpen: boolean;
}

/** At the beginning of a line. Undefined: it was cut off, or nothing more was asked for. */
function findHead(text: string, path: string | undefined, from: number): Head | undefined {
  if (path === undefined) return undefined;
  const line = `== ${path}`;
  for (let at = text.indexOf(line, from); at >= 0; at = text.indexOf(line, at + 1)) {
    const rest = text.slice(at + line.length, at + line.length + 3);
    const isOpen = rest === ' +\n';
    if ((at === 0 || text[at - 1] === '\n') && (isOpen || rest.startsWith('\n')))
      return { start: at, end: at + line.length + (isOpen ? 3 : 1), isOpen };
  }
  return undefined;
}
