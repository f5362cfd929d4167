/* One channel of an exec's output: read from its program as far as there is room, kept until acknowledged, sent by credit. */
#ifndef PORTER_OUTPUT_H
#define PORTER_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"
#include "ring.h"
#include "share.h"

struct output {
  struct watch watch; /* fd -1: at its end, or never there */
  struct ring ring;   /* from what is not acknowledged to what was read */
  uint64_t sent;      /* between the two */
  uint8_t type;
  bool is_pty;
  bool last_look; /* its program ended: now the end of a terminal is the end */
  bool readable;
  bool discarding; /* nobody waits for it any more, but its writers must not die of it */
};

void output_open(struct output *o, int fd, uint8_t type, bool is_pty);
void output_close(struct output *o);
/* Reads what there is, as far as it may be kept. */
void output_fill(struct output *o, const struct share *share);
/* Leaves what there is for a later output_fill; until then writers do not wake porter. False when there is nothing to read. */
bool output_hold(struct output *o);
/* Sends what the stream's share allows. */
void output_send(struct output *o, uint32_t stream, struct share *share);
/* Everything below `offset` is with the host. False when that was never sent. */
bool output_acknowledge(struct output *o, uint64_t offset, struct share *share);
/* A new host has everything below `offset` and wants the rest. False when that is not kept any more. */
bool output_resume(struct output *o, uint64_t offset);
/* The program ended: reads once more, whatever was reported. */
void output_look_again(struct output *o);
/* At most this much is in its pipe now. */
uint64_t output_waiting(const struct output *o);
/* From now on what comes is read and thrown away. */
void output_discard(struct output *o);

static inline bool output_at_end(const struct output *o) { return o->watch.fd < 0; }
static inline bool output_all_sent(const struct output *o) { return o->sent == o->ring.end; }

#endif
