import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { MaskedAnswers } from '../credentials/answer-mask.ts';
import { FormAutomaton } from '../credentials/form-automaton.ts';
import { formsOf } from '../credentials/secret-forms.ts';
import { Headers } from './headers.ts';
import { MessageRoom } from './message-room.ts';
import { changedMessages } from './web-socket-messages.ts';

/** The head of a frame of so many bytes. */
function headOf(first: number, bytes: number): Buffer {
  const head = Buffer.alloc(10);
  head[0] = first;
  head[1] = 127;
  head.writeBigUInt64BE(BigInt(bytes), 2);
  return head;
}

describe('messages of a WebSocket', () => {
  it('[R7][N22] are masked in turns: others go on while one of 8 MiB is searched', async () => {
    const value = randomBytes(24).toString('base64url');
    const mask = new MaskedAnswers({ current: new FormAutomaton(formsOf([value])) });
    const payload = Buffer.alloc(8 * 2 ** 20, '{"delta":"some text"}\n');
    payload.write(value, payload.length - value.length - 1);
    async function* sent(): AsyncGenerator<Buffer> {
      yield headOf(0x81, payload.length);
      yield payload;
    }
    let turns = 0;
    const count = (): void => {
      turns++;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    const head = { status: 101, reason: '', version: '1.1', headers: new Headers([]) } as const;
    const out: Buffer[] = [];
    const room = new MessageRoom();
    for await (const frame of mask.webSocket(head, sent(), room)) out.push(frame);
    clearImmediate(next);
    const shown = Buffer.concat(out);
    expect(shown.length).toBe(10 + payload.length);
    expect(shown.includes(value)).toBe(false);
    expect(shown.includes('*'.repeat(value.length))).toBe(true);
    expect(turns).toBeGreaterThan(50);
    expect(room.takenBytes).toBe(0);
  });

  it('[R7][N22] that are not complete take a bounded memory of all connections together', async () => {
    const room = new MessageRoom(100_000);
    const same = (payload: Buffer): Buffer => payload;
    async function* begun(bytes: number, wait: Promise<void>): AsyncGenerator<Buffer> {
      yield headOf(0x81, 1_000_000);
      yield Buffer.alloc(bytes);
      await wait;
    }
    let end = (): void => {};
    const waiting = new Promise<void>((resolve) => {
      end = resolve;
    });
    const first = changedMessages(begun(60_000, waiting), same, room).next();
    const second = changedMessages(begun(60_000, waiting), same, room).next();
    await expect(second).rejects.toThrow(/too much memory/);
    const third = changedMessages(begun(30_000, waiting), same, room).next();
    end();
    expect(await first).toEqual({ done: true, value: undefined });
    expect(await third).toEqual({ done: true, value: undefined });
    expect(room.takenBytes).toBe(0);
  });
});
