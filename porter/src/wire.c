#include "wire.h"

#include <string.h>

#include "die.h"

static const uint8_t *take(struct reader *r, size_t length) {
  if (r->bad || (size_t)(r->end - r->at) < length) {
    r->bad = true;
    return NULL;
  }
  const uint8_t *start = r->at;
  r->at += length;
  return start;
}

static uint64_t read_le(struct reader *r, size_t length) {
  const uint8_t *p = take(r, length);
  uint64_t value = 0;
  if (p == NULL) return 0;
  for (size_t i = 0; i < length; i++) value |= (uint64_t)p[i] << (8 * i);
  return value;
}

uint8_t read_u8(struct reader *r) { return (uint8_t)read_le(r, 1); }
uint16_t read_u16(struct reader *r) { return (uint16_t)read_le(r, 2); }
uint32_t read_u32(struct reader *r) { return (uint32_t)read_le(r, 4); }
uint64_t read_u64(struct reader *r) { return read_le(r, 8); }

struct bytes read_bytes(struct reader *r) {
  uint32_t length = read_u32(r);
  const uint8_t *data = take(r, length);
  return (struct bytes){.data = data, .length = data == NULL ? 0 : length};
}

bool reader_done(const struct reader *r) { return !r->bad && r->at == r->end; }

static uint8_t *reserve(struct writer *w, size_t length) {
  /* Payloads that porter writes have a known largest size; running over it is a bug, not an input. */
  if (w->capacity - w->length < length) die("payload overflow");
  uint8_t *start = w->data + w->length;
  w->length += length;
  return start;
}

static void write_le(struct writer *w, uint64_t value, size_t length) {
  uint8_t *p = reserve(w, length);
  for (size_t i = 0; i < length; i++) p[i] = (uint8_t)(value >> (8 * i));
}

void write_u8(struct writer *w, uint8_t value) { write_le(w, value, 1); }
void write_u16(struct writer *w, uint16_t value) { write_le(w, value, 2); }
void write_u32(struct writer *w, uint32_t value) { write_le(w, value, 4); }
void write_u64(struct writer *w, uint64_t value) { write_le(w, value, 8); }

void write_bytes(struct writer *w, const void *data, uint32_t length) {
  write_u32(w, length);
  memcpy(reserve(w, length), data, length);
}

void write_text(struct writer *w, const char *text) { write_bytes(w, text, (uint32_t)strlen(text)); }
