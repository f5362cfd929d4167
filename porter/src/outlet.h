/*
 * Bytes on their way from a descriptor to the host, on a stream that ends with its host: nothing is kept. Read only as far
 * as the stream's window, the connection's credit and the queue allow; the host gives back what it has taken.
 */
#ifndef PORTER_OUTLET_H
#define PORTER_OUTLET_H

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"

struct outlet {
  struct watch watch; /* fd -1: at its end */
  uint32_t stream;
  uint32_t under_way;
  uint32_t trust; /* may be under way, at most: grows with what the host has taken */
  uint8_t type;
  bool readable;
  int failure; /* the errno that ended it, 0 for a plain end */
};

void outlet_open(struct outlet *o, int fd, uint32_t stream, uint8_t type);
void outlet_close(struct outlet *o);
/* Moves what may be moved. */
void outlet_pump(struct outlet *o);
/* The host has taken this much. */
void outlet_credit(struct outlet *o, uint32_t bytes);
static inline bool outlet_at_end(const struct outlet *o) { return o->watch.fd < 0; }

#endif
