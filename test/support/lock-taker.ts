/** A process that tries to take the lock of a state folder when it is told to, says how that went, and keeps it until it is killed. */

import { once } from 'node:events';
import { takeLock } from '../../src/store/instance-lock.ts';

export type LockAnswer = 'taken' | `held by ${number}`;

process.stdout.write('ready\n');
await once(process.stdin, 'data');
const lock = await takeLock(process.argv[2] ?? '');
const answer: LockAnswer = 'heldBy' in lock ? `held by ${lock.heldBy}` : 'taken';
process.stdout.write(`${answer}\n`);
// Held until it is killed.
process.stdin.resume();
