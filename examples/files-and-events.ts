/** Puts a small project in, runs it, takes the result out, and tells what happened to the sandbox meanwhile. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sandbox } from 'sallyport';

const image = process.env['SALLYPORT_EXAMPLE_IMAGE'];
const folder = await mkdtemp(join(tmpdir(), 'sallyport-example-'));

try {
  await using box = await Sandbox.create(image === undefined ? {} : { image });
  await box.files.mkdir('/tmp/project');
  await box.files.putTree('/tmp/project', [
    { kind: 'file', path: 'numbers', body: Buffer.from('1\n2\n3\n') },
    {
      kind: 'file',
      path: 'sum',
      mode: 0o755,
      body: Buffer.from('#!/bin/sh\nn=0; while read x; do n=$((n+x)); done; echo $n\n'),
    },
  ]);
  await box.sh('./sum < numbers > result', { cwd: '/tmp/project', check: true });
  await box.files.download('/tmp/project', folder);
  console.log(`the sum is ${(await readFile(join(folder, 'result'), 'utf8')).trim()}`);

  for await (const event of box.events({ since: 0 })) {
    if (event.type === 'sandbox.state') console.log(`${event.from ?? 'nothing'} → ${event.to}`);
    if (event.type === 'exec.ended') break;
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
