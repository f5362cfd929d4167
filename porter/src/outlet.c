#include "outlet.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "host.h"

enum {
  FRAME_DATA_MOST = 32 * 1024,
  /* While some is under way, less than this is not worth a frame. */
  FRAME_DATA_LEAST = 1024,
  SHARE = 4,
};

static void on_readable(struct watch *watch, uint32_t events) {
  (void)events;
  ((struct outlet *)((char *)watch - offsetof(struct outlet, watch)))->readable = true;
}

void outlet_open(struct outlet *o, int fd, uint32_t stream, uint8_t type) {
  *o = (struct outlet){.stream = stream, .type = type};
  loop_add(&o->watch, fd, EPOLLIN | EPOLLET, on_readable);
}

void outlet_close(struct outlet *o) {
  loop_close(&o->watch);
  host_give_back(o->under_way);
  o->under_way = 0;
}

void outlet_pump(struct outlet *o) {
  while (o->watch.fd >= 0 && o->readable) {
    /* Never more than a part of what is left: so many slow readers as there may be, the connection stays usable. */
    uint32_t share = host_credit() / SHARE;
    if (share > host_stream_window()) share = host_stream_window();
    uint32_t most = o->under_way < share ? share - o->under_way : 0;
    if (most < FRAME_DATA_LEAST && o->under_way > 0) return;
    if (most > FRAME_DATA_MOST) most = FRAME_DATA_MOST;
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
  host_give_back(bytes);
}
