/**
 * [R6] [R7] Real clients by HTTPS: with TLS opened, trusting the sandbox's own CA by nothing but what every command is given;
 * and in a tunnel, with none of the variables, by names alone.
 */

import { expect, inject, it } from 'vitest';
import { KnownValues } from '../../src/gate/credentials/known-values.ts';
import { PhantomRegistry } from '../../src/gate/credentials/phantoms.ts';
import { javaTruststore } from '../../src/gate/tls/java-truststore.ts';
import { upstreamTls } from '../../src/gate/tls/system-roots.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { fileVault, Secrets } from '../../src/store/secrets.ts';
import { newFolder } from '../support/cli.ts';
import { clientImage, npmFolder } from '../support/client-image.ts';
import { testDns } from '../support/dns-server.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { fillPackages, fillSite, type PackageSite, serveSite } from '../support/package-site.ts';
import { canPackageImages } from '../support/packaged-image.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';
import { realClients, when } from '../support/selection.ts';

const { baseImage: base } = inject('engine');
const npm = await npmFolder();
const hasTools =
  canPackageImages() &&
  requirement(
    'git, python3 and an npm in one folder',
    commandExists('git') && commandExists('python3') && npm !== undefined,
  );

const real = 'sk-real-0123456789abcdef';

/** What each client is told besides, where nothing in its environment names a root: the test's own. */
interface Told {
  readonly curl: string;
  readonly wget: string;
  readonly node: string;
  readonly git: string;
  readonly pip: string;
  readonly npm: string;
  readonly apt: string;
  readonly java: string;
}

const nothing: Told = { curl: '', wget: '', node: '', git: '', pip: '', npm: '', apt: '', java: '' };
const theRoot: Told = {
  curl: '--cacert /tmp/root.pem',
  wget: '--ca-certificate=/tmp/root.pem',
  node: 'NODE_EXTRA_CA_CERTS=/tmp/root.pem',
  git: '-c http.sslCAInfo=/tmp/root.pem',
  pip: '--cert /tmp/root.pem',
  npm: '--cafile /tmp/root.pem',
  apt: '-o Acquire::https::CAInfo=/tmp/root.pem',
  java: '-Djavax.net.ssl.trustStore=/tmp/root.jks',
};

/** Each ends with 0 and words of the site, or with another code. */
function commands(at: string, place: string, told: Told): Readonly<Record<keyof Told, string>> {
  const url = `https://${at}`;
  const apt = `apt-get -q ${told.apt} -o Dir::State=${place}/apt -o Dir::Cache=${place}/apt -o Dir::Etc::sourcelist=${place}/list -o Dir::Etc::sourceparts=- -o Acquire::Retries=0 -o APT::Update::Error-Mode=any`;
  return {
    curl: `curl -sSf ${told.curl} -H "authorization: Bearer $API_KEY" ${url}/hello`,
    wget: `wget -q -t 1 ${told.wget} -O - ${url}/hello`,
    node: `${told.node} node -e "fetch('${url}/hello').then((a) => a.ok ? a.text() : Promise.reject(a.status)).then(console.log)"`,
    git: `git ${told.git} clone -q ${url}/repo.git ${place}/repo && cat ${place}/repo/README`,
    pip: `pip download -q ${told.pip} --disable-pip-version-check --no-deps --retries 0 --index-url ${url}/simple/ -d ${place}/pip demo && ls ${place}/pip`,
    npm: `mkdir -p ${place}/npm && cd ${place}/npm && npm pack demo ${told.npm} --silent --fetch-retries=0 --cache ${place}/npm-cache --registry ${url}/npm/`,
    apt: `mkdir -p ${place}/apt/lists/partial ${place}/apt/archives/partial ${place}/deb && echo 'deb [trusted=yes] ${url}/ debian/' >${place}/list && cd ${place}/deb && ${apt} update >&2 && ${apt} download demo >&2 && ls`,
    java: `java ${told.java} -cp /opt/java Fetch ${url}/hello`,
  };
}

const words = /of the test|hello from the test|demo[-_]1\.0/;

interface Way {
  readonly name: string;
  readonly prefix: string;
  readonly told: Told;
}

const opened: Way = { name: 'opened', prefix: '', told: nothing };
const byName: Way = { name: 'by-name', prefix: 'env -i PATH="$PATH" HOME="$HOME" ', told: theRoot };

async function tried(box: Sandbox, way: Way, host: string, port: number) {
  const place = `/tmp/${way.name}-${host}`;
  const run = async (line: string) =>
    await runInSandbox(box, ['sh', '-c', `${way.prefix}sh -c '${line.replaceAll("'", "'\\''")}'`]);
  return await Promise.all(
    Object.entries(commands(`${host}:${port}`, place, way.told)).map(async ([client, line]) => {
      const { exec, stdout, stderr } = await run(line);
      return {
        client: `${client} ${way.name} ${host}`,
        code: exec.exit_code,
        said: stdout.data,
        why: stderr.data,
      };
    }),
  );
}

async function world(): Promise<{
  readonly site: PackageSite;
  readonly box: Sandbox;
  readonly names: string[];
}> {
  const folder = await newFolder('own');
  await fillSite(folder);
  await fillPackages(folder);
  const site = await serveSite(folder);
  const secrets = new Secrets(fileVault(`${temporaryFolder()}/secrets.json`), () => new Date());
  await secrets.set('ci', {
    binding: {
      hosts: ['opened.test'],
      port: site.port,
      headers: ['authorization'],
      env: ['API_KEY'],
      prefix: 'sk-',
    },
    value: real,
  });
  const local = ['127.0.0.1'];
  const dns = await testDns({ 'opened.test': local, 'plain.test': local, 'denied.test': local });
  const { make } = await openSandboxes({
    dnsServers: [dns.server],
    secrets: {
      source: secrets,
      registry: new PhantomRegistry(),
      values: new KnownValues(),
      upstreamTls: upstreamTls([site.root]),
    },
  });
  const box = await make({
    spec: {
      image: await clientImage(base ?? '', npm ?? ''),
      egress: { allow: [`plain.test:${site.port}`, `127.0.0.1:${site.port}`], credentials: ['ci'] },
    },
  });
  const files = await box.files();
  await files.write('/tmp/root.pem', Buffer.from(site.root));
  await files.write('/tmp/root.jks', javaTruststore(site.root, new Date()));
  return { site, box, names: dns.asked };
}

when(realClients, hasTools).describe('[R6] curl, wget, git, npm, pip, node, apt and java', () => {
  it('[R7] reach an allowed host by HTTPS and no other, with TLS opened and with none of the variables', async () => {
    const { site, box, names } = await world();
    for (const [way, host] of [
      [opened, 'opened.test'],
      [byName, 'plain.test'],
    ] as const) {
      for (const { client, code, said, why } of await tried(box, way, host, site.port)) {
        expect({ client, code, why: code === 0 ? '' : why }).toEqual({ client, code: 0, why: '' });
        expect(said, client).toMatch(words);
      }
    }
    // The value is put in on the way; nobody else's request has it.
    expect(site.asked.filter((line) => line.includes(real))).toEqual([
      `opened.test:${site.port} /hello Bearer ${real}`,
    ]);
    const before = site.asked.length;
    for (const way of [opened, byName]) {
      for (const { client, code, said } of await tried(box, way, 'denied.test', site.port)) {
        expect(code, client).not.toBe(0);
        expect(said, client).not.toMatch(words);
      }
    }
    expect(site.asked.length).toBe(before);
    expect(names).not.toContain('denied.test');
  });
});
