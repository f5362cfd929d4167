/**
 * Values in the keyring of the system, each under an item of its own. Whatever is asked has a deadline: a keyring that is locked
 * may wait for a password that nobody types. What its program prints is in no error, since that may be a value.
 */

import { execFile } from 'node:child_process';
import { SallyportError } from '../protocol/errors.ts';
import { type KeyringCall, type KeyringProgram, keyringProgram } from './keyring-program.ts';

/** So long may a password be typed in. */
const keepMs = 30_000;
/** A request of a sandbox waits for it. */
const readMs = 10_000;
const mostOutputBytes = 64 * 1024;

export interface Keyring {
  /** Rejects with `keyring_unavailable` where one is there that says nothing. */
  answers(): Promise<boolean>;
  /** `name` is for whoever looks at the keyring, and for errors. */
  keep(name: string, item: string, value: string): Promise<void>;
  read(name: string, item: string): Promise<string>;
  /** False where its value may still be there. */
  forget(item: string): Promise<boolean>;
  /** The same for the user to do by hand. */
  forgetLine(item: string): string;
}

/** Undefined where this kind of system has none that is known here. */
export function systemKeyring(platform: NodeJS.Platform): Keyring | undefined {
  const words = keyringProgram(platform);
  return words === undefined ? undefined : new SystemKeyring(words);
}

class SystemKeyring implements Keyring {
  readonly #words: KeyringProgram;

  constructor(words: KeyringProgram) {
    this.#words = words;
  }

  async answers(): Promise<boolean> {
    const { end } = await this.#run(this.#words.probe, readMs);
    if (end === 'late') throw unavailable(undefined, `does not answer within ${readMs / 1000} s`);
    return end === 'done';
  }

  async keep(name: string, item: string, value: string): Promise<void> {
    const kept = await this.#run(this.#words.keep(item, `Sallyport secret ${name}`, value), keepMs);
    if (kept.end === 'late') throw unavailable(name, `did not take it within ${keepMs / 1000} s`);
    // Not every program of this kind says by its exit status that it failed.
    const found = await this.#run(this.#words.read(item), readMs);
    if (found.end !== 'done' || found.output !== value)
      throw unavailable(name, 'did not take it; it may be locked');
  }

  async read(name: string, item: string): Promise<string> {
    const { end, output } = await this.#run(this.#words.read(item), readMs);
    if (end === 'done' && output !== '') return output;
    throw unavailable(
      name,
      end === 'late' ? `did not give it within ${readMs / 1000} s` : await this.#why(item),
    );
  }

  async forget(item: string): Promise<boolean> {
    const asked = await this.#run(this.#words.forget(item), readMs);
    if (asked.end === 'late') return false;
    // It ends alike where there was nothing to forget and where it was not allowed to.
    const { end, output } = await this.#run(this.#words.look(item), readMs);
    if (end === 'done') return output === '';
    return end === 'failed' && (await this.answers().catch(() => false));
  }

  forgetLine(item: string): string {
    return [this.#words.program, ...this.#words.forget(item).args].join(' ');
  }

  /** Why it did not give a value, without a question to the user. */
  async #why(item: string): Promise<string> {
    const { end, output } = await this.#run(this.#words.look(item), readMs);
    if (end === 'done' && output !== '') return 'is locked';
    return (await this.answers()) ? 'has it no more' : 'is not there';
  }

  async #run(call: KeyringCall, timeoutMs: number): Promise<Ended> {
    return await new Promise((resolve) => {
      const options = {
        timeout: timeoutMs,
        // One that waits for an answer from the bus does not care for less.
        killSignal: 'SIGKILL',
        maxBuffer: mostOutputBytes,
        cwd: '/',
        encoding: 'utf8',
      } as const;
      const child = execFile(this.#words.program, [...call.args], options, (error, stdout) => {
        if (error === null) resolve({ end: 'done', output: stdout.replace(/\r?\n$/, '') });
        else resolve({ end: error.killed === true ? 'late' : 'failed', output: '' });
      });
      // A program that is not there, or leaves early, does not read: how it ended says enough.
      child.stdin?.on('error', () => {});
      child.stdin?.end(call.input ?? '');
    });
  }
}

interface Ended {
  readonly end: 'done' | 'failed' | 'late';
  readonly output: string;
}

/** `undefined`: no secret is in it yet. */
export function unavailable(name: string | undefined, what: string): SallyportError {
  const about = name === undefined ? '' : ` (secret ${name})`;
  return new SallyportError('keyring_unavailable', `the keyring of the system ${what}${about}`, {
    details: name === undefined ? {} : { name },
    advice: `Unlock the keyring, in the session that the daemon was started from (\`sally daemon stop\` ends one of another session), or keep the value in a file: \`sally secret set ${name ?? '…'} --store file\`.`,
  });
}
