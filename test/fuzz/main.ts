/** `npm run fuzz`: both halves of the porter protocol and the gate's parsers, for as many cases as asked; prints the seed first. */

import { join } from 'node:path';
import { packageInfo } from '../../src/lib/package-root.ts';
import { fuzzHosts } from './egress-hosts.ts';
import { fuzzGate } from './gate.ts';
import { fuzzHost } from './host.ts';
import { fuzzPorter } from './porter.ts';

const defaultHostCases = 1_000_000;
/** Each is a process that starts programs: a host case takes a thousandth of that. */
const hostCasesPerPorterCase = 300;

function option(args: readonly string[], name: string): number | undefined {
  const text = args.find((arg) => arg.startsWith(`--${name}=`))?.slice(name.length + 3);
  if (text === undefined) return undefined;
  if (!/^\d+$/.test(text)) throw new Error(`--${name} wants a number`);
  return Number(text);
}

export async function main(args: readonly string[]): Promise<number> {
  const seed = option(args, 'seed') ?? Date.now() >>> 0;
  const cases = option(args, 'cases') ?? defaultHostCases;
  const say = (what: string) => (done: number) => process.stderr.write(`${what}: ${done} cases\n`);
  process.stdout.write(`fuzz: --seed=${seed} --cases=${cases}\n`);
  const parts = ['host', 'gate', 'porter'];
  const chosen = parts.filter((part) => args.includes(`--${part}`));
  const wants = (part: string): boolean => chosen.length === 0 || chosen.includes(part);
  if (wants('gate')) {
    await fuzzHosts({ seed, cases, progress: say('names of hosts') });
    process.stdout.write(`names of hosts: ${cases} cases, nothing found\n`);
  }
  if (wants('host')) {
    await fuzzHost({ seed, cases, progress: say('host') });
    process.stdout.write(`host: ${cases} cases, nothing found\n`);
  }
  if (wants('gate')) {
    await fuzzGate({ seed, cases, progress: say('gate') });
    process.stdout.write(`gate: ${cases} cases, nothing found\n`);
  }
  if (wants('porter')) {
    const porterCases = Math.max(1, Math.floor(cases / hostCasesPerPorterCase));
    const binary = join(packageInfo().root, 'porter', 'build', 'porter-sanitize');
    await fuzzPorter(binary, { seed, cases: porterCases, sideBySide: 8, progress: say('porter') });
    process.stdout.write(`porter: ${porterCases} sessions, nothing found\n`);
  }
  return 0;
}
