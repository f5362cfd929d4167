/* The request for an exec, from the wire's form to the one that spawn takes. */
#ifndef PORTER_REQUEST_H
#define PORTER_REQUEST_H

#include <stdint.h>

#include "spawn.h"

enum { MAX_LIMITS = 8 };

struct exec_wish {
  struct spawn spawn;
  uint64_t deadline_ms; /* 0: none */
  uint32_t grace_ms;    /* 0: the default */
  uint64_t memory_limit;
  struct spawn_limit limits[MAX_LIMITS];
};

/* Returns 0 or an errno. Free it in either case. */
int exec_wish_read(struct exec_wish *wish, const uint8_t *payload, uint32_t length);
void exec_wish_free(struct exec_wish *wish);

#endif
