/** The examples, run as their readers run them: bundled, against the built package. */

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { describe, expect, it, onTestFinished } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { testDaemon } from '../support/daemon.ts';
import { testEngine } from '../support/engine.ts';

const execute = promisify(execFile);
const { root } = packageInfo();

async function example(name: string): Promise<string> {
  const { stateDir } = await testDaemon();
  const { endpoint, image } = testEngine();
  // Below the package, so that it finds itself by its own name.
  await mkdir(join(root, '.cache'), { recursive: true });
  const folder = await mkdtemp(join(root, '.cache', 'example-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const outfile = join(folder, `${name}.mjs`);
  await build({
    entryPoints: [join(root, 'examples', `${name}.ts`)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    packages: 'external',
    tsconfigRaw: {},
  });
  const { stdout } = await execute(process.execPath, [outfile], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '/',
      DOCKER_HOST: endpoint,
      SALLYPORT_STATE_DIR: stateDir,
      SALLYPORT_EXAMPLE_IMAGE: image,
    },
  });
  return stdout;
}

describe('the examples', () => {
  it('run-untrusted stops what does not end by itself', async () => {
    expect(await example('run-untrusted')).toBe('I am sally\n0\nstopped at its time limit\n');
  });

  it('stream-and-stdin talks to a program and kills another', async () => {
    expect(await example('stream-and-stdin')).toBe(
      'heard one\nheard two\nheard three\nbye, exit code 0\nkilled: SIGKILL\n',
    );
  });

  it('files-and-events brings a result out', async () => {
    expect(await example('files-and-events')).toBe('the sum is 6\nnothing → PENDING\nPENDING → READY\n');
  });

  it('mcp gives a client tools that are a sandbox', async () => {
    expect(await example('mcp')).toBe('run 0 5050\nrun 3\n');
  });

  it('ai-sdk lets a model work in a sandbox', async () => {
    expect(await example('ai-sdk')).toBe('write_file - -\nrun 0 5050\nThe sum is 5050.\n');
  });
});
