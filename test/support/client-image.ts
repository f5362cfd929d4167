/** The base image with clients that it has not: wget, npm, Java. All as Debian, and the npm that runs this test, have them. */

import { cp, readFile, realpath, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { packagedImage } from './packaged-image.ts';
import { findProgram } from './ssh-server.ts';

const dockerfile = (base: string): string => `FROM ${base}
COPY rootfs/usr /usr
USER root
COPY rootfs/etc /etc
COPY npm /usr/local/lib/node_modules/npm
COPY Fetch.class /opt/java/Fetch.class
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && \\
    chmod +x /usr/local/lib/node_modules/npm/bin/npm-cli.js && \\
    ln -s /usr/lib/jvm/java-17-openjdk-*/bin/java /usr/local/bin/java
USER sally
`;

/**
 * Prints what a URL leads to. There is no compiler in a JRE, so it comes compiled:
 *
 *     class Fetch { public static void main(String[] a) throws Exception {
 *       System.out.println(new String(new java.net.URL(a[0]).openStream().readAllBytes())); } }
 */
const fetchClass = [
  'yv66vgAAADcALgoAAgADBwAEDAAFAAYBABBqYXZhL2xhbmcvT2JqZWN0AQAGPGluaXQ+AQADKClWCQAIAAkHAAoMAAsADAEAEGph',
  'dmEvbGFuZy9TeXN0ZW0BAANvdXQBABVMamF2YS9pby9QcmludFN0cmVhbTsHAA4BABBqYXZhL2xhbmcvU3RyaW5nBwAQAQAMamF2',
  'YS9uZXQvVVJMCgAPABIMAAUAEwEAFShMamF2YS9sYW5nL1N0cmluZzspVgoADwAVDAAWABcBAApvcGVuU3RyZWFtAQAXKClMamF2',
  'YS9pby9JbnB1dFN0cmVhbTsKABkAGgcAGwwAHAAdAQATamF2YS9pby9JbnB1dFN0cmVhbQEADHJlYWRBbGxCeXRlcwEABCgpW0IK',
  'AA0AHwwABQAgAQAFKFtCKVYKACIAIwcAJAwAJQATAQATamF2YS9pby9QcmludFN0cmVhbQEAB3ByaW50bG4HACcBAAVGZXRjaAEA',
  'BENvZGUBAARtYWluAQAWKFtMamF2YS9sYW5nL1N0cmluZzspVgEACkV4Y2VwdGlvbnMHAC0BABNqYXZhL2xhbmcvRXhjZXB0aW9u',
  'ACAAJgACAAAAAAACAAAABQAGAAEAKAAAABEAAQABAAAABSq3AAGxAAAAAAAJACkAKgACACgAAAAqAAcAAQAAAB6yAAe7AA1ZuwAP',
  'WSoDMrcAEbYAFLYAGLcAHrYAIbEAAAAAACsAAAAEAAEALAAA',
].join('');

/** Undefined where npm is not a folder that can be copied: Debian's own is in hundreds of pieces. */
export async function npmFolder(): Promise<string | undefined> {
  const program = findProgram('npm');
  if (program === undefined) return undefined;
  const folder = join(dirname(await realpath(program)), '..');
  const isWhole = await readFile(join(folder, 'node_modules/semver/package.json')).then(
    () => true,
    () => false,
  );
  return isWhole ? folder : undefined;
}

export async function clientImage(base: string, npm: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(npm, 'package.json'), 'utf8')) as { version: string };
  return await packagedImage({
    repository: 'sallyport-test-clients',
    packages: ['wget', 'openjdk-17-jre-headless'],
    dockerfile: dockerfile(base),
    unused: ['usr/share/locale', 'usr/share/doc', 'usr/share/man'],
    more: {
      version: `npm ${version}`,
      put: async (folder) => {
        await cp(npm, join(folder, 'npm'), { recursive: true });
        await writeFile(join(folder, 'Fetch.class'), Buffer.from(fetchClass, 'base64'));
      },
    },
  });
}
