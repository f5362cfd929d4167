import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatAddress, parseAddress } from './address.ts';
import { parseAuthority, parseBareHost, parseHost, parsePort } from './host.ts';

describe('a host', () => {
  it.each([
    ['x.com', 'x.com'],
    ['API.X.Com', 'api.x.com'],
    ['x.com.', 'x.com'],
    ['localhost', 'localhost'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['127.0.0.1', '127.0.0.1'],
    ['[::1]', '::1'],
    ['[2001:0DB8:0:0:0:0:0:1]', '2001:db8::1'],
    ['[::ffff:127.0.0.1]', '::ffff:7f00:1'],
    [`${'a'.repeat(63)}.x.com`, `${'a'.repeat(63)}.x.com`],
  ])('[R6] reads %s in its one form', (text, host) => {
    expect(parseHost(text)).toMatchObject({ host });
  });

  it.each([
    ['nothing', ''],
    ['a dot alone', '.'],
    ['two dots at the end', 'x.com..'],
    ['an empty label', 'a..x.com'],
    ['a leading dot', '.x.com'],
    ['NUL', 'x.com\0.evil.com'],
    ['CR', 'x.com\r'],
    ['LF', 'x.com\nevil.com'],
    ['a blank', 'x.com '],
    ['a tab', '\tx.com'],
    ['a percent sign', 'x%2ecom'],
    ['user-info', 'a@x.com'],
    ['a slash', 'x.com/evil'],
    ['a backslash', 'x.com\\evil'],
    ['an underscore', 'a_b.x.com'],
    ['a label of 64', `${'a'.repeat(64)}.com`],
    ['a name of 254', `${'a.'.repeat(126)}aa`],
    ['a hyphen at the start of a label', '-a.x.com'],
    ['a hyphen at the end of a label', 'a-.x.com'],
    ['hyphens at the reserved place', 'ab--c.x.com'],
    ['punycode of nothing', 'xn--a.com'],
    ['punycode of plain letters', 'xn--abc-.com'],
    ['full-width letters', 'ｘ.com'],
    ['a full-width dot', 'x．com'],
    ['an ideographic dot', 'x。com'],
    ['a zero-width letter', 'x\u200b.com'],
    ['the Kelvin sign', '\u212a.com'],
    ['an address as one number', '2130706433'],
    ['a short address', '127.1'],
    ['a hexadecimal address', '0x7f.0.0.1'],
    ['a hexadecimal number', '0x7f000001'],
    ['an octal address', '0177.0.0.1'],
    ['an address with a dot behind', '127.0.0.1.'],
    ['five numbers', '1.2.3.4.5'],
    ['a number above 255', '1.2.3.256'],
    ['a name that ends in a number', 'x.com.1'],
    ['IPv6 without brackets', '::1'],
    ['a zone', '[fe80::1%eth0]'],
    ['an encoded zone', '[fe80::1%25eth0]'],
    ['IPv4 in brackets', '[127.0.0.1]'],
    ['an open bracket', '[::1'],
    ['text behind a bracket', '[::1]x'],
    ['two double colons', '[::1::2]'],
    ['nine groups', '[1:2:3:4:5:6:7:8:9]'],
  ])('[R6] refuses %s', (_what, text) => {
    expect(parseHost(text)).toHaveProperty('problem');
  });

  it.each(['0', '65536', '0443', '99999', '+443', ' 443', '443 ', '4 43', '', '-1', '1e2', '４４３'])(
    '[R6] refuses the port %j',
    (text) => {
      expect(parsePort(text)).toBeUndefined();
      expect(parseAuthority(`x.com:${text}`)).toHaveProperty('problem');
      expect(parseAuthority('x.com:443')).toEqual({ host: 'x.com', isAddress: false, port: 443 });
    },
  );

  it('[R6] reads an authority with brackets, and refuses one with a part too many', () => {
    expect(parseAuthority('[::1]:443')).toEqual({ host: '::1', isAddress: true, port: 443 });
    expect(parseAuthority('x.com', 80)).toMatchObject({ port: 80 });
    for (const text of ['x.com', '::1:443', 'x.com:80:90', 'a@x.com:80', ':80', '[::1]80']) {
      expect(parseAuthority(text), text).toHaveProperty('problem');
    }
  });

  it('[R6] takes bare IPv6 only where there are no brackets', () => {
    expect(parseBareHost('::1')).toEqual({ host: '::1', isAddress: true });
    expect(parseBareHost('[::1]')).toHaveProperty('problem');
    expect(parseBareHost('x.com:80')).toHaveProperty('problem');
  });

  it('[R6] whatever it takes is canonical: reading it again changes nothing, and a URL has the same host', () => {
    const nasty = fc.stringMatching(/^[A-Za-z0-9.\-:[\]%@_*\\/\0\r\n０-９ａ-ｚ。]{0,40}$/);
    const likely = fc.domain();
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' }), nasty, likely), (text) => {
        const read = parseHost(text);
        if ('problem' in read) return;
        const written = read.isAddress && read.host.includes(':') ? `[${read.host}]` : read.host;
        expect(parseHost(written)).toEqual(read);
        expect(new URL(`http://${written}/`).hostname).toBe(written);
      }),
      { numRuns: 1000 },
    );
  });

  it('[R6] every address is written in one way, the one that URLs use', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        const address = parseAddress(text);
        if (address === undefined) throw new Error(`${text} was refused`);
        const written = formatAddress(address);
        expect(parseAddress(written)).toEqual(address);
        const inUrl = address.family === 6 ? `[${written}]` : written;
        expect(new URL(`http://${inUrl}/`).hostname).toBe(inUrl);
      }),
    );
  });
});
