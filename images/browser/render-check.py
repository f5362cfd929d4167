"""Proves that the browser draws: a page with two colours becomes a PNG, and the PNG has both of them where they belong."""

import os
import struct
import subprocess
import sys
import tempfile
import zlib

WIDTH, HEIGHT = 120, 80
LEFT, RIGHT = (200, 30, 40), (20, 60, 220)
PAGE = (
    "<body style='margin:0'><div style='position:fixed;left:0;top:0;width:50%;height:100%;background:rgb(200,30,40)'></div>"
    "<div style='position:fixed;left:50%;top:0;width:50%;height:100%;background:rgb(20,60,220)'></div></body>"
)


def rows_of(png):
    """The pixels, as lists of bytes, and the number of bytes a pixel. Reads what Chromium writes: 8 bits, no interlace."""
    if png[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("not a PNG")
    at, data, head = 8, b"", None
    while at < len(png):
        (length,), kind = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + length]
        if zlib.crc32(kind + body) != struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0]:
            raise ValueError("a part of the PNG is damaged")
        if kind == b"IHDR":
            head = struct.unpack(">IIBBBBB", body)
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    width, height, depth, colour, _, _, interlace = head
    if (width, height, depth, interlace) != (WIDTH, HEIGHT, 8, 0) or colour not in (2, 6):
        raise ValueError(f"an unexpected PNG: {head}")
    size = 3 if colour == 2 else 4
    raw, stride, rows, above = zlib.decompress(data), width * size, [], [0] * (width * size)
    for y in range(height):
        filtered, line = raw[y * (stride + 1)], list(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        for x in range(stride):
            a = line[x - size] if x >= size else 0
            b = above[x]
            c = above[x - size] if x >= size else 0
            line[x] = (line[x] + predicted(filtered, a, b, c)) & 255
        rows.append(line)
        above = line
    return rows, size


def predicted(kind, a, b, c):
    if kind == 0:
        return 0
    if kind == 1:
        return a
    if kind == 2:
        return b
    if kind == 3:
        return (a + b) // 2
    nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))
    return nearest[2]


def main():
    with tempfile.TemporaryDirectory() as folder:
        page, picture = os.path.join(folder, "page.html"), os.path.join(folder, "page.png")
        with open(page, "w", encoding="utf-8") as file:
            file.write(PAGE)
        subprocess.run(
            ["chromium", "--headless", "--disable-gpu", f"--user-data-dir={folder}/profile", "--hide-scrollbars",
             f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}", f"file://{page}"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=80,
        )
        with open(picture, "rb") as file:
            rows, size = rows_of(file.read())
    middle = rows[HEIGHT // 2]
    for x, wanted in ((WIDTH // 4, LEFT), (WIDTH * 3 // 4, RIGHT)):
        found = tuple(middle[x * size : x * size + 3])
        if found != wanted:
            raise ValueError(f"at {x} the page should be {wanted} and is {found}")
    print(f"rendered {WIDTH}x{HEIGHT}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, subprocess.SubprocessError, zlib.error) as error:
        said = getattr(error, "stderr", None) or b""
        sys.exit(f"{error} {said[-300:].decode('utf-8', 'replace')}")
