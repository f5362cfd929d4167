/** One line of `sally doctor`. */

export type CheckStatus = 'ok' | 'warn' | 'fail';

export interface Check {
  /** Stable, for programs. */
  readonly id: string;
  readonly title: string;
  readonly status: CheckStatus;
  readonly value: string;
  /** What to do about a warn or a fail. */
  readonly advice?: string;
  readonly details?: readonly string[];
}

export interface DoctorSummary {
  readonly ok: number;
  readonly warn: number;
  readonly fail: number;
}

export function summarise(checks: readonly Check[]): DoctorSummary {
  const count = (status: CheckStatus): number => checks.filter((check) => check.status === status).length;
  return { ok: count('ok'), warn: count('warn'), fail: count('fail') };
}
