/*
 * Frames: the unit of the stream between host and porter. docs/protocol.md is the reference.
 *
 *   0  u16  magic 'S' 'P'        8  u32  stream
 *   2  u8   type                12  u32  payload length, at most FRAME_MAX_PAYLOAD
 *   3  u8   flags               16  u32  CRC-32 of bytes 0..15 and the payload
 *   4  u32  epoch               20  payload
 */
#ifndef PORTER_FRAME_H
#define PORTER_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  FRAME_HEADER = 20,
  FRAME_MAX_PAYLOAD = 64 * 1024,
  FRAME_MAX = FRAME_HEADER + FRAME_MAX_PAYLOAD,
  FRAME_MORE = 1,
};

enum frame_type {
  /* host to porter */
  FRAME_HELLO = 0x01,
  FRAME_CREDIT = 0x02, /* both ways */
  FRAME_PING = 0x03,
  FRAME_ACK = 0x04,
  FRAME_EXEC = 0x10,
  FRAME_STDIN = 0x11,
  FRAME_SIGNAL = 0x12,
  FRAME_KILL = 0x13,
  FRAME_RESIZE = 0x14,
  FRAME_FORGET = 0x15,
  FRAME_EXECS = 0x16,
  FRAME_RESUME = 0x17,
  FRAME_FILE = 0x20,
  FRAME_CANCEL = 0x21,
  FRAME_CONNECT = 0x30,
  FRAME_STREAM = 0x31,
  FRAME_RESET = 0x32,
  FRAME_LISTEN = 0x33,
  FRAME_UNLISTEN = 0x34,
  FRAME_ANSWER = 0x35,
  FRAME_LISTENERS = 0x36,
  /* porter to host */
  FRAME_WELCOME = 0x81,
  FRAME_REFUSED = 0x82,
  FRAME_SUPERSEDED = 0x83,
  FRAME_PONG = 0x84,
  FRAME_NOTICE = 0x85,
  FRAME_STARTED = 0x90,
  FRAME_STDOUT = 0x91,
  FRAME_STDERR = 0x92,
  FRAME_EXIT = 0x93,
  FRAME_NOT_STARTED = 0x94,
  FRAME_EXEC_LIST = 0x95,
  FRAME_DATA = 0xA0,
  FRAME_DONE = 0xA1,
  FRAME_CONNECTED = 0xB0,
  FRAME_FAILED = 0xB1,
  FRAME_STREAM_OUT = 0xB2,
  FRAME_RESET_OUT = 0xB3,
  FRAME_LISTENING = 0xB4,
  FRAME_ACCEPTED = 0xB5,
  FRAME_QUESTION = 0xB6,
  FRAME_LISTENER_LIST = 0xB7,
  FRAME_UNLISTENED = 0xB8,
};

struct frame {
  uint8_t type;
  uint8_t flags;
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
/* The frame at `offset`; its payload is valid until decoder_keep. */
enum decoded decoder_at(struct decoder *d, size_t offset, struct frame *frame);
/* Drops everything before `offset`. */
void decoder_keep(struct decoder *d, size_t offset);

/* Writes header and payload to `out`, which has room for FRAME_HEADER + length; returns the whole length. The payload may
 * be in place already. */
size_t frame_encode(uint8_t *out, uint8_t type, uint32_t epoch, uint32_t stream, const void *payload, uint32_t length);

#endif
