/** Tunnels, listeners and DNS in a real box that has no network card. */

import { describe, expect, it } from 'vitest';
import { startBox } from '../support/box.ts';
import { capture, runIn } from '../support/porter-child.ts';
import { heard, readAll } from '../support/sockets.ts';

const python = (script: string): readonly [string, ...string[]] => ['python3', '-c', script];

describe('in a box without a network card', () => {
  it('a program reaches the host through a listener, and only through it', async () => {
    const porter = (await startBox()).porter;
    await porter.listen({ host: '127.66.0.7', port: 8443 }, (tunnel, { listener, peerAddress }) => {
      void readAll(tunnel).then((said) => tunnel.end(`${listener.address} heard ${said} of ${peerAddress}`));
    });
    const script = `
import socket
s = socket.create_connection(("127.66.0.7", 8443))
s.sendall(b"hello")
s.shutdown(socket.SHUT_WR)
print(s.makefile().read())
try: socket.create_connection(("192.0.2.1", 80), 2)
except OSError as error: print(error.errno)
`;
    const result = await runIn(porter, python(script), { cwd: '/tmp' });
    expect(result).toMatchObject({
      stdout: expect.stringMatching(/^127\.66\.0\.7 heard hello of 127\.[0-9.]+\n101\n$/),
      stderr: '',
    });
  });

  it('the host reaches a program that listens inside', async () => {
    const porter = (await startBox()).porter;
    const script = `
import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
c, peer = s.accept()
c.sendall(b"you said " + c.makefile("rb").read())
`;
    const { exec, stdout } = capture(porter, {
      argv: python(script),
      env: { PATH: '/usr/bin:/bin' },
      cwd: '/tmp',
    });
    const lines = stdout[Symbol.asyncIterator]();
    const first = await lines.next();
    const tunnel = await porter.connect({ host: 'localhost', port: Number(first.value?.toString()) });
    tunnel.end('good morning');
    expect(await heard(tunnel)).toBe('you said good morning');
    await lines.return?.(undefined);
    expect((await exec.result).exitCode).toBe(0);
    exec.forget();
  });

  it('a program asks DNS of the host', async () => {
    const porter = (await startBox()).porter;
    const asked: string[] = [];
    const dns = await porter.listenDns({ host: '127.0.0.1', port: 5353 }, (message, transport) => {
      asked.push(transport);
      const answer = Buffer.from(message);
      answer[2] = 0x81;
      answer[3] = 0x83;
      return answer;
    });
    const script = `
import socket, struct
q = struct.pack(">HHHHHH", 77, 256, 1, 0, 0, 0) + b"\\x07example\\x03com\\x00" + struct.pack(">HH", 1, 1)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.sendto(q, ("127.0.0.1", ${dns.port}))
print(u.recv(4096)[:4].hex())
t = socket.create_connection(("127.0.0.1", ${dns.port}))
t.sendall(struct.pack(">H", len(q)) + q)
print(t.recv(4096)[:6].hex())
`;
    const result = await runIn(porter, python(script), { cwd: '/tmp' });
    expect(result).toMatchObject({ stdout: '004d8183\n001d004d8183\n', stderr: '' });
    expect(asked).toEqual(['udp', 'tcp']);
  });
});
