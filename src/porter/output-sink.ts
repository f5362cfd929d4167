/** Where an exec's output goes. What a sink has taken is acknowledged to porter, which then forgets it. */

import type { OutputQueue } from './output-queue.ts';

export type Channel = 'stdout' | 'stderr';

export interface OutputSink {
  /** Resolves when the bytes are safe: in a file, or in the hands of whoever wanted them. Called in order per channel. */
  write(channel: Channel, offset: number, data: Buffer): Promise<void>;
  /** Nothing more comes; with an error, because the connection ended before the program did. */
  end(error?: Error): void;
}

/** For a reader in this process: bytes count as safe once they were taken from the queue. */
export function queueSink(stdout: OutputQueue, stderr: OutputQueue): OutputSink {
  return {
    write: (channel, _offset, data) => (channel === 'stdout' ? stdout : stderr).push(data),
    end: (error) => {
      stdout.end(error);
      stderr.end(error);
    },
  };
}
