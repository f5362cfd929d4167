/** [R6] The way out under load, through a real sandbox: many connections at once, and memory that does not grow with requests. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import type { Sandbox } from '../../src/sdk/sandbox.ts';
import { newFolder } from '../support/cli.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { makeSandbox, memoryReport } from '../support/daemon-world.ts';
import { testDns } from '../support/dns-server.ts';
import { serveSite } from '../support/package-site.ts';

/** The client of `npm run bench -- gate-box`: one order, then how it went. */
async function order(box: Sandbox, words: string, way: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await box.exec(['python3', '/tmp/client.py', ...way], { input: `${words}\n` });
  expect({ words, exitCode, stderr }).toEqual({ words, exitCode: 0, stderr: '' });
}

describe('[R6] the gate under load', () => {
  it('has 200 tunnels at once by every entrance, and holds no more memory after hundreds of requests', async () => {
    const folder = await newFolder('own');
    await writeFile(join(folder, '0'), 'ok');
    await writeFile(join(folder, '20000'), Buffer.alloc(20_000, 7));
    const site = await serveSite(folder);
    const root = join(folder, 'root.pem');
    await writeFile(root, site.root);
    const dns = await testDns({ 'tunnel.test': ['127.0.0.1'], 'opened.test': ['127.0.0.1'] });
    const home = await daemonHome();
    const { variables, heldBytes } = memoryReport(home);
    const daemon = await home.start({
      ...variables,
      SALLYPORT_DNS_SERVERS: dns.server,
      SALLYPORT_EXTRA_CA_CERTS: root,
    });
    const { port } = site;
    const box = await makeSandbox(daemon, {
      egress: {
        allow: [
          `tunnel.test:${port}`,
          { host: 'opened.test', ports: [port], methods: ['GET'] },
          `127.0.0.1:${port}`,
        ],
      },
    });
    await box.files.write('/tmp/client.py', await readFile(join(packageInfo().root, 'bench/gate-client.py')));
    await box.files.write('/tmp/root.pem', site.root);
    const trusted = `${box.info.user.home}/.sallyport/ca-bundle.pem`;
    const tunnel = ['proxy', 'tunnel.test', String(port), '/tmp/root.pem'];
    const byName = ['name', 'tunnel.test', String(port), '/tmp/root.pem'];
    const opened = ['proxy', 'opened.test', String(port), trusted];

    for (const way of [tunnel, byName, opened]) await order(box, 'many 200 20000', way);
    expect(site.asked).toHaveLength(600);

    const flood = async (): Promise<void> => {
      await order(box, 'flood 150 10', tunnel);
      await order(box, 'flood 150 10', opened);
    };
    await flood();
    const before = await heldBytes(daemon);
    await flood();
    await flood();
    expect((await heldBytes(daemon)) - before).toBeLessThan(3 * 2 ** 20);
  });
});
