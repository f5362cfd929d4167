import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { SallyportError } from '../protocol/errors.ts';
import type { ExecView } from '../protocol/views.ts';
import { parsePlace, requirePlace } from './box-place.ts';
import { completeWords } from './complete-words.ts';
import { SignalDesk } from './context.ts';
import { exitCodeOf } from './exec-outcome.ts';
import { exitCodeFor } from './exit-codes.ts';
import { LastLines } from './last-lines.ts';
import { program } from './program.ts';
import { ago, commandLine, modeText, printable, table } from './table.ts';
import { registerAll } from './verbs/all.ts';

const never = (): never => {
  throw new Error('it exits');
};

describe('tables', () => {
  it('have as many rows as a sandbox makes names, and columns as wide as the longest of them', () => {
    const rows = Array.from({ length: 300_000 }, (_, index) => [index === 200_000 ? 'longest' : 'x', 'y']);
    const lines = table(['A', 'B'], rows);
    expect(lines).toHaveLength(rows.length + 1);
    expect(lines.at(-1)).toBe('x         y');
  });

  it('aligns columns and shows nothing that a terminal obeys', () => {
    expect(table(['A', 'BB'], [['long', 'x\u001b[2J']])).toEqual(['A      BB', 'long   x\\u{1b}[2J']);
    expect(printable('a\nb\t\u202e')).toBe('a\\nb\\t\\u{202e}');
  });

  it('tells times, commands and modes', () => {
    expect(ago('2026-01-01T00:00:00Z', Date.parse('2026-01-01T02:10:00Z'))).toBe('2 hours ago');
    expect(ago('2026-01-01T00:00:00Z', Date.parse('2026-01-01T00:00:03Z'))).toBe('3 s ago');
    expect(commandLine(['sh', '-c', "it's"])).toBe("sh -c 'it'\\''s'");
    expect(commandLine(['x'.repeat(100)], 10)).toBe('xxxxxxxxx…');
    expect(modeText(0o754)).toBe('rwxr-xr--');
  });
});

describe('the last lines', () => {
  const last = async (count: number, ...chunks: readonly string[]): Promise<string> => {
    const lines = new LastLines(count);
    for (const chunk of chunks) lines.push(Buffer.from(chunk));
    let text = '';
    for await (const chunk of lines.chunks()) text += chunk.toString();
    return text;
  };

  it('come from any pieces, with and without a newline at the end', async () => {
    expect(await last(2, 'a\nb\nc\n')).toBe('b\nc\n');
    expect(await last(2, 'a\nb', '\nc')).toBe('b\nc');
    expect(await last(5, 'a\nb\n')).toBe('a\nb\n');
    expect(await last(1, '\n\n\n')).toBe('\n');
    expect(await last(2, '\na\n')).toBe('\na\n');
    expect(await last(1)).toBe('');
    expect(await last(1, 'a\n', 'b\n', 'c', 'd\n')).toBe('cd\n');
  });
});

describe('places', () => {
  it.each([
    ['web:/etc', { box: 'web', path: '/etc' }],
    ['web:', { box: 'web', path: '' }],
    [':/x', { box: '', path: '/x' }],
    ['./a:b', undefined],
    ['/a:b', undefined],
    ['a/b:c', undefined],
    ['plain', undefined],
  ])('%s', (text, place) => {
    expect(parsePlace(text)).toEqual(place);
  });

  it('takes a bare name where only a place can be meant, and refuses a path of this machine', () => {
    expect(requirePlace('web')).toEqual({ box: 'web', path: '' });
    expect(() => requirePlace('/etc')).toThrow('no place in a sandbox');
  });
});

describe('exit codes', () => {
  const exec = (more: Partial<ExecView>): ExecView => ({
    id: 'ex-1',
    sandbox_id: 'sb-1',
    argv: ['x'],
    cwd: '/',
    tty: false,
    state: 'exited',
    started_at: '',
    timed_out: false,
    oom_killed: false,
    memory_limit_exceeded: false,
    killed: false,
    output_incomplete: false,
    left_behind: 0,
    stdout_bytes: 0,
    stderr_bytes: 0,
    ...more,
  });
  const error = { code: 'exec_start_failed', kind: 'invalid', message: 'm', advice: 'a' };

  it.each([
    [{ exit_code: 3 }, 3],
    [{ signal: 'SIGTERM' }, 143],
    [{ signal: 'SIG35' }, 163],
    [{ signal: 'SIGKILL', timed_out: true }, 124],
    [{ state: 'refused' as const, error: { ...error, details: { errno: 2 } } }, 127],
    [{ state: 'refused' as const, error: { ...error, details: { errno: 13 } } }, 126],
  ])('[R10] of %j', (more, code) => {
    expect(exitCodeOf(exec(more))).toBe(code);
  });

  it('[R10] a command whose sandbox ended is a failure of ours', () => {
    const lost = exec({ state: 'lost', error: { ...error, code: 'exec_lost', details: {} } });
    expect(() => exitCodeOf(lost)).toThrow('m');
    expect(exitCodeFor(new SallyportError('exec_lost', 'm'), 'passThrough')).toBe(125);
    expect(exitCodeFor(new SallyportError('exec_lost', 'm'), 'plain')).toBe(1);
    expect(exitCodeFor(new SallyportError('config_invalid', 'm'), 'passThrough')).toBe(2);
  });
});

describe('signals', () => {
  it('cancel at the first, end at the second, and go to whoever takes them', () => {
    const codes: number[] = [];
    const desk = new SignalDesk(((code: number) => void codes.push(code)) as (code: number) => never);
    const taken: string[] = [];
    const giveBack = desk.takeSignals((signal) => taken.push(signal));
    desk.receive('SIGINT');
    desk.receive('SIGPIPE');
    giveBack();
    expect({ taken, aborted: desk.signal.aborted, codes }).toEqual({
      taken: ['SIGINT', 'SIGPIPE'],
      aborted: false,
      codes: [],
    });
    desk.receive('SIGTERM');
    expect(desk.signal.reason).toMatchObject({ code: 'cancelled', message: 'it was interrupted (SIGTERM)' });
    expect(desk.interruption).toBe('SIGTERM');
    desk.receive('SIGTERM');
    desk.receive('SIGPIPE');
    expect(codes).toEqual([143, 0]);
  });
});

describe('the first signal', () => {
  const desks = (): { readonly desk: SignalDesk; readonly codes: number[] } => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const codes: number[] = [];
    return {
      desk: new SignalDesk(((code: number) => void codes.push(code)) as (code: number) => never),
      codes,
    };
  };

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('%s ends a verb that does not end by itself within a second', (signal, code) => {
    const { desk, codes } = desks();
    desk.receive(signal);
    vi.advanceTimersByTime(999);
    expect(codes).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(codes).toEqual([code]);
    expect(desk.exitCode(130)).toBe(code);
    expect(desk.exitCode(0)).toBe(0);
  });

  it('leaves a verb that cleans up ten seconds, and one that must finish all it takes', () => {
    const cleaning = desks();
    cleaning.desk.allowCleanUp();
    cleaning.desk.receive('SIGINT');
    vi.advanceTimersByTime(9_999);
    expect(cleaning.codes).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(cleaning.codes).toEqual([130]);
    const finishing = desks();
    finishing.desk.receive('SIGINT');
    finishing.desk.finish();
    vi.advanceTimersByTime(60_000);
    expect(finishing.codes).toEqual([]);
    finishing.desk.receive('SIGINT');
    expect(finishing.codes).toEqual([130]);
  });
});

describe('completion', () => {
  const { root } = program(new SignalDesk(never), registerAll);
  it.each([
    [['ver'], { words: ['verify', 'version'] }],
    [['p'], { words: ['ps', 'pause', 'prune', 'ports', 'provision'] }],
    [['__'], { words: [] }],
    [['daemon', 's'], { words: ['start', 'stop', 'status'] }],
    [['create', '--workspace-mode', ''], { words: ['live', 'readonly', 'copy'] }],
    [['create', '--name', 'x', '--idle'], { words: ['--idle-ttl'] }],
    [['create', '--pids'], { words: ['--pids-limit'] }],
    [['rm', 'one', ''], { words: [], boxes: 'name' }],
    [['exec', ''], { words: [], boxes: 'name' }],
    [['exec', 'web', ''], { words: [] }],
    [['run', '--', 'l'], { words: [] }],
    [['files', 'cat', ''], { words: [], boxes: 'place' }],
    [['completion', 'z'], { words: ['zsh'] }],
  ])('of %j', (line, expected) => {
    expect(completeWords(root, line)).toEqual(expected);
  });

  it('has examples in the help of every verb that does something', () => {
    const without: string[] = [];
    const visit = (command: typeof root, path: string): void => {
      const lines: string[] = [];
      command.configureOutput({ writeOut: (text) => void lines.push(text) });
      command.outputHelp();
      if (command.commands.length === 0 && !path.includes('__') && !lines.join('').includes('Examples:'))
        without.push(path);
      for (const child of command.commands) visit(child as typeof root, `${path} ${child.name()}`);
    };
    visit(root, 'sally');
    expect(without).toEqual([]);
  });
});
