/** The daemon of one engine: its folder, its connections, and how it is started. */

import { join } from 'node:path';
import { type EngineChoice, engineVariables, noCurrentContext } from '../protocol/engine-environment.ts';
import type { ClientEnvironment } from './config.ts';
import { Transport } from './transport.ts';
import { WholeAnswers } from './whole-answers.ts';

/** Requests for whole answers: over the daemon's socket, or within its own process without one. */
export type Answers = Pick<WholeAnswers, 'ask' | 'close'>;

export class DaemonPlace {
  readonly choice: EngineChoice;
  readonly folder: string;
  readonly socketPath: string;
  readonly transport: Transport;
  readonly answers: Answers;
  readonly #environment: Pick<ClientEnvironment, 'stateDir' | 'childVariables'>;

  constructor(
    environment: Pick<ClientEnvironment, 'stateDir' | 'childVariables'>,
    choice: EngineChoice,
    folder: string,
    own?: Answers,
  ) {
    this.choice = choice;
    this.#environment = environment;
    this.folder = folder;
    this.socketPath = join(this.folder, 'daemon.sock');
    this.transport = new Transport(this.socketPath);
    this.answers = own ?? new WholeAnswers(this.socketPath);
  }

  /** The environment of a daemon that is started: this one, with the variables of the chosen engine. */
  get childVariables(): Readonly<Record<string, string | undefined>> {
    const { stateDir, childVariables } = this.#environment;
    const inherited = Object.entries(childVariables).filter(([name]) => !engineVariables.includes(name));
    return {
      ...Object.fromEntries(inherited),
      // A folder whose daemon did not note a context has none: the context in use now may be that of another engine.
      ...noCurrentContext,
      ...this.choice.variables,
      SALLYPORT_STATE_DIR: stateDir,
    };
  }

  close(): void {
    this.answers.close();
    this.transport.close();
  }
}
