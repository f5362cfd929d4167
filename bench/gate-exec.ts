/**
 * `npm run bench -- gate-exec`: what the gate's thread costs a command that does not pass it. Two daemons of the same build take turns: in one
 * no sandbox has a way out, so it has no such thread; in the other another sandbox has one. First that sandbox is idle, then it sends
 * requests: the first daemon is then the control, which has the same busy machine and none of the requests.
 */

import http from 'node:http';
import { Sandbox } from '../src/sdk/sandbox.ts';
import { numberOption, openBenchEngine } from './box.ts';
import { type BenchDaemon, withHome } from './daemon-home.ts';
import { makeReport, present, quantile, type Row } from './harness.ts';
import { listening } from './https-origin.ts';

const requestsPerSecond = 100;
const execsPerTurn = 20;

/** Sends that many requests a second on one connection to the gate, and prints a line when the first was answered. */
const client = `
import socket, sys, time
host, pause = sys.argv[1], 1 / float(sys.argv[2])
gate = socket.create_connection(('127.0.0.1', 3128))
sent, began = 0, time.monotonic()
while True:
    gate.sendall(b'GET http://%s/ HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' % (host.encode(), host.encode()))
    answer = gate.recv(65536)
    while not answer.endswith(b'ok'):
        part = gate.recv(65536)
        if not part:
            raise OSError(answer.decode('latin-1'))
        answer += part
    sent += 1
    if sent == 1:
        print('begun', flush=True)
    time.sleep(max(0, began + sent * pause - time.monotonic()))
`;

export async function main(args: readonly string[]): Promise<number> {
  const rounds = numberOption(args, 'rounds', 50);
  const engine = await openBenchEngine();
  let served = 0;
  const origin = http.createServer((_request, response) => {
    served++;
    response.setHeader('content-length', 2);
    response.end('ok');
  });
  const port = await listening(origin);
  const rows: Row[] = [];
  const create = (daemon: BenchDaemon, allow?: readonly string[]): Promise<Sandbox> =>
    Sandbox.create(
      { image: engine.image, ...(allow === undefined ? {} : { egress: { allow } }) },
      { client: daemon.client },
    );
  await withHome(engine, async (without) => {
    await withHome(engine, async (having) => {
      const [first, second] = [await without.start(), await having.start()];
      const alone = await create(first);
      const beside = await create(second);
      const sender = await create(second, [`127.0.0.1:${port}`]);
      rows.push(...(await inTurns('idle', { alone, beside }, rounds)));

      const argv = ['python3', '-c', client, `127.0.0.1:${port}`, String(requestsPerSecond)];
      const sending = await sender.spawn(argv, { background: true });
      const { value: said } = await sending.stdout[Symbol.asyncIterator]().next();
      if (!String(said).startsWith('begun')) throw new Error((await sending.wait()).stderr);
      const [before, began] = [served, performance.now()];
      rows.push(...(await inTurns('requests', { alone, beside }, rounds)));
      const rate = (served - before) / ((performance.now() - began) / 1000);
      await sending.kill(0);
      if (rate < requestsPerSecond / 2)
        throw new Error(`only ${rate.toFixed(0)} requests a second were served`);
      process.stderr.write(`${rate.toFixed(0)} requests a second were served\n`);
      await Promise.all([alone.remove(), beside.remove(), sender.remove()]);
      for (const daemon of [first, second]) daemon.client.close();
    });
  });
  origin.close();
  present(makeReport('gate-exec', rows, await engine.versions()), args);
  return 0;
}

async function inTurns(
  phase: string,
  { alone, beside }: { readonly alone: Sandbox; readonly beside: Sandbox },
  rounds: number,
): Promise<readonly Row[]> {
  const ways = [
    { name: `${phase}: daemon without the thread`, box: alone, times: [] as number[] },
    { name: `${phase}: daemon with the thread`, box: beside, times: [] as number[] },
  ];
  for (const { box } of ways) await box.exec(['true']);
  for (let round = 0; round < rounds; round++) {
    for (const { box, times } of ways) {
      for (let turn = 0; turn < execsPerTurn; turn++) {
        const from = performance.now();
        const { exitCode } = await box.exec(['true']);
        times.push(performance.now() - from);
        if (exitCode !== 0) throw new Error(`true ended with ${exitCode}`);
      }
    }
  }
  const reference = quantile(ways[0]?.times ?? [], 0.5);
  return ways.map(({ name, times }) => ({
    name,
    samples: times.length,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    minMs: Math.min(...times),
    ratio: quantile(times, 0.5) / reference,
  }));
}
