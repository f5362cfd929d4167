/** The machine's git for boxes whose image has none: the program with everything that it loads, in a folder to be mounted. */

import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { temporaryFolder } from './little-engine.ts';

export interface PortableGit {
  readonly mount: { readonly source: string; readonly target: string };
  /** Before a script: `git` is this one. */
  readonly prelude: string;
}

export function portableGit(): PortableGit {
  const folder = temporaryFolder();
  const program = realpathSync(execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim());
  const loaded = execFileSync('ldd', [program], { encoding: 'utf8' });
  const libraries = [...loaded.matchAll(/(\/\S+) \(0x/g)].map((match) => match[1] ?? '');
  for (const library of libraries) copyFileSync(library, join(folder, basename(library)));
  copyFileSync(program, join(folder, 'git.program'));
  const loader = libraries.find((library) => basename(library).startsWith('ld-'));
  if (loader === undefined) throw new Error(`${program} has no loader`);
  const target = '/opt/git';
  const line = `exec ${target}/${basename(loader)} --library-path ${target} ${target}/git.program "$@"`;
  writeFileSync(join(folder, 'git'), `#!/bin/sh\n${line}\n`);
  for (const name of ['git', 'git.program', basename(loader)]) chmodSync(join(folder, name), 0o755);
  chmodSync(folder, 0o755);
  const settings =
    'GIT_CONFIG_NOSYSTEM=1 GIT_EXEC_PATH=/opt/git GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=Box';
  const identity = 'GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=box@example.invalid';
  return {
    mount: { source: folder, target },
    prelude: `export PATH=${target}:$PATH ${settings} ${identity}`,
  };
}
