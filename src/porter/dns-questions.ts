/** DNS questions that programs inside ask: each is handed to whoever listens and answered once, whatever happens. */

import { frameType } from './frame.ts';
import { type PorterLink, violation } from './link.ts';
import type { PayloadReader } from './payload.ts';

export type DnsTransport = 'udp' | 'tcp';

/** Nothing, a throw, or more than 10 s make a SERVFAIL. An answer has at most 65535 bytes; over UDP, what the asker takes. */
export type OnQuestion = (
  message: Buffer,
  transport: DnsTransport,
) => Buffer | undefined | Promise<Buffer | undefined>;

const maxWaiting = 256;
const maxQuestionBytes = 4096;
const maxAnswerBytes = 65535;
const patienceMs = 10_000;

export class DnsQuestions {
  readonly #link: PorterLink;
  #waiting = 0;

  constructor(link: PorterLink) {
    this.#link = link;
  }

  /** `payload` is past the listener's number. */
  onQuestion(stream: number, payload: PayloadReader, handler: OnQuestion | undefined): void {
    const transport = payload.u32();
    // Copied: it would otherwise keep alive the chunk in which it came.
    const message = Buffer.from(payload.bytes());
    payload.done();
    if ((transport !== 1 && transport !== 2) || message.length > maxQuestionBytes) {
      throw violation('a question that cannot be');
    }
    if (this.#waiting === maxWaiting) throw violation('too many questions at once');
    this.#waiting++;
    void this.#ask(message, transport === 1 ? 'udp' : 'tcp', handler).then((answer) => {
      this.#waiting--;
      const fits = answer !== undefined && answer.length <= maxAnswerBytes;
      // Empty: porter answers SERVFAIL.
      this.#link.send(frameType.answer, stream, fits ? answer : Buffer.alloc(0));
    });
  }

  async #ask(
    message: Buffer,
    transport: DnsTransport,
    handler: OnQuestion | undefined,
  ): Promise<Buffer | undefined> {
    if (handler === undefined) return undefined;
    let timer: NodeJS.Timeout | undefined;
    try {
      const tooLate = new Promise<undefined>((resolve) => {
        timer = setTimeout(resolve, patienceMs, undefined);
      });
      return await Promise.race([handler(message, transport), tooLate]);
    } catch {
      // Whoever listens reports its own failures; here it is a question without an answer.
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }
}
