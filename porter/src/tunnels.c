#include "tunnels.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "host.h"
#include "input.h"
#include "numbers.h"
#include "outlet.h"
#include "pace.h"
#include "quota.h"
#include "streams.h"
#include "wire.h"

enum {
  MAX_TUNNELS = 1024,
  /* Two descriptors each, so these take at most half of all. */
  DESCRIPTOR_PART = 4,
  /* Most clients speak first, and at once. One that waits for its server loses no more than this. */
  FIRST_BYTES_MS = 1,
};

struct tunnel {
  uint32_t stream; /* 0: over, freed on the next turn */
  struct watch connecting;
  struct outlet out;
  struct input in;
  int first_failure; /* of the two addresses of `localhost` */
  uint16_t port;     /* not 0: there is a second address to try */
  bool end_told;     /* the socket's end was passed on */
  bool resetting;    /* its descriptors are closed; over as soon as the host was told */
  int reason;
};

/* Dense: the first `count` are there. Freed only by tunnels_pump, because a host may be lost in the middle of anything. */
static struct tunnel *tunnels[MAX_TUNNELS];
static uint32_t count;

static struct tunnel *find(uint32_t stream) {
  for (uint32_t i = 0; stream != 0 && i < count; i++) {
    if (tunnels[i]->stream == stream) return tunnels[i];
  }
  return NULL;
}

static struct tunnel *make(uint32_t stream) {
  struct tunnel *t = count < quota(MAX_TUNNELS, DESCRIPTOR_PART) ? malloc(sizeof *t) : NULL;
  if (t == NULL) return NULL;
  *t = (struct tunnel){.stream = stream, .connecting.fd = -1, .out.watch.fd = -1, .in.watch.fd = -1};
  tunnels[count++] = t;
  return t;
}

static void close_descriptors(struct tunnel *t, bool with_reset) {
  if (with_reset) {
    socket_will_reset(t->out.watch.fd);
    socket_will_reset(t->in.watch.fd);
  }
  loop_close(&t->connecting);
  loop_close(&t->out.watch);
  input_close(&t->in);
}

/* Over by a reset, from either side. What is under way counts until the host was told: only then does it stop counting too. */
static void reset(struct tunnel *t, int reason) {
  if (t->resetting) return;
  close_descriptors(t, true);
  t->resetting = true;
  t->reason = reason;
}

static void write_failure(struct writer *w, int failure) {
  write_u32(w, (uint32_t)failure);
  write_text(w, strerror(failure));
}

static void tell_failed(uint32_t stream, int failure) {
  uint8_t payload[256];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_failure(&w, failure);
  host_control(FRAME_FAILED, stream, &w);
}

static void fail(struct tunnel *t, int failure) {
  uint32_t stream = t->stream;
  close_descriptors(t, false);
  t->stream = 0;
  tell_failed(stream, t->first_failure != 0 ? t->first_failure : failure);
}

/* The socket is connected. Each direction has a descriptor of its own, because epoll takes one only once. */
static int open_both(struct tunnel *t, int fd) {
  int second = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (second < 0) return EAGAIN;
  if (quota_is_last(second)) {
    close(second);
    return EAGAIN;
  }
  socket_hurry(fd);
  outlet_open(&t->out, fd, t->stream, FRAME_STREAM_OUT);
  t->out.is_paced = true;
  input_open(&t->in, second, t->stream, false);
  t->in.is_socket = true;
  return 0;
}

static void connected(struct tunnel *t, int fd) {
  int failure = open_both(t, fd);
  if (failure == 0) host_empty(FRAME_CONNECTED, t->stream);
  else {
    close(fd);
    fail(t, failure);
  }
}

static void dial(struct tunnel *t, const struct address *to);

static void dial_failed(struct tunnel *t, int failure) {
  uint16_t port = t->port;
  if (port == 0) {
    fail(t, failure);
    return;
  }
  struct address second;
  address_loopback6(&second, port);
  t->port = 0;
  t->first_failure = failure;
  dial(t, &second);
}

static void on_connecting(struct watch *watch, uint32_t events) {
  (void)events;
  struct tunnel *t = (struct tunnel *)((char *)watch - offsetof(struct tunnel, connecting));
  int failure = 0, fd = watch->fd;
  socklen_t length = sizeof failure;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &length) != 0) failure = errno;
  loop_release(watch);
  if (failure == 0) {
    connected(t, fd);
    return;
  }
  close(fd);
  dial_failed(t, failure);
}

static void dial(struct tunnel *t, const struct address *to) {
  int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int failure = fd < 0 || connect(fd, &to->any, to->length) != 0 ? errno : 0;
  if (failure == 0) connected(t, fd);
  else if (failure == EINPROGRESS) loop_add(&t->connecting, fd, EPOLLOUT, on_connecting);
  else {
    if (fd >= 0) close(fd);
    dial_failed(t, failure == EMFILE || failure == ENFILE ? EAGAIN : failure);
  }
}

static void on_connect(const struct frame *frame) {
  struct reader r = {.at = frame->payload, .end = frame->payload + frame->length};
  uint32_t kind = read_u32(&r);
  struct bytes text = read_bytes(&r);
  uint16_t port = read_u16(&r);
  struct address to;
  if (!reader_done(&r) || !stream_is_hosts(frame->stream) || find(frame->stream) != NULL) {
    host_violation("a connect that cannot be");
    return;
  }
  number_use(frame->stream);
  int failure = kind == ADDRESS_DNS ? EINVAL : address_read(&to, kind, text, port);
  struct tunnel *t = failure == 0 ? make(frame->stream) : NULL;
  if (t == NULL) {
    tell_failed(frame->stream, failure == 0 ? EAGAIN : failure);
    return;
  }
  if (kind == ADDRESS_TCP && address_is_localhost(text)) t->port = port;
  dial(t, &to);
}

int tunnels_accepted(int fd, uint32_t listener, const struct address *peer) {
  struct tunnel *t = make(streams_next());
  if (t == NULL || t->stream == 0) return EAGAIN;
  int failure = open_both(t, fd);
  if (failure != 0) {
    t->stream = 0;
    return failure;
  }
  char text[ADDRESS_TEXT];
  uint8_t payload[ACCEPTED_MOST];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u32(&w, listener);
  write_bytes(&w, text, address_write(peer, text));
  write_u16(&w, address_port(peer));
  /* Among the data, so that the numbers arrive in order. */
  host_ordered_later(FRAME_ACCEPTED, t->stream, &w, FIRST_BYTES_MS);
  /* Perhaps: the first bytes may be here already, and asking costs less than another turn. */
  t->out.readable = true;
  return 0;
}

/* Both sides have ended and everything was given back. The host comes to that by the same rule, so none has to ask the other. */
static bool is_over(const struct tunnel *t) {
  return t->end_told && t->in.ending && t->in.watch.fd < 0 && t->in.failure == 0 && t->out.share.under_way == 0;
}

static void on_stream(struct tunnel *t, const struct frame *frame) {
  if (t->resetting || t->in.failure != 0) return; /* the host learns of it in a moment */
  if (t->connecting.fd >= 0 || t->in.ending) host_violation("data where none may be");
  else {
    pace_earn();
    input_take(&t->in, frame->payload, frame->length);
  }
}

bool tunnels_frame(const struct frame *frame) {
  if (frame->type == FRAME_CONNECT) {
    on_connect(frame);
    return true;
  }
  struct tunnel *t = find(frame->stream);
  struct reader r = {.at = frame->payload, .end = frame->payload + frame->length};
  if (t == NULL) return false;
  switch (frame->type) {
    case FRAME_STREAM:
      on_stream(t, frame);
      break;
    case FRAME_CREDIT: {
      uint32_t bytes = read_u32(&r);
      if (!t->resetting) outlet_credit(&t->out, bytes);
      break;
    }
    case FRAME_RESET:
      /* Sent before the host had read the end that crosses it: by what it reads next it is over there too, without an answer. */
      if (t->resetting || !is_over(t)) reset(t, 0);
      break;
    default:
      return false;
  }
  return true;
}

void tunnels_host_gone(void) {
  for (uint32_t i = 0; i < count; i++) {
    close_descriptors(tunnels[i], true);
    tunnels[i]->stream = 0;
    tunnels[i]->out.share.under_way = 0; /* the connection's account is the next host's by now */
  }
}

/* What the socket still has is passed on before its failure is told. */
static void move(struct tunnel *t) {
  if (t->in.failure != 0) t->out.readable = true;
  outlet_pump(&t->out);
  if (outlet_at_end(&t->out) && t->out.failure != 0) reset(t, t->out.failure);
  else if (t->in.failure != 0 && (outlet_at_end(&t->out) || !t->out.readable)) reset(t, t->in.failure);
  else if (outlet_at_end(&t->out) && !t->end_told) {
    uint8_t nothing[1];
    t->end_told = host_ordered(FRAME_STREAM_OUT, t->stream, &(struct writer){.data = nothing});
  }
}

static bool tell_reset(const struct tunnel *t) {
  uint8_t payload[4];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u32(&w, (uint32_t)t->reason);
  return host_ordered(FRAME_RESET_OUT, t->stream, &w);
}

/* True when it is over. */
static bool pump(struct tunnel *t) {
  if (t->stream == 0) return true;
  if (t->connecting.fd >= 0) return false;
  if (!t->resetting) move(t);
  if (t->resetting) return tell_reset(t);
  return is_over(t);
}

int tunnels_pump(uint64_t now_ms) {
  (void)now_ms;
  static uint32_t first;
  uint32_t length = count;
  bool waits = false;
  first++;
  for (uint32_t i = 0; i < length; i++) {
    struct tunnel *t = tunnels[(first + i) % length];
    if (pump(t)) {
      t->stream = 0;
      outlet_over(&t->out);
    } else if (outlet_waits(&t->out)) waits = true;
  }
  for (uint32_t i = 0; i < count;) {
    if (tunnels[i]->stream != 0) {
      i++;
      continue;
    }
    free(tunnels[i]);
    tunnels[i] = tunnels[--count];
  }
  return waits ? pace_wait_ms() : -1;
}
