#include "outlet.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "host.h"
#include "pace.h"

enum { FRAME_DATA_MOST = 32 * 1024 };

static void on_readable(struct watch *watch, uint32_t events) {
  (void)events;
  ((struct outlet *)((char *)watch - offsetof(struct outlet, watch)))->readable = true;
}

void outlet_open(struct outlet *o, int fd, uint32_t stream, uint8_t type) {
  *o = (struct outlet){.stream = stream, .type = type, .share.trust = SHARE_FIRST_FILE};
  loop_add(&o->watch, fd, LOOP_INPUT, on_readable);
}

void outlet_close(struct outlet *o) { loop_close(&o->watch); }

void outlet_over(struct outlet *o) {
  loop_close(&o->watch);
  share_end(&o->share);
}

void outlet_pump(struct outlet *o) {
  loop_want(&o->watch, LOOP_INPUT);
  while (o->watch.fd >= 0 && o->readable) {
    if (o->is_paced && !pace_allows()) {
      loop_want(&o->watch, LOOP_NOTHING);
      return;
    }
    uint32_t most = share_room(&o->share);
    if (most > FRAME_DATA_MOST) most = FRAME_DATA_MOST;
    uint8_t *space = most == 0 ? NULL : host_data_begin(most);
    if (space == NULL) return;
    long got = read(o->watch.fd, space, most);
    if (got > 0) {
      host_data_end(o->type, o->stream, (uint32_t)got);
      share_spend(&o->share, (uint32_t)got);
      if (o->is_paced) pace_spend((uint64_t)got);
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
  if (!share_give_back(&o->share, bytes)) host_violation("gave back more than was under way");
}
