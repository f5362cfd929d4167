#include "numbers.h"

enum { MAX_TOMBSTONES = 4096 };

static uint32_t tombstones[MAX_TOMBSTONES], tombstone_count;
/* The highest number that fell out of the tombstones. From there down nobody knows any more what was used. */
static uint32_t forgotten_up_to;
static uint32_t highest;

uint32_t number_highest(void) { return highest; }

void number_use(uint32_t stream) {
  if (stream > highest) highest = stream;
}

void number_bury(uint32_t stream) {
  uint32_t *place = &tombstones[tombstone_count++ % MAX_TOMBSTONES];
  if (*place > forgotten_up_to) forgotten_up_to = *place;
  *place = stream;
}

bool number_is_buried(uint32_t stream) {
  if (stream <= forgotten_up_to) return true;
  for (uint32_t i = 0; i < MAX_TOMBSTONES && i < tombstone_count; i++) {
    if (tombstones[i] == stream) return true;
  }
  return false;
}
