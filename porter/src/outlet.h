/*
 * Bytes on their way from a descriptor to the host, on a stream that ends with its host: nothing is kept. Read only as far
 * as the stream's window, the connection's credit and the queue allow; the host gives back what it has taken.
 */
#ifndef PORTER_OUTLET_H
#define PORTER_OUTLET_H

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"
#include "share.h"

struct outlet {
  struct watch watch; /* fd -1: at its end */
  uint32_t stream;
  struct share share;
  uint8_t type;
  bool readable;
  bool is_paced; /* small pieces have a budget: see pace.h */
  int failure; /* the errno that ended it, 0 for a plain end */
};

void outlet_open(struct outlet *o, int fd, uint32_t stream, uint8_t type);
/* Reads no more. What is under way counts until outlet_over. */
void outlet_close(struct outlet *o);
/* The host was told of the end among the data: from there on it does not count what was under way, and neither does this. */
void outlet_over(struct outlet *o);
/* Moves what may be moved. */
void outlet_pump(struct outlet *o);
/* The host has taken this much. */
void outlet_credit(struct outlet *o, uint32_t bytes);
/* There is something to read, and the budget of small pieces is used up. */
static inline bool outlet_waits(const struct outlet *o) { return o->watch.fd >= 0 && o->watch.events == LOOP_NOTHING; }
static inline bool outlet_at_end(const struct outlet *o) { return o->watch.fd < 0; }

#endif
