/** One line of a policy, as it was written and as it is understood. */

import { parsePort } from './host.ts';
import { type Pattern, parsePattern } from './pattern.ts';
import { pathPatternProblem } from './request-path.ts';

/** As a spec has it: `host[:port][/tcp]`, or the same in parts with what only parts can say. */
export type WrittenRule =
  | string
  | {
      readonly host: string;
      readonly ports?: readonly number[] | 'any' | undefined;
      readonly tcp?: boolean | undefined;
      readonly methods?: readonly string[] | undefined;
      readonly paths?: readonly string[] | undefined;
    };

export interface Rule {
  /** As a person wrote it. */
  readonly text: string;
  readonly pattern: Pattern;
  readonly ports: readonly number[] | 'any';
  /** Any bytes, not only HTTP and TLS. Nothing of them is looked into. */
  readonly tcp: boolean;
  readonly methods?: readonly string[];
  readonly paths?: readonly string[];
}

export interface RuleProblem {
  readonly problem: string;
}

export const defaultPorts: readonly number[] = [80, 443];

export function parseRule(written: WrittenRule, use: 'allow' | 'deny'): Rule | RuleProblem {
  return typeof written === 'string' ? parseLine(written, use) : parseParts(written, use);
}

export function ruleText(written: WrittenRule): string {
  if (typeof written === 'string') return written;
  const { host, ports, tcp, methods, paths } = written;
  const port = ports === undefined ? '' : ports === 'any' ? ':*' : `:${ports.join(',')}`;
  const more = [methods?.join(','), paths?.join(' ')].filter((part) => part !== undefined);
  return `${host}${port}${tcp === true ? '/tcp' : ''}${more.length === 0 ? '' : ` ${more.join(' ')}`}`;
}

function parseLine(text: string, use: 'allow' | 'deny'): Rule | RuleProblem {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text))
    return { problem: 'is a URL; write the host alone, as in x.com' };
  const tcp = text.endsWith('/tcp');
  const address = tcp ? text.slice(0, -4) : text;
  const [, host = '', portText] =
    /^(\[[^\]]*\]|[^:]*|[^[\]]*:[^[\]]*:[^[\]]*?)(?::([^:]*))?$/s.exec(address) ?? [];
  if (host === '') return { problem: 'names no host; write it as host, host:port or host:port/tcp' };
  const ports = portsOf(portText, use);
  if (ports === undefined)
    return { problem: `has the port ${JSON.stringify(portText)}; ports are 1 to 65535, or *` };
  if (tcp && portText === undefined && use === 'allow') {
    return { problem: 'says tcp without a port; write it as host:port/tcp' };
  }
  const pattern = parsePattern(host, use);
  return 'problem' in pattern ? pattern : { text, pattern, ports, tcp };
}

function portsOf(text: string | undefined, use: 'allow' | 'deny'): Rule['ports'] | undefined {
  if (text === undefined) return use === 'allow' ? defaultPorts : 'any';
  if (text === '*') return 'any';
  const port = parsePort(text);
  return port === undefined ? undefined : [port];
}

function parseParts(written: Exclude<WrittenRule, string>, use: 'allow' | 'deny'): Rule | RuleProblem {
  const { host, ports, tcp = false, methods, paths } = written;
  const pattern = parsePattern(host, use);
  if ('problem' in pattern) return pattern;
  if (ports !== undefined && ports !== 'any') {
    const wrong = ports.find((port) => parsePort(String(port)) === undefined);
    if (wrong !== undefined) return { problem: `has the port ${wrong}; ports are 1 to 65535` };
    if (ports.length === 0) return { problem: 'has an empty list of ports; leave it out for 80 and 443' };
  }
  const looksInside = methods !== undefined || paths !== undefined;
  if (tcp && looksInside) return { problem: 'says tcp and methods or paths; bytes of any kind have neither' };
  if (methods?.length === 0 || paths?.length === 0) {
    return { problem: 'has an empty list of methods or paths, which nothing fits; leave it out for all' };
  }
  const wrongMethod = methods?.find((method) => !/^[A-Z]{1,20}$/.test(method) || method === 'CONNECT');
  if (wrongMethod !== undefined)
    return { problem: `has the method ${JSON.stringify(wrongMethod)}; write it like GET` };
  for (const path of paths ?? []) {
    const problem = pathPatternProblem(path);
    if (problem !== undefined) return { problem: `has the path ${JSON.stringify(path)}, which ${problem}` };
  }
  return {
    text: ruleText(written),
    pattern,
    ports: ports ?? (use === 'allow' ? defaultPorts : 'any'),
    tcp,
    ...(methods === undefined ? {} : { methods }),
    ...(paths === undefined ? {} : { paths }),
  };
}
