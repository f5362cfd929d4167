/** `sally upgrade`: shows whether a release is newer and how to install it. It installs nothing itself. */

import { installationOf } from '../../lib/installation.ts';
import { packageInfo } from '../../lib/package-root.ts';
import { compareVersions } from '../../lib/versions.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { readCliEnvironment } from '../config.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { note, print, printJson } from '../output.ts';
import { printable } from '../table.ts';
import { generalLines, installLines } from '../upgrade/install-lines.ts';
import { readLatest, releasePlace } from '../upgrade/latest-release.ts';

export interface UpgradeOptions {
  readonly check?: true;
  readonly json?: true;
}

interface Upgrade {
  readonly current: string;
  readonly latest: string;
  readonly newer: boolean;
  readonly date: string;
  readonly changelog: string;
  /** Commands that install it; empty where the release has nothing for this installation. */
  readonly install: readonly string[];
}

export async function upgradeCommand(options: UpgradeOptions, { signal }: CliContext): Promise<number> {
  const { root, version: current } = packageInfo();
  const installation = installationOf(root);
  const { releases } = readCliEnvironment();
  if (releases === undefined) {
    if (options.check === true) throw noServer();
    note('there is no release server yet; these commands replace this installation');
    showLines(generalLines(installation), options);
    return exitCode.ok;
  }
  const place = releasePlace(releases);
  if (place.isOpen) note('SALLYPORT_RELEASES is not HTTPS: the network can change the answer');
  const { version: latest, date, changelog, files } = await readLatest(place, signal);
  const upgrade: Upgrade = {
    current,
    latest,
    newer: compareVersions(latest, current) > 0,
    date,
    changelog,
    install: installLines(installation, { version: latest, files }, place, process.arch) ?? [],
  };
  if (options.json === true) printJson(upgrade);
  else show(upgrade, options.check === true);
  return exitCode.ok;
}

function show({ current, latest, newer, date, changelog, install }: Upgrade, withChanges: boolean): void {
  if (!newer) {
    print(`Sallyport ${current} is up to date (newest release: ${latest})`);
    return;
  }
  print(`Sallyport ${latest} of ${date} is newer than ${current}`);
  if (withChanges) for (const line of ['', ...changelog.split('\n'), '']) print(printable(line));
  if (install.length === 0) note(`release ${latest} has no file for this installation (${process.arch})`);
  else note('to install it:');
  for (const line of install) print(line);
}

function showLines(lines: readonly string[], { json }: UpgradeOptions): void {
  if (json === true) printJson({ current: packageInfo().version, install: lines });
  else for (const line of lines) print(line);
}

const noServer = (): SallyportError =>
  new SallyportError('usage', 'there is no release server yet, and SALLYPORT_RELEASES is not set', {
    advice: 'Set SALLYPORT_RELEASES to a URL or folder with the files of `npm run release`.',
  });
