import { describe, expect, it } from 'vitest';
import { keyringProgram } from './keyring-program.ts';

const item = '0123456789abcdef0123456789abcdef';
const value = 'a"$`\\;value-0123';

describe('the words for a keyring', () => {
  it('[R8] never have the value as an argument, and pass it on as it is', () => {
    for (const platform of ['linux', 'darwin'] as const) {
      const words = keyringProgram(platform);
      if (words === undefined) throw new Error(`no keyring of ${platform}`);
      const calls = [
        words.probe,
        words.keep(item, 'Sallyport secret ci', value),
        words.read(item),
        words.look(item),
        words.forget(item),
      ];
      for (const { args } of calls) expect(args.join(' ')).not.toMatch(/value|76616c7565/);
      expect(calls.filter(({ input }) => input !== undefined)).toHaveLength(1);
    }
    expect(keyringProgram('linux')?.keep(item, 'x', value).input).toBe(value);
    expect(keyringProgram('win32')).toBeUndefined();
  });

  it.each([
    ['keep', ['-i']],
    ['read', ['find-generic-password', '-w', '-s', 'sallyport', '-a', item]],
    ['look', ['find-generic-password', '-s', 'sallyport', '-a', item]],
    ['forget', ['delete-generic-password', '-s', 'sallyport', '-a', item]],
  ] as const)('[R8] of macOS, %s', (act, args) => {
    expect(keyringProgram('darwin')?.[act](item, 'Sallyport secret ci', value).args).toEqual(args);
  });

  it('[R8] of macOS give the value as digits, in one command', () => {
    const { input = '' } = keyringProgram('darwin')?.keep(item, 'Sallyport secret ci', value) ?? {};
    const [, label, digits = ''] =
      /^add-generic-password -U -s sallyport -a \w+ -l "([^"]*)" -X ([0-9a-f]+)\n$/.exec(input) ?? [];
    expect(label).toBe('Sallyport secret ci');
    expect(Buffer.from(digits, 'hex').toString('latin1')).toBe(value);
  });
});
