/** X.509 certificates over P-256: the CA of a sandbox, and the leaves by which the gate answers for a server. */

import { createHash, type KeyObject, randomBytes, sign } from 'node:crypto';
import net from 'node:net';
import { bits, bool, der, integer, octets, oid, sequence, setOf, tagged, time, utf8 } from './der.ts';

export interface Validity {
  readonly from: Date;
  readonly until: Date;
}

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'));

/** May sign leaves and no further CA. */
export function makeAuthorityCertificate(name: string, key: KeyPair, validity: Validity): string {
  return certify({
    issuer: name,
    subject: name,
    publicKey: key.publicKey,
    signingKey: key.privateKey,
    validity,
    extensions: [
      extension('2.5.29.19', true, sequence(bool(true), integer(Buffer.from([0])))),
      // keyCertSign and cRLSign
      extension('2.5.29.15', true, bits(Buffer.from([0x06]), 1)),
      extension('2.5.29.14', false, octets(keyId(key.publicKey))),
    ],
  });
}

export interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

export function makeLeafCertificate(
  host: string,
  publicKey: KeyObject,
  authority: { readonly name: string; readonly key: KeyPair },
  validity: Validity,
): string {
  return certify({
    issuer: authority.name,
    // Names longer than 64 do not fit in a common name; clients go by the alternative name anyway.
    subject: host.length <= 64 ? host : 'sallyport',
    publicKey,
    signingKey: authority.key.privateKey,
    validity,
    extensions: [
      extension('2.5.29.19', true, sequence()),
      extension('2.5.29.15', true, bits(Buffer.from([0x80]), 7)),
      extension('2.5.29.37', false, sequence(oid('1.3.6.1.5.5.7.3.1'))),
      extension('2.5.29.35', false, sequence(der(0x80, keyId(authority.key.publicKey)))),
      extension('2.5.29.14', false, octets(keyId(publicKey))),
      extension('2.5.29.17', false, sequence(alternativeName(host))),
    ],
  });
}

interface Certificate {
  readonly issuer: string;
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly signingKey: KeyObject;
  readonly validity: Validity;
  readonly extensions: readonly Buffer[];
}

function certify(certificate: Certificate): string {
  const { issuer, subject, publicKey, signingKey, validity, extensions } = certificate;
  // Positive and of at most 20 bytes.
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const body = sequence(
    tagged(0, integer(Buffer.from([2]))),
    integer(serial),
    ecdsaWithSha256,
    nameOf(issuer),
    sequence(time(validity.from), time(validity.until)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(3, sequence(...extensions)),
  );
  const signature = sign('sha256', body, signingKey);
  return pem(sequence(body, ecdsaWithSha256, bits(signature)));
}

function pem(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

const nameOf = (commonName: string): Buffer =>
  sequence(
    setOf(sequence(oid('2.5.4.10'), utf8('Sallyport'))),
    setOf(sequence(oid('2.5.4.3'), utf8(commonName))),
  );

const extension = (id: string, critical: boolean, value: Buffer): Buffer =>
  sequence(oid(id), ...(critical ? [bool(true)] : []), octets(value));

function alternativeName(host: string): Buffer {
  return net.isIP(host) === 0 ? der(0x82, Buffer.from(host, 'latin1')) : der(0x87, addressBytes(host));
}

function addressBytes(host: string): Buffer {
  if (net.isIPv4(host)) return Buffer.from(host.split('.').map(Number));
  // The URL parser writes a tail of IPv4 in hexadecimal, so only groups are left.
  const [head = '', tail] = new URL(`http://[${host}]/`).hostname.slice(1, -1).split('::');
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const before = groups(head);
  const after = groups(tail ?? '');
  const middle = tail === undefined ? [] : Array<string>(8 - before.length - after.length).fill('0');
  return Buffer.from([...before, ...middle, ...after].map((one) => one.padStart(4, '0')).join(''), 'hex');
}

/** As RFC 5280 4.2.1.2 suggests; SHA-256 cut short instead of SHA-1. */
const keyId = (publicKey: KeyObject): Buffer =>
  createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest()
    .subarray(0, 20);
