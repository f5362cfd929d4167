/** `sally attach`: what a running command prints, from now on. Leaving it does not end it. */

import type { ExecView } from '../../protocol/views.ts';
import { ExecProcess } from '../../sdk/exec-process.ts';
import { chosenExec } from '../choose-exec.ts';
import type { CliContext } from '../context.ts';
import { exitCodeOf } from '../exec-outcome.ts';
import { exitCode } from '../exit-codes.ts';
import { feedInput, pump } from '../foreground.ts';
import { note } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { feedTerminal } from '../terminal.ts';

export async function attachCommand(
  box: string,
  named: string | undefined,
  options: { readonly interactive?: true },
  context: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  const id = await chosenExec(calls, box, named, { running: true });
  const path = `/v1/sandboxes/${encodeURIComponent(box)}/execs/${encodeURIComponent(id)}`;
  const view = await calls.client.json<ExecView>('GET', path);
  const stdin = options.interactive === true;
  const running = new ExecProcess({
    client: calls.client,
    sandbox: view.sandbox_id,
    exec: view.id,
    hold: false,
    owned: false,
    stdin,
    from: { stdout: view.stdout_bytes, stderr: view.stderr_bytes },
  });
  let left = false;
  const leave = (): void => {
    left = true;
    running.disconnect();
  };
  const stop = context.takeSignals(leave);
  const stopFeeding = !stdin
    ? () => {}
    : view.tty && process.stdin.isTTY
      ? feedTerminal(running, leave)
      : feedInput(running);
  try {
    const [ended] = await Promise.all([
      running.ended(),
      pump(running.stdout, process.stdout),
      pump(running.stderr, process.stderr),
    ]);
    return exitCodeOf(ended);
  } catch (error) {
    if (!left) throw error;
    note(`left ${view.id}; it goes on`);
    return exitCode.ok;
  } finally {
    stopFeeding();
    stop();
    calls.close();
  }
}
