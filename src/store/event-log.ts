/**
 * The numbered events of one owner's daemons, on disk. A number is given once; an event is in the file before anybody hears
 * of it. Readers read the files at their own pace and cost no memory: a slow one slows nobody.
 */

import { SallyportError } from '../protocol/errors.ts';
import type { EventDraft, SallyEvent } from '../protocol/events.ts';
import type { EventLog } from '../sandboxes/ports.ts';
import { AppendFile } from './append-file.ts';
import { Bell } from './bell.ts';
import {
  eventFile,
  listEventFiles,
  loadReserved,
  removeEventFile,
  repairEventFile,
  saveReserved,
} from './event-files.ts';
import { readEvents } from './event-reader.ts';
import { RecentEvents } from './recent-events.ts';
import { provideFolder } from './state-folder.ts';
import { stoppable } from './stoppable.ts';

export interface EventLogLimits {
  readonly fileBytes: number;
  readonly files: number;
}

export const eventLogLimits: EventLogLimits = { fileBytes: 8 * 2 ** 20, files: 8 };

/** So many numbers are set aside at a time; a lost file makes a hole of at most this size. */
const reserveAhead = 1024;
const mostRecentBytes = 1_048_576;

export class EventLogFiles implements EventLog {
  readonly #folder: string;
  readonly #limits: EventLogLimits;
  readonly #bell = new Bell();
  readonly #recent: RecentEvents;
  /** First sequence of each file, oldest first. */
  readonly #files: number[];
  #sequence: number;
  #reserved: number;
  #file: AppendFile | undefined;
  #closed = false;

  constructor(folder: string, limits: EventLogLimits = eventLogLimits) {
    this.#folder = folder;
    this.#limits = limits;
    // Never more than the files have.
    this.#recent = new RecentEvents(Math.min(mostRecentBytes, limits.fileBytes));
    provideFolder(folder);
    this.#files = listEventFiles(folder);
    const newest = this.#files.at(-1);
    const reserved = loadReserved(folder);
    this.#sequence = newest === undefined ? 0 : repairEventFile(folder, newest);
    if (reserved && reserved.newest > (newest ?? 0)) {
      // The file that the last events were in is gone: nobody knows which numbers they had.
      this.#sequence = Math.max(this.#sequence, reserved.upTo);
    } else if (newest !== undefined) {
      this.#file = new AppendFile(eventFile(folder, newest));
    }
    this.#reserved = this.#sequence;
  }

  get sequence(): number {
    return this.#sequence;
  }

  /** Somebody remembers an event with this number, so it was given out, whatever the files say. */
  skipTo(sequence: number): void {
    if (sequence <= this.#sequence) return;
    this.#sequence = sequence;
    this.#file?.close();
    this.#file = undefined;
  }

  append(draft: EventDraft): SallyEvent {
    if (this.#closed) throw new SallyportError('state_failed', 'the event log is closed');
    const sequence = this.#sequence + 1;
    const file = this.#fileFor(sequence);
    const event = { sequence, at: new Date().toISOString(), ...draft } as SallyEvent;
    const line = JSON.stringify(event);
    file.append(line);
    this.#sequence = sequence;
    this.#recent.add(event, line.length);
    this.#bell.ring();
    return event;
  }

  /** Throws at once when `since` is older than what is kept, or a number that was never given out. */
  follow(since: number, signal: AbortSignal): AsyncIterableIterator<SallyEvent> {
    if (since > this.#sequence || since < 0 || !Number.isSafeInteger(since)) {
      throw new SallyportError(
        'events_ahead',
        `there is no event ${since}: the last one is ${this.#sequence}`,
        {
          details: { since, sequence: this.#sequence },
        },
      );
    }
    const oldest = this.#files[0] ?? this.#sequence + 1;
    if (since < oldest - 1) throw gone(since, oldest);
    return stoppable({
      signal,
      values: (stop) =>
        readEvents(
          {
            folder: this.#folder,
            fileOf: (sequence) => this.#files.findLast((first) => first <= sequence),
            isNewest: (first) => this.#files.at(-1) === first,
            last: () => this.#sequence,
            over: () => this.#closed,
            changed: (signal) => this.#bell.wait(signal),
            recent: (sequence) => this.#recent.find(sequence),
            gone: (sequence) => gone(sequence, this.#files[0] ?? this.#sequence + 1),
          },
          since,
          stop,
        ),
    });
  }

  /** Readers come to their end. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#file?.close();
    this.#bell.ring();
  }

  /** The file that this event goes to; the number is set aside before it is used. */
  #fileFor(sequence: number): AppendFile {
    const full = this.#file !== undefined && this.#file.bytes >= this.#limits.fileBytes;
    if (this.#file && !full && sequence <= this.#reserved) return this.#file;
    const newest = this.#file && !full ? (this.#files.at(-1) ?? sequence) : sequence;
    // Before the file is made: a `sequence` that names a file that never came to be only costs a hole in the numbers.
    saveReserved(this.#folder, { newest, upTo: sequence + reserveAhead });
    this.#reserved = sequence + reserveAhead;
    if (this.#file && !full) return this.#file;
    const next = new AppendFile(eventFile(this.#folder, sequence));
    this.#file?.close();
    this.#file = next;
    this.#files.push(sequence);
    while (this.#files.length > this.#limits.files) {
      const oldest = this.#files.shift();
      if (oldest !== undefined) removeEventFile(this.#folder, oldest);
    }
    return next;
  }
}

function gone(since: number, oldest: number): SallyportError {
  return new SallyportError(
    'events_gone',
    `events after ${since} are no longer kept: the oldest one is ${oldest}`,
    { details: { since, oldest } },
  );
}
