/** Templates that are made up for a test: tiny, on the test image, and with a program that they promise. */

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { TemplatePlace } from '../../src/images/template.ts';

export interface MadeUp {
  /** What installs the promised program, as root. */
  readonly install: string;
  readonly smoke?: string;
  readonly files?: Readonly<Record<string, string>>;
  /** More lines of the Dockerfile, before the install. */
  readonly lines?: string;
}

export const promised = '/usr/local/bin/promised';

const dockerfile = (lines: string): string => `ARG BASE
FROM \${BASE}
USER root
ARG PROVISION_VERSION
ARG FRESHNESS=any
${lines}
COPY packages.txt smoke.txt provision.sh dpkg-excludes install.sh /opt/sallyport/
RUN sh /opt/sallyport/install.sh && sh /opt/sallyport/provision.sh "\${PROVISION_VERSION}" unmarked
USER sally
`;

/** The caller removes its folder; `madeUpHere` does so when the test ends. */
export async function madeUpTemplate({
  install,
  smoke = 'promised --version',
  files = {},
  lines = '',
}: MadeUp): Promise<TemplatePlace> {
  const name = `made-up-${randomBytes(5).toString('hex')}`;
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-template-'));
  const all = {
    Dockerfile: dockerfile(lines),
    'packages.txt': '',
    'smoke.txt': `${smoke}\n`,
    'install.sh': `${install}\n`,
    ...files,
  };
  for (const [file, text] of Object.entries(all)) await writeFile(join(folder, file), text);
  return { name, folder, on: 'test' };
}

export async function madeUpHere(wish: MadeUp): Promise<TemplatePlace> {
  const place = await madeUpTemplate(wish);
  onTestFinished(() => rm(place.folder, { recursive: true, force: true }));
  return place;
}
