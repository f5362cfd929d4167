/**
 * What a model may ask for when it makes a sandbox: a name, less than the human allows, and one of the human's images.
 * Everything else (workspace, mounts, network, credentials, runtime) is the human's alone. Pure.
 */

import { formatSize, parseSize } from '../lib/sizes.ts';
import { type Profile, profiles } from '../policy/profiles.ts';
import { defaultImage } from '../protocol/default-image.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { SpecInput } from '../protocol/spec.ts';

export interface McpRules {
  /** What the human said with flags and files; its name is that of the first sandbox. */
  readonly spec: SpecInput;
  /** Images that the model may choose from, besides that of the spec. */
  readonly images: readonly string[];
  readonly mostSandboxes: number;
}

export interface SandboxRequest {
  readonly name?: string | undefined;
  readonly image?: string | undefined;
  readonly memory?: string | undefined;
  readonly cpus?: number | undefined;
  readonly pids?: number | undefined;
}

export function specFor(rules: McpRules, request: SandboxRequest): SpecInput {
  const { name: own, ...human } = rules.spec;
  if (own !== undefined && request.name === own) {
    const advice = 'Leave the sandbox out to use that one, or choose another name.';
    throw refused('name', own, "it is that of the user's own sandbox", advice);
  }
  const limits = limitsFor(rules.spec.limits ?? {}, request, profiles[human.profile ?? 'standard']);
  return {
    ...human,
    ...(request.name === undefined ? {} : { name: request.name }),
    ...(request.image === undefined ? {} : { image: imageFor(rules, request.image) }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
  };
}

function imageFor({ spec, images }: McpRules, image: string): string {
  const own = spec.image ?? defaultImage(spec);
  const choices = [...new Set([...(own === undefined ? [] : [own]), ...images])];
  if (choices.includes(image)) return image;
  const advice =
    choices.length === 0
      ? 'Leave the image out: only the default one may be used.'
      : `Choose one of ${choices.join(', ')}, or leave the image out.`;
  throw refused('image', image, 'it is not on the list of images', advice);
}

type Limits = NonNullable<SpecInput['limits']>;

function limitsFor(human: Limits, request: SandboxRequest, usual: Profile): Limits {
  const memory = memoryFor(human.memory, request.memory, usual.memoryBytes);
  const cpus = countFor('cpus', human.cpus ?? usual.cpus, request.cpus);
  const pids = countFor('pids', human.pids ?? usual.pids, request.pids);
  return {
    ...human,
    ...(memory === undefined ? {} : { memory }),
    ...(cpus === undefined ? {} : { cpus }),
    ...(pids === undefined ? {} : { pids }),
  };
}

function memoryFor(human: Limits['memory'], asked: string | undefined, usual: number): number | undefined {
  if (asked === undefined) return undefined;
  const most = (typeof human === 'string' ? parseSize(human) : human) ?? usual;
  const bytes = parseSize(asked);
  if (bytes === undefined) throw refused('memory', asked, 'it is no size', 'Write it like 512m or 2g.');
  if (bytes > most)
    throw refused('memory', asked, 'it is more than was allowed', `Ask for ${formatSize(most)} at the most.`);
  return bytes;
}

function countFor(field: 'cpus' | 'pids', most: number, asked: number | undefined): number | undefined {
  if (asked === undefined || asked <= most) return asked;
  throw refused(field, String(asked), 'it is more than was allowed', `Ask for ${most} at the most.`);
}

function refused(field: string, value: string, why: string, advice: string): SallyportError {
  return new SallyportError('usage', `${field} ${JSON.stringify(value)} is refused: ${why}`, {
    advice,
    details: { field, value },
  });
}
