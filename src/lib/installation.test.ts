import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { type Installation, installationOf, npmPlace } from './installation.ts';

function made(path: string, ...files: readonly string[]): { readonly base: string; readonly root: string } {
  const base = mkdtempSync(join(tmpdir(), 'sallyport-installation-'));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const root = join(base, path);
  mkdirSync(root, { recursive: true });
  for (const file of files) writeFileSync(join(root, file), '');
  return { base, root };
}

it.each<readonly [string, readonly string[], (base: string) => Installation]>([
  ['lib/sallyport/package', ['../archive'], (prefix) => ({ kind: 'archive', prefix })],
  ['lib/node_modules/sallyport', [], (prefix) => ({ kind: 'npm-global', prefix })],
  ['app/node_modules/sallyport', [], (base) => ({ kind: 'npm-local', folder: join(base, 'app') })],
  ['sallyport', ['src'], (base) => ({ kind: 'checkout', folder: join(base, 'sallyport') })],
  [
    'node_modules/sallyport',
    ['src'],
    (base) => ({ kind: 'checkout', folder: join(base, 'node_modules/sallyport') }),
  ],
])('[N23] derives from %s how the program was installed', (path, files, expected) => {
  const { base, root } = made(path, ...files);
  expect(installationOf(root)).toEqual(expected(base));
});

it('[N23] names the prefix for npm only where npm would not find the program by itself', () => {
  const own = dirname(dirname(process.execPath));
  expect(npmPlace({ kind: 'npm-global', prefix: own })).toEqual(['-g']);
  expect(npmPlace({ kind: 'npm-global', prefix: '/opt/x' })).toEqual(['-g', '--prefix', '/opt/x']);
  expect(npmPlace({ kind: 'npm-local', folder: '/app' })).toEqual(['--prefix', '/app']);
});
