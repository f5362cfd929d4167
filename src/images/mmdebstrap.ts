/** How mmdebstrap is called and how it comes to be on this machine. Knows its arguments and its words, runs nothing long. */

import { existsSync } from 'node:fs';
import type { Progress, ProgressEvent } from '../lib/progress.ts';
import { shellLine } from '../lib/shell-words.ts';
import { SallyportError } from '../protocol/errors.ts';
import { startProgram } from './child-program.ts';
import { canInstall, installPackages, isDebianLike } from './debian-packages.ts';
import { type Recipe, suite } from './recipe.ts';

const mergedUsrHooks = '/usr/share/mmdebstrap/hooks/merged-usr';

/**
 * Removes from a root folder the files that `dpkg-excludes` names and mmdebstrap unpacked before dpkg read that list.
 * `--dpkgopt` with the list would filter them out, but from mmdebstrap 1.6 on that filter needs Python.
 */
const removeExcluded = [
  'cd "$1/usr/share"',
  'rm -rf man/* info/* locale/* i18n/* lintian/*',
  'find doc ! -type d ! -name copyright -delete',
  'find doc -mindepth 1 -type d -empty -delete',
].join(' && ');

/**
 * Writes the tar to stdout. Without the merged-/usr hook the package `usrmerge` does that work, and brings 48 MB of Perl.
 * mmdebstrap copies the host's name and resolver, which must not be in an image. dpkg need not wait for the disk: a root
 * folder that a crash leaves is never used.
 */
export function mmdebstrapArguments(recipe: Recipe): readonly string[] {
  const merged = existsSync(mergedUsrHooks);
  return [
    '--verbose',
    '--mode=auto',
    '--format=tar',
    `--variant=${recipe.variant}`,
    `--architectures=${recipe.architecture}`,
    `--include=${[...(merged ? ['usr-is-merged'] : []), ...recipe.packages].join(',')}`,
    '--dpkgopt=force-unsafe-io',
    `--setup-hook=mkdir -p "$1/etc/dpkg/dpkg.cfg.d" && cp ${shellLine([recipe.excludesPath])} "$1/etc/dpkg/dpkg.cfg.d/sallyport"`,
    ...(merged ? [`--hook-dir=${mergedUsrHooks}`] : []),
    `--customize-hook=${removeExcluded}`,
    '--customize-hook=: >"$1/etc/hostname"; : >"$1/etc/resolv.conf"',
    suite,
    '-',
  ];
}

/** Which lines of the verbose output people should see; a package that is set up counts as a step of the way. */
export function bootstrapProgress(progress: Progress): (line: string) => void {
  let done = 0;
  const say = (message: string, more: Partial<ProgressEvent> = {}): void =>
    progress({ step: 'bootstrap', message, ...more });
  return (line) => {
    const stage = /^I: (.+)$/.exec(line)?.[1];
    if (stage !== undefined && !stage.startsWith('running --') && !stage.startsWith('skipping')) say(stage);
    const name = /^(?:Unpacking|Setting up) (\S+)/.exec(line)?.[1];
    if (name === undefined) return;
    done += 1;
    say(line.replace(/ \(.*/, ''), { current: done });
  };
}

export async function programIsThere(name: string, args: readonly string[]): Promise<boolean> {
  const program = startProgram(name, args, {
    onLine: () => {},
    stop: { signal: 'SIGTERM', to: 'group' },
  });
  const { exitCode } = await program.ended;
  return exitCode === 0;
}

export interface RequireOptions {
  readonly progress: Progress;
  readonly consent: (packages: readonly string[]) => Promise<boolean>;
  readonly signal?: AbortSignal | undefined;
}

export interface PackageMachine {
  readonly hasMmdebstrap: () => Promise<boolean>;
  readonly isDebianLike: () => Promise<boolean>;
  readonly canInstall: () => boolean;
  /** As root, or as an ordinary user with a range of user ids. */
  readonly canUnpack: () => boolean;
  readonly install: typeof installPackages;
}

const thisMachine: PackageMachine = {
  hasMmdebstrap: () => programIsThere('mmdebstrap', ['--version']),
  isDebianLike,
  canInstall,
  canUnpack: () => canInstall() || existsSync('/usr/bin/newuidmap'),
  install: installPackages,
};

/** Makes sure that mmdebstrap can be run; asks before it installs. */
export async function requireMmdebstrap(options: RequireOptions, machine = thisMachine): Promise<void> {
  const { progress, consent, signal } = options;
  if (await machine.hasMmdebstrap()) {
    if (machine.canUnpack()) return;
    throw new SallyportError('setup_impossible', 'mmdebstrap cannot make an image as an ordinary user here', {
      advice:
        'Run `sudo apt-get install uidmap`, which lets it, or make the image once as root: `sudo sally image bootstrap`.',
    });
  }
  if (!(await machine.isDebianLike())) {
    throw new SallyportError(
      'setup_impossible',
      'no registry gave the image, and this machine has no mmdebstrap to make one from packages',
      {
        advice:
          'Give the engine access to a registry, or make the image on a Debian machine and bring it over with `docker save` and `docker load`.',
      },
    );
  }
  if (!machine.canInstall()) {
    throw new SallyportError('setup_impossible', 'mmdebstrap is missing and only root can install it', {
      advice: 'Run `sudo apt-get install mmdebstrap`, then try again.',
    });
  }
  if (!(await consent(['mmdebstrap']))) {
    throw new SallyportError('setup_refused', 'mmdebstrap must be installed and nobody agreed to it', {
      advice: 'Run it with --yes to agree, or run `apt-get install mmdebstrap` yourself.',
    });
  }
  await machine.install(['mmdebstrap'], { progress, ...(signal === undefined ? {} : { signal }) });
}
