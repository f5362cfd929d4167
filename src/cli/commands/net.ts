/** `sally net`: what a sandbox may reach, changed while it runs, and what the gate decided. */

import { egressPresets } from '../../policy/egress/presets.ts';
import type { EgressLineView, NetView } from '../../protocol/views.ts';
import { segment } from '../../sdk/client.ts';
import { readSse } from '../../sdk/sse.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { note, print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { printable, table } from '../table.ts';

interface Json {
  readonly json?: true;
}

export async function netChange(
  use: 'allow' | 'deny',
  box: string,
  rules: readonly string[],
  options: Json & { readonly save?: string | true },
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  try {
    const view = await calls.changeNet(box, { [use]: [...rules] }, { signal });
    if (options.save !== undefined) {
      const { saveRules } = await import('../save-rules.ts');
      const file = await saveRules(use, rules, options.save === true ? undefined : options.save);
      note(`written to ${printable(file)}; it is asked for again at the next use`);
    }
    if (options.json === true) printJson(view);
    return exitCode.ok;
  } finally {
    calls.close();
  }
}

export async function netLs(box: string, options: Json, { signal }: CliContext): Promise<number> {
  const calls = new SandboxCalls();
  try {
    const view = await calls.net(box, { signal });
    if (options.json === true) printJson(view);
    else for (const line of linesOf(view)) print(line);
    return exitCode.ok;
  } finally {
    calls.close();
  }
}

export async function netLog(
  box: string,
  options: Json & { readonly follow?: true; readonly denied?: true },
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  try {
    // First by itself, so that a name that is not there is told as everywhere.
    const { id } = await calls.get(box, { signal });
    const query = { follow: options.follow === true };
    const answer = await calls.client.open('GET', `/v1/sandboxes/${segment(id)}/net/log`, { query, signal });
    const stop = (): void => void answer.destroy();
    signal.addEventListener('abort', stop, { once: true });
    try {
      for await (const { data } of readSse(answer)) {
        const line = JSON.parse(data) as EgressLineView;
        if (options.denied === true && line.allowed) continue;
        print(options.json === true ? data : logLine(line));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return signal.aborted ? exitCode.interrupted : exitCode.ok;
  } finally {
    calls.close();
  }
}

export function netPresets(options: Json): number {
  if (options.json === true) printJson(egressPresets);
  else {
    const rows = Object.entries(egressPresets).map(([name, { about, allow }]) => [
      name,
      about,
      allow.join(' '),
    ]);
    for (const line of table(['NAME', 'FOR', 'RULES'], rows)) print(line);
  }
  return exitCode.ok;
}

function linesOf(view: NetView): readonly string[] {
  const list = (name: string, values: readonly string[]): string =>
    `${name.padEnd(10)}${values.length === 0 ? '-' : values.map(printable).join(' ')}`;
  return [
    list('mode', [view.mode]),
    list('allow', view.allow),
    list('presets', view.presets),
    list('deny', view.deny),
    list('upstream', [view.upstream]),
    ...(view.denied.length === 0 ? [] : ['', 'denied since the daemon began:']),
    ...view.denied.map(
      ({ host, port, count, advice }) => `  ${place(host, port)} ×${count}  → ${printable(advice)}`,
    ),
    ...(view.mode === 'deny' || view.reached.length === 0
      ? []
      : ['', 'the rules that would allow what was reached:', 'egress:', '  mode: deny', '  allow:']),
    ...(view.mode === 'deny' ? [] : view.reached.map((rule) => `    - ${JSON.stringify(rule)}`)),
  ];
}

const place = (host: string, port: number): string => printable(port === 0 ? host : `${host}:${port}`);

function logLine(line: EgressLineView): string {
  const what = line.method === undefined ? '' : ` ${line.method} ${line.path ?? ''}`;
  const how = line.allowed
    ? `allowed by ${line.rule ?? ''}`
    : `denied (${line.code ?? ''}): ${line.reason ?? ''}`;
  const bytes = line.allowed ? `  ${line.bytes_out} out, ${line.bytes_in} in, ${line.duration_ms} ms` : '';
  const error = line.error === undefined ? '' : `  ${line.error}`;
  return `${line.at}  ${line.entrance.padEnd(11)}  ${printable(`${place(line.host, line.port)}${what}  ${how}`)}${bytes}${printable(error)}`;
}
