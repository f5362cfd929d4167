/**
 * One CA as Chromium on Linux trusts it: the database of certificates of NSS (`cert9.db`), which it looks for in its HOME. Everything that
 * is asked of a certificate is still asked: the name, the time, the signature. A list of keys for which errors are ignored, which Chromium
 * has as a flag, would ask nothing of a server that merely shows the CA among its certificates.
 */

import { createHash } from 'node:crypto';
import { type SqliteRow, sqliteFile } from './sqlite-file.ts';

/** Numbers of PKCS #11, and of NSS beyond it. They are the names of the columns, too. */
const attribute = {
  class: 0x0,
  token: 0x1,
  private: 0x2,
  label: 0x3,
  value: 0x11,
  certificateType: 0x80,
  issuer: 0x81,
  serialNumber: 0x82,
  subject: 0x101,
  id: 0x102,
  modifiable: 0x170,
  trustServerAuth: 0xce536358,
  trustClientAuth: 0xce536359,
  trustCodeSigning: 0xce53635a,
  trustEmail: 0xce53635b,
  trustStepUp: 0xce536360,
  certificateSha1: 0xce5363b4,
  certificateMd5: 0xce5363b5,
} as const;
type Attribute = keyof typeof attribute;

/** First and last of each run of those that NSS may ask for. A column that is missing is an error there. */
const runs = [
  ...[
    [0x0, 0x3],
    [0x10, 0x12],
    [0x80, 0x8b],
    [0x90, 0x90],
    [0x100, 0x10c],
    [0x110, 0x111],
    [0x120, 0x129],
  ],
  ...[
    [0x130, 0x134],
    [0x160, 0x166],
    [0x170, 0x170],
    [0x180, 0x181],
    [0x200, 0x202],
    [0x210, 0x210],
  ],
  ...[
    [0x300, 0x302],
    [0x400, 0x406],
    [0x480, 0x482],
    [0x500, 0x503],
    [0x40000211, 0x40000212],
  ],
  ...[
    [0x80000001, 0x80000001],
    [0xce534351, 0xce534358],
    [0xce534364, 0xce534369],
  ],
  ...[
    [0xce534373, 0xce534374],
    [0xce536351, 0xce536360],
    [0xce5363b4, 0xce5363b5],
    [0xd5a0db00, 0xd5a0db00],
  ],
] as const;
const columns = runs.flatMap(([first, last]) =>
  Array.from({ length: last - first + 1 }, (_, at) => first + at),
);

const certificateClass = 1;
const trustClass = 0xce534353;
/** May sign certificates of servers. */
const trustedDelegator = 0xce534352;
/** For everything else: nobody here says anything of it. */
const mustVerify = 0xce534353;

const yes = Buffer.from([1]);
const no = Buffer.from([0]);

/** Trusts `pem`, one certificate, to vouch for servers, and nothing else. */
export function nssDatabase(pem: string): Buffer {
  const certificate = Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
  const { serialNumber, issuer, subject } = readNames(certificate);
  const common = { token: yes, private: no, modifiable: yes, issuer, serialNumber } as const;
  const rows = [
    row(1, {
      ...common,
      class: number(certificateClass),
      label: Buffer.from('Sallyport gate'),
      value: certificate,
      certificateType: number(0),
      subject,
      id: digest('sha1', certificate),
    }),
    row(2, {
      ...common,
      class: number(trustClass),
      certificateSha1: digest('sha1', certificate),
      certificateMd5: digest('md5', certificate),
      trustServerAuth: number(trustedDelegator),
      trustClientAuth: number(mustVerify),
      trustCodeSigning: number(mustVerify),
      trustEmail: number(mustVerify),
      trustStepUp: no,
    }),
  ];
  const names = columns.map((column) => `a${column.toString(16)}`);
  return sqliteFile('nssPublic', names, rows);
}

function row(id: number, content: Readonly<Partial<Record<Attribute, Buffer>>>): SqliteRow {
  const byColumn = new Map(
    Object.entries(content).map(([name, value]) => [attribute[name as Attribute] as number, value]),
  );
  return { id, values: columns.map((column) => byColumn.get(column)) };
}

function number(value: number): Buffer {
  const content = Buffer.alloc(4);
  content.writeUInt32BE(value);
  return content;
}

/** By what NSS finds a certificate again. Nothing rests on it. */
const digest = (kind: 'md5' | 'sha1', content: Buffer): Buffer => createHash(kind).update(content).digest();

/** As they are encoded, with their heads. */
function readNames(certificate: Buffer): Record<'serialNumber' | 'issuer' | 'subject', Buffer> {
  const [toBeSigned = certificate] = elements(content(certificate));
  // Version, serial number, algorithm, issuer, validity, subject.
  const [, serialNumber, , issuer, , subject] = elements(content(toBeSigned));
  if (serialNumber === undefined || issuer === undefined || subject === undefined) {
    throw new TypeError('this is no certificate of version 3');
  }
  return { serialNumber, issuer, subject };
}

function elements(der: Buffer): readonly Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at < der.length; ) {
    const { head, length } = sizes(der.subarray(at));
    found.push(der.subarray(at, at + head + length));
    at += head + length;
  }
  return found;
}

function content(element: Buffer): Buffer {
  const { head, length } = sizes(element);
  return element.subarray(head, head + length);
}

/** Of certificates that we made ourselves: lengths of at most two bytes. */
function sizes(element: Buffer): { readonly head: number; readonly length: number } {
  const first = element.readUInt8(1);
  if (first < 0x80) return { head: 2, length: first };
  const count = first & 0x7f;
  return { head: 2 + count, length: element.readUIntBE(2, count) };
}
