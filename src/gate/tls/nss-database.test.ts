import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { commandExists, requirement } from '../../../test/support/requires.ts';
import { nssDatabase } from './nss-database.ts';
import { SandboxAuthority } from './sandbox-authority.ts';
import { sqliteFile } from './sqlite-file.ts';

const run = promisify(execFile);
const hasSqlite = requirement('sqlite3 of Python', commandExists('python3'));

/** The words of SQLite itself on a file, and all that is in its table. */
const look = `
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
print(base.execute("pragma integrity_check").fetchone()[0])
for row in base.execute("select id, hex(a0), hex(a11), hex(a82), hex(a81) = hex(a101), hex(ace536358), hex(ace536359) from nssPublic"): print(*row)
base.execute("insert into nssPublic (id, a0) values (9, x'01')")
print(base.execute("select count(*) from nssPublic").fetchone()[0])
`;

describe('the database of certificates that Chromium reads', () => {
  it.runIf(hasSqlite)(
    '[R7] is one of SQLite, with the CA and what it is trusted for: servers alone',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'sallyport-nss-'));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      // As long a name as an authority takes.
      const { certificatePem } = SandboxAuthority.create('x'.repeat(100), new Date());
      writeFileSync(join(folder, 'cert9.db'), nssDatabase(certificatePem));
      const { stdout } = await run('python3', ['-c', look, join(folder, 'cert9.db')]);
      const { raw, serialNumber } = new X509Certificate(certificatePem);
      const serial = `0210${serialNumber}`;
      expect(stdout.trim().split('\n')).toEqual([
        'ok',
        `1 00000001 ${raw.toString('hex').toUpperCase()} ${serial} 1  `,
        // A delegator for servers; of clients nothing is said.
        `2 CE534353  ${serial} 0 CE534352 CE534353`,
        '3',
      ]);
    },
  );

  it('is refused where it does not fit on its page, and not cut', () => {
    const row = { id: 1, values: [Buffer.alloc(5000)] };
    expect(() => sqliteFile('t', ['a'], [row])).toThrow(RangeError);
  });
});
