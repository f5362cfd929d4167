/** Which folders of the host are scanned for what a sandbox planted, and how what is found there is called. */

import { toolNameMatcher } from '../policy/tool-name-match.ts';
import type { WalkRequest } from './planted-walk.ts';
import type { SandboxRecord } from './records.ts';

export interface ScanArea {
  /** Of a tool's folder; absent: the workspace. */
  readonly mountId?: string;
  readonly request: Omit<WalkRequest, 'limits' | 'foldsCase'>;
  /** Of a path relative to it, in latin1. */
  readonly shown: (path: string) => string;
}

/** Whether there is any; asked at every call. */
export const isScanned = ({ spec, plan }: SandboxRecord): boolean =>
  isWorkspaceScanned(spec, plan) || (plan.toolFolders ?? []).length > 0;

function isWorkspaceScanned({ workspace }: SandboxRecord['spec'], { stubs }: SandboxRecord['plan']): boolean {
  const isOpen = workspace?.dangerously_unprotected?.includes('all') === true;
  return workspace?.mode === 'live' && stubs !== undefined && !isOpen;
}

export const areasOf = (record: SandboxRecord): readonly ScanArea[] => [
  ...workspaceArea(record),
  ...toolAreas(record),
];

const latin1 = (path: string): string => Buffer.from(path).toString('latin1');
const utf8 = (path: string): string => Buffer.from(path, 'latin1').toString('utf8');

function workspaceArea({ spec, plan }: SandboxRecord): readonly ScanArea[] {
  const [root] = plan.mounts;
  if (root === undefined || !isWorkspaceScanned(spec, plan)) return [];
  const { held, isRepository } = heldIn(plan, root.source);
  // By request; it is said elsewhere.
  const left = [...held, ...(plan.unprotected ?? [])];
  const { worktreeDir } = plan;
  return [{ request: { root: root.source, held: new Set(left), isRepository, worktreeDir }, shown: utf8 }];
}

function toolAreas({ plan }: SandboxRecord): readonly ScanArea[] {
  return (plan.toolFolders ?? []).map(({ mountId, source, home }) => {
    const { held, isRepository } = heldIn(plan, source);
    const isInHome = source.startsWith(`${home}/`);
    const place = isInHome ? `~${source.slice(home.length)}` : source;
    return {
      mountId,
      request: { root: source, held, isRepository, isToolName: toolNameMatcher(mountId) },
      shown: (path) => `${place}/${utf8(path)}`,
    };
  });
}

/** Read-only inside, or hidden there by something else. */
function heldIn(
  { mounts, covered = [] }: SandboxRecord['plan'],
  root: string,
): { readonly held: ReadonlySet<string>; readonly isRepository: boolean } {
  const relative = (path: string): string => latin1(path.slice(root.length + 1));
  const within = mounts.filter(({ source }) => source.startsWith(`${root}/`));
  const hidden = covered.filter(({ source }) => source.startsWith(`${root}/`));
  const readOnly = within.filter(({ writable }) => !writable);
  return {
    held: new Set([...readOnly, ...hidden].map(({ source }) => relative(source))),
    isRepository: within.some(({ source, writable }) => writable && relative(source) === '.git'),
  };
}
