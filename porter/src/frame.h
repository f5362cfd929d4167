/*
 * Frames: the unit of the stream between host and porter. docs/protocol.md is the reference.
 *
 *   0  u16  magic 'S' 'P'        8  u32  stream
 *   2  u8   type                12  u32  payload length, at most FRAME_MAX_PAYLOAD
 *   3  u8   flags, zero         16  u32  CRC-32 of bytes 0..15 and the payload
 *   4  u32  epoch               20  payload
 */
#ifndef PORTER_FRAME_H
#define PORTER_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum {
  FRAME_HEADER = 20,
  FRAME_MAX_PAYLOAD = 64 * 1024,
  FRAME_MAX = FRAME_HEADER + FRAME_MAX_PAYLOAD,
};

enum frame_type {
  /* host to porter */
  FRAME_HELLO = 0x01,
  FRAME_CREDIT = 0x02,
  FRAME_EXEC = 0x10,
  FRAME_STDIN = 0x11,
  FRAME_SIGNAL = 0x12,
  /* porter to host */
  FRAME_WELCOME = 0x81,
  FRAME_REFUSED = 0x82,
  FRAME_STARTED = 0x90,
  FRAME_STDOUT = 0x91,
  FRAME_STDERR = 0x92,
  FRAME_EXIT = 0x93,
  FRAME_NOT_STARTED = 0x94,
};

struct frame {
  uint8_t type;
  uint32_t epoch;
  uint32_t stream;
  const uint8_t *payload;
  uint32_t length;
};

struct decoder {
  uint8_t data[FRAME_MAX];
  size_t filled;
};

enum decoded { DECODED_FRAME, DECODED_MORE, DECODED_BAD };

/* Where the next bytes are to be read to, and how many fit. */
uint8_t *decoder_space(struct decoder *d, size_t *space);
void decoder_filled(struct decoder *d, size_t length);
/* The next whole frame; its payload is valid until decoder_drop. */
enum decoded decoder_next(struct decoder *d, struct frame *frame);
void decoder_drop(struct decoder *d, const struct frame *frame);

/* Writes header and payload to `out`, which has room for FRAME_HEADER + length; returns the whole length. */
size_t frame_encode(uint8_t *out, uint8_t type, uint32_t epoch, uint32_t stream, const void *payload, uint32_t length);

#endif
