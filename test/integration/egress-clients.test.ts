/** [R6] Programs as they are, in the base image: with the proxy variables that every command gets, and with none of them. */

import { describe, expect, inject, it } from 'vitest';
import { newFolder } from '../support/cli.ts';
import { testDns } from '../support/dns-server.ts';
import { openFor } from '../support/gate-box.ts';
import { fillSite } from '../support/package-site.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';
import { serveFolder } from '../support/static-server.ts';

const { baseImage: base } = inject('engine');
const hasGit = requirement('git and python3', commandExists('git') && commandExists('python3'));

async function site(): Promise<string> {
  const folder = await newFolder('own');
  await fillSite(folder);
  return folder;
}

describe.runIf(hasGit)('[R6] programs of the base image', () => {
  it('reach an allowed host and no other, by the proxy that they are told of and without', async () => {
    const { port, asked } = await serveFolder(await site());
    const dns = await testDns({ 'good.test': ['127.0.0.1'], 'evil.test': ['127.0.0.1'] });
    const { make } = await openSandboxes({ dnsServers: [dns.server], clientAbsenceMs: 120_000 });
    const box = await make({
      spec: { image: base ?? '', egress: { allow: openFor(port, 'good.test') ?? [] } },
    });
    const commands = (host: string, place: string): Readonly<Record<string, string>> => ({
      curl: `curl -sSf http://${host}:${port}/hello`,
      node: `node -e "fetch('http://${host}:${port}/hello').then((a) => a.ok ? a.text() : Promise.reject(a.status)).then(console.log)"`,
      python: `python3 -c "import urllib.request as u; print(u.urlopen('http://${host}:${port}/hello').read().decode())"`,
      git: `git clone -q http://${host}:${port}/repo.git ${place}/repo && cat ${place}/repo/README`,
      pip: `pip download -q --disable-pip-version-check --no-deps --retries 0 --index-url http://${host}:${port}/simple/ --trusted-host ${host} -d ${place} demo && ls ${place}`,
    });
    const ways = { variables: '', none: 'env -i PATH="$PATH" HOME="$HOME" ' };
    const run = async (prefix: string, line: string) =>
      await runInSandbox(box, ['sh', '-c', `${prefix}sh -c '${line.replaceAll("'", "'\\''")}'`]);
    const reached = Object.entries(ways).flatMap(([way, prefix]) =>
      Object.entries(commands('good.test', `/tmp/${way}`)).map(async ([name, line]) => {
        const { exec, stdout, stderr } = await run(prefix, line);
        expect(exec.exit_code, `${name} with ${way}: ${stderr.data}`).toBe(0);
        expect(stdout.data, `${name} with ${way}`).toMatch(/of the test|hello from the test|demo-1\.0/);
      }),
    );
    const denied = Object.entries(ways).flatMap(([way, prefix]) =>
      Object.entries(commands('evil.test', `/tmp/${way}-denied`)).map(async ([name, line]) => {
        const { exec } = await run(prefix, line);
        expect(exec.exit_code, `${name} with ${way}`).not.toBe(0);
      }),
    );
    await Promise.all([...reached, ...denied]);
    expect(asked.every((line) => line.startsWith('good.test'))).toBe(true);
    expect(dns.asked).not.toContain('evil.test');
  });
});
