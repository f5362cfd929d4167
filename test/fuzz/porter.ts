/**
 * porter, built with the sanitizers, against hosts that no Sallyport is: valid sessions with wrong fields, wrong order and
 * wrong bytes, by its stdio and then by relays. All that it says must be frames, an honest host that comes afterwards must be
 * served, and it must end when it is told to, with nothing found and nothing leaked.
 */

import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { FrameDecoder, frameType } from '../../src/porter/frame.ts';
import { fewestStreams, firstPorterStream } from '../../src/porter/greeting.ts';
import { Porter } from '../../src/porter/porter.ts';
import { isSallyportError } from '../../src/protocol/errors.ts';
import { buildCage, type Caged, runCaged } from './cage.ts';
import type { FuzzOptions } from './host.ts';
import { Random } from './random.ts';
import { Session } from './session.ts';

const relays = 3;
/** A damaged length makes porter wait for more, and a damaged epoch makes it say nothing. */
const patienceMs = 500;
const EAGAIN = 11;
/** How every frame begins. */
const begin = Buffer.from([0x53, 0x50]);
/** Twice what it gives its programs to end. */
const endMs = 20_000;

class Conversation {
  readonly #caged: Caged;
  readonly #session: Session;
  readonly #random: Random;
  #door = -1;
  #isOpen = false;
  /** The highest number of a stream of the host's that porter may have seen. */
  #highest = 0;
  readonly #unanswered = new Set<number>();
  #answered = (): void => {};
  finding: unknown;

  constructor(caged: Caged, random: Random) {
    this.#caged = caged;
    this.#random = random;
    this.#session = new Session(random);
  }

  async run(): Promise<void> {
    for (let count = 1 + this.#random.below(40); count > 0; count--) {
      const comesAnew = !this.#isOpen || this.#random.chance(12);
      if (comesAnew && !this.#nextDoor()) return;
      const frames = Array.from({ length: 1 + this.#random.below(16) }, () => this.#session.frame());
      const hello = comesAnew ? [this.#session.hello()] : [];
      for (const frame of frames) this.#highest = Math.max(this.#highest, highestStream(frame));
      await this.#exchange(Buffer.concat([...hello, ...frames, this.#session.ping()]));
    }
  }

  /** Comes last, by the last door, and is as strict as any host. */
  async comeHonestly(): Promise<void> {
    const { accepted } = this.#session;
    const door = this.#caged.relays.at(-1);
    // Whether a greeting without an answer was taken is not known, and so neither is what to come with.
    if (this.#unanswered.size > 0) return;
    // Before the first host there is no token, and above the highest epoch nobody can come.
    if (accepted === undefined || accepted.epoch === 0xffffffff || door === undefined) return;
    this.#door = this.#caged.doors.length;
    const { token } = accepted;
    let porter: Porter;
    try {
      porter = await Porter.open(door, { token, epoch: accepted.epoch + 1, timeoutMs: endMs });
    } catch (error) {
      // A host before may have used up nearly all numbers, and then an honest one refuses the sandbox.
      if (isSallyportError(error, 'porter_protocol') && this.#highest > firstPorterStream - fewestStreams)
        return;
      throw error;
    }
    await Promise.all([porter.list(), porter.listeners(), porter.ping()]);
    expectStat(await porter.files.stat('/').catch((error: unknown) => error));
    porter.close();
  }

  #nextDoor(): boolean {
    const number = ++this.#door;
    const door = number === relays ? undefined : this.#caged.doors[number];
    if (door === undefined) return false;
    const decoder = new FrameDecoder();
    this.#isOpen = true;
    this.#unanswered.add(number);
    door.out.on('data', (chunk: Buffer) => {
      try {
        for (const frame of decoder.push(chunk)) {
          // Too late is as good as never: by then it is another one's turn.
          if (number !== this.#door) continue;
          if (frame.type === frameType.welcome || frame.type === frameType.refused)
            this.#unanswered.delete(number);
          if (frame.type === frameType.refused) this.#isOpen = false;
          if (this.#session.heard(frame) || !this.#isOpen) this.#answered();
        }
      } catch (error) {
        this.finding ??= error;
      }
    });
    door.out.once('end', () => {
      if (number === this.#door) this.#isOpen = false;
      this.#answered();
    });
    return true;
  }

  async #exchange(bytes: Buffer): Promise<void> {
    const answer = new Promise<void>((resolve) => {
      this.#answered = resolve;
    });
    for (const piece of this.#random.chop(bytes)) this.#caged.doors[this.#door]?.in.write(piece);
    const patience = setTimeout(() => this.#answered(), patienceMs);
    await answer;
    clearTimeout(patience);
  }
}

/** Of the host's numbers, at every place where a frame may begin: damaged ones shift what follows. */
function highestStream(bytes: Buffer): number {
  let highest = 0;
  for (let at = bytes.indexOf(begin); at >= 0 && at + 12 <= bytes.length; at = bytes.indexOf(begin, at + 1)) {
    const stream = bytes.readUInt32LE(at + 8);
    if (stream < firstPorterStream) highest = Math.max(highest, stream);
  }
  return highest;
}

/** Its places may all be taken by operations that are about to end; nothing else may be wrong. */
function expectStat(answer: unknown): void {
  const busy = isSallyportError(answer) && answer.details['errno'] === EAGAIN;
  if (answer instanceof Error && !busy) throw answer;
}

async function oneCase(cage: string, binary: string, random: Random): Promise<void> {
  const lasts = random.chance(2);
  const caged = runCaged(cage, binary, { relays, args: lasts ? [] : ['--exit-with-host'] });
  const { child, doors } = caged;
  const ended = once(child, 'exit');
  const said = child.stderr === null ? Promise.resolve('') : text(child.stderr);
  const conversation = new Conversation(caged, random);
  await conversation.run();
  if (lasts) await conversation.comeHonestly().catch((error: unknown) => (conversation.finding ??= error));
  for (const door of doors) {
    door.in.end();
    door.out.resume();
  }
  if (lasts) caged.stop();
  const tooLong = setTimeout(() => child.kill('SIGKILL'), endMs);
  const [code, signal] = (await ended) as [number | null, string | null];
  clearTimeout(tooLong);
  caged.stop();
  if (code !== 0) throw new Error(`porter ended with ${code ?? signal}:\n${await said}`);
  const { finding } = conversation;
  if (finding !== undefined) throw new Error(`porter said:\n${await said}`, { cause: finding });
}

/** Sessions run side by side, each with a seed of its own. */
export async function fuzzPorter(
  binary: string,
  options: FuzzOptions & { readonly sideBySide: number },
): Promise<void> {
  const cage = buildCage();
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < options.cases) {
      const index = next++;
      const seed = (options.seed + index) >>> 0;
      try {
        await oneCase(cage, binary, new Random(seed));
      } catch (error) {
        next = options.cases;
        throw new Error(`porter: --porter --seed=${seed} --cases=1 finds it again`, { cause: error });
      }
      if (index % 100 === 99) options.progress?.(index + 1);
    }
  };
  await Promise.all(Array.from({ length: options.sideBySide }, work));
}
