/**
 * The Dockerfile of a folder is as untrusted as its `sallyport.yaml`: its commands run in containers of the engine, outside of any
 * sandbox. Building it takes the same one-time approval, remembered for that folder and exactly these files.
 */

import { createHash } from 'node:crypto';
import { canonicalJson } from '../lib/canonical-json.ts';
import { formatSize } from '../lib/sizes.ts';
import type { DockerfileView } from '../protocol/images.ts';
import { isApproved, rememberApproval } from './approvals-file.ts';
import type { ConfigEnvironment } from './config.ts';
import { type ApprovalRequest, printable, requireApproval } from './project-approval.ts';

export function dockerfileApprovalRequest(view: DockerfileView): ApprovalRequest {
  const { file, folder, approval, bases, runs, files, bytes, network } = view;
  const from = bases.length === 0 ? 'nothing' : bases.join(', ');
  const reach = network === 'none' ? 'without a network' : 'with the network of your engine';
  const lines = [
    `build an image on ${from}`,
    ...(runs === 0 ? [] : [`run ${runs} ${runs === 1 ? 'command' : 'commands'} while it is built, ${reach}`]),
    ...(files === 0 ? [] : [`hand ${files} files of this folder (${formatSize(bytes)}) to the build`]),
  ];
  const fingerprint = createHash('sha256')
    .update(canonicalJson({ folder, dockerfile: approval }))
    .digest('hex');
  return { file, folder, widens: true, fingerprint, lines: lines.map(printable) };
}

export interface DockerfileAnswers {
  readonly environment: ConfigEnvironment;
  /** `--approve`. */
  readonly approve: boolean;
  /** Absent where there is no terminal. */
  readonly ask?: (request: ApprovalRequest) => Promise<boolean>;
  readonly now: () => Date;
}

/** Returns when it may be built; else `project_not_approved`. */
export async function requireDockerfileApproval(
  view: DockerfileView,
  { environment, approve, ask, now }: DockerfileAnswers,
): Promise<void> {
  const { stateDir, approveProject } = environment;
  await requireApproval(dockerfileApprovalRequest(view), {
    isApproved: (fingerprint) => isApproved(stateDir, fingerprint),
    remember: (request) => rememberApproval(stateDir, request, now()),
    approve: approve || approveProject,
    ...(ask === undefined ? {} : { ask }),
  });
}
