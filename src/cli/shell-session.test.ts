import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { shellSession } from './shell-session.ts';

it('[N5] a session is one process, and neither the next one of its pid nor all orphans', async () => {
  const shell = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  await once(shell, 'spawn');
  const pid = shell.pid ?? -1;
  const session = shellSession(pid);
  expect(session).toMatch(new RegExp(`^shell ${pid} .+`));
  expect(shellSession(pid)).toBe(session);
  expect(shellSession(process.pid)).not.toBe(session);
  shell.stdin?.end();
  await once(shell, 'exit');
  // The number is free for another process from here on.
  expect(shellSession(pid)).not.toBe(session);
  expect(shellSession(pid)).not.toBe(shellSession(pid));
  expect(shellSession(1)).not.toBe(shellSession(1));
});
