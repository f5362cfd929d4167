/** [N1] The bare machines on which CI tries Sallyport: what they reach, and that nothing of them is left. */

import { expect, it } from 'vitest';
import { type MachineRun, startMachine, tracesOf as tracesWith } from '../support/fresh-machine.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { asRoot, fullSizes, type Part, realClients, when } from '../support/selection.ts';
import { until } from '../support/until.ts';

const hasMmdebstrap = requirement('mmdebstrap', commandExists('mmdebstrap'));
const mark = 'of-the-fresh-machine-test';
const waiting = `echo begun; exec sleep 1000 # ${mark}`;
const tracesOf = (run: MachineRun): readonly string[] => tracesWith(run, mark);

/** The second machine has a kernel of its own. */
const machines: ReadonlyArray<{ readonly machine: string; readonly node: RegExp; readonly part: Part }> = [
  { machine: 'debian-12', node: /^v20\./m, part: realClients },
  { machine: 'debian-13-cgroup2', node: /^v22\./m, part: fullSizes },
];

for (const { machine, node, part } of machines) {
  when(part, asRoot, hasMmdebstrap).describe(
    `[N1] the fresh machine ${machine}`,
    { timeout: 600_000 },
    () => {
      it('has a Node.js, reaches the mirrors and no other address, and leaves nothing', async () => {
        const script = [
          'node --version',
          'npm ping >/dev/null 2>&1 && echo mirror reached',
          `node -e "require('net').connect(443, '198.51.100.1').on('error', (error) => console.log(error.code))"`,
          'ls /dev | wc -l',
        ].join('; ');
        const run = startMachine(machine, script);
        expect(await run.ended, run.output()).toBe(0);
        expect(run.output()).toMatch(node);
        expect(run.output()).toContain('mirror reached');
        expect(run.output()).toContain('ENETUNREACH');
        expect(tracesOf(run)).toEqual([]);
      });

      it('ends with the exit code of its script', async () => {
        const run = startMachine(machine, 'echo first; (sleep 1000 &); echo last; exit 7');
        expect(await run.ended, run.output()).toBe(7);
        expect(run.output()).toMatch(/first\nlast\n/);
      });

      it('leaves nothing after Ctrl-C, and the next one removes what a kill left', async () => {
        const interrupted = startMachine(machine, waiting);
        await until(() => interrupted.output().includes('begun'));
        interrupted.child.kill('SIGINT');
        expect(await interrupted.ended, interrupted.output()).toBe(130);
        expect(tracesOf(interrupted)).toEqual([]);

        const killed = startMachine(machine, waiting);
        await until(() => killed.output().includes('begun'));
        killed.child.kill('SIGKILL');
        await killed.ended;
        await until(() => tracesOf(killed).every((trace) => trace.startsWith('sallyport-fresh-')));
        const next = startMachine(machine, 'true');
        expect(await next.ended, next.output()).toBe(0);
        expect(tracesOf(killed)).toEqual([]);
      });
    },
  );
}

when(fullSizes, asRoot, hasMmdebstrap).describe('[N1] a kernel of its own', { timeout: 600_000 }, () => {
  it('ends with the messages of the kernel when that panics', async () => {
    const run = startMachine('debian-13-cgroup2', 'echo c >/proc/sysrq-trigger; sleep 1000');
    expect(await run.ended, run.output()).toBe(137);
    expect(run.output()).toMatch(/the machine ended before its script.*Call Trace/s);
  });
});
