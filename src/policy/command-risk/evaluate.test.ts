import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { riskClasses } from '../../protocol/risk-classes.ts';
import { evaluateCommand } from './evaluate.ts';
import { defaultLists, readLists } from './lists.ts';

const brief = (text: string): string => {
  const { class: riskClass, route, confirm } = evaluateCommand(text);
  return `${riskClass} ${route} ${confirm}`;
};

describe('[C1] what is written differently and runs the same is judged the same', () => {
  const samples = [
    ['rm', '-rf', '/'],
    ['rm', '-rf', './build'],
    ['cat', 'file.txt'],
    ['git', 'reset', '--hard'],
    ['npm', 'install'],
    ['curl', 'https://x.example/data.json'],
    ['curl', '-X', 'POST', 'https://x.example'],
    ['dd', 'if=/dev/zero', 'of=/dev/sda'],
    ['cat', '/etc/shadow'],
    ['frobnicate'],
  ];
  const word = (text: string) =>
    fc.constantFrom(
      text,
      `'${text}'`,
      `"${text}"`,
      `${text.slice(0, 1)}''${text.slice(1)}`,
      `${text.slice(0, 1)}"${text.slice(1)}"`,
      `\\${text}`,
      `$'${[...text].map((letter) => `\\x${letter.charCodeAt(0).toString(16).padStart(2, '0')}`).join('')}'`,
    );
  const space = fc.constantFrom(' ', '  ', '\t', ' \\\n ');
  const around = fc.constantFrom(
    (text: string) => text,
    (text: string) => `  ${text}  `,
    (text: string) => `(${text})`,
    (text: string) => `{ ${text}; }`,
    (text: string) => `true && ${text}`,
    (text: string) => `${text}; true`,
    (text: string) => `command ${text}`,
    (text: string) => `nohup ${text}`,
    (text: string) => `echo "$(${text})"`,
  );

  test.each(samples.map((words) => [words.join(' '), words]))('%s', (plain, words) => {
    const expected = brief(plain);
    fc.assert(
      fc.property(fc.tuple(...words.map(word)), space, around, (spelt, gap, wrap) => {
        expect(brief(wrap(spelt.join(gap)))).toBe(expected);
      }),
      { numRuns: 200 },
    );
  });
});

describe('[C1] a command', () => {
  test('is never better for being part of a longer one', () => {
    const parts = ['ls', 'rm -rf /', 'npm i x', 'echo hi > a', 'frob', 'kill 1', 'curl https://x'];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 5 }), (chosen) => {
        const whole = riskClasses.indexOf(evaluateCommand(chosen.join('; ')).class);
        const worst = Math.max(...chosen.map((part) => riskClasses.indexOf(evaluateCommand(part).class)));
        expect(whole).toBeGreaterThanOrEqual(Math.min(worst, riskClasses.indexOf('unknown')));
      }),
    );
  });

  test('is judged, whatever it is, without an error, and its reasons lie in its text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' })), (text) => {
        const { reasons } = evaluateCommand(text);
        for (const { span } of reasons) {
          expect(span.start).toBeGreaterThanOrEqual(0);
          expect(span.end).toBeLessThanOrEqual(text.length + 1);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('that is empty, endless or nested without end is unknown', () => {
    expect(evaluateCommand('').class).toBe('unknown');
    expect(evaluateCommand('a'.repeat(100_000)).class).toBe('unknown');
    const nested = Array.from({ length: 30 }).reduce<string>((inner) => `eval ${inner}`, 'ls');
    expect(evaluateCommand(nested).class).toBe('unknown');
  });

  test('tells the place of what is wrong with it', () => {
    const text = 'ls && rm -rf / && echo done';
    const [worst] = evaluateCommand(text).reasons;
    expect(worst?.rule).toBe('forbidden');
    expect(text.slice(worst?.span.start, worst?.span.end)).toBe('rm -rf /');
  });

  test('below the working directory is one of the project, also by its absolute path', () => {
    expect(evaluateCommand('rm -rf /home/me/app/build', { cwd: '/home/me/app' }).class).toBe('local_write');
    expect(evaluateCommand('cat /root/app/x', { cwd: '/root/app' }).class).toBe('safe');
    expect(evaluateCommand('rm -rf /home/me/app', { cwd: '/home/me/app' }).class).toBe('destructive');
    expect(evaluateCommand('rm -rf /home/me/app/../other', { cwd: '/home/me/app' }).class).toBe(
      'destructive',
    );
  });
});

describe("[C1] the lists are the user's", () => {
  const lists = readLists({ ...defaultLists, blocked: ['git push', 'npm publish', 'terraform destroy'] });

  test('what is blocked is denied, however it is spelt, and nothing asks for it', () => {
    for (const text of [
      'git push',
      'git push origin main',
      "g'i't push -f",
      'ls; git push',
      'bash -c "git push"',
    ]) {
      expect(evaluateCommand(text, { lists })).toMatchObject({
        route: 'deny',
        class: 'blocked',
        confirm: false,
      });
    }
    expect(evaluateCommand('git pull', { lists }).route).toBe('host');
    expect(evaluateCommand('echo git push', { lists }).route).toBe('host');
  });

  test('a path on it is restricted in every spelling, and another is not', () => {
    const own = readLists({ ...defaultLists, restrictedPaths: ['/srv/secret'] });
    for (const text of [
      'cat /srv/secret/a',
      'cat /srv//secret',
      'cat "/srv/./secret/x"',
      'cp --target-directory=/srv/secret a',
      'ls < /srv/secret',
    ]) {
      expect(evaluateCommand(text, { lists: own }).route, text).toBe('sandbox');
    }
    expect(evaluateCommand('cat /srv/secrets', { lists: own }).class).toBe('safe');
    expect(evaluateCommand('cat /etc/passwd', { lists: own }).class).toBe('safe');
  });

  test('a tool that is named safe there is safe', () => {
    const own = readLists({ ...defaultLists, safeTools: ['frobnicate'] });
    expect(evaluateCommand('frobnicate -x', { lists: own }).class).toBe('safe');
  });
});

describe('[C1] one part of a line changes what another one does', () => {
  test.each([
    ['bash reads [[ as a test', "bash -c '[[ -f x ]] && ls'", 'host'],
    ['sh may read it as a program', "sh -c '[[ -f x ]] && ls'", 'sandbox'],
    ['printf prints a line for each word', "printf '%s\\n' ls './x' | bash", 'sandbox'],
    ['printf prints lines that are harmless', "printf '%s\\n' ls pwd | bash", 'host'],
    ['the last redirection of the input counts', 'bash <<<ls <x.sh', 'sandbox'],
    ['a redirection of the output is none of the input', 'bash <<<ls 2>/dev/null', 'host'],
    ['git before an archive is unpacked', 'git status; tar xf x.tar', 'host'],
    ['git after an archive is unpacked', 'tar xf x.tar; git status', 'sandbox'],
    ['git in a loop that unpacks an archive', 'for i in 1 2; do git status; tar xf x.tar; done', 'sandbox'],
    ['a function that is there', 'f() { ls; }; f', 'host'],
    ['a function that is removed', 'f() { ls; }; unset f; f', 'sandbox'],
    ['a lone bracket in a glob, which is no error', 'ls *\\)', 'sandbox'],
  ])('%s', (_why, command, route) => {
    expect(evaluateCommand(command).route).toBe(route);
  });
});
