import { describe, expect, test } from 'vitest';
import { readGuarded } from './guarded-command.ts';

describe('[C1] a command to be guarded', () => {
  test.each<[string, Parameters<typeof readGuarded>[0], ReturnType<typeof readGuarded>]>([
    ['a line of shell', { command: 'ls | wc' }, { text: 'ls | wc' }],
    ['words', { argv: ['rm', '-rf', 'a b'] }, { text: "rm -rf 'a b'", argv: ['rm', '-rf', 'a b'] }],
    [
      'words that a shell would read otherwise',
      { argv: ['echo', '$(id)', "it's", ';', 'A=b', ''] },
      { text: "echo '$(id)' 'it'\\''s' ';' 'A=b' ''", argv: ['echo', '$(id)', "it's", ';', 'A=b', ''] },
    ],
    [
      'an assignment in place of a program',
      { argv: ['A=b', 'id'] },
      { text: "'A=b' id", argv: ['A=b', 'id'] },
    ],
    ["a shell's tool", { tool: 'bash', args: { command: 'make' } }, { text: 'make' }],
    ["a shell's tool by another name", { tool: 'execute_cli', args: { cmd: 'ls' } }, { text: 'ls' }],
    ['a tool with words', { tool: 'lint', args: ['--fix'] }, { text: 'lint --fix', argv: ['lint', '--fix'] }],
    [
      'a tool with an object',
      { tool: 'send_mail', args: { to: 'x' } },
      { text: `send_mail '{"to":"x"}'`, argv: ['send_mail', '{"to":"x"}'] },
    ],
    ['a tool alone', { tool: 'lint' }, { text: 'lint', argv: ['lint'] }],
  ])('is read from %s', (_what, given, expected) => {
    expect(readGuarded(given)).toEqual(expected);
  });

  test.each([
    [{}],
    [{ command: 'ls', argv: ['ls'] }],
    [{ command: 'ls', args: [] }],
    [{ argv: [] }],
    [{ tool: 'bash', args: { command: 7 } }],
  ])('is refused as %j', (given) => {
    expect(() => readGuarded(given)).toThrow(expect.objectContaining({ code: 'request_invalid' }));
  });
});
