#include "notice.h"

#include "host.h"
#include "wire.h"

void notice(enum notice_kind kind, uint32_t value, const char *text) {
  uint8_t payload[128];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u32(&w, kind);
  write_u32(&w, value);
  write_text(&w, text);
  host_control(FRAME_NOTICE, 0, &w);
}
