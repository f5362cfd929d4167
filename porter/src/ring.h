/*
 * Output that is kept until the host has it: a ring of bytes with absolute offsets, from the oldest that is not acknowledged
 * to the newest that was read. It grows while its reader is behind and shrinks to nothing when all is acknowledged.
 */
#ifndef PORTER_RING_H
#define PORTER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
  uint8_t *bytes;
  uint32_t capacity; /* a power of two, or 0 */
  uint64_t start, end;
};

enum { RING_END = 0, RING_EMPTY = -1, RING_FULL = -2, RING_FAILED = -3 };
/* Reads what `fd` has now, as far as there is room within `limit` kept bytes. Returns how many, or one of the above. */
long ring_read(struct ring *ring, int fd, uint32_t limit);
/* Copies out [offset, offset + length), which must be kept. */
void ring_copy(const struct ring *ring, uint64_t offset, uint8_t *to, uint32_t length);
/* Forgets everything before `offset`. */
void ring_release(struct ring *ring, uint64_t offset);
void ring_free(struct ring *ring);

#endif
