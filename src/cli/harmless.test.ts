import { expect, it } from 'vitest';
import { harmlessJson } from '../lib/harmless-json.ts';
import { SallyportError } from '../protocol/errors.ts';
import { harmless } from './harmless.ts';
import { describeError } from './output.ts';

const hostile = {
  'an escape sequence': ['\x1b[2J', '\\u{1b}[2J'],
  'a title': ['\x1b]0;x\x07', '\\u{1b}]0;x\\u{7}'],
  'a C1 introducer': ['\u009b31m', '\\u{9b}31m'],
  DEL: ['a\x7f', 'a\\u{7f}'],
  'a carriage return': ['safe\rbad', 'safe\\rbad'],
  'a backspace': ['x\b', 'x\\u{8}'],
  NUL: ['\0', '\\u{0}'],
  'an override of the direction': ['\u202egnp.exe', '\\u{202e}gnp.exe'],
  'an isolate': ['\u2066x\u2069', '\\u{2066}x\\u{2069}'],
  'a zero-width space': ['a\u200bb', 'a\\u{200b}b'],
  'a line separator': ['a\u2028b', 'a\\u{2028}b'],
} as const;

it.each(Object.entries(hostile))('shows the code of %s', (_name, [text, shown]) => {
  expect(harmless(text)).toBe(shown);
  const error = new SallyportError('usage', `m ${text}`, { advice: `a ${text}` });
  expect(describeError(error)).toBe(`sally: m ${shown}\nsally: a ${shown}`);
  for (const indent of [undefined, 2]) {
    expect(harmlessJson({ text }, indent)).not.toMatch(/(?!\n)[\p{C}\u2028]/u);
    expect(JSON.parse(harmlessJson({ text }, indent))).toEqual({ text });
  }
});

it('leaves ordinary text of every script, line ends and tabs as they are', () => {
  const text = 'a\tb\nnaïve 日本語 Ελληνικά 🙂 ~';
  expect(harmless(text)).toBe(text);
  expect(JSON.parse(harmlessJson(text))).toBe(text);
});
