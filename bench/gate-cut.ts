/**
 * `npm run bench -- gate-cut`: an echo of bytes beside the event loop, in a worker thread and in a process over a Unix socket: the two ways to
 * move the gate's connections off the API's loop (decision 0022). No gate and no engine are in it, only the cut.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { numberOption } from './box.ts';
import { makeReport, present, quantile, type Row } from './harness.ts';

/** Both ways have the same bytes under way, as the gate's streams have. */
const windowBytes = 256 * 1024;
const pieceBytes = 32 * 1024;
const questionBytes = 500;
const questions = 2000;

const threadSource = `
const { parentPort } = require('node:worker_threads');
parentPort.on('message', (bytes) => parentPort.postMessage(bytes, [bytes.buffer]));
parentPort.postMessage('ready');
`;
const processSource = `
const server = require('node:net').createServer({ noDelay: true }, (socket) => socket.pipe(socket));
server.listen(process.argv[2], () => process.stdout.write('ready'));
`;

interface Echo {
  /** The bytes come back in any pieces. */
  readonly send: (bytes: number) => void;
  readonly onBytes: (listener: (bytes: number) => void) => void;
  readonly residentBytes: () => number;
  readonly end: () => Promise<void>;
}

async function thread(): Promise<Echo> {
  const before = process.memoryUsage.rss();
  const worker = new Worker(threadSource, { eval: true });
  await once(worker, 'message');
  const resident = process.memoryUsage.rss() - before;
  return {
    send: (bytes) => {
      const piece = new Uint8Array(bytes);
      worker.postMessage(piece, [piece.buffer]);
    },
    onBytes: (listener) => {
      worker.removeAllListeners('message');
      worker.on('message', ({ length }: Uint8Array) => listener(length));
    },
    residentBytes: () => resident,
    end: async () => void (await worker.terminate()),
  };
}

async function otherProcess(folder: string): Promise<Echo> {
  const program = join(folder, 'echo.cjs');
  const path = join(folder, 'echo.sock');
  rmSync(path, { force: true });
  writeFileSync(program, processSource);
  const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  const socket: Socket = connect({ path });
  await once(socket, 'connect');
  const { pid = 0 } = child;
  const resident = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
  return {
    send: (bytes) => void socket.write(new Uint8Array(bytes)),
    onBytes: (listener) => {
      socket.removeAllListeners('data');
      socket.on('data', ({ length }: Buffer) => listener(length));
    },
    residentBytes: () => resident,
    end: async () => {
      const ended = once(child, 'exit');
      socket.destroy();
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** How long each question waited for its last byte. */
async function roundTrips(echo: Echo): Promise<readonly number[]> {
  const times: number[] = [];
  return await new Promise((resolve) => {
    let [left, from] = [0, 0];
    const ask = (): void => {
      [left, from] = [questionBytes, performance.now()];
      echo.send(questionBytes);
    };
    echo.onBytes((bytes) => {
      left -= bytes;
      if (left > 0) return;
      times.push(performance.now() - from);
      if (times.length === questions) resolve(times);
      else setImmediate(ask);
    });
    ask();
  });
}

async function transfer(echo: Echo, bytes: number): Promise<void> {
  await new Promise<void>((resolve) => {
    let [sent, back] = [0, 0];
    const more = (): void => {
      while (sent < bytes && sent - back <= windowBytes - pieceBytes) {
        sent += pieceBytes;
        echo.send(pieceBytes);
      }
    };
    echo.onBytes((came) => {
      back += came;
      if (back >= bytes) resolve();
      else more();
    });
    more();
  });
}

/** Of the main thread, in which the API would be. */
function loopCpuMs(): number {
  const fields = readFileSync(`/proc/self/task/${process.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

export async function main(args: readonly string[]): Promise<number> {
  const rounds = numberOption(args, 'rounds', 3);
  const megabytes = numberOption(args, 'megabytes', 200);
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  const ways = [
    { name: 'worker thread', start: thread, times: [] as number[] },
    { name: 'process', start: () => otherProcess(folder), times: [] as number[] },
  ];
  for (let round = 0; round < rounds; round++) {
    for (const { name, start, times } of ways) {
      const began = performance.now();
      const echo = await start();
      const startMs = performance.now() - began;
      times.push(...(await roundTrips(echo)));
      const [from, cpu] = [performance.now(), loopCpuMs()];
      await transfer(echo, megabytes * 2 ** 20);
      const rate = megabytes / ((performance.now() - from) / 1000);
      const perMegabyte = (loopCpuMs() - cpu) / megabytes;
      const resident = (echo.residentBytes() / 2 ** 20).toFixed(0);
      await echo.end();
      process.stderr.write(
        `${name}: start ${startMs.toFixed(0)} ms, resident ${resident} MiB, ${rate.toFixed(0)} MiB/s, ${perMegabyte.toFixed(2)} ms of the loop for each MiB\n`,
      );
    }
  }
  rmSync(folder, { recursive: true });
  const reference = quantile(ways[0]?.times ?? [], 0.5);
  const rows: readonly Row[] = ways.map(({ name, times }) => ({
    name: `round trip of ${questionBytes} bytes: ${name}`,
    samples: times.length,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    ratio: quantile(times, 0.5) / reference,
  }));
  present(makeReport('gate-cut', rows, {}), args);
  return 0;
}
