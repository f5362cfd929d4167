/** [R6] A protocol that nobody looks into: a real psql to a real PostgreSQL, by a rule for raw TCP. */

import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/sdk/sandbox.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { makeSandbox } from '../support/daemon-world.ts';
import { testDns } from '../support/dns-server.ts';
import { canMakeServiceImage, serviceImage } from '../support/service-image.ts';

const start =
  'initdb -U postgres --no-sync --auth=trust -D /tmp/pg >/dev/null && exec postgres -D /tmp/pg -c fsync=off ' +
  '-c listen_addresses=127.0.0.1 -c unix_socket_directories=/tmp';

/** In a sandbox of its own, on a port of this machine's loopback. */
async function postgres(box: Sandbox): Promise<number> {
  const running = await box.spawn(['sh', '-c', start], { background: true, timeoutMs: 0 });
  let said = '';
  for await (const chunk of running.stderr) {
    said += chunk.toString();
    if (said.includes('ready to accept connections')) {
      running.disconnect();
      return (await box.ports.publish(5432)).host;
    }
  }
  throw new Error(`PostgreSQL did not start: ${said}`);
}

describe.runIf(canMakeServiceImage())('[R6] psql', () => {
  it('reaches a database by a tcp rule, with and without the variables, and nothing without one', async () => {
    const image = await serviceImage();
    const dns = await testDns({ 'db.test': ['127.0.0.1'], 'other.test': ['127.0.0.1'] });
    const daemon = await (await daemonHome()).start({ SALLYPORT_DNS_SERVERS: dns.server });
    const port = await postgres(await makeSandbox(daemon, { image }));
    const box = await makeSandbox(daemon, {
      image,
      egress: { allow: [`db.test:${port}/tcp`, `other.test:${port}`, `127.0.0.1:${port}`] },
    });
    const psql = async (host: string, prefix: string) =>
      await box.sh(`${prefix} psql -h ${host} -p ${port} -U postgres -Atc "select 6 * 7 || ' of the test'"`);
    for (const prefix of ['', 'env -i PATH="$PATH" HOME="$HOME"']) {
      const reached = await psql('db.test', prefix);
      expect({ said: reached.stdout, why: reached.stderr }).toEqual({ said: '42 of the test\n', why: '' });
      // A rule for HTTP and TLS is none for this; a name without a rule is none at all.
      for (const host of ['other.test', 'nowhere.test']) {
        const refused = await psql(host, prefix);
        expect(refused.exitCode, host).toBe(2);
        expect(refused.stderr, host).toMatch(/closed the connection|could not translate host name/);
      }
    }
    const { denied } = await box.net.info();
    expect(denied.find(({ host }) => host === 'other.test')).toMatchObject({
      advice: expect.stringContaining('/tcp'),
    });
  });
});
