#include "share.h"

#include "host.h"

enum {
  /* So much every stream may have under way in any case. */
  LEAST = 48,
  /* This part of the window is kept for that: of 512 KiB it is enough for 256 execs, 32 file operations and 1024 connections. */
  RESERVED_PART = 8,
};

/*
 * A stream that is alone may have as much under way as it leaves to the others, and beside others that hold much a third of
 * it. So the streams that were read once and no longer are take half, and then a quarter each of what is left; and one that
 * was never read takes no more than its first trust.
 */
static uint32_t fair(uint32_t under_way) {
  uint32_t reserve = host_window() / RESERVED_PART, credit = host_credit();
  uint32_t common = credit > reserve ? credit - reserve : 0;
  uint32_t of_others = host_window() - credit - under_way;
  uint32_t times = of_others > reserve ? 3 : 1;
  return common / times > under_way ? (common - times * under_way) / (times + 1) + 1 : 0;
}

uint32_t share_room(const struct share *s) {
  uint32_t credit = host_credit();
  uint32_t most = s->trust > host_stream_window() ? host_stream_window() : s->trust;
  most = s->under_way < most ? most - s->under_way : 0;
  uint32_t own = fair(s->under_way);
  if (own == 0 && s->under_way < LEAST) own = LEAST - s->under_way;
  if (most > own) most = own;
  return most > credit ? credit : most;
}

void share_spend(struct share *s, uint32_t bytes) {
  s->under_way += bytes;
  host_spend(bytes);
}

bool share_give_back(struct share *s, uint64_t bytes) {
  if (bytes > s->under_way) return false;
  s->under_way -= (uint32_t)bytes;
  if (s->trust < HOST_MAX_WINDOW) s->trust += (uint32_t)bytes;
  host_give_back(bytes);
  return true;
}

void share_end(struct share *s) {
  host_give_back(s->under_way);
  s->under_way = 0;
}
