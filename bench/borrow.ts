/** `npm run bench -- borrow`: what it costs that epoll and inotify instances come from a lender. */

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageInfo } from '../src/lib/package-root.ts';
import type { ExecRequest } from '../src/porter/exec.ts';
import { noticeKind } from '../src/porter/link.ts';
import { Porter } from '../src/porter/porter.ts';
import { type BenchEngine, benchEnv, nowhere, numberOption, openBenchEngine } from './box.ts';
import { type Contender, compete, makeReport, present } from './harness.ts';

const lender = { uid: 64_250, gid: 64_250 };
const program = '/tmp/quotas';
/** More than porter keeps helpers for, so that most of them are new processes. */
const atOnce = 8;
const calls = 200;

interface BorrowBox {
  readonly run: (...argv: ExecRequest['argv']) => Promise<void>;
  readonly end: () => Promise<void>;
}

async function openBox(bench: BenchEngine, borrows: boolean, probe: Buffer): Promise<BorrowBox> {
  const box = await bench.newBox();
  const id = await bench.engine.create({ ...box, ...(borrows ? { sharesUid: true, borrows: true } : {}) });
  const door = await bench.engine.attach(id);
  await bench.engine.start(id);
  const porter = await Porter.open(door, { epoch: 1, token: randomBytes(32), timeoutMs: 20_000 });
  if (porter.welcome.borrows !== borrows) throw new Error('this kernel cannot borrow');
  porter.onNotice(({ kind }) => {
    if (kind === noticeKind.lenderWanted) void bench.engine.startLender?.(id, lender);
  });
  await porter.files.write(program, probe, { mode: 0o755 });
  return {
    run: async (...argv) => {
      const exec = porter.exec({ argv, env: benchEnv, cwd: '/' }, nowhere());
      const { exitCode } = await exec.result;
      exec.forget();
      if (exitCode !== 0) throw new Error(`${String(argv[0])} ended with ${exitCode}`);
    },
    end: async () => {
      porter.close();
      await bench.engine.remove(id);
    },
  };
}

function compiled(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  const source = join(packageInfo().root, 'test/security/quotas.c');
  execFileSync('gcc', ['-static', '-Os', '-o', join(folder, 'quotas'), source]);
  const bytes = readFileSync(join(folder, 'quotas'));
  rmSync(folder, { recursive: true });
  return bytes;
}

/** Of a new sandbox, until its first program has its first instance. */
function firstInstance(bench: BenchEngine, borrows: boolean, probe: Buffer): Contender {
  let tookMs = 0;
  return {
    name: `first instance of a sandbox, ${borrows ? 'borrowed' : 'own'}`,
    perRound: 1,
    once: async () => {
      const box = await openBox(bench, borrows, probe);
      const from = performance.now();
      await box.run(program, 'churn', '1');
      tookMs = performance.now() - from;
      await box.end();
    },
    measuredMs: () => tookMs,
  };
}

export async function main(args: readonly string[]): Promise<number> {
  const bench = await openBenchEngine();
  const probe = compiled();
  const own = await openBox(bench, false, probe);
  const borrowing = await openBox(bench, true, probe);
  const each = (
    [
      ['own', own],
      ['borrowed', borrowing],
    ] as const
  ).flatMap(([how, { run }]): readonly Contender[] => [
    { name: `true, ${how}`, perRound: 25, once: () => run('true') },
    {
      name: `${atOnce} × true at once, ${how}`,
      perRound: 5,
      once: async () => void (await Promise.all(Array.from({ length: atOnce }, () => run('true')))),
    },
    { name: `${2 * calls} instances, ${how}`, perRound: 3, once: () => run(program, 'churn', String(calls)) },
  ]);
  const order = [0, 3, 1, 4, 2, 5].flatMap((at) => each[at] ?? []);
  try {
    const first = [firstInstance(bench, false, probe), firstInstance(bench, true, probe)];
    const rows = await compete([...order, ...first], numberOption(args, 'rounds', 20));
    present(makeReport('borrow', rows, await bench.versions()), args);
  } finally {
    await own.end();
    await borrowing.end();
  }
  return 0;
}
