/** Talks to a program while it runs: each line that goes in comes back, until the program is told to end. */

import { Sandbox } from 'sallyport';

const image = process.env['SALLYPORT_EXAMPLE_IMAGE'];

await using box = await Sandbox.create(image === undefined ? {} : { image });
await using child = await box.spawn(
  ['sh', '-c', 'while read word; do echo "heard $word"; done; echo bye >&2'],
  {
    stdin: true,
  },
);

const words = ['one', 'two', 'three'];
child.stdin.write(`${words.shift()}\n`);
for await (const chunk of child.stdout) {
  console.log(String(chunk).trim());
  const next = words.shift();
  if (next === undefined) child.stdin.end();
  else child.stdin.write(`${next}\n`);
}
const { exitCode, stderr } = await child.wait();
console.log(`${stderr.trim()}, exit code ${exitCode}`);

await using endless = await box.spawn(['sleep', 'infinity']);
await endless.kill(0);
console.log(`killed: ${(await endless.wait()).signal}`);
