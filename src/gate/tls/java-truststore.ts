/**
 * Certificates as every Java since the first reads them (JKS). There is nothing secret in it: the digest at its end is of a
 * password that is the same everywhere, and Java asks for none where it only trusts.
 */

import { createHash } from 'node:crypto';

const magic = 0xfeedfeed;
const version = 2;
const trustedCertificate = 2;
const password = 'changeit';

/** `pem`: any number of certificates; what is between them does not count. */
export function javaTruststore(pem: string, now: Date): Buffer {
  const certificates = [...pem.matchAll(block)].map(([, base64 = '']) => Buffer.from(base64, 'base64'));
  const content = Buffer.concat([
    uint32(magic),
    uint32(version),
    uint32(certificates.length),
    ...certificates.flatMap((certificate, at) => entry(`root-${at}`, certificate, now)),
  ]);
  const digest = createHash('sha1')
    .update(Buffer.from(password, 'utf16le').swap16())
    // Java's own words, for want of a salt.
    .update('Mighty Aphrodite')
    .update(content)
    .digest();
  return Buffer.concat([content, digest]);
}

const block = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g;

function entry(alias: string, certificate: Buffer, now: Date): readonly Buffer[] {
  const time = Buffer.alloc(8);
  time.writeBigInt64BE(BigInt(now.getTime()));
  return [
    uint32(trustedCertificate),
    text(alias),
    time,
    text('X.509'),
    uint32(certificate.length),
    certificate,
  ];
}

function text(words: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(words.length);
  return Buffer.concat([length, Buffer.from(words, 'ascii')]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
