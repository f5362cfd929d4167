#include "output.h"

#include <errno.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host.h"
#include "pace.h"
#include "wire.h"

enum {
  /* As much as a host may let be under way on one stream; before anyone has read it, less. */
  KEPT_MOST = 256 * 1024,
  KEPT_FIRST = 64 * 1024,
  /* With its headers a whole frame is 32 KiB, which is what engines read and pass on at a time: then most frames arrive in
   * one piece, and the host need not put them together. */
  FRAME_DATA_MOST = 32 * 1024 - FRAME_HEADER - 8,
  OFFSET_BYTES = 8,
  TERMINAL_MOST = 128 * 1024,
};

static void on_readable(struct watch *watch, uint32_t events) {
  (void)events;
  ((struct output *)((char *)watch - offsetof(struct output, watch)))->readable = true;
}

void output_open(struct output *o, int fd, uint8_t type, bool is_pty) {
  *o = (struct output){.watch.fd = -1, .type = type, .is_pty = is_pty};
  if (fd >= 0) loop_add(&o->watch, fd, LOOP_INPUT, on_readable);
}

void output_close(struct output *o) {
  loop_close(&o->watch);
  ring_free(&o->ring);
}

static void drop(struct output *o) {
  static uint8_t nowhere[16 * 1024];
  long got = read(o->watch.fd, nowhere, sizeof nowhere);
  if (got > 0 || (got < 0 && errno == EINTR)) return; /* there may be more: the next turn looks again */
  o->readable = false;
  if (got == 0 || errno != EAGAIN) loop_close(&o->watch);
}

void output_fill(struct output *o, const struct share *share) {
  loop_want(&o->watch, LOOP_INPUT);
  uint64_t before = o->ring.end;
  uint32_t most = share->trust < KEPT_FIRST ? KEPT_FIRST : share->trust > KEPT_MOST ? KEPT_MOST : share->trust;
  if (o->discarding) {
    if (o->readable && o->watch.fd >= 0) drop(o);
    return;
  }
  while (o->readable && o->watch.fd >= 0) {
    long got = ring_read(&o->ring, o->watch.fd, most);
    if (got > 0) continue;
    if (got == RING_FULL) break; /* still readable */
    o->readable = false;
    /* A program that closed its terminal may open it again, and closing this side would hang it up. */
    if (got == RING_END && o->is_pty && !o->last_look) break;
    if (got != RING_EMPTY) loop_close(&o->watch);
  }
  pace_spend(o->ring.end - before);
}

bool output_hold(struct output *o) {
  if (!o->readable || o->watch.fd < 0) return false;
  loop_want(&o->watch, LOOP_NOTHING);
  return true;
}

void output_send(struct output *o, uint32_t stream, struct share *share) {
  while (o->sent < o->ring.end) {
    uint64_t most = o->ring.end - o->sent;
    if (most > FRAME_DATA_MOST) most = FRAME_DATA_MOST;
    if (most > share_room(share)) most = share_room(share);
    uint32_t length = (uint32_t)most;
    uint8_t *space = length == 0 ? NULL : host_data_begin(OFFSET_BYTES + length);
    if (space == NULL) return;
    write_u64(&(struct writer){.data = space, .capacity = OFFSET_BYTES}, o->sent);
    ring_copy(&o->ring, o->sent, space + OFFSET_BYTES, length);
    host_data_end(o->type, stream, OFFSET_BYTES + length);
    share_spend(share, length);
    o->sent += length;
  }
}

bool output_acknowledge(struct output *o, uint64_t offset, struct share *share) {
  if (offset < o->ring.start || offset > o->sent || !share_give_back(share, offset - o->ring.start)) return false;
  ring_release(&o->ring, offset);
  return true;
}

bool output_resume(struct output *o, uint64_t offset) {
  if (offset < o->ring.start || offset > o->ring.end) return false;
  ring_release(&o->ring, offset);
  o->sent = offset;
  return true;
}

void output_look_again(struct output *o) { o->last_look = o->readable = true; }

uint64_t output_waiting(const struct output *o) {
  int waiting;
  if (o->watch.fd < 0 || ioctl(o->watch.fd, FIONREAD, &waiting) != 0 || waiting < 0) return 0;
  /* A terminal also holds bytes where this call does not count them. */
  return (uint64_t)waiting + (o->is_pty ? TERMINAL_MOST : 0);
}

void output_discard(struct output *o) { o->discarding = true; }
