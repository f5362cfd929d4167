/** Files and folders that are copied into a sandbox when it is made (A2, A3), judged one by one. Pure. */

import { SallyportError } from '../protocol/errors.ts';
import type { Spec } from '../protocol/spec.ts';
import type { PathFacts, Source } from './box-plan.ts';
import type { CopyExcludes } from './exclude-patterns.ts';
import { isWithin } from './paths.ts';
import { targetOf } from './targets.ts';

/** To be copied in before the sandbox is ready. */
export interface PlannedCopy {
  readonly source: string;
  readonly target: string;
  readonly kind: 'file' | 'directory';
  readonly excludes: CopyExcludes;
  readonly isWorkspace: boolean;
  /** Of a workspace: it is not the folder that is copied, but a clone of this branch of it. */
  readonly branch?: string;
}

export function copySources(
  { copies = [] }: Pick<Spec, 'copies'>,
  facts: readonly PathFacts[],
): readonly Source[] {
  return copies.map((copy, index) => {
    const source = realSource(`copies.${index}.source`, copy.source, facts[index]);
    if (source.kind === 'file' && !isEmpty(excludesOf(copy))) {
      throw refuse(
        `copies.${index}.exclude_patterns`,
        `copies.${index}: ${copy.source} is a single file, of which nothing can be left out`,
        'Leave `exclude_patterns` and `exclude_from` out, or copy its folder.',
      );
    }
    return { ...source, how: 'copy', target: targetOf(`copies.${index}.target`, copy.target) };
  });
}

/** The workspace first, then in the order of the spec; `sources` are the judged ones of both. */
export function plannedCopies(
  { workspace, copies = [] }: Pick<Spec, 'workspace' | 'copies'>,
  sources: readonly Source[],
): readonly PlannedCopy[] {
  const copied = sources.filter(({ how }) => how === 'copy');
  const isClone = workspace?.mode === 'clone';
  const isCopied = workspace?.mode === 'copy' || isClone;
  if (workspace !== undefined && workspace.mode !== 'copy') refuseExcludes(excludesOf(workspace));
  const wishes = [...(isCopied ? [workspace] : []), ...copies];
  return copied.map(({ real, kind, target }, index) => {
    if (isWithin(target.path, '/tmp')) throw gone(target);
    return {
      source: real,
      target: target.path,
      kind,
      excludes: excludesOf(wishes[index] ?? {}),
      isWorkspace: isCopied && index === 0,
      ...(isClone && index === 0 && workspace.branch !== undefined ? { branch: workspace.branch } : {}),
    };
  });
}

function excludesOf(copy: {
  readonly exclude_patterns?: string[] | undefined;
  readonly exclude_from?: string[] | undefined;
}): CopyExcludes {
  return { patterns: copy.exclude_patterns ?? [], from: copy.exclude_from ?? [] };
}

const isEmpty = ({ patterns, from }: CopyExcludes): boolean => patterns.length === 0 && from.length === 0;

function refuseExcludes(excludes: CopyExcludes): void {
  if (isEmpty(excludes)) return;
  const field = excludes.patterns.length > 0 ? 'workspace.exclude_patterns' : 'workspace.exclude_from';
  throw refuse(
    field,
    `${field}: only of a copy can something be left out; this workspace is the folder itself`,
    'Use `mode: copy` (`--workspace-mode copy`), or leave the patterns out.',
  );
}

function gone({ field, path }: Source['target']): SallyportError {
  return refuse(
    field,
    `${field}: a copy at ${path} would be gone after a stop, because /tmp is memory`,
    'Choose a target that is not below /tmp, such as /data.',
  );
}

/** What a mount or a copy may be of: a file or a folder that is there, and no link. */
export function realSource(field: string, given: string, found: PathFacts | undefined) {
  if (found === undefined) throw new RangeError(`there are no facts of ${field}`);
  const { kind, real, link, uid, gid } = found;
  if (kind === 'missing') throw missing(field, given);
  if (kind === 'symlink') {
    throw refuse(
      field,
      `${field}: ${given} is a symbolic link, to ${real}`,
      `Name what it leads to: ${real}`,
    );
  }
  // SECURITY: a sandbox with a folder above it could lead the next one elsewhere.
  if (link !== undefined) {
    throw refuse(
      field,
      `${field}: ${link} is a symbolic link on the way to ${given}`,
      `Name it by its real path: ${real}`,
    );
  }
  if (kind === 'other') {
    throw refuse(
      field,
      `${field}: ${given} is neither a file nor a folder`,
      'Sockets, devices and pipes of the host are never given to a sandbox.',
    );
  }
  return { field, given, real, kind, uid, gid } as const;
}

export function missing(field: string, path: string): SallyportError {
  return refuse(
    field,
    `${field}: there is no ${path} on this host`,
    'Check the path, or make the folder first.',
  );
}

export function refuse(field: string, message: string, advice: string): SallyportError {
  return new SallyportError('refused_by_policy', message, { details: { field }, advice });
}
