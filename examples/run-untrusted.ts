/** Runs a script that nobody has read, with little memory, no network and a time limit, and says how it ended. */

import { Sandbox } from 'sallyport';

const image = process.env['SALLYPORT_EXAMPLE_IMAGE'];
const script = 'echo "I am $(id -un)"; cat /proc/net/dev | grep -c eth0; sleep 60';

await using box = await Sandbox.create({
  limits: { memory: '128m', cpus: 0.5, pids: 50 },
  ...(image === undefined ? {} : { image }),
});
const result = await box.sh(script, { timeoutMs: 1000 });

console.log(result.stdout.trim());
console.log(result.timedOut ? 'stopped at its time limit' : `ended with ${result.exitCode}`);
