"""A sandbox that floods, one way for as long as it runs: flood-client.py WAY HOST PORT ROOTS. Writes to /tmp/told how much
its first process did, each second.

spin      burns processors and asks nobody for anything: the control
pipes     writes one byte at a time to a pipe that is read inside, and asks nobody for anything: the control for `lines`
resets    HTTP/2 requests that are reset at once, through TLS that the gate opens
gzip      request bodies of 16 KB that unpack to 16 MiB
drips     request bodies of one byte a write
connects  connections to the proxy that are closed at once
requests  requests that no rule allows, on kept connections
dns       questions for names that do not exist
names     questions for ever new names that a rule allows
output    output without end
lines     output without end, one byte a write
forks     processes that end at once
files     files on the root file system that are made, written to the disk and removed; at most 100 MiB at a time
"""
import os, socket, ssl, struct, sys, threading, time

way, host, port, roots = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
done = [0]
proxy = ('127.0.0.1', 3128)


def tell():
    while True:
        time.sleep(1)
        with open('/tmp/told.new', 'w') as file:
            file.write('%s %d' % (way, done[0]))
        os.replace('/tmp/told.new', '/tmp/told')


def opened(protocol):
    context = ssl.create_default_context(cafile=roots)
    context.set_alpn_protocols([protocol])
    sock = socket.create_connection(proxy)
    sock.sendall(b'CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n' % (host.encode(), port, host.encode(), port))
    if b' 200 ' not in sock.recv(4096):
        raise OSError('the tunnel was refused')
    return context.wrap_socket(sock, server_hostname=host)


def frame(kind, flags, stream, payload=b''):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload


def resets():
    authority = b'%s:%d' % (host.encode(), port)
    head = b'\x82\x87\x84\x01' + bytes([len(authority)]) + authority
    cancel = struct.pack('>I', 8)
    sock = opened('h2')
    sock.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + frame(4, 0, 0))
    threading.Thread(target=drain, args=(sock,), daemon=True).start()
    stream = 1
    while stream < 2**31 - 400:
        batch = b''.join(
            frame(1, 5, number, head) + frame(3, 0, number, cancel) for number in range(stream, stream + 200, 2)
        )
        sock.sendall(batch)
        stream += 200
        done[0] += 100


def drain(sock):
    try:
        while sock.recv(65536):
            pass
    except OSError:
        pass


def bombs():
    with open('/tmp/bomb.gz', 'rb') as file:
        body = file.read()
    sock = opened('http/1.1')
    head = b'POST /0 HTTP/1.1\r\nHost: %s:%d\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n'
    while True:
        sock.sendall(head % (host.encode(), port, len(body)) + body)
        answer(sock)
        done[0] += 1


def drips():
    sock = opened('http/1.1')
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(b'POST /0 HTTP/1.1\r\nHost: %s:%d\r\nContent-Length: %d\r\n\r\n' % (host.encode(), port, 2**40))
    while True:
        sock.sendall(b'x')
        done[0] += 1


def answer(sock):
    data = b''
    while b'\r\n\r\n' not in data:
        part = sock.recv(65536)
        if not part:
            raise OSError('closed')
        data += part


def connects():
    while True:
        sock = socket.create_connection(proxy)
        sock.close()
        done[0] += 1


def requests():
    sock = socket.create_connection(proxy)
    while True:
        sock.sendall(b'GET http://no.test/ HTTP/1.1\r\nHost: no.test\r\n\r\n')
        if b' 403 ' not in sock.recv(65536):
            raise OSError('closed')
        done[0] += 1


def question(name):
    labels = b''.join(bytes([len(label)]) + label for label in name.encode().split(b'.'))
    return b'\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00' + labels + b'\x00\x00\x01\x00\x01'


def ask(name_of):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(0.05)
    sock.connect(('127.0.0.1', 53))
    number = 0
    while True:
        for _ in range(32):
            number += 1
            sock.send(question(name_of(number)))
        try:
            for _ in range(32):
                sock.recv(4096)
                done[0] += 1
        except OSError:
            pass


def output():
    block = bytes(65536)
    while True:
        os.write(1, block)
        done[0] += len(block)


def lines():
    while True:
        os.write(1, b'x')
        done[0] += 1


def pipes():
    reader, writer = pipe
    while True:
        os.write(writer, b'x')
        done[0] += 1


def forks():
    while True:
        children = []
        try:
            for _ in range(50):
                pid = os.fork()
                if pid == 0:
                    os._exit(0)
                children.append(pid)
        except OSError:
            pass
        for pid in children:
            os.waitpid(pid, 0)
            done[0] += 1


def files():
    mine = '%s/flood-%d' % (os.path.expanduser('~'), os.getpid())
    os.makedirs(mine, exist_ok=True)
    if os.stat(mine).st_dev != os.stat('/').st_dev:
        sys.exit('the home folder is not on the root file system')
    block = bytes(256 * 1024)
    while True:
        # Each of the four processes has at most 100 of these, far below the limit of the disk.
        for number in range(100):
            with open('%s/%d' % (mine, number), 'wb') as file:
                file.write(block)
                file.flush()
                os.fsync(file.fileno())
            done[0] += 1
        for number in range(100):
            os.unlink('%s/%d' % (mine, number))


def spin():
    while True:
        done[0] += 1


works = {
    'spin': spin,
    'resets': resets,
    'gzip': bombs,
    'drips': drips,
    'connects': connects,
    'requests': requests,
    'dns': lambda: ask(lambda number: 'n%d.no.test' % number),
    'names': lambda: ask(lambda number: 'n%d-%d.many.test' % (os.getpid(), number)),
    'output': output,
    'lines': lines,
    'pipes': pipes,
    'forks': forks,
    'files': files,
}


def again():
    while True:
        try:
            works[way]()
        except OSError:
            # The gate closed the connection: a flood goes on with the next one.
            time.sleep(0.01)


alone = ('spin', 'pipes', 'output', 'lines', 'forks', 'files')
if way == 'pipes':
    pipe = os.pipe()
    if os.fork() == 0:
        os.dup2(pipe[0], 0)
        os.execvp('sh', ['sh', '-c', 'exec cat >/dev/null'])
threading.Thread(target=tell, daemon=True).start()
if way in alone or way == 'resets':
    for _ in range(3):
        if os.fork() == 0:
            again()
workers = [threading.Thread(target=again, daemon=True) for _ in range(1 if way in alone else 8)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
