/** Runs a TypeScript file of this repository on a Node that cannot: bundled in memory, dependencies left where they are. */

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { root } from './steps.mjs';

export async function importTs(entry) {
  // Below the package, so that its own package.json and node_modules are found from there.
  const folder = join(root, '.cache', 'run-ts', String(process.pid));
  mkdirSync(folder, { recursive: true });
  const outfile = join(folder, `${entry.replaceAll('/', '-')}.mjs`);
  try {
    await build({
      absWorkingDir: root,
      entryPoints: [entry],
      outfile,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20.19',
      packages: 'external',
      logLevel: 'warning',
    });
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
