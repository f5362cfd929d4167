/** Reads every source of settings and joins them. What a project file widens is approved before it counts. */

import { isApproved, rememberApproval } from './approvals-file.ts';
import type { ConfigEnvironment } from './config.ts';
import { baseImage, type EffectiveSpec, type EffectiveValue, effectiveSpec } from './effective-spec.ts';
import { guardImage } from './guard-image.ts';
import { type ApprovalRequest, approvalRequest, requireApproval } from './project-approval.ts';
import { findProjectFile } from './project-file.ts';
import { withRealSources } from './real-sources.ts';
import { type SpecFragment, type SpecSource, withAbsolutePaths } from './spec-source.ts';
import { readUserFile, type UserFile } from './user-file.ts';

export interface LoadOptions {
  readonly cwd: string;
  readonly environment: ConfigEnvironment;
  readonly flags: SpecFragment;
  /** What each field is called on the command line: `limits.memory` is `--memory`. */
  readonly flagNames?: Readonly<Record<string, string>>;
  /** `--approve`. */
  readonly approve?: boolean;
  /** Absent where there is no terminal. */
  readonly ask?: (request: ApprovalRequest) => Promise<boolean>;
  readonly now: () => Date;
}

export interface LoadedConfig extends EffectiveSpec {
  readonly projectFile?: string;
  readonly userFile?: string;
}

export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const { cwd, environment, flags } = options;
  const { home, stateDir } = environment;
  const user = await readUserFile(environment.userFile, home);
  const found = await findProjectFile(cwd, home);
  const project = found && { ...found, spec: withRealSources(found.spec, { workspace: true }) };
  const flagged = withRealSources(withAbsolutePaths(flags, cwd, home));
  const sources: readonly SpecSource[] = [
    { kind: 'flag', fragment: flagged, names: options.flagNames ?? {} },
    environment.source,
    ...(project === undefined
      ? []
      : [{ kind: 'project' as const, fragment: project.spec, file: project.file }]),
    ...(user === undefined
      ? []
      : [{ kind: 'user' as const, fragment: withRealSources(user.spec), file: user.file }]),
  ];
  // Refused before a person is asked: nobody should approve what cannot be.
  const effective = effectiveSpec(sources);
  const guarded = guardValue(environment, user);
  if (project !== undefined) {
    await requireApproval(approvalRequest(project), {
      isApproved: (fingerprint) => isApproved(stateDir, fingerprint),
      remember: (request) => rememberApproval(stateDir, request, options.now()),
      approve: options.approve === true || environment.approveProject,
      ...(options.ask === undefined ? {} : { ask: options.ask }),
    });
  }
  return {
    ...effective,
    values: [...effective.values, guarded],
    ...(project === undefined ? {} : { projectFile: project.file }),
    ...(user === undefined ? {} : { userFile: user.file }),
  };
}

/** For `sally config`: a spec has no such field. */
function guardValue(environment: ConfigEnvironment, user: UserFile | undefined): EffectiveValue {
  const chosen = guardImage(environment, user);
  if (chosen === undefined) return { field: 'guard.image', value: baseImage, source: 'default' };
  const { image, source, where } = chosen;
  return { field: 'guard.image', value: image, source, where };
}
