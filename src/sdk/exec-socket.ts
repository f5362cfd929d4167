/** What is needed of a WebSocket. Declared here, so that the types of the package need none of another. */

export interface ExecSocket {
  readonly readyState: number;
  readonly OPEN: number;
  readonly isPaused: boolean;
  pause(): void;
  resume(): void;
  send(data: Buffer | string): void;
  close(): void;
  terminate(): void;
  on(event: 'message', listener: (data: Buffer | ArrayBuffer | Buffer[], isBinary: boolean) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'close', listener: () => void): unknown;
}
