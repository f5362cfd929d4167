#include "outlet.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "host.h"

enum {
  FRAME_DATA_MOST = 32 * 1024,
  /* What a stream may have under way before its reader has shown that it reads. */
  FIRST_TRUST = 8 * 1024,
};

/*
 * The connection's credit is shared by all streams, and what a stream has under way that nobody reads is lost to the
 * others. So a stream gets more only as its reader takes more, and never more than a third of what it leaves to the others:
 * however many are not read, there is something left for one that is.
 */
static uint32_t may_send(const struct outlet *o) {
  uint32_t credit = host_credit();
  uint32_t most = o->trust > host_stream_window() ? host_stream_window() : o->trust;
  uint32_t fair = credit / 3 > o->under_way ? (credit - 3 * o->under_way) / 4 + 1 : 0;
  most = o->under_way < most ? most - o->under_way : 0;
  if (most > fair) most = fair;
  if (most > credit) most = credit;
  return most > FRAME_DATA_MOST ? FRAME_DATA_MOST : most;
}

static void on_readable(struct watch *watch, uint32_t events) {
  (void)events;
  ((struct outlet *)((char *)watch - offsetof(struct outlet, watch)))->readable = true;
}

void outlet_open(struct outlet *o, int fd, uint32_t stream, uint8_t type) {
  *o = (struct outlet){.stream = stream, .type = type, .trust = FIRST_TRUST};
  loop_add(&o->watch, fd, EPOLLIN | EPOLLET, on_readable);
}

void outlet_close(struct outlet *o) {
  loop_close(&o->watch);
  host_give_back(o->under_way);
  o->under_way = 0;
}

void outlet_pump(struct outlet *o) {
  while (o->watch.fd >= 0 && o->readable) {
    uint32_t most = may_send(o);
    uint8_t *space = most == 0 ? NULL : host_data_begin(most);
    if (space == NULL) return;
    long got = read(o->watch.fd, space, most);
    if (got > 0) {
      host_data_end(o->type, o->stream, (uint32_t)got);
      host_spend((uint32_t)got);
      o->under_way += (uint32_t)got;
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    o->readable = false;
    if (got < 0 && errno == EAGAIN) return;
    o->failure = got < 0 ? errno : 0;
    loop_close(&o->watch);
  }
}

void outlet_credit(struct outlet *o, uint32_t bytes) {
  if (bytes > o->under_way) {
    host_violation("gave back more than was under way");
    return;
  }
  o->under_way -= bytes;
  if (o->trust < HOST_MAX_WINDOW) o->trust += bytes;
  host_give_back(bytes);
}
