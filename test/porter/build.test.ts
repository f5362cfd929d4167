/**
 * porter and keeper are the same small programs whatever compiler the machine has: gcc, clang, gcc with the headers of musl,
 * and the cross compiler.
 */

import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { readElf } from '../support/elf.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { connectPorter, nativeArchitecture, startProgram } from '../support/porter-child.ts';
import { arm64Emulator, commandExists, requirement } from '../support/requires.ts';

const sources = ['Makefile', 'src', 'keeper', 'runtime', 'test'];
const crossCompiler = 'aarch64-linux-gnu-gcc';
const isAmd64 = nativeArchitecture === 'amd64';

interface Way {
  readonly compiler: string;
  readonly architecture: string;
  readonly flags: string;
}

const ways: readonly Way[] = [
  { compiler: 'gcc', architecture: nativeArchitecture, flags: '' },
  { compiler: 'gcc', architecture: nativeArchitecture, flags: '-O2' },
  { compiler: crossCompiler, architecture: 'arm64', flags: '' },
  { compiler: 'clang', architecture: nativeArchitecture, flags: '' },
  { compiler: 'musl-gcc', architecture: nativeArchitecture, flags: '' },
];
for (const compiler of ['gcc', 'clang', 'musl-gcc']) requirement(compiler, commandExists(compiler));
const hasEmulator = requirement(
  'a cross compiler for arm64, and an emulator',
  !isAmd64 || (commandExists(crossCompiler) && arm64Emulator !== undefined),
);
const found = ways.filter(
  ({ compiler, architecture }) =>
    commandExists(compiler) && (architecture === nativeArchitecture || hasEmulator),
);

/** A copy of the sources, so that nothing of the program that the other tests use is built again. */
function copySources(): string {
  const folder = temporaryFolder();
  for (const source of sources) {
    cpSync(join(packageInfo().root, 'porter', source), join(folder, source), { recursive: true });
  }
  return folder;
}

function make(folder: string, ...args: readonly string[]): void {
  const { status, stderr } = spawnSync('make', ['-s', '-j2', '-C', folder, ...args], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(status).toBe(0);
}

function run(command: readonly string[], cwd: string): string {
  const [program = '', ...args] = command;
  const { stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout;
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}

describe.each(found)('porter by $compiler $flags for $architecture', ({ compiler, architecture, flags }) => {
  const emulated = architecture !== nativeArchitecture;
  const build = (): string => {
    const folder = copySources();
    // Warnings are errors here and nowhere else: a compiler that nobody has tried yet must not keep a user from porter.
    const options = [`CC_${architecture}=${compiler}`, `EXTRA_CFLAGS=${flags}`, 'WERROR=1'];
    make(folder, ...options, architecture, `check-${architecture}`);
    return join(folder, 'build');
  };

  it('is small, static, and has nothing that is writable and executable', async () => {
    const folder = build();
    const wrapper = emulated && arm64Emulator !== undefined ? [arm64Emulator] : [];
    for (const [name, most] of [
      ['porter', 110_000],
      ['keeper', 20_000],
    ] as const) {
      const path = join(folder, `${name}-${architecture}`);
      expect(statSync(path).size, name).toBeLessThan(most);
      const { type, machine, segments } = readElf(path);
      expect({ type, machine }).toEqual({ type: 2, machine: architecture });
      expect(new Set(segments.map(({ kind }) => kind))).toEqual(new Set(['load', 'stack']));
      expect(segments.filter(({ access }) => access.includes('w') && access.includes('x'))).toEqual([]);
      expect(segments.find(({ kind }) => kind === 'stack')?.access).toBe('rw');
    }
    const porter = [...wrapper, join(folder, `porter-${architecture}`)];
    // The source is the same, whoever compiled it.
    expect(run([...porter, '--version'], folder)).toBe(run([...ownPorter(), '--version'], folder));
    const child = startProgram([...porter, '--exit-with-host']);
    await (await connectPorter(child)).ping();
    if (!emulated) expect(residentBytes(child.child.pid ?? 0)).toBeLessThan(400 * 1024);

    const empty = join(folder, 'empty');
    mkdirSync(empty);
    const check = [...wrapper, join(folder, `check-${architecture}`), ...(emulated ? ['emulated'] : [])];
    expect(run(check, empty)).toBe('ok\n');
  });
});

const ownPorter = (): readonly string[] => [
  join(packageInfo().root, 'porter', 'build', `porter-${nativeArchitecture}`),
];

describe('make', () => {
  // The smaller of the two programs, by the same rules.
  const target = `build/keeper-${nativeArchitecture}`;
  const program = (folder: string): string => join(folder, target);
  const made = (folder: string): bigint => statSync(program(folder), { bigint: true }).mtimeNs;

  it('builds nothing again that is up to date, and everything again with other flags', () => {
    const folder = copySources();
    make(folder, target);
    const [first, bytes] = [made(folder), readFileSync(program(folder))];
    make(folder, target);
    expect(made(folder)).toBe(first);
    make(folder, target, 'EXTRA_CFLAGS=-O2');
    expect(readFileSync(program(folder)).equals(bytes)).toBe(false);
    // The same source, compiler and flags give the same bytes.
    make(folder, target);
    expect(readFileSync(program(folder)).equals(bytes)).toBe(true);
  });

  it('builds again when the compiler is another one, or another version of the same', () => {
    const folder = copySources();
    const compiler = join(folder, 'compiler');
    const install = (version: string): void => {
      writeFileSync(compiler, `#!/bin/sh\n[ "$1" = --version ] && exec echo ${version}\nexec gcc "$@"\n`);
      chmodSync(compiler, 0o755);
    };
    install('first');
    make(folder, target, `CC_${nativeArchitecture}=${compiler}`);
    const first = made(folder);
    make(folder, target, `CC_${nativeArchitecture}=${compiler}`);
    expect(made(folder)).toBe(first);
    install('second');
    make(folder, target, `CC_${nativeArchitecture}=${compiler}`);
    const second = made(folder);
    expect(second).not.toBe(first);
    make(folder, target, `CC_${nativeArchitecture}=gcc`);
    expect(made(folder)).not.toBe(second);
  });

  it('names a compiler that is missing, and says which architectures can be built', () => {
    const folder = copySources();
    const { status, stderr } = spawnSync('make', ['-s', '-C', folder, 'arm64', 'CC_arm64=/nowhere/gcc'], {
      encoding: 'utf8',
    });
    expect(status).toBe(2);
    expect(stderr).toContain('/nowhere/gcc');
    const can = (architecture: string, compiler: string): boolean =>
      spawnSync('make', ['-s', '-C', folder, `have-${architecture}`, `CC_${architecture}=${compiler}`])
        .status === 0;
    expect(can(nativeArchitecture, 'gcc')).toBe(true);
    expect(can('arm64', '/nowhere/gcc')).toBe(false);
  });
});
