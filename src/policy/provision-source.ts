/** Whether what a sandbox is made of may become the base image of later ones. Pure. */

import { toolName } from '../protocol/builtin-tool-names.ts';
import type { Spec } from '../protocol/spec.ts';

const isCopied = (workspace: Spec['workspace']): boolean =>
  workspace?.mode === 'copy' || workspace?.mode === 'clone';

/** Why not, each reason in words; empty: it may. A sandbox that ran a program or was given something is somebody's own. */
export function provisionRefusals(spec: Spec, execs: number): readonly string[] {
  const { envs = {}, builtin_tools: tools = [], copies = [], mounts = [], workspace } = spec;
  return [
    ...(execs > 0 ? [`it has run ${execs} ${execs === 1 ? 'command' : 'commands'}`] : []),
    ...(Object.keys(envs).length > 0 ? ['it was given variables (envs), which may be secrets'] : []),
    ...(tools.length > 0
      ? [`it has the tools ${tools.map(toolName).join(', ')}, which bring credentials`]
      : []),
    ...(copies.length > 0 || isCopied(workspace) ? ['files of this machine were copied into it'] : []),
    ...(mounts.length > 0 || (workspace !== undefined && !isCopied(workspace))
      ? ['folders of this machine are mounted in it']
      : []),
  ];
}
