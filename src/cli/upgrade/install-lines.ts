/** The commands that bring a release to this machine, for the way in which the program was installed. Pure. */

import { type Installation, npmPlace } from '../../lib/installation.ts';
import { shellLine } from '../../lib/shell-words.ts';
import type { LatestRelease, ReleasePlace } from './latest-release.ts';

/** `architecture`: as Node names it. Undefined: the release has no file for this installation. */
export function installLines(
  installation: Installation,
  release: Pick<LatestRelease, 'version' | 'files'>,
  place: Pick<ReleasePlace, 'locate' | 'isUrl'>,
  architecture: string,
): readonly string[] | undefined {
  if (installation.kind === 'checkout') return checkoutLines(installation.folder);
  const isArchive = installation.kind === 'archive';
  const folder = `sallyport-${release.version}-linux-${architecture}`;
  const name = isArchive ? `${folder}.tar.gz` : `sallyport-${release.version}.tgz`;
  const file = release.files.find((one) => one.name === name);
  if (file === undefined) return undefined;
  if (!isArchive) return [shellLine(['npm', 'install', ...npmPlace(installation), place.locate(name)])];
  const fetch = place.isUrl ? ['curl', '-fsSO', place.locate(name)] : ['cp', place.locate(name), '.'];
  return [
    shellLine(fetch),
    `echo '${file.sha256}  ${name}' | sha256sum -c`,
    shellLine(['tar', '-xzf', name]),
    shellLine([`./${folder}/install.sh`, '--prefix', installation.prefix]),
  ];
}

/** Without a release to name: how it goes in general. */
export function generalLines(installation: Installation): readonly string[] {
  switch (installation.kind) {
    case 'checkout':
      return checkoutLines(installation.folder);
    case 'archive':
      return [`./sallyport-VERSION-linux-ARCH/install.sh ${shellLine(['--prefix', installation.prefix])}`];
    default:
      return [`npm install ${shellLine(npmPlace(installation))} ./sallyport-VERSION.tgz`];
  }
}

const checkoutLines = (folder: string): readonly string[] => [
  shellLine(['git', '-C', folder, 'pull']),
  shellLine(['npm', '--prefix', folder, 'ci']),
  shellLine(['npm', '--prefix', folder, 'run', 'build']),
];
