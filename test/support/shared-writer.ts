/**
 * A process that writes to one of the files that daemons share. It says `ready`, waits for a line on stdin, and says `done <n>`
 * after each of its steps. Without a count it goes on until it is killed.
 */

import { once } from 'node:events';
import { openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { rememberApproval } from '../../src/config/approvals-file.ts';
import { provideToken } from '../../src/daemon/auth.ts';
import { FileLockError, withFileLockSync } from '../../src/lib/file-lock.ts';
import { AuditFile } from '../../src/store/audit.ts';
import type { Rotation } from '../../src/store/rotating-file.ts';
import { openSecrets } from '../../src/store/secrets.ts';

export interface WriterPlan {
  readonly kind: 'audit' | 'secrets' | 'approvals' | 'token' | 'counter' | 'hold';
  readonly folder: string;
  readonly who: string;
  readonly count?: number;
  readonly rotation?: Rotation;
}

const plan = JSON.parse(process.argv[2] ?? '') as WriterPlan;
const { folder, who } = plan;
const say = (line: string): void => void writeSync(1, `${line}\n`);

/** They write as fast as they can, so on a busy machine one of them may wait for long. */
const patienceMs = 60_000;

type Step = (number: number) => unknown;

const steps: Record<WriterPlan['kind'], () => Step> = {
  audit: () => {
    const file = new AuditFile(folder, plan.rotation, patienceMs);
    process.on('exit', () => file.close());
    return (number) => file.append({ type: 'exec', sandbox: who, reason: String(number), outcome: 'exit 0' });
  },
  secrets: () => {
    const secrets = openSecrets(folder);
    const binding = {
      hosts: ['api.test'],
      port: 443,
      headers: ['authorization'],
      env: ['TOKEN'],
      prefix: '',
    };
    return (number) => secrets.set(`${who}-${number}`, { binding, value: `value-of-${who}-${number}` });
  },
  approvals: () => (number) =>
    rememberApproval(folder, { fingerprint: `${who}-${number}`, folder: '/project' }, new Date()),
  token: () => async () => say(await provideToken(join(folder, 'token'))),
  // Read and write are two calls: a second process in between would undo what the first one did. Written over in place, so
  // that a kill leaves the old number or the new one.
  counter: () => {
    const fd = openSync(join(folder, 'counter'), 'r+');
    const block = Buffer.alloc(8);
    return () =>
      withFileLockSync(
        join(folder, 'lock'),
        () => {
          readSync(fd, block, 0, block.length, 0);
          writeSync(fd, String(Number(block.toString()) + 1).padStart(block.length, '0'), 0);
        },
        patienceMs,
      );
  },
  hold: () => () => {
    try {
      withFileLockSync(join(folder, 'lock'), hold, 500);
    } catch (error) {
      if (!(error instanceof FileLockError)) throw error;
      say(`held by ${error.pid}`);
    }
  },
};

/** Until the process is killed. */
function hold(): void {
  say('taken');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

say('ready');
await once(process.stdin, 'data');
const step = steps[plan.kind]();
for (let number = 1; number <= (plan.count ?? Number.POSITIVE_INFINITY); number++) {
  await step(number);
  say(`done ${number}`);
}
process.exit();
