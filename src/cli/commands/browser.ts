/** `sally browser`: Chromium in a sandbox, for clients of the DevTools protocol on this machine. */

import { Sandbox } from '../../sdk/sandbox.ts';
import type { BrowserStart } from '../../sdk/sandbox-browser.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';

export interface BrowserCommandOptions extends Pick<BrowserStart, 'window' | 'port' | 'program'> {
  readonly stop?: true;
  readonly json?: true;
}

export async function browserCommand(
  box: string,
  { stop, json, ...start }: BrowserCommandOptions,
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  try {
    // By its id, so that a name that is not there is told with what may have been meant.
    const { id } = await calls.get(box, { signal });
    const sandbox = await Sandbox.connect(id, { client: calls.client, signal });
    if (stop === true) {
      await sandbox.browser.stop({ signal });
      if (json === true) printJson({ stopped: true });
      return exitCode.ok;
    }
    const { endpoint, url, port, execId } = await sandbox.browser.start({ ...start, signal });
    if (json === true) printJson({ endpoint, url, port, exec_id: execId });
    else print(endpoint);
    return exitCode.ok;
  } finally {
    calls.close();
  }
}
