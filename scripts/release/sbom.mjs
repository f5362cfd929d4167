/** The parts of a release as CycloneDX 1.5: what npm installs, the Node of the archives, porter and keeper. */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** `programs`: files of porter and keeper; `runtimes`: the Node of each archive. */
export function makeSbom({ version, license, lock, runtimes, programs, date, commit }) {
  const own = `pkg:npm/sallyport@${version}`;
  const packages = Object.entries(lock.packages)
    .filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)
    .map(([path, facts]) => npmComponent({ name: path.replace(/^.*node_modules\//, ''), ...facts }));
  const nodes = runtimes.map((runtime) => ({
    ...npmComponent(runtime),
    description: `Node.js of the archive ${runtime.name.replace('node-', '')}`,
  }));
  const binaries = programs.map((file) => programComponent(file, version));
  const components = unique([...packages, ...nodes, ...binaries]);
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    serialNumber: `urn:uuid:${uuidOf(`${version}\0${commit}`)}`,
    version: 1,
    metadata: {
      timestamp: date.toISOString(),
      component: {
        type: 'application',
        'bom-ref': own,
        name: 'sallyport',
        version,
        purl: own,
        licenses: [{ license: { id: license } }],
        properties: [{ name: 'sallyport:commit', value: commit }],
      },
    },
    components,
    dependencies: [{ ref: own, dependsOn: components.map((one) => one['bom-ref']) }],
  };
}

function npmComponent({ name, version, license, integrity }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  const [, content] = /^sha512-(.*)$/.exec(integrity) ?? [];
  if (content === undefined || license === undefined)
    throw new Error(`${name} has no SHA-512 or no licence in package-lock.json`);
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    licenses: [license.includes(' ') ? { expression: license } : { license: { id: license } }],
    hashes: [{ alg: 'SHA-512', content: Buffer.from(content, 'base64').toString('hex') }],
  };
}

/** A static program; porter/runtime is the only library in it. */
function programComponent(file, version) {
  const bytes = readFileSync(file);
  const name = basename(file);
  const compilers = bytes.toString('latin1').match(/GCC: \([^)]*\) [\d.]+|clang version [\d.]+/g) ?? [];
  return {
    type: 'application',
    'bom-ref': `sallyport/${name}@${version}`,
    name,
    version,
    licenses: [{ license: { id: 'Apache-2.0' } }],
    hashes: [{ alg: 'SHA-256', content: createHash('sha256').update(bytes).digest('hex') }],
    properties: [
      { name: 'sallyport:linked-with', value: 'none' },
      ...[...new Set(compilers)].map((value) => ({ name: 'sallyport:compiler', value })),
    ],
  };
}

function unique(components) {
  return [...new Map(components.map((one) => [one['bom-ref'], one])).values()];
}

/** The same for the same release. */
function uuidOf(text) {
  const hex = createHash('sha256').update(text).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
