/* The content of a file with holes, as extents: docs/protocol.md, section 6. */
#ifndef PORTER_EXTENTS_H
#define PORTER_EXTENTS_H

#include <stddef.h>
#include <stdint.h>

/* Reads until `length` bytes are there or the file is at its end. -1 on failure. */
long read_fully(int fd, uint8_t *to, size_t length);

/* How much of the first `size` bytes is no hole. */
uint64_t extents_data(int fd, uint64_t size);

/* Puts the data between `from` and `end`, of which there is at most `*left`, and an empty extent at `end`. 0 or an errno. */
int extents_put(int fd, uint64_t from, uint64_t end, uint64_t *left);

#endif
