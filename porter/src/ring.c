#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum {
  SMALLEST = 4 * 1024,
  /* What all rings together may take beyond the smallest size of each: many slow readers share this. */
  SHARED_BUDGET = 1024 * 1024,
};

static uint32_t shared_used;

static uint32_t beyond_smallest(uint32_t capacity) { return capacity > SMALLEST ? capacity - SMALLEST : 0; }

void ring_copy(const struct ring *ring, uint64_t offset, uint8_t *to, uint32_t length) {
  uint32_t at = (uint32_t)(offset & (ring->capacity - 1));
  uint32_t first = ring->capacity - at < length ? ring->capacity - at : length;
  memcpy(to, ring->bytes + at, first);
  memcpy(to + first, ring->bytes, length - first);
}

void ring_free(struct ring *ring) {
  shared_used -= beyond_smallest(ring->capacity);
  free(ring->bytes);
  ring->bytes = NULL;
  ring->capacity = 0;
}

static bool grow(struct ring *ring, uint32_t limit) {
  uint32_t capacity = ring->capacity == 0 ? SMALLEST : ring->capacity * 2;
  if (capacity > limit && ring->capacity != 0) return false;
  uint32_t more = beyond_smallest(capacity) - beyond_smallest(ring->capacity);
  if (more > SHARED_BUDGET - shared_used) return false;
  /* Those that nobody empties must not take all: one that is alone leaves half, and beside others four times what it takes. */
  uint32_t of_others = shared_used - beyond_smallest(ring->capacity);
  uint32_t times = of_others > SHARED_BUDGET / 8 ? 4 : 1;
  if (beyond_smallest(capacity) * times > SHARED_BUDGET - shared_used - more) return false;
  uint8_t *bytes = malloc(capacity);
  if (bytes == NULL) return false;
  struct ring larger = {.bytes = bytes, .capacity = capacity, .start = ring->start, .end = ring->end};
  for (uint64_t offset = ring->start; offset < ring->end;) {
    uint32_t at = (uint32_t)(offset & (capacity - 1));
    uint64_t left = ring->end - offset;
    uint32_t part = capacity - at < left ? capacity - at : (uint32_t)left;
    ring_copy(ring, offset, bytes + at, part);
    offset += part;
  }
  free(ring->bytes);
  shared_used += more;
  *ring = larger;
  return true;
}

long ring_read(struct ring *ring, int fd, uint32_t limit) {
  uint32_t kept = (uint32_t)(ring->end - ring->start);
  if (kept >= limit) return RING_FULL;
  if (kept == ring->capacity && !grow(ring, limit)) return RING_FULL;
  uint32_t at = (uint32_t)(ring->end & (ring->capacity - 1));
  uint32_t room = ring->capacity - kept;
  if (room > limit - kept) room = limit - kept;
  uint32_t first = ring->capacity - at < room ? ring->capacity - at : room;
  struct iovec parts[2] = {{ring->bytes + at, first}, {ring->bytes, room - first}};
  long got;
  do got = readv(fd, parts, room > first ? 2 : 1);
  while (got < 0 && errno == EINTR);
  if (got < 0) return errno == EAGAIN ? RING_EMPTY : errno == EIO ? RING_END : RING_FAILED;
  ring->end += (uint64_t)got;
  return got == 0 ? RING_END : got;
}

void ring_release(struct ring *ring, uint64_t offset) {
  ring->start = offset;
  if (ring->start == ring->end) ring_free(ring);
}
