/** Progress of long work, reported by whoever does it and rendered only by the CLI. */

export interface ProgressEvent {
  /** Which step of the work this belongs to, stable enough to group lines by ("pull", "bootstrap"). */
  readonly step: string;
  readonly message: string;
  readonly current?: number;
  readonly total?: number;
}

export type Progress = (event: ProgressEvent) => void;

export const silent: Progress = () => {};
