/**
 * Everything that is remembered outside the engine, as plain files below one folder that belongs to one user. The caller
 * holds the lock of the folder (`instance-lock.ts`); two stores on different folders never touch each other.
 */

import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { LoadedEntry } from '../lib/host-tree.ts';
import type { AuditEntry } from '../protocol/audit.ts';
import type { BoxUser } from '../protocol/box.ts';
import { type ExecId, isExecId, type SandboxId } from '../protocol/ids.ts';
import type { AuditLine, BaselineWriter, EgressLog, ExecLog, SandboxStore } from '../sandboxes/ports.ts';
import type { ExecRecord, Manifest, SandboxRecord } from '../sandboxes/records.ts';
import { AuditFile } from './audit.ts';
import { openPack, readPack } from './baseline-pack.ts';
import { EgressLogFile } from './egress-log.ts';
import { EventLogFiles } from './event-log.ts';
import { ExecJournal } from './exec-journal.ts';
import { ExecLogs } from './exec-logs.ts';
import { type BrokenRecord, Records } from './records.ts';
import { writeShadow } from './shadow-copy.ts';
import { errno, stateFailure } from './state-failure.ts';
import { provideStateFolder } from './state-folder.ts';

export interface StoreOptions {
  /** Of the audit, which the daemons of all engines share. Absent: the same folder. */
  readonly auditDir?: string;
  /** A record could not be understood, and was moved aside. */
  readonly onBroken?: (broken: BrokenRecord) => void;
  /** An exec that ended long ago is forgotten, with its output. */
  readonly onExecDropped?: (sandbox: SandboxId, exec: ExecId) => void;
}

export async function openStore(
  stateDir: string,
  options: StoreOptions = {},
): Promise<SandboxStore & { record(entry: AuditEntry): void; close(): Promise<void> }> {
  provideStateFolder(stateDir);
  return new Store(stateDir, options);
}

class Store implements SandboxStore {
  readonly events: EventLogFiles;
  readonly #records: Records;
  readonly #audit: AuditFile;
  readonly #options: StoreOptions;
  readonly #journals = new Map<SandboxId, ExecJournal>();
  readonly #egress = new Map<SandboxId, EgressLogFile>();
  readonly #logs = new ExecLogs();
  readonly #removals = new Set<Promise<void>>();

  constructor(stateDir: string, options: StoreOptions) {
    this.#options = options;
    this.events = new EventLogFiles(join(stateDir, 'events'));
    this.#records = new Records(join(stateDir, 'sandboxes'));
    this.#audit = new AuditFile(options.auditDir ?? stateDir);
  }

  async load(): Promise<readonly SandboxRecord[]> {
    const records = await this.#records.load(this.#options.onBroken ?? (() => {}));
    this.events.skipTo(records.reduce((highest, record) => Math.max(highest, record.sequence), 0));
    return records;
  }

  save(record: SandboxRecord): void {
    this.#records.save(record);
  }

  async remove(id: SandboxId): Promise<void> {
    this.#journals.get(id)?.close();
    this.#journals.delete(id);
    this.#egress.get(id)?.close();
    this.#egress.delete(id);
    await this.#logs.closeAllOf(id);
    await this.#records.remove(id);
  }

  shadowFolder(id: SandboxId, mountId: string): string {
    return join(this.#records.folderOf(id), 'shadow', mountId);
  }

  async makeShadow(
    id: SandboxId,
    mountId: string,
    entries: AsyncIterable<LoadedEntry>,
    owner: BoxUser,
  ): Promise<void> {
    await writeShadow(this.shadowFolder(id, mountId), entries, owner);
  }

  async saveManifest(id: SandboxId, manifest: Manifest, of?: 'workspace' | 'tools'): Promise<void> {
    await this.#records.saveManifest(id, manifest, of);
  }

  async loadManifest(id: SandboxId, of?: 'workspace' | 'tools'): Promise<Manifest | undefined> {
    return await this.#records.loadManifest(id, of);
  }

  async openBaseline(id: SandboxId): Promise<BaselineWriter> {
    return await openPack(this.#packFile(id));
  }

  readBaseline(id: SandboxId, offset: number, sizeBytes: number): AsyncIterable<Buffer> {
    return readPack(this.#packFile(id), offset, sizeBytes);
  }

  async loadExecs(id: SandboxId): Promise<readonly ExecRecord[]> {
    const journal = this.#journal(id);
    await this.#removeOrphans(id, journal);
    return journal.records;
  }

  saveExec(record: ExecRecord): void {
    const { sandboxId, id, state } = record;
    const journal = this.#journal(sandboxId);
    const begins = state === 'running' && journal.find(id) === undefined;
    journal.save(record);
    if (begins) this.#logs.begin(sandboxId, id, this.#logFolder(sandboxId, id));
  }

  async openLog(sandbox: SandboxId, exec: ExecId): Promise<ExecLog> {
    const state = this.#journal(sandbox).find(exec)?.state ?? 'running';
    return await this.#logs.get(sandbox, exec, this.#logFolder(sandbox, exec), state !== 'running');
  }

  audit({ durationMs, ...line }: AuditLine): void {
    this.#audit.append({ type: 'exec', ...line, duration_ms: durationMs });
  }

  record(entry: AuditEntry): void {
    this.#audit.append(entry);
  }

  egressLog(id: SandboxId): EgressLog {
    const known = this.#egress.get(id) ?? new EgressLogFile(this.#records.folderOf(id));
    this.#egress.set(id, known);
    return known;
  }

  async close(): Promise<void> {
    this.events.close();
    for (const log of this.#egress.values()) log.close();
    await this.#logs.closeAll();
    await Promise.all(this.#removals);
    for (const journal of this.#journals.values()) journal.close();
    this.#audit.close();
  }

  #journal(id: SandboxId): ExecJournal {
    const known = this.#journals.get(id);
    if (known) return known;
    const path = join(this.#records.folderOf(id), 'execs.jsonl');
    const journal = new ExecJournal(path, (exec) => this.#dropExec(exec));
    this.#journals.set(id, journal);
    return journal;
  }

  #packFile(id: SandboxId): string {
    return join(this.#records.folderOf(id), 'baseline.pack');
  }

  #logFolder(sandbox: SandboxId, exec: ExecId): string {
    // SECURITY: as with the ids of sandboxes.
    if (!isExecId(exec)) throw new RangeError(`${JSON.stringify(exec)} is no id of an exec`);
    return join(this.#records.folderOf(sandbox), 'execs', exec);
  }

  #dropExec({ sandboxId, id, stdoutBytes, stderrBytes }: ExecRecord): void {
    // One that said nothing has no folder.
    const removed = stdoutBytes + stderrBytes === 0 ? this.#logs.close(id) : this.#removeLog(sandboxId, id);
    const removal = removed.finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
    this.#options.onExecDropped?.(sandboxId, id);
  }

  async #removeLog(sandbox: SandboxId, exec: ExecId): Promise<void> {
    await this.#logs.close(exec);
    try {
      await rm(this.#logFolder(sandbox, exec), { recursive: true, force: true });
    } catch {
      // It is an orphan now, and goes at the next start.
    }
  }

  /** Output of execs that nobody remembers: a crash came between forgetting and removing. */
  async #removeOrphans(id: SandboxId, journal: ExecJournal): Promise<void> {
    for (const exec of await namesIn(join(this.#records.folderOf(id), 'execs'))) {
      if (isExecId(exec) && !journal.find(exec) && !this.#logs.has(exec)) await this.#removeLog(id, exec);
    }
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (cause) {
    if (errno(cause) === 'ENOENT') return [];
    throw stateFailure('listing the execs of a sandbox', folder, cause);
  }
}
