#include "extents.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "file_io.h"

long read_fully(int fd, uint8_t *to, size_t length) {
  size_t done = 0;
  while (done < length) {
    long got = read(fd, to + done, length - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += (size_t)got;
  }
  return (long)done;
}

/* The next data at or after `from`, before `end`. False: nothing but a hole. A file system that knows no holes has data everywhere. */
static bool next_data(int fd, uint64_t from, uint64_t end, uint64_t *begins, uint64_t *ends) {
  if (from >= end) return false;
  off_t data = lseek(fd, (off_t)from, SEEK_DATA);
  if (data < 0 && errno == ENXIO) return false;
  *begins = data < (off_t)from ? from : (uint64_t)data;
  if (*begins >= end) return false;
  off_t hole = lseek(fd, (off_t)*begins, SEEK_HOLE);
  *ends = hole <= (off_t)*begins || (uint64_t)hole > end ? end : (uint64_t)hole;
  return true;
}

uint64_t extents_data(int fd, uint64_t size) {
  uint64_t data = 0, begins, ends;
  for (uint64_t at = 0; next_data(fd, at, size, &begins, &ends); at = ends) data += ends - begins;
  lseek(fd, 0, SEEK_SET);
  return data;
}

static int put_extent(int fd, uint64_t from, uint64_t length) {
  static uint8_t content[IO_BUFFER];
  if (lseek(fd, (off_t)from, SEEK_SET) < 0) return errno;
  io_put_u64(from);
  io_put_u64(length);
  while (length > 0) {
    long got = read_fully(fd, content, length < sizeof content ? (size_t)length : sizeof content);
    if (got < 0) return errno;
    if (got == 0) return EBUSY;
    io_put(content, (size_t)got);
    length -= (uint64_t)got;
  }
  return 0;
}

int extents_put(int fd, uint64_t from, uint64_t end, uint64_t *left) {
  uint64_t begins, ends;
  for (uint64_t at = from; next_data(fd, at, end, &begins, &ends); at = ends) {
    if (ends - begins > *left) return EBUSY; /* holes were filled under our hands */
    *left -= ends - begins;
    int failure = put_extent(fd, begins, ends - begins);
    if (failure != 0) return failure;
  }
  io_put_u64(end);
  io_put_u64(0);
  return 0;
}
