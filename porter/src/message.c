#include "message.h"

#include <stdlib.h>
#include <string.h>

#include "host.h"

static uint8_t *collected;
static uint32_t filled;
static uint32_t stream;
static uint8_t type;

void message_reset(void) {
  free(collected);
  collected = NULL;
  filled = 0;
}

bool message_add(const struct frame *frame, const uint8_t **payload, uint32_t *length) {
  bool more = frame->flags & FRAME_MORE;
  if (filled == 0 && !more) {
    *payload = frame->payload;
    *length = frame->length;
    return true;
  }
  bool same = filled == 0 || (frame->stream == stream && frame->type == type);
  uint8_t *larger = same && filled + frame->length <= MESSAGE_MAX ? realloc(collected, filled + frame->length + 1) : NULL;
  if (larger == NULL) {
    message_reset();
    host_violation("a message that is too long, or two at once");
    return false;
  }
  collected = larger;
  memcpy(collected + filled, frame->payload, frame->length);
  filled += frame->length;
  stream = frame->stream;
  type = frame->type;
  if (more) return false;
  *payload = collected;
  *length = filled;
  return true;
}
