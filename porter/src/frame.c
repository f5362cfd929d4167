#include "frame.h"

#include <string.h>

#include "crc32.h"
#include "wire.h"

static const uint8_t magic[2] = {'S', 'P'};

uint8_t *decoder_space(struct decoder *d, size_t *space) {
  *space = sizeof d->data - d->filled;
  return d->data + d->filled;
}

void decoder_filled(struct decoder *d, size_t length) { d->filled += length; }

static uint32_t checksum(const uint8_t *header, const uint8_t *payload, uint32_t length) {
  return crc32_update(crc32_update(0, header, FRAME_HEADER - 4), payload, length);
}

enum decoded decoder_next(struct decoder *d, struct frame *frame) {
  if (d->filled < FRAME_HEADER) return DECODED_MORE;
  struct reader r = {.at = d->data + 2, .end = d->data + FRAME_HEADER};
  frame->type = read_u8(&r);
  uint8_t flags = read_u8(&r);
  frame->epoch = read_u32(&r);
  frame->stream = read_u32(&r);
  frame->length = read_u32(&r);
  uint32_t crc = read_u32(&r);
  if (memcmp(d->data, magic, sizeof magic) != 0 || flags != 0 || frame->length > FRAME_MAX_PAYLOAD) {
    return DECODED_BAD;
  }
  if (d->filled < FRAME_HEADER + frame->length) return DECODED_MORE;
  frame->payload = d->data + FRAME_HEADER;
  return checksum(d->data, frame->payload, frame->length) == crc ? DECODED_FRAME : DECODED_BAD;
}

void decoder_drop(struct decoder *d, const struct frame *frame) {
  size_t whole = FRAME_HEADER + frame->length;
  d->filled -= whole;
  memmove(d->data, d->data + whole, d->filled);
}

size_t frame_encode(uint8_t *out, uint8_t type, uint32_t epoch, uint32_t stream, const void *payload, uint32_t length) {
  struct writer w = {.data = out, .capacity = FRAME_HEADER};
  write_u8(&w, magic[0]);
  write_u8(&w, magic[1]);
  write_u8(&w, type);
  write_u8(&w, 0);
  write_u32(&w, epoch);
  write_u32(&w, stream);
  write_u32(&w, length);
  if (length > 0 && payload != out + FRAME_HEADER) memcpy(out + FRAME_HEADER, payload, length);
  write_u32(&w, checksum(out, out + FRAME_HEADER, length));
  return FRAME_HEADER + length;
}
