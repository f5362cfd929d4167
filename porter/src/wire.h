/* Payload fields: little-endian integers and length-prefixed byte strings. Every read is checked against the payload. */
#ifndef PORTER_WIRE_H
#define PORTER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
  const uint8_t *at;
  const uint8_t *end;
  bool bad; /* sticky: one check at the end is enough */
};

struct bytes {
  const uint8_t *data;
  uint32_t length;
};

uint8_t read_u8(struct reader *r);
uint16_t read_u16(struct reader *r);
uint32_t read_u32(struct reader *r);
uint64_t read_u64(struct reader *r);
struct bytes read_bytes(struct reader *r);
/* True when every field was there and nothing is left over. */
bool reader_done(const struct reader *r);

struct writer {
  uint8_t *data;
  size_t length;
  size_t capacity;
};

void write_u8(struct writer *w, uint8_t value);
void write_u16(struct writer *w, uint16_t value);
void write_u32(struct writer *w, uint32_t value);
void write_u64(struct writer *w, uint64_t value);
void write_bytes(struct writer *w, const void *data, uint32_t length);
void write_text(struct writer *w, const char *text);

#endif
