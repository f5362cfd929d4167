import { readdirSync, readlinkSync } from 'node:fs';

/** Whether the process has the file open. */
export const hasOpen = (path: string, pid: number | 'self' = 'self'): boolean =>
  readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`) === path;
    } catch {
      // It was closed meanwhile.
      return false;
    }
  });
