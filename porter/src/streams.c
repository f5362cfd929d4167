#include "streams.h"

uint32_t streams_next(void) {
  static uint32_t next = 0x80000000u;
  return next == 0 ? 0 : next++;
}
