/**
 * Builds what the package ships: the bundled command line and porter.
 *
 *   npm run build                this machine's porter, and the other architecture's where its compiler is installed
 *   npm run build -- --release   both architectures, or it fails (used by `npm pack`)
 */

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasProgram, installDebianPackages, isRootOnDebian, must, root, run, whenChanged } from './steps.mjs';

const release = process.argv.includes('--release');

/**
 * Loaded when they are needed. The rest is bundled: finding and taking apart a package of the older module format takes
 * Node longer than a command takes to run.
 */
const externalPackages = ['modern-tar', 'ws', 'yaml', 'zod'];
const bundledPackages = ['commander', 'picocolors'];
/** Bundled packages of that format call `require` for what belongs to Node. */
const requireBanner =
  "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);";

export async function bundle() {
  return await whenChanged('dist/.inputs', ['src', 'package.json', 'scripts/build.mjs'], async () => {
    const { build } = await import('esbuild');
    rmSync(join(root, 'dist'), { recursive: true, force: true });
    await build({
      absWorkingDir: root,
      entryPoints: {
        'cli/main': 'src/cli/main.ts',
        'daemon/main': 'src/daemon/main.ts',
        'sdk/index': 'src/sdk/index.ts',
      },
      outdir: 'dist',
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      target: 'node20.19',
      external: externalPackages,
      banner: { js: requireBanner },
      legalComments: 'none',
      chunkNames: 'chunks/[name]-[hash]',
      logLevel: 'warning',
    });
    writeLauncher(join(root, 'dist/cli/main.js'));
    writeLicences();
  });
}

/** Their licences ask for it. */
function writeLicences() {
  const texts = bundledPackages.map((name) => {
    const text = readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8');
    return `${name}\n\n${text.trim()}\n`;
  });
  writeFileSync(join(root, 'dist/THIRD-PARTY.txt'), texts.join(`\n${'-'.repeat(80)}\n\n`));
}

/**
 * SECURITY: the shell calls Node with `--`. Without it Node reads a file that is named by `--env-file` anywhere on the
 * line, before any code of ours runs, and obeys NODE_OPTIONS in it: `sally run --env-file .env` in a hostile folder would
 * run its code on the host. To the shell the second line is an exec, to JavaScript a string and a comment.
 */
function writeLauncher(file) {
  const lines = readFileSync(file, 'utf8').split('\n');
  if (lines[0] !== '#!/usr/bin/env node') throw new Error(`${file} does not begin as expected`);
  writeFileSync(file, ['#!/bin/sh', `':' //; exec node -- "$0" "$@"`, ...lines.slice(1)].join('\n'));
}

/** The types of what programs import. Only for a release: a checkout has the sources. */
async function declareTypes() {
  return await whenChanged(
    'dist/types/.inputs',
    ['src', 'scripts/build.mjs', 'tsconfig.types.json'],
    async () => {
      await must('npx', ['--no-install', 'tsc', '--project', 'tsconfig.types.json']);
      const types = join(root, 'dist/types');
      for (const entry of readdirSync(types, { withFileTypes: true, recursive: true })) {
        if (!entry.name.endsWith('.d.ts')) continue;
        const path = join(entry.parentPath, entry.name);
        // A program that imports the package may not be set up to import `.ts`.
        const text = readFileSync(path, 'utf8');
        writeFileSync(path, text.replaceAll(/((?:from |import\()['"]\.[^'"]*)\.ts(['"])/g, '$1.js$2'));
      }
    },
  );
}

async function makePorter() {
  if (!hasProgram('make') && isRootOnDebian()) await installDebianPackages(['make'], 'to build porter');
  if (!hasProgram('make')) {
    console.error(
      'sally: make is missing, and porter is built with it\nsally: install make and a C compiler, then try again',
    );
    process.exit(1);
  }
  const quiet = { stdio: ['ignore', 'ignore', 'inherit'] };
  const make = (...targets) => ['-s', '-C', 'porter', ...targets];
  if (release) await must('make', make('amd64', 'arm64'), quiet);
  else {
    await must('make', make('native'), quiet);
    for (const other of ['amd64', 'arm64']) {
      const available = (await run('make', make(`have-${other}`), { stdio: 'ignore' })) === 0;
      if (available) await must('make', make(other), quiet);
    }
  }
}

await bundle();
if (release) await declareTypes();
await makePorter();
