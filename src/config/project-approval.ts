/**
 * A `sallyport.yaml` that lies in a folder is untrusted: it came with a clone, or an agent changed it. What widens a sandbox
 * takes effect only after a person approved exactly that, once, for that folder.
 *
 * The fingerprint covers what widens and the real path of the folder; other fields may change freely. A field that is not
 * listed as harmless widens, so that a new one is never forgotten here.
 */

import { createHash } from 'node:crypto';
import { canonicalJson } from '../lib/canonical-json.ts';
import { formatDuration } from '../lib/durations.ts';
import { formatSize } from '../lib/sizes.ts';
import { profiles } from '../policy/profiles.ts';
import { toolMode, toolName } from '../protocol/builtin-tool-names.ts';
import { SallyportError } from '../protocol/errors.ts';
import { parseSpec } from '../protocol/parse-spec.ts';
import { writePort } from '../protocol/port-spec.ts';
import type { HealthcheckSpec, ServiceSpec } from '../protocol/service-spec.ts';
import type { EgressSpec, Spec } from '../protocol/spec.ts';
import type { ProjectFile } from './project-file.ts';

export interface ApprovalRequest {
  readonly file: string;
  readonly folder: string;
  /** Nothing to approve when it is false. */
  readonly widens: boolean;
  readonly fingerprint: string;
  /** What it asks for, for a terminal: one line each, nothing in them that a terminal obeys. */
  readonly lines: readonly string[];
}

/** They change what happens inside, or narrow it. A name is not among them: it chooses which sandbox is used. */
const harmless: readonly string[] = ['envs', 'labels', 'network', 'workdir', 'idle_ttl', 'max_lifetime'];

export function approvalRequest({ file, folder, spec }: ProjectFile): ApprovalRequest {
  const widening = wideningParts(parseSpec(spec));
  const fingerprint = createHash('sha256').update(canonicalJson({ folder, widening })).digest('hex');
  const lines = Object.entries(widening).flatMap(([field, value]) => describe(field, value).map(escaped));
  return { file, folder, widens: lines.length > 0, fingerprint, lines };
}

export interface ApprovalAnswers {
  /** Whether this fingerprint was approved before. */
  readonly isApproved: (fingerprint: string) => Promise<boolean>;
  readonly remember: (request: ApprovalRequest) => Promise<void>;
  /** `--approve` or SALLYPORT_APPROVE_PROJECT=1. */
  readonly approve: boolean;
  /** Absent where there is no terminal. */
  readonly ask?: (request: ApprovalRequest) => Promise<boolean>;
}

/** Returns when the file may take effect; else `project_not_approved`. */
export async function requireApproval(request: ApprovalRequest, answers: ApprovalAnswers): Promise<void> {
  if (!request.widens || (await answers.isApproved(request.fingerprint))) return;
  if (!answers.approve && !(await answers.ask?.(request))) throw notApproved(request);
  await answers.remember(request);
}

function notApproved({ file, lines, fingerprint }: ApprovalRequest): SallyportError {
  return new SallyportError(
    'project_not_approved',
    `${printable(file)} asks for something that you have not approved:\n  ${lines.join('\n  ')}`,
    { details: { file, fingerprint, asks: lines } },
  );
}

function wideningParts(spec: Spec): Readonly<Record<string, unknown>> {
  const parts = Object.entries(spec)
    .filter(([field, value]) => !harmless.includes(field) && !isEmptyList(value))
    .filter(([field, value]) => !(field === 'profile' && value === 'strict'))
    .map(([field, value]) => [field, field === 'limits' ? raised(spec) : value] as const)
    .filter(([field, value]) => field !== 'limits' || Object.keys(value ?? {}).length > 0);
  return Object.fromEntries(parts);
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/** The limits that are above what a sandbox gets without asking. */
function raised({ limits = {} }: Spec): Readonly<Record<string, number>> {
  const { memoryBytes: memory, cpus, pids, nofile, diskBytes: disk } = profiles.standard;
  const usual: Readonly<Record<string, number>> = { memory, cpus, pids, nofile, disk };
  return Object.fromEntries(
    Object.entries(limits).flatMap(([key, value = 0]) => (value > (usual[key] ?? 0) ? [[key, value]] : [])),
  );
}

function describe(field: string, value: unknown): readonly string[] {
  switch (field) {
    case 'image':
      return [`run the image ${String(value)}`];
    case 'images':
      return Object.entries(value as NonNullable<Spec['images']>).map(
        ([use, image]) => `run the image ${image} where nothing else names one (images.${use})`,
      );
    case 'workspace': {
      const {
        path,
        target,
        mode,
        dangerously_unprotected: open = [],
      } = value as NonNullable<Spec['workspace']>;
      const how = {
        live: 'read and change',
        readonly: 'read',
        copy: 'get a copy of',
        clone: 'get a branch of',
      }[mode];
      return [
        `${how} the folder ${path}, at ${target}`,
        ...open.map((name) => `change what this machine may execute by itself: ${name} in ${path}`),
      ];
    }
    case 'mounts':
      return (value as NonNullable<Spec['mounts']>).map(
        ({ source, target, writable }) => `${writable ? 'read and change' : 'read'} ${source}, at ${target}`,
      );
    case 'copies':
      return (value as NonNullable<Spec['copies']>).map(
        ({ source, target }) => `get a copy of ${source}, at ${target}`,
      );
    case 'builtin_tools':
      return (value as NonNullable<Spec['builtin_tools']>).map((tool) =>
        toolMode(tool) === 'shared'
          ? `use the folders of ${toolName(tool)} in your home, and change what this machine executes from them (mode shared)`
          : `use the folders of ${toolName(tool)} in your home`,
      );
    case 'required_services':
    case 'optional_services':
      return (value as NonNullable<Spec['required_services']>).flatMap(serviceLines);
    case 'ports':
      return (value as NonNullable<Spec['ports']>).map(
        (port) => `listen on this machine: ${writePort(port)}`,
      );
    case 'limits':
      return limitWords(value as Limits).map((limit) => `use more than usual: ${limit}`);
    case 'egress':
      return egressLines(value as NonNullable<Spec['egress']>);
    case 'command':
      return [`start by itself: ${quoted(value as readonly string[])}`];
    default:
      return [`${field}: ${typeof value === 'string' ? value : JSON.stringify(value)}`];
  }
}

type Limits = Readonly<Record<string, number | undefined>>;

const quoted = (argv: readonly string[]): string => argv.map((part) => JSON.stringify(part)).join(' ');

const sizes: readonly string[] = ['memory', 'disk'];

function limitWords(limits: Limits): readonly string[] {
  return Object.entries(limits).flatMap(([key, limit]) =>
    limit === undefined ? [] : [`${key} ${sizes.includes(key) ? formatSize(limit) : limit}`],
  );
}

/** Everything that a service gets: all of it runs, or decides how something runs. */
function serviceLines(service: ServiceSpec): readonly string[] {
  const { name, image, command = [], envs = {}, limits = {}, healthcheck: check } = service;
  const { post_start_on_primary: hooks = [] } = service;
  return [
    [`run the service ${name} of the image ${image}`, quoted(command)].join(' ').trimEnd(),
    ...Object.entries(envs).map(([key, text]) => `give the service ${name} ${key}=${JSON.stringify(text)}`),
    ...limitWords(limits).map((limit) => `limit the service ${name} to ${limit}`),
    ...(check === undefined ? [] : [`check the service ${name} ${checkWords(check)}`]),
    ...hooks.map((hook) => `run in the sandbox when ${name} is healthy: ${quoted(hook)}`),
  ];
}

function checkWords({ test, interval, timeout, retries, start_period }: HealthcheckSpec): string {
  const [every, most, first] = [interval, timeout, start_period].map(formatDuration);
  return `every ${every} by ${testWords(test)}, timeout ${most}, retries ${retries}, start_period ${first}`;
}

const testWords = (test: string | readonly string[]): string =>
  typeof test === 'string' ? JSON.stringify(test) : quoted(test);

function egressLines(egress: EgressSpec) {
  const { mode = 'deny', allow = [], presets = [], credentials = [], upstream, upstream_secret } = egress;
  return [
    ...(mode === 'deny' ? [] : [`reach every public host (egress.mode: ${mode})`]),
    ...allow.map((rule) => `reach ${typeof rule === 'string' ? rule : JSON.stringify(rule)}`),
    ...presets.map((name) => `reach the hosts of ${name}`),
    ...credentials.map((name) => `use your secret ${name}`),
    ...(upstream === undefined ? [] : [`send everything by ${upstream}`]),
    ...(upstream_secret === undefined ? [] : [`log in to it with your secret ${upstream_secret}`]),
  ];
}

/** SECURITY: the text is of the file that is being judged; it must not move the cursor, hide or reorder what is shown. */
export function printable(text: string): string {
  const whole = escaped(text);
  return whole.length > 500 ? `${whole.slice(0, 500)}… (${whole.length} characters)` : whole;
}

/** The same in full length: nobody can approve what is cut off. */
const escaped = (text: string): string =>
  text.replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
