/** Shows what a folder's Dockerfile asks for, and asks once whether it may be built. The daemon builds exactly what was shown. */

import { readConfigEnvironment } from '../config/config.ts';
import { requireDockerfileApproval } from '../config/dockerfile-approval.ts';
import type { DockerfileView, ProjectInput } from '../protocol/images.ts';
import type { DaemonClient } from '../sdk/client.ts';
import type { CliContext } from './context.ts';
import { note } from './output.ts';

/** What stands for what was approved. Undefined: there is no Dockerfile of ours. */
export async function approveDockerfile(
  client: DaemonClient,
  project: ProjectInput,
  approve: boolean,
  { signal }: CliContext,
): Promise<string | undefined> {
  const { dockerfile } = await client.json<{ dockerfile?: DockerfileView }>('POST', '/v1/images/look', {
    body: project,
    signal,
  });
  if (dockerfile === undefined) return undefined;
  const canAsk = process.stdin.isTTY && process.stderr.isTTY;
  await requireDockerfileApproval(dockerfile, {
    environment: readConfigEnvironment(),
    approve,
    now: () => new Date(),
    ...(canAsk
      ? {
          ask: async ({ file, lines, fingerprint }) => {
            note(`${file} (${fingerprint.slice(0, 12)}) asks to:`);
            for (const line of lines) note(`  ${line}`);
            const { askYesNo } = await import('./ask.ts');
            return await askYesNo('Allow that for this folder?', signal);
          },
        }
      : {}),
  });
  return dockerfile.approval;
}
