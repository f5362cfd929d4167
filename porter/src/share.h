/*
 * One stream's share of the connection's credit. What a stream has under way that nobody reads is lost to the others, so
 * how much it may have depends on how much its reader has taken, and on what it leaves to the others.
 */
#ifndef PORTER_SHARE_H
#define PORTER_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct share {
  uint32_t under_way;
  uint32_t trust; /* may be under way, at most: grows with what the host has taken */
};

/* What a stream may have under way before its reader has shown that it reads. */
enum { SHARE_FIRST_FILE = 8 * 1024, SHARE_FIRST_EXEC = 16 * 1024 };

/* How much may be sent now. */
uint32_t share_room(const struct share *s);
void share_spend(struct share *s, uint32_t bytes);
/* The host has taken this much. False when that is more than is under way. */
bool share_give_back(struct share *s, uint64_t bytes);
/* The stream is over, or begins anew: nothing of it is under way any more. */
void share_end(struct share *s);

#endif
