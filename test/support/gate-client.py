"""Attempts to leave a sandbox, one a line as JSON; then for each its time in ms and what became of it. Bytes are written as latin-1.

Only what Python's smallest package has: there is no module json in it.
"""
import re, socket, struct, sys, time

PROXY = ('127.0.0.1', 3128)


def read_all(sock, most=65536):
    data = b''
    try:
        while len(data) < most:
            part = sock.recv(4096)
            if not part:
                break
            data += part
    except ConnectionResetError:
        data += b'' if data else b'RESET'
    return data


def read_head(sock):
    data = b''
    while b'\r\n\r\n' not in data:
        part = sock.recv(1)
        if not part:
            break
        data += part
    return data


def to_proxy():
    sock = socket.create_connection(PROXY, 5)
    sock.settimeout(15)
    return sock


def get(sock, authority):
    sock.sendall(b'GET / HTTP/1.1\r\nHost: ' + authority + b'\r\nConnection: close\r\n\r\n')
    return read_all(sock)


def outcome(answer):
    text = answer.decode('latin-1')
    if 'hello from the test' in text:
        return 'reached'
    at = text.find('{"error"')
    if at >= 0:
        return 'denied ' + re.search('"code":"([a-z_]+)"', text[at:]).group(1)
    return 'closed' if text in ('', 'RESET') else 'answer ' + text.split('\r\n')[0][:60]


def by_http(one, host, authority):
    sock = to_proxy()
    sock.sendall(b'GET http://' + authority + b'/ HTTP/1.1\r\nHost: ' + authority + b'\r\nConnection: close\r\n\r\n')
    return outcome(read_all(sock))


def by_connect(one, host, authority):
    sock = to_proxy()
    sock.sendall(b'CONNECT ' + authority + b' HTTP/1.1\r\nHost: ' + authority + b'\r\n\r\n')
    head = read_head(sock)
    if b' 200 ' not in head.split(b'\r\n')[0]:
        return outcome(head + read_all(sock))
    return after(sock, one, authority)


def by_socks(one, host, authority):
    sock = to_proxy()
    sock.sendall(b'\x05\x01\x00')
    if sock.recv(2) != b'\x05\x00':
        return 'closed'
    port = struct.pack('>H', int(one['port']) & 0xffff)
    sock.sendall(bytes([5, one.get('command', 1), 0, 3, len(host) & 255]) + host[:255] + port)
    reply = b''
    while len(reply) < 10:
        part = sock.recv(10 - len(reply))
        if not part:
            return 'closed'
        reply += part
    if reply[1] != 0:
        return 'denied socks %d' % reply[1]
    return after(sock, one, authority)


def by_name(one, host, authority):
    try:
        address = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
    except OSError:
        return 'no address'
    try:
        sock = socket.create_connection((address, int(one['port'])), 5)
    except ConnectionResetError:
        # Taken and closed before this process had its turn: the gate was faster than the end of the call.
        return 'closed'
    except OSError:
        return 'refused'
    sock.settimeout(15)
    return after(sock, one, authority)


def after(sock, one, authority):
    if 'send' in one:
        for part in one['send']:
            sock.sendall(bytes.fromhex(part))
            time.sleep(0)
        data = sock.recv(4096)
        return 'got ' + (data.hex() if data[:1] == b'\x15' else data.decode('latin-1'))
    if one.get('silent'):
        return 'got ' + sock.recv(4096).decode('latin-1')
    return outcome(get(sock, one.get('inner', authority.decode('latin-1')).encode('latin-1')))


ways = {'http': by_http, 'connect': by_connect, 'socks': by_socks, 'transparent': by_name}


def attempt(one):
    host = one['host'].encode('latin-1')
    authority = host + (b':' + str(one['port']).encode() if one.get('port') != '' else b'')
    began = time.monotonic()
    try:
        what = ways[one['via']](one, host, authority)
    except ConnectionResetError:
        what = 'closed'
    except Exception as error:
        what = 'failed %s %s' % (type(error).__name__, error)
    return '%.1f %s' % ((time.monotonic() - began) * 1000, what.replace('\n', ' '))


for line in sys.stdin:
    print(attempt(eval(line, {'true': True, 'false': False})), flush=True)
