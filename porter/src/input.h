/* Bytes on their way into a program or a connection: held within a window, written as they are taken, paid back as credit. */
#ifndef PORTER_INPUT_H
#define PORTER_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop.h"

/* What may be on its way at once decides how fast a download is whose reader answers late, as on a busy machine. */
enum { INPUT_WINDOW = 256 * 1024 };

struct input {
  struct watch watch; /* fd -1: closed, or never there */
  uint32_t stream;
  uint8_t *bytes;
  size_t head, tail;
  uint64_t received; /* in all: where another host goes on */
  bool ending; /* closed as soon as everything is written */
  bool in_line; /* the last byte written did not end a line */
  bool is_pty; /* its end is a character, because the descriptor is also the output's */
  /* Set after opening: its end is half a close, and what its failure leaves over is not paid back, because a reset follows. */
  bool is_socket;
  int failure; /* the errno that ended it */
};

/* `fd` may be -1: then everything is taken and thrown away. */
void input_open(struct input *in, int fd, uint32_t stream, bool is_pty);
void input_close(struct input *in);
/* An empty payload is the end. More than the window is the host's violation. */
void input_take(struct input *in, const uint8_t *payload, uint32_t length);
/* How much more the host may send now. */
uint32_t input_room(const struct input *in);

#endif
