/**
 * What a sandbox may reach. Pure: an attempt and, once a name is resolved, its addresses are judged by rules alone.
 *
 * Nothing is allowed that no rule allows; a deny wins over every allow; addresses that are not public need a rule that names
 * their range, also when an allowed name leads there.
 */

import type { EgressPresetName } from '../../protocol/egress-preset-names.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { type Address, type AddressClass, classOf, formatAddress, parseAddress } from './address.ts';
import type { CanonicalHost } from './host.ts';
import { fitsAddress, fitsHost, isExactAddress, isWildcard } from './pattern.ts';
import { egressPresets } from './presets.ts';
import { fitsPath, fitsPathLoosely, plainRequestPath } from './request-path.ts';
import { defaultPorts, parseRule, type Rule, ruleText, type WrittenRule } from './rule.ts';

export type EgressMode = 'deny' | 'learn' | 'dangerously-allow-all';

/** As it is written down. */
export interface WrittenPolicy {
  readonly mode?: EgressMode | undefined;
  readonly allow?: readonly WrittenRule[] | undefined;
  readonly deny?: readonly WrittenRule[] | undefined;
  readonly presets?: readonly EgressPresetName[] | undefined;
}

export interface EgressPolicy {
  readonly mode: EgressMode;
  readonly allow: readonly Rule[];
  readonly deny: readonly Rule[];
}

export interface JudgedAttempt {
  readonly destination: CanonicalHost & { readonly port: number };
  readonly scheme: 'tcp' | 'http' | 'https';
  readonly method?: string;
  readonly path?: string;
}

export type Judgement =
  | {
      readonly allowed: true;
      readonly rule: string;
      readonly inspect: boolean;
      /** Some rule for this destination goes by the method or the path. */
      readonly byRequest?: boolean;
    }
  | { readonly allowed: false; readonly code: DenialCode; readonly reason: string; readonly rule?: string };

export type DenialCode =
  | 'not_allowed'
  | 'port_not_allowed'
  | 'denied_by_rule'
  | 'request_not_allowed'
  | 'ambiguous_path'
  | 'tcp_not_allowed'
  | 'private_address';

const mostRules = 2000;

/** Throws `egress_rule_invalid` with the field for what cannot be understood. */
export function parsePolicy(written: WrittenPolicy): EgressPolicy {
  const presets = (written.presets ?? []).flatMap((name) =>
    egressPresets[name].allow.map((line) => ruleOrThrow(line, 'allow', `egress.presets.${name}`)),
  );
  const own = (use: 'allow' | 'deny'): readonly Rule[] =>
    (written[use] ?? []).map((rule, index) => ruleOrThrow(rule, use, `egress.${use}.${index}`));
  const policy = { mode: written.mode ?? 'deny', allow: [...own('allow'), ...presets], deny: own('deny') };
  if (policy.allow.length + policy.deny.length > mostRules) {
    throw new SallyportError('egress_rule_invalid', `more than ${mostRules} rules`, {
      details: { field: 'egress' },
    });
  }
  return policy;
}

export function ruleOrThrow(written: WrittenRule, use: 'allow' | 'deny', field: string): Rule {
  const rule = parseRule(written, use);
  if (!('problem' in rule)) return rule;
  throw new SallyportError(
    'egress_rule_invalid',
    `${field}: ${JSON.stringify(ruleText(written))} ${rule.problem}`,
    { details: { field, rule: ruleText(written) } },
  );
}

/** The rules that are allowed and denied alike: legal, and rarely meant. */
export function contradictions({ allow, deny }: EgressPolicy): readonly string[] {
  const denied = new Set(deny.map(({ text }) => text));
  return allow.map(({ text }) => text).filter((text) => denied.has(text));
}

export function judge(policy: EgressPolicy, attempt: JudgedAttempt): Judgement {
  const { destination } = attempt;
  const path = attempt.path === undefined ? undefined : plainRequestPath(attempt.path);
  const seen = { ...attempt, plainPath: path };
  const here = (rule: Rule): boolean => fitsDestination(rule, destination);
  const byPath = [...policy.allow, ...policy.deny].filter(here).some((rule) => rule.paths !== undefined);
  if (byPath && attempt.path !== undefined && path === undefined) {
    return {
      allowed: false,
      code: 'ambiguous_path',
      reason: `the path ${shortened(attempt.path)} can be read in two ways, and a rule for ${destination.host} goes by the path`,
    };
  }
  const denying = policy.deny.find((rule) => here(rule) && denies(rule, seen));
  if (denying !== undefined) {
    const reason = `a rule denies ${denying.text}`;
    return { allowed: false, code: 'denied_by_rule', reason, rule: denying.text };
  }
  const judged = judgeAllow(policy, seen);
  if (!judged.allowed) return judged;
  const limits = (rule: Rule): boolean => here(rule) && isLimited(rule);
  const deniesInside = policy.deny.some(limits);
  return {
    ...judged,
    inspect: judged.inspect || (deniesInside && attempt.scheme === 'https'),
    byRequest: deniesInside || policy.allow.some(limits),
  };
}

/** An address that a name was resolved to, or that was asked for. Undefined: it may be dialled. */
export function judgeAddress(
  policy: EgressPolicy,
  { host, port }: { readonly host: string; readonly port: number },
  address: Address,
): Extract<Judgement, { allowed: false }> | undefined {
  const text = formatAddress(address);
  const fits = (rule: Rule): boolean => fitsPort(rule, port) && fitsAddress(rule.pattern, address);
  const denying = policy.deny.find(fits);
  if (denying !== undefined) {
    const reason = `${leads(host, text)}, and a rule denies ${denying.text}`;
    return { allowed: false, code: 'denied_by_rule', reason, rule: denying.text };
  }
  const kind = classOf(address);
  if (kind === 'public') return undefined;
  // SECURITY: a range that happens to hold the metadata service, and a mapped address, never open it.
  const isNamed = (rule: Rule): boolean =>
    fits(rule) && (kind !== 'metadata' || isExactAddress(rule.pattern));
  if (kind !== 'mapped' && policy.allow.some(isNamed)) return undefined;
  return {
    allowed: false,
    code: 'private_address',
    reason: `${leads(host, text)}, ${classWords[kind]}`,
  };
}

/** On which ports this name may be reached at all, and by which rules: what a resolver needs to know. */
export function portsFor(
  policy: EgressPolicy,
  host: CanonicalHost,
): { readonly ports: readonly number[]; readonly rule: string; readonly isWildcard: boolean } | undefined {
  const rules = policy.allow.filter(({ pattern }) => fitsHost(pattern, host));
  const isOpen = policy.mode !== 'deny';
  const asked = rules.flatMap(({ ports }) => (ports === 'any' ? defaultPorts : ports));
  const candidates = [...new Set(isOpen ? [...defaultPorts, ...asked] : asked)];
  const ports = candidates.filter((port) => {
    const denies = (rule: Rule): boolean => fitsDestination(rule, { ...host, port }) && !isLimited(rule);
    return !policy.deny.some(denies);
  });
  if (ports.length === 0) return undefined;
  const exact = rules.find(({ pattern }) => !isWildcard(pattern));
  const rule = exact?.text ?? rules[0]?.text ?? `egress.mode: ${policy.mode}`;
  return { ports, rule, isWildcard: exact === undefined };
}

interface SeenAttempt extends JudgedAttempt {
  readonly plainPath: string | undefined;
}

function judgeAllow(policy: EgressPolicy, attempt: SeenAttempt): Judgement {
  const { destination, scheme } = attempt;
  const forHost = policy.allow.filter((rule) => fitsTarget(rule, destination));
  const forPort = forHost.filter((rule) => fitsPort(rule, destination.port));
  const usable = forPort.filter((rule) => rule.tcp || scheme !== 'tcp');
  const unlimited = usable.find((rule) => !isLimited(rule));
  if (unlimited !== undefined) return { allowed: true, rule: unlimited.text, inspect: false };
  if (policy.mode !== 'deny') {
    return { allowed: true, rule: `egress.mode: ${policy.mode}`, inspect: false };
  }
  const [first] = usable;
  if (first === undefined) return notAllowed(destination, forHost, forPort);
  if (attempt.method === undefined) {
    // What is asked for inside will be judged; plain bytes never are, so they never come here.
    return { allowed: true, rule: first.text, inspect: true };
  }
  const fitting = usable.find((rule) => fitsRequest(rule, attempt));
  if (fitting !== undefined) return { allowed: true, rule: fitting.text, inspect: true };
  const what = `${attempt.method} ${shortened(attempt.path ?? '')}`.trim();
  return {
    allowed: false,
    code: 'request_not_allowed',
    reason: `${destination.host} is allowed by ${first.text}, and ${what} does not fit`,
    rule: first.text,
  };
}

function notAllowed(
  { host, port }: JudgedAttempt['destination'],
  forHost: readonly Rule[],
  forPort: readonly Rule[],
): Judgement {
  const [rule] = forHost;
  if (rule === undefined) {
    return { allowed: false, code: 'not_allowed', reason: `no rule allows ${host}` };
  }
  if (forPort.length === 0) {
    const reason = `${rule.text} does not allow port ${port}`;
    return { allowed: false, code: 'port_not_allowed', reason, rule: rule.text };
  }
  const reason = `${rule.text} allows HTTP and TLS, and this is neither`;
  return { allowed: false, code: 'tcp_not_allowed', reason, rule: rule.text };
}

const isLimited = ({ methods, paths }: Rule): boolean => methods !== undefined || paths !== undefined;

const fitsPort = ({ ports }: Rule, port: number): boolean => ports === 'any' || ports.includes(port);

function fitsTarget({ pattern }: Rule, destination: CanonicalHost): boolean {
  if (!destination.isAddress) return fitsHost(pattern, destination);
  const address = parseAddress(destination.host);
  return address !== undefined && fitsAddress(pattern, address);
}

const fitsDestination = (rule: Rule, destination: JudgedAttempt['destination']): boolean =>
  fitsPort(rule, destination.port) && fitsTarget(rule, destination);

/** What cannot be looked into is denied by a rule about its inside. */
function denies(rule: Rule, attempt: SeenAttempt): boolean {
  if (!isLimited(rule)) return true;
  if (attempt.method === undefined) return attempt.scheme === 'tcp';
  // Some servers take methods in either case.
  return fitsRequest(rule, { ...attempt, method: attempt.method.toUpperCase() }, fitsPathLoosely);
}

function fitsRequest(
  { methods, paths }: Rule,
  { method, plainPath }: SeenAttempt,
  fits: (pattern: string, path: string) => boolean = fitsPath,
): boolean {
  if (methods !== undefined && (method === undefined || !methods.includes(method))) return false;
  return paths === undefined || (plainPath !== undefined && paths.some((path) => fits(path, plainPath)));
}

const leads = (host: string, address: string): string =>
  host === address ? address : `${host} leads to ${address}`;

const shortened = (text: string): string =>
  JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);

const classWords: Readonly<Record<Exclude<AddressClass, 'public'>, string>> = {
  loopback: 'which is this machine itself',
  private: 'which is a private address',
  shared: "which is an address of a provider's own network",
  link_local: 'which is an address of the local link',
  metadata: 'which gives away the identity of a machine in a cloud',
  multicast: 'which is a multicast address',
  documentation: 'which is an address for examples',
  reserved: 'which is a reserved address',
  mapped: 'which is an IPv4 address in disguise',
  translated: 'which is translated to another address on its way',
};
