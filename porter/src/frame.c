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

enum decoded decoder_at(struct decoder *d, size_t offset, struct frame *frame) {
  const uint8_t *start = d->data + offset;
  size_t there = d->filled - offset;
  if (there < FRAME_HEADER) return DECODED_MORE;
  struct reader r = {.at = start + sizeof magic, .end = start + FRAME_HEADER};
  frame->type = read_u8(&r);
  frame->flags = read_u8(&r);
  frame->epoch = read_u32(&r);
  frame->stream = read_u32(&r);
  frame->length = read_u32(&r);
  uint32_t crc = read_u32(&r);
  bool known = (frame->flags & ~FRAME_MORE) == 0 && frame->length <= FRAME_MAX_PAYLOAD;
  if (memcmp(start, magic, sizeof magic) != 0 || !known) return DECODED_BAD;
  if (there < FRAME_HEADER + frame->length) return DECODED_MORE;
  frame->payload = start + FRAME_HEADER;
  return checksum(start, frame->payload, frame->length) == crc ? DECODED_FRAME : DECODED_BAD;
}

void decoder_keep(struct decoder *d, size_t offset) {
  d->filled -= offset;
  memmove(d->data, d->data + offset, d->filled);
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
