/** `sally doctor`: the state of this machine as an aligned table, or as JSON. */

import { SallyportError } from '../../protocol/errors.ts';
import type { Check, CheckStatus } from '../../setup/doctor/check.ts';
import type { DoctorReport } from '../../setup/doctor/run-doctor.ts';
import { doctorHere } from '../../setup/here.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { colours } from '../harmless.ts';
import { print, printJson } from '../output.ts';

export async function doctorCommand(options: { readonly json?: true }, context: CliContext): Promise<number> {
  const report = await examine(context.signal);
  if (options.json === true) printJson(report);
  else for (const line of formatReport(report)) print(line);
  return report.summary.fail > 0 ? exitCode.failed : exitCode.ok;
}

async function examine(signal: AbortSignal): Promise<DoctorReport> {
  try {
    return await doctorHere(signal);
  } catch (error) {
    if (signal.aborted)
      throw new SallyportError('cancelled', 'the examination was cancelled', { cause: error });
    throw error;
  }
}

const paint: Readonly<Record<CheckStatus, (text: string) => string>> = {
  ok: colours.green,
  warn: colours.yellow,
  fail: colours.red,
};

function formatReport({ checks, summary }: DoctorReport): readonly string[] {
  const width = Math.max(...checks.map(({ title }) => title.length));
  return [
    ...checks.flatMap((check) => formatCheck(check, width)),
    '',
    `${summary.ok} ok, ${summary.warn} to look at, ${summary.fail} failed`,
  ];
}

function formatCheck(check: Check, width: number): readonly string[] {
  const indent = ' '.repeat(width + 8);
  return [
    `${paint[check.status](check.status.padEnd(4))}  ${check.title.padEnd(width)}  ${check.value}`,
    ...(check.details ?? []).map((detail) => colours.dim(`${indent}${detail}`)),
    ...(check.advice === undefined ? [] : [`${indent}→ ${check.advice}`]),
  ];
}
