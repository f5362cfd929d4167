import { randomBytes, randomInt } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { FormAutomaton } from './form-automaton.ts';
import { Masker, maskText } from './masked-stream.ts';
import { formsOf } from './secret-forms.ts';

const real = 'sk-Real/value+of&the"secret\\<0123>=$$~%41';
const automaton = new FormAutomaton(formsOf([real]));
const entities = (text: string, write: (code: number) => string): string =>
  [...text].map((one) => write(one.charCodeAt(0))).join('');
const hexOf = (code: number): string => code.toString(16).padStart(2, '0');
const html = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

const forms: Readonly<Record<string, string>> = {
  'as it is': real,
  'in lower case': real.toLowerCase(),
  'in upper case': real.toUpperCase(),
  JSON: JSON.stringify(real).slice(1, -1),
  'JSON with \\/': JSON.stringify(real).slice(1, -1).replaceAll('/', '\\/'),
  'JSON within JSON': JSON.stringify(JSON.stringify(real)).slice(3, -3),
  'JSON, every character as \\u': entities(real, (code) => `\\u00${hexOf(code)}`),
  'JSON, every character as \\U in upper case': entities(real, (code) => `\\u00${hexOf(code).toUpperCase()}`),
  'JSON, some characters as \\u': real.replaceAll(/[<>&]/g, (one) => `\\u00${hexOf(one.charCodeAt(0))}`),
  percent: encodeURIComponent(real),
  'percent in lower case': encodeURIComponent(real).replaceAll(/%../g, (code) => code.toLowerCase()),
  'percent, every character': entities(real, (code) => `%${hexOf(code)}`),
  'percent, every second character': [...real]
    .map((one, at) => (at % 2 === 0 ? one : `%${hexOf(one.charCodeAt(0))}`))
    .join(''),
  'percent twice': encodeURIComponent(encodeURIComponent(real)),
  'quoted-printable': entities(real, (code) => `=${hexOf(code).toUpperCase()}`),
  'HTML names': html(real),
  'HTML names twice': html(html(real)),
  'HTML numbers': entities(real, (code) => `&#${code};`),
  'HTML hex numbers': entities(real, (code) => `&#x${hexOf(code)};`),
  'HTML numbers without semicolons': entities(real, (code) => `&#0${code}`),
  'quoted-printable with soft breaks': real
    .replaceAll(/.{7}/g, '$&\n')
    .replaceAll('=', '=3D')
    .replaceAll('\n', '=\r\n'),
  'JSON, four levels deep': real.replaceAll(/[/"\\]/g, `${'\\'.repeat(7)}$&`),
  'JSON, percent-encoded': real.replaceAll('/', '%5C%2F'),
  'JSON with a backslash as HTML': real.replaceAll('/', '&#92;/'),
  'HTML within JSON of Go': real.replaceAll('+', '\\u0026#43;').replaceAll('>', '\\u0026amp;#62;'),
  'HTML numbers twice': real.replaceAll('+', '&amp;#043;'),
  'HTML numbers with many zeros': entities(real, (code) => `&#0000${code};`),
  'HTML hex numbers with many zeros': entities(real, (code) => `&#x0000${hexOf(code)};`),
  'HTML numbers, percent-encoded': real.replaceAll('+', '%26%2343%3B'),
  'percent as %u': entities(real, (code) => `%u00${hexOf(code)}`),
  'percent four times': [1, 2, 3, 4].reduce((text) => encodeURIComponent(text), real),
  'percent as HTML': real.replaceAll('/', '&#37;2F'),
  'JavaScript \\u{}': entities(real, (code) => `\\u{${hexOf(code)}}`),
  'octal escapes': entities(real, (code) => `\\${code.toString(8).padStart(3, '0')}`),
  'CSS escapes': entities(real, (code) => `\\0000${hexOf(code)}`),
  'hex with colons': entities(real, (code) => `:${hexOf(code)}`).slice(1),
  'hex with spaces': entities(real, (code) => ` ${hexOf(code)}`).slice(1),
  'hex with 0x': entities(real, (code) => `, 0x${hexOf(code)}`).slice(4),
  'hex in lines': Buffer.from(real).toString('hex').replaceAll(/.{30}/g, '$&\n'),
  hex: Buffer.from(real).toString('hex'),
  'hex in upper case': Buffer.from(real).toString('hex').toUpperCase(),
};

/** Through a masker in pieces of so many bytes. */
function inPieces(data: Buffer, size: number, masker: Masker): Buffer {
  const out: Buffer[] = [];
  for (let at = 0; at < data.length; at += size) out.push(masker.push(data.subarray(at, at + size)));
  return Buffer.concat([...out, masker.flush()]);
}

describe('a value in a stream', () => {
  it.each(Object.entries(forms))('[R7] is masked %s, whatever the pieces', (_name, form) => {
    const text = `before ${form} after`;
    const stars = `before ${'*'.repeat(form.length)} after`;
    expect(maskText(text, automaton)).toBe(stars);
    for (const size of [1, 2, 3, 7, 50]) {
      expect(inPieces(Buffer.from(text), size, new Masker({ current: automaton })).toString()).toBe(stars);
    }
  });

  it.each(['\n\t', '\r\n    ', ' ', '\\n', '\\\\r\\\\n', '%0A', '%0D%0A', '&#10;', '&#xA;', '=\r\n'])(
    '[R7] is masked in base64 that is wrapped by %j',
    (wrap) => {
      const whole = Buffer.from(real)
        .toString('base64')
        .replaceAll('=', '')
        .replaceAll(/.{16}/g, `$&${wrap}`);
      const shown = maskText(`<${whole}>`, automaton);
      expect(shown).toBe(`<${'*'.repeat(whole.length)}>`);
    },
  );

  it.each(['utf16le', 'utf16be', 'utf32le'])('[R7] is masked in %s, in each form', (encoding) => {
    const wide = (text: string): Buffer => {
      const bytes = Buffer.from(text, 'utf16le');
      if (encoding === 'utf16le') return bytes;
      if (encoding === 'utf16be') return bytes.swap16();
      return Buffer.concat([...text].map((one) => Buffer.from([one.charCodeAt(0), 0, 0, 0])));
    };
    for (const form of [...Object.values(forms), Buffer.from(real).toString('base64')]) {
      // No more is held back: an escaped form in UTF-32 may begin before it.
      if (wide(form).length > 1000) continue;
      const shown = inPieces(wide(`<${form}>`), 7, new Masker({ current: automaton }));
      expect(shown.toString('latin1').replaceAll(/[\0=]/g, '')).toMatch(/^<\*+>$/);
    }
  });

  it.each([0, 1, 2, 3, 4, 5])(
    '[R7] is masked in base64 behind %i other bytes, in both alphabets, wrapped and escaped',
    (before) => {
      const whole = Buffer.from(`${'u'.repeat(before)}${real}:after that`);
      const wrapped = whole.toString('base64').replaceAll(/.{16}/g, '$&\r\n');
      const escaped = whole.toString('base64').replaceAll('/', '\\/').replaceAll('+', '%2B');
      for (const form of [whole.toString('base64'), whole.toString('base64url'), wrapped, escaped]) {
        const shown = maskText(form, automaton);
        expect(shown).toHaveLength(form.length);
        const [stars = ''] = /\*[*\r\n]*/.exec(shown) ?? [];
        expect(stars.replaceAll(/\s/g, '').length).toBeGreaterThanOrEqual(Math.floor((real.length * 4) / 3));
        // No bit of it is left: what stands beside the stars decodes to nothing of the value.
        expect(Buffer.from(shown.split('*')[0] ?? '', 'base64').toString()).toMatch(/^u*$/);
      }
    },
  );

  it('[R7] is masked beside text that looks like the start of an escape, and beside other values', () => {
    const values = ['41abcdef-one', 'two-41abcdef-one-x', 'abababababab'];
    const several = new FormAutomaton(formsOf(values));
    for (const prefix of ['%', '%25', '&#', '\\u00', '\\', '=', '&amp;#x']) {
      const shown = maskText(`${prefix}${values[0]}.`, several);
      expect(shown).toMatch(/\*{12}\.$/);
    }
    expect(maskText(`<${values[1]}>`, several)).toBe(`<${'*'.repeat(18)}>`);
    expect(maskText(`<${'ab'.repeat(20)}>`, several)).toBe(`<${'*'.repeat(40)}>`);
    expect(maskText('<41abcdef-on two-41abcdef abababab>', several)).toBe(
      '<41abcdef-on two-41abcdef abababab>',
    );
  });

  it('[R7] is masked in any mixture of spellings, and text without it stays as it is', () => {
    const spell = (one: string): string => {
      const code = hexOf(one.charCodeAt(0));
      const all = [one, `%${code}`, `\\u00${code}`, `&#x${code};`, `&#${one.charCodeAt(0)};`, `=${code}`];
      return all[randomInt(all.length)] ?? one;
    };
    for (let round = 0; round < 100; round++) {
      const value = randomBytes(randomInt(6, 60)).toString('base64url');
      const own = new FormAutomaton(formsOf([value]));
      // With a space on each side: a backslash before a value would belong to its first character.
      const noise = ` ${randomBytes(randomInt(1, 200)).toString('latin1')} `;
      const form = [...value].map(spell).join('');
      const shown = inPieces(
        Buffer.from(`${noise}${form}${noise}`, 'latin1'),
        randomInt(1, 40),
        new Masker({ current: own }),
      );
      expect(shown.toString('latin1')).toBe(`${noise}${'*'.repeat(form.length)}${noise}`);
      const near = [...value.slice(0, -1)].map(spell).join('');
      expect(maskText(near, own)).toBe(near);
    }
  });

  describe('gives no sign by delay', () => {
    type Pushes = Pick<Masker, 'push'>;
    /** How much goes out after each piece, of a text with a right guess of each length and of one with a wrong one. */
    const expectSameSizes = (make: () => Pushes): void => {
      const rest = 'x'.repeat(800);
      const sizes = (text: string): number[] => {
        const masker = make();
        const data = Buffer.from(text.repeat(4));
        return Array.from(
          { length: Math.ceil(data.length / 10) },
          (_, at) => masker.push(data.subarray(at * 10, at * 10 + 10)).length,
        );
      };
      for (const length of [1, 5, real.length - 1]) {
        expect(sizes(`${real.slice(0, length)}${rest}`)).toEqual(sizes(`${'y'.repeat(length)}${rest}`));
      }
    };

    it('[R7] what is held back is the same for a right guess and for a wrong one', () => {
      expectSameSizes(() => new Masker({ current: automaton }));
    });

    it('[R7] and a masker that holds back only what may be the start of the value is found out', () => {
      /** Holds back `held` bytes, and more where the text ends with a longer start of the value. */
      const eager = (held: number): Pushes => {
        let data = Buffer.alloc(0);
        return {
          push: (piece) => {
            data = Buffer.concat([data, piece]);
            const text = data.toString('latin1');
            let start = real.length - 1;
            while (start > 0 && !text.endsWith(real.slice(0, start))) start--;
            const out = data.subarray(0, Math.max(0, data.length - Math.max(held, start)));
            data = data.subarray(out.length);
            return out;
          },
        };
      };
      for (const held of [0, 10]) expect(() => expectSameSizes(() => eager(held))).toThrow(/deeply equal/);
    });

    it('[R7] the size of what is held back shows a class of the length of the value alone', () => {
      const held = (value: string): number => {
        const masker = new Masker({ current: new FormAutomaton(formsOf([value])) });
        masker.push(Buffer.alloc(100_000, 'x'));
        return masker.heldBytes;
      };
      for (const [least, most, bytes] of [
        [8, 42, 1024],
        [43, 85, 2048],
        [86, 170, 4096],
      ] as const) {
        for (const length of [least, most]) {
          const values = ['a', '?', '~', '/'].map((one) => one.repeat(length));
          const random = randomBytes(length).toString('base64').slice(0, length);
          expect([...values, random].map(held)).toEqual(Array.from({ length: 5 }, () => bytes));
        }
      }
    });
  });

  it('[R7] whose start had to go out is masked from there on', () => {
    const masker = new Masker({ current: automaton });
    expect(masker.push(Buffer.from(real.slice(0, 10))).length).toBe(0);
    expect(masker.flush().toString()).toBe(real.slice(0, 10));
    masker.push(Buffer.from(`${real.slice(10)} after`));
    expect(masker.flush().toString()).toBe(`${'*'.repeat(real.length - 10)} after`);
  });

  it('[R7] is masked when it becomes known while its stream is open, also where its start went out or is held', () => {
    const second = 'SECOND-value-that-comes-later';
    const both = new FormAutomaton(formsOf([real, second]));
    for (const [before, after, value] of [
      ['held', '', second],
      ['', '', second],
      ['gone', 'gone', real],
    ] as const) {
      let current = automaton;
      const masker = new Masker({
        get current() {
          return current;
        },
      });
      const half = before === '' ? '' : value.slice(0, 10);
      let shown = masker.push(Buffer.from(`<${half}`)).toString();
      if (after === 'gone') shown += masker.flush().toString();
      current = both;
      shown += masker.push(Buffer.from(`${value.slice(half.length)}> <${real}> <${second}>`)).toString();
      shown += masker.flush().toString();
      const start = after === 'gone' ? half : '*'.repeat(half.length);
      const rest = '*'.repeat(value.length - half.length);
      expect(shown).toBe(`<${start}${rest}> <${'*'.repeat(real.length)}> <${'*'.repeat(second.length)}>`);
    }
  });

  it('[R7] costs a bounded processor time for each byte, also where a body is made of it', () => {
    const long = randomBytes(6000).toString('base64');
    const own = new FormAutomaton(formsOf([real, long]));
    const msPerMegabyte = (unit: string, megabytes: number): number => {
      const data = Buffer.from(unit.repeat(Math.ceil((megabytes * 1e6) / unit.length)));
      inPieces(data.subarray(0, 1e6), 65_536, new Masker({ current: own }));
      const from = process.cpuUsage();
      const shown = inPieces(data, 65_536, new Masker({ current: own }));
      expect(shown.length).toBe(data.length);
      const { user, system } = process.cpuUsage(from);
      return (user + system) / 1000 / megabytes;
    };
    // 16 MiB of text, of the value, and of all but the end of the longest value.
    for (const unit of ['{"delta":"some text"}\n', real, long.slice(0, -1)]) {
      const short = msPerMegabyte(unit, 1);
      const whole = msPerMegabyte(unit, 16.8);
      // 4 to 14 ms each on a quiet machine. A superlinear search would exceed the ratio of the sizes.
      expect(whole).toBeLessThan(Math.max(25, short) * 10);
    }
  });
});
