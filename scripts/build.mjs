/**
 * Builds what the package ships: the bundled command line and porter.
 *
 *   npm run build                this machine's porter, and the other architecture's where its compiler is installed
 *   npm run build -- --release   both architectures, or it fails (used by `npm pack`)
 */

import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { hasProgram, installDebianPackages, isRootOnDebian, must, root, run, whenChanged } from './steps.mjs';

const release = process.argv.includes('--release');

/**
 * Loaded when they are needed. The rest is bundled: finding and taking apart a package of the older module format takes
 * Node longer than a command takes to run.
 */
const externalPackages = ['@modelcontextprotocol/server', 'modern-tar'];
/** Bundled packages of that format call `require` for what belongs to Node. */
const requireBanner =
  "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);";

/** The parser of the command line can start programs for verbs, which ours never does. */
const withoutProcesses = {
  name: 'without processes',
  setup(build) {
    build.onResolve({ filter: /^(node:)?child_process$/ }, ({ importer }) =>
      importer.includes('/node_modules/commander/') ? { path: 'none', namespace: 'no-processes' } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'no-processes' }, () => ({ contents: 'module.exports = {};' }));
  },
};

/** Half of the schemas' package are its messages in other languages, which nobody asks for and every process would compile. */
const inOneLanguage = {
  name: 'in one language',
  setup(build) {
    build.onResolve({ filter: /\/locales\/index\.js$/ }, ({ importer }) =>
      importer.includes('/node_modules/zod/') ? { path: 'none', namespace: 'no-languages' } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'no-languages' }, () => ({ contents: 'export {};' }));
  },
};

const common = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  external: externalPackages,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
};

/** What the entry loads when it needs it: each has a file of its own name. */
const loadedByEntry = [
  'cli/main',
  'cli/ask',
  'cli/approve-dockerfile',
  'cli/git-workspace',
  'cli/run-each',
  'cli/choose-engine',
  'cli/folder-sandbox',
  'cli/made-image',
  'config/load-config',
  'sdk/other-engines',
  'sdk/start-daemon',
  'setup/images',
];
/** The verbs that are in the entry itself. */
const inEntry = ['cli/commands/run', 'cli/commands/exec'];

const entryLoads = {
  name: 'what the entry loads',
  setup(build) {
    build.onResolve({ filter: /^\.{1,2}\// }, ({ path, resolveDir, kind }) => {
      if (kind !== 'dynamic-import') return undefined;
      const name = relative(join(root, 'src'), resolve(resolveDir, path)).replace(/\.ts$/, '');
      if (inEntry.includes(name)) return undefined;
      // The verbs that the entry does not have are not called by it.
      if (!loadedByEntry.includes(name) && !name.startsWith('cli/commands/')) {
        return { errors: [{ text: `${name} is loaded by the entry, and has no file of its own` }] };
      }
      return { path: `../${name}.js`, external: true };
    });
  },
};

export async function bundle() {
  return await whenChanged('dist/.inputs', ['src', 'package.json', 'scripts/build.mjs'], async () => {
    const { build } = await import('esbuild');
    rmSync(join(root, 'dist'), { recursive: true, force: true });
    const named = ['daemon/main', 'daemon/gate-thread', 'sdk/index', 'mcp/ai-sdk', ...loadedByEntry];
    const parts = await build({
      ...common,
      entryPoints: Object.fromEntries(named.map((name) => [name, `src/${name}.ts`])),
      outdir: 'dist',
      splitting: true,
      format: 'esm',
      banner: { js: requireBanner },
      plugins: [withoutProcesses, inOneLanguage],
      chunkNames: 'chunks/[name]-[hash]',
    });
    const entry = join(root, 'dist/cli/sally.cjs');
    const whole = await build({
      ...common,
      entryPoints: ['src/cli/sally.ts'],
      outfile: entry,
      minifySyntax: true,
      minifyWhitespace: true,
      // The older format: Node loads it in half the time.
      format: 'cjs',
      define: { 'import.meta.url': 'ownUrl' },
      banner: { js: `${launcher}const ownUrl = require('node:url').pathToFileURL(__filename).href;` },
      plugins: [withoutProcesses, entryLoads],
    });
    chmodSync(entry, 0o755);
    writeLicences([parts, whole]);
  });
}

/**
 * SECURITY: the shell calls Node with `--`. Without it Node reads a file that is named by `--env-file` anywhere on the
 * line, before any code of ours runs, and obeys NODE_OPTIONS in it: `sally run --env-file .env` in a hostile folder would
 * run its code on the host. To the shell the second line is an exec, to JavaScript a string and a comment. Threads that
 * help V8 are not worth their start in a process that lives for a moment.
 */
const launcher = `#!/bin/sh\n':' //; exec node --v8-pool-size=0 -- "$0" "$@"\n`;

/** Of every package of which something is in the bundles: their licences ask for it. */
function writeLicences(builds) {
  const files = builds.flatMap(({ metafile }) => Object.keys(metafile.inputs));
  const packages = files.flatMap((file) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []);
  const texts = [...new Set(packages)].sort().map((name) => {
    const text = readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8');
    return `${name}\n\n${text.trim()}\n`;
  });
  writeFileSync(join(root, 'dist/THIRD-PARTY.txt'), texts.join(`\n${'-'.repeat(80)}\n\n`));
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
  const ready = () => hasProgram('make') && ['gcc', 'cc', 'clang'].some(hasProgram);
  if (!ready() && isRootOnDebian())
    await installDebianPackages(['make', 'gcc', 'libc6-dev'], 'to build porter');
  if (!ready()) {
    console.error(
      'sally: porter is built with make and a C compiler, and one of them is missing\nsally: install make and gcc, then try again',
    );
    process.exit(1);
  }
  const quiet = { stdio: ['ignore', 'ignore', 'inherit'] };
  const make = (...targets) => ['-s', `-j${availableParallelism()}`, '-C', 'porter', ...targets];
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
