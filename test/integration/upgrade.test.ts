/** `sally upgrade`, as users call it, with a folder and a server for the release. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { newFolder, sally } from '../support/cli.ts';
import { serveFolder } from '../support/static-server.ts';

const { version } = packageInfo();

async function release(of: string, changelog = '### Fixed\n\n- A fault.'): Promise<string> {
  const folder = await newFolder();
  const files = [{ name: `sallyport-${of}.tgz`, sha256: 'a'.repeat(64) }];
  await writeFile(
    join(folder, 'latest.json'),
    JSON.stringify({ version: of, date: '2027-01-31', files, changelog }),
  );
  return folder;
}

describe('sally upgrade', () => {
  it('[N23] --check says that there is no release server, and how to name one', async () => {
    const result = await sally(['upgrade', '--check']);
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr).toMatch(/there is no release server yet[\s\S]*Set SALLYPORT_RELEASES/);
  });

  it('[N23] --check shows a newer release of a folder, what changed and how to install it', async () => {
    const env = { SALLYPORT_RELEASES: await release('99.0.0') };
    const { code, stdout } = await sally(['upgrade', '--check'], { env });
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^Sallyport 99\\.0\\.0 of 2027-01-31 is newer than ${version}\n`));
    expect(stdout).toContain('- A fault.');
    // These tests run from a checkout.
    expect(stdout).toMatch(/\ngit -C \S+ pull\n/);
  });

  it('[N23] --check --json tells a program the same, from a server', async () => {
    const { port, asked } = await serveFolder(await release('99.0.0'));
    const env = { SALLYPORT_RELEASES: `http://127.0.0.1:${port}` };
    const { code, stdout } = await sally(['upgrade', '--check', '--json'], { env });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ current: version, latest: '99.0.0', newer: true });
    expect(asked).toEqual([`127.0.0.1:${port} /latest.json`]);
  });

  it.each(['0.0.1', version])('[N23] --check says that this is up to date beside release %s', async (of) => {
    const env = { SALLYPORT_RELEASES: await release(of) };
    const result = await sally(['upgrade', '--check'], { env });
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).toBe(`Sallyport ${version} is up to date (newest release: ${of})\n`);
  });

  it('[N23] shows nothing of a changelog that a terminal would obey', async () => {
    const env = { SALLYPORT_RELEASES: await release('99.0.0', '- \u001b]0;title\u0007') };
    const { stdout } = await sally(['upgrade', '--check'], { env });
    expect(stdout).toContain('- \\u{1b}]0;title\\u{7}');
  });

  it('[N23] without --check prints the commands for this installation, and runs none', async () => {
    const { code, stdout, stderr } = await sally(['upgrade']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^git -C \S+ pull\nnpm --prefix \S+ ci\nnpm --prefix \S+ run build\n$/);
    expect(stderr).toContain('there is no release server yet');
  });

  it('[N23] names the address that does not answer', async () => {
    const env = { SALLYPORT_RELEASES: join(await newFolder(), 'absent') };
    const result = await sally(['upgrade', '--check', '--json'], { env });
    expect(result.code).toBe(1);
    expect(JSON.parse(result.stdout)).toMatchObject({ error: { code: 'release_unreachable' } });
  });
});
