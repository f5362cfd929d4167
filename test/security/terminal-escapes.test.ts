/** Nothing that others wrote reaches the terminal as something that it obeys. The same bytes in the user's own command do. */

import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { boxForAll, makeBox, newFolder, sally } from '../support/cli.ts';
import { hasTerminal, type OnTerminal, sallyOnTerminal } from '../support/terminal.ts';

/** Sets the title of the window; C1 as UTF-8, DEL, and a change of the direction. */
const title = '\x1b]0;owned\x07';
const hostile = `${title}\u009b2J\x7f\u202e`;
const box = boxForAll();

const expectHarmless = (screen: string): void => {
  expect(screen).not.toContain(title);
  expect(screen).not.toMatch(/\u009b|\x7f|\u202e/);
  expect(screen).toContain('owned');
};

/** Whatever it ends with: what it showed is looked at. */
async function shown(...call: Parameters<typeof sallyOnTerminal>): Promise<OnTerminal> {
  const terminal = await sallyOnTerminal(...call);
  await terminal.result;
  return terminal;
}

describe.runIf(hasTerminal)('on a terminal', () => {
  it('a project’s file, arguments and options are shown by their codes in errors', async () => {
    const cwd = await newFolder();
    await writeFile(join(cwd, 'sallyport.yaml'), `"${JSON.stringify(hostile).slice(1, -1)}": 1\n`);
    const spec = await sallyOnTerminal(['create'], { cwd });
    expect((await spec.result).code).toBe(2);
    expectHarmless(spec.raw());
    const argument = await sallyOnTerminal(['inspect', `no-${hostile}`]);
    expect((await argument.result).code).not.toBe(0);
    expectHarmless(argument.raw());
    const option = await sallyOnTerminal([`--${hostile}`]);
    expect((await option.result).code).toBe(2);
    expectHarmless(option.raw());
  });

  it('names and contents of files of a sandbox are shown by their codes', async () => {
    const name = box();
    const make = `mkdir -p /tmp/t && cd /tmp/t && printf '%s\\n' "$1" > "x$1" && printf '%s\\n' "$1" > plain`;
    expect((await sally(['exec', name, '--', 'sh', '-c', make, 'sh', hostile])).code).toBe(0);
    for (const args of [
      ['files', 'ls', `${name}:/tmp/t`],
      ['files', 'cat', `${name}:/tmp/t/plain`],
      ['files', 'cat', `${name}:/tmp/t/gone-${hostile}`],
    ]) {
      const shown = await sallyOnTerminal(args);
      await shown.result;
      expectHarmless(shown.raw());
    }
    // Into a pipe a file goes byte by byte, and a command's own output always does.
    expect((await sally(['files', 'cat', `${name}:/tmp/t/plain`])).stdout).toBe(`${hostile}\n`);
    const own = await sallyOnTerminal(['exec', name, '--', 'printf', '%s', hostile]);
    await own.result;
    expect(own.raw()).toContain(title);
  });

  it('what a project’s Dockerfile says is shown by its codes, in errors and while it is built', async () => {
    const cwd = await newFolder();
    const dockerfile = join(cwd, 'Dockerfile.sallyport');
    for (const text of [`${hostile} x\n`, `FROM ${hostile}\n`, `FROM scratch\nCOPY ${hostile} /\n`]) {
      await writeFile(dockerfile, text);
      const refused = await shown(['image', 'build', '--approve'], { cwd });
      expect((await refused.result).code, text).not.toBe(0);
      expectHarmless(refused.raw());
    }
    // Nothing can run on scratch, so no image comes of it.
    await writeFile(dockerfile, `FROM scratch\nLABEL step="${hostile}"\nRUN ["/${hostile}"]\n`);
    const asked = await sallyOnTerminal(['image', 'build'], { cwd });
    await asked.shows('Allow that for this folder?');
    asked.type('y\n');
    expect((await asked.result).code).not.toBe(0);
    expectHarmless(asked.raw());
    expect(asked.raw()).toContain('LABEL step=');
  });

  it('labels are shown by their codes', async () => {
    const name = await makeBox(['--label', `team=${hostile}`, '--label', `${hostile}=x`]);
    for (const args of [
      ['inspect', name],
      ['ls', '--json', '--label', `team=${hostile}`],
      ['ls', '--label', hostile],
    ])
      expectHarmless((await shown(args)).raw());
    const cwd = await newFolder();
    await writeFile(join(cwd, 'sallyport.yaml'), `labels: { ${JSON.stringify(hostile)}: [1] }\n`);
    const refused = await shown(['create'], { cwd });
    expect((await refused.result).code).toBe(2);
    expectHarmless(refused.raw());
  });

  it('patches are shown by their codes', async () => {
    const folder = await newFolder();
    await writeFile(join(folder, 'plain'), 'before\n');
    const name = await makeBox(['--workspace', folder, '--workspace-mode', 'copy']);
    const change = `printf '%s\\n' "$1" > plain && printf '%s\\n' "$1" > "x$1" && ln -s "$1" link`;
    expect((await sally(['exec', name, '--', 'sh', '-c', change, 'sh', hostile])).code).toBe(0);
    for (const args of [
      ['diff', name],
      ['diff', '--stat', name],
      ['diff', '--name-only', name],
      ['diff', '--json', name],
      ['apply', name, '--patch', '-'],
      ['apply', name, '--dry-run'],
    ]) {
      const screen = await shown(args);
      expect((await screen.result).code, args.join(' ')).toBe(0);
      expectHarmless(screen.raw());
    }
    // Into a pipe a patch goes byte by byte, or it could not be applied.
    expect((await sally(['diff', name])).stdout).toContain(`+${hostile}\n`);
    expect((await sally(['apply', name, '--patch', '-'])).stdout).toContain(`+${hostile}\n`);
  });

  it('the last line of a daemon that cannot start is shown by its codes', async () => {
    const line = `${process.execPath} ${join(packageInfo().root, 'dist/daemon/main.js')}`;
    const failed = await shown([], { line, env: { SALLYPORT_DAEMON_IDLE: hostile } });
    expect((await failed.result).code).toBe(1);
    expectHarmless(failed.raw());
    expect(failed.raw()).toContain('SALLYPORT_DAEMON_IDLE');
  });

  it('an error that nobody handles is shown by its codes, and the exit code is that of the verb', async () => {
    const preload = fileURLToPath(new URL('../support/throw-after-output.cjs', import.meta.url));
    const verbs = [
      { args: ['completion', 'bash'], code: 1 },
      { args: ['exec', box(), '--', 'echo', 'here'], code: 125 },
    ];
    for (const THROWN_BY of ['timer', 'promise']) {
      for (const { args, code } of verbs) {
        const env = { NODE_OPTIONS: `--require=${preload}`, THROWN: hostile, THROWN_BY };
        const failed = await shown(args, { env });
        expect((await failed.result).code, failed.raw()).toBe(code);
        expectHarmless(failed.raw());
        expect(failed.raw()).toContain('internal error');
      }
    }
  });

  it('lines of the daemon’s log are shown by their codes', async () => {
    const folder = /^state +(.*)$/m.exec((await sally(['daemon', 'status'])).stdout)?.[1] ?? '';
    await appendFile(join(folder, 'daemon.log'), `${hostile}\n`);
    const shown = await sallyOnTerminal(['daemon', 'logs', '--tail', '20']);
    await shown.result;
    expectHarmless(shown.raw());
    expect((await sally(['daemon', 'logs', '--tail', '20'])).stdout).toContain(hostile);
  });
});

it('errors are harmless in a pipe as well, and JSON has the same value', async () => {
  const cwd = await newFolder();
  await mkdir(join(cwd, 'more'));
  const plain = await sally(['inspect', `no-${hostile}`], { cwd });
  expectHarmless(plain.stderr);
  const { stdout } = await sally(['inspect', `no-${hostile}`]);
  expect(stdout).not.toContain('\u202e');
  expect(JSON.parse(stdout).error.message).toContain('\u202e');
});
