"""A client of the benchmarks, the same inside a sandbox and on this machine. One order a line, one line of figures back.

get N           N requests, each on a connection of its own: the milliseconds of each
keep N          N requests on one connection: the same
bulk BYTES      one large answer: seconds
many N BYTES    N connections, all open before the first request: seconds
flood N WIDTH   N requests by WIDTH threads, each on a connection of its own: seconds
"""
import socket, ssl, sys, threading, time

way, host, port, roots = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
context = ssl.create_default_context(cafile=roots)


def connect():
    sock = socket.create_connection(('127.0.0.1', 3128 if way == 'proxy' else port) if way != 'name' else (host, port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if way == 'proxy':
        sock.sendall(b'CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n' % (host.encode(), port, host.encode(), port))
        if b' 200 ' not in sock.recv(4096):
            raise OSError('the tunnel was refused')
    return context.wrap_socket(sock, server_hostname=host)


def ask(sock, size):
    sock.sendall(b'GET /%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n' % (size, host.encode(), port))
    data = b''
    while b'\r\n\r\n' not in data:
        part = sock.recv(65536)
        if not part:
            raise OSError('the answer ended in its head')
        data += part
    head, body = data.split(b'\r\n\r\n', 1)
    if b' 200 ' not in head.split(b'\r\n')[0]:
        raise OSError(head.decode('latin-1'))
    left = (size or 2) - len(body)
    if b'chunked' in head.lower():
        while not data.endswith(b'0\r\n\r\n'):
            data += sock.recv(65536)
        return
    buffer = bytearray(262144)
    while left > 0:
        got = sock.recv_into(buffer)
        if got == 0:
            raise OSError('the answer ended early')
        left -= got


def single():
    started = time.perf_counter()
    sock = connect()
    ask(sock, 0)
    sock.close()
    return (time.perf_counter() - started) * 1000


def kept(sock):
    started = time.perf_counter()
    ask(sock, 0)
    return (time.perf_counter() - started) * 1000


def at_once(works):
    failed = []

    def guarded(work):
        try:
            work()
        except (OSError, threading.BrokenBarrierError) as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def many(count, size):
    everybody = threading.Barrier(count)

    def work():
        sock = connect()
        everybody.wait(60)
        ask(sock, size)
        sock.close()

    at_once([work] * count)


def flood(count, width):
    at_once([lambda: [single() for _ in range(count // width)]] * width)


for line in sys.stdin:
    order, *numbers = line.split()
    numbers = [int(number) for number in numbers]
    started = time.perf_counter()
    if order == 'get':
        print(*['%.3f' % single() for _ in range(numbers[0])], flush=True)
        continue
    if order == 'keep':
        sock = connect()
        kept(sock)
        print(*['%.3f' % kept(sock) for _ in range(numbers[0])], flush=True)
        sock.close()
        continue
    if order == 'bulk':
        ask(connect(), numbers[0])
    elif order == 'many':
        many(*numbers)
    elif order == 'flood':
        flood(*numbers)
    print('%.3f' % (time.perf_counter() - started), flush=True)
