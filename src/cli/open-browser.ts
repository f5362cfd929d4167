/** Opens a URL with the program that the user's desktop has for it. */

import { spawn } from 'node:child_process';
import { readCliEnvironment } from './config.ts';

/** False: there is no desktop here, or it has no such program. Does not wait for the browser. */
export async function openBrowser(url: string): Promise<boolean> {
  const { hasDisplay } = readCliEnvironment();
  if (!hasDisplay) return false;
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  return await new Promise((resolve) => {
    const child = spawn(program, [url], { detached: true, stdio: 'ignore' });
    child.once('error', () => resolve(false));
    child.once('spawn', () => {
      child.unref();
      resolve(true);
    });
  });
}
