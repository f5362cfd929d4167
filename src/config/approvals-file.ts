/**
 * `approvals.json` in the state folder: which project files were approved. Readable for its owner alone, replaced as a whole,
 * and changed by one process at a time.
 */

import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { FileLockError, withFileLock } from '../lib/file-lock.ts';
import { SallyportError } from '../protocol/errors.ts';

const mostApprovals = 1000;

const fileSchema = z.strictObject({
  version: z.literal(1),
  approvals: z.array(
    z.strictObject({ fingerprint: z.string(), folder: z.string(), approved_at: z.string() }),
  ),
});
type Approvals = z.infer<typeof fileSchema>;

const pathIn = (stateDir: string): string => join(stateDir, 'approvals.json');

export async function isApproved(stateDir: string, fingerprint: string): Promise<boolean> {
  return (await load(stateDir)).approvals.some((approval) => approval.fingerprint === fingerprint);
}

interface Approved {
  readonly fingerprint: string;
  readonly folder: string;
}

/** The oldest are forgotten beyond a thousand. */
export async function rememberApproval(stateDir: string, approved: Approved, now: Date): Promise<void> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const lock = `${pathIn(stateDir)}.lock`;
  try {
    await withFileLock(lock, () => add(stateDir, approved, now));
  } catch (error) {
    if (!(error instanceof FileLockError)) throw error;
    throw new SallyportError('state_failed', error.message, { details: { path: lock }, cause: error });
  }
}

/** The caller holds the lock. */
async function add(stateDir: string, { fingerprint, folder }: Approved, now: Date): Promise<void> {
  const others = (await load(stateDir)).approvals.filter((approval) => approval.fingerprint !== fingerprint);
  const approvals = [...others, { fingerprint, folder, approved_at: now.toISOString() }].slice(
    -mostApprovals,
  );
  const file = pathIn(stateDir);
  const next = `${file}.new`;
  try {
    const handle = await open(next, 'w', 0o600);
    try {
      await handle.chmod(0o600);
      await handle.writeFile(`${JSON.stringify({ version: 1, approvals } satisfies Approvals, null, 2)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(next, file);
  } catch (error) {
    await rm(next, { force: true });
    throw error;
  }
}

/** A file that cannot be understood approves nothing, and is not overwritten. */
async function load(stateDir: string): Promise<Approvals> {
  const file = pathIn(stateDir);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      return { version: 1, approvals: [] };
    throw unreadable(file, error);
  }
  try {
    return fileSchema.parse(JSON.parse(text));
  } catch (error) {
    throw unreadable(file, error);
  }
}

const unreadable = (file: string, cause: unknown): SallyportError =>
  new SallyportError('config_invalid', `${file}: the list of approved projects cannot be read`, {
    details: { file },
    advice: 'Remove the file; each project is then asked about once more.',
    cause,
  });
