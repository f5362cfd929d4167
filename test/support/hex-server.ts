/** A program inside a sandbox that answers each request with the bytes that its path names in hexadecimal digits, and closes. */

import type { Sandbox } from '../../src/sdk/sandbox.ts';

const program = `
import socket, sys, threading
def serve(c):
    f = c.makefile("rb")
    head = b""
    while not head.endswith(b"\\r\\n\\r\\n"):
        line = f.readline()
        if not line: return
        head += line
    try: c.sendall(bytes.fromhex(head.split(b" ")[1][1:].decode()))
    except ValueError: c.sendall(b"HTTP/1.1 404 Not Found\\r\\ncontent-length: 0\\r\\n\\r\\n")
    c.close()
s = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
print("listening", flush=True)
while True: threading.Thread(target=serve, args=(s.accept()[0],)).start()
`;

/** Resolves when it listens. */
export async function serveHex(box: Sandbox, port: number): Promise<void> {
  const running = await box.spawn(['python3', '-c', program, String(port)], { background: true });
  for await (const chunk of running.stdout) if (chunk.toString().includes('listening')) return;
  throw new Error('the program inside does not listen');
}

/** The path whose answer these bytes are. */
export const hexPath = (answer: string): string => `/${Buffer.from(answer, 'latin1').toString('hex')}`;

export function httpAnswer(body: string, headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 200 OK\r\n${lines.join('')}content-length: ${body.length}\r\n\r\n${body}`;
}
