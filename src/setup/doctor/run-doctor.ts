/** `sally doctor`: gathers what there is to know about this machine and its engine, and judges it line by line. */

import type { EngineEnvironment } from '../../engines/docker/config.ts';
import { discoverEngine, type FoundEngine } from '../../engines/docker/discover.ts';
import { engineInfo, usableRuntimes } from '../../engines/docker/system/info.ts';
import { engineVersion } from '../../engines/docker/system/version.ts';
import { packageInfo } from '../../lib/package-root.ts';
import { isSallyportError } from '../../protocol/errors.ts';
import type { SetupEnvironment } from '../config.ts';
import { privateEnginePaths } from '../private-engine/paths.ts';
import { checkBubblewrap, gatherBubblewrap } from './bubblewrap.ts';
import { type Check, type DoctorSummary, summarise } from './check.ts';
import { checkDisk, freeBytesAt } from './disk.ts';
import { checkEngineFound } from './engine-found.ts';
import { checkHostGit, gatherHostGit } from './host-git.ts';
import { checkIsolation } from './isolation.ts';
import { checkKeyring } from './keyring.ts';
import { checkPorter, gatherPorter } from './porter.ts';
import { checkVersions } from './versions.ts';

export interface DoctorRequest {
  readonly environment: EngineEnvironment;
  readonly setup: SetupEnvironment;
  readonly signal?: AbortSignal;
}

export interface DoctorReport {
  readonly checks: readonly Check[];
  readonly summary: DoctorSummary;
}

export async function runDoctor(request: DoctorRequest): Promise<DoctorReport> {
  const { environment, setup, signal } = request;
  const discovery = await discoverEngine(environment, {
    privateSocket: privateEnginePaths(setup).socket,
    ...(signal === undefined ? {} : { signal }),
  });
  const hostArchitecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const engine =
    discovery.found === undefined ? { checks: [] } : await examineEngine(discovery.found, request);
  const porter = await gatherPorter(
    packageInfo().root,
    engine.architecture ?? hostArchitecture,
    setup.childVariables,
  );
  const state = { folder: setup.stateDir, freeBytes: await freeBytesAt(setup.stateDir) };
  const checks = [
    checkEngineFound(discovery),
    ...engine.checks,
    checkDisk('disk-state', "disk of Sallyport's state", state),
    checkBubblewrap(await gatherBubblewrap(setup)),
    await checkKeyring(setup.platform),
    checkPorter(porter),
    checkHostGit(await gatherHostGit(setup)),
  ];
  return { checks, summary: summarise(checks) };
}

interface Examined {
  readonly checks: readonly Check[];
  readonly architecture?: string;
}

async function examineEngine(found: FoundEngine, { setup, signal }: DoctorRequest): Promise<Examined> {
  const options = signal === undefined ? {} : { signal };
  try {
    const [version, info] = await Promise.all([
      engineVersion(found.connection, options),
      engineInfo(found.connection, options),
    ]);
    // Only a Linux engine behind a local socket keeps its data in this machine's own file system.
    const isLocal = found.endpoint.kind === 'unix' && setup.platform === 'linux';
    const freeBytes = isLocal ? await freeBytesAt(info.dataRoot) : undefined;
    return {
      architecture: version.architecture,
      checks: [
        ...checkVersions(version),
        ...checkIsolation({ ...info, runtimes: usableRuntimes(info, version) }),
        checkDisk('disk-engine', "disk of the engine's data", { folder: info.dataRoot, freeBytes }),
      ],
    };
  } catch (error) {
    if (!isSallyportError(error) || error.code === 'cancelled') throw error;
    const { message: value, advice } = error;
    return { checks: [{ id: 'engine-info', title: 'engine answers', status: 'fail', value, advice }] };
  }
}
